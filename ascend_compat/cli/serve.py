"""``ascend-compat serve``: the check over HTTP."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import click

from ascend_compat.errors import UsageError

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8470, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 takes a free one."
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False),
    help="File of the token that clients send (or ASCEND_COMPAT_TOKEN).",
)
@click.option("--open", "open_", is_flag=True, help="Listen beyond loopback without a token.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), help="Certificate, for HTTPS.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), help="Its private key.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 64), help="Checks at the same time.")
@click.option(
    "--waiting",
    default=64,
    show_default=True,
    type=click.IntRange(0, 10_000),
    help="Requests that may wait for a worker.",
)
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.1, 600), help="Longest answer.")
@click.option(
    "--reload-every",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0.1, 86400),
    help="Seconds between looks for new data.",
)
def serve(
    host: str,
    port: int,
    token_file: str | None,
    open_: bool,
    tls_cert: str | None,
    tls_key: str | None,
    workers: int,
    waiting: int,
    seconds: float,
    reload_every: float,
) -> None:
    """Answer checks over HTTP, and admission requests of a Kubernetes cluster; read-only.

    New data is taken in without dropping a request: on SIGHUP, and within --reload-every seconds. SIGTERM ends it cleanly.
    """
    try:
        import uvicorn

        from ascend_compat.service.app import Settings, application
    except ImportError as error:
        raise UsageError(
            f"serve needs more packages ({error.name} is missing): pip install 'ascend-compat[serve]'"
        ) from None
    token = _token(token_file)
    if host not in _LOOPBACK and token is None and not open_:
        raise UsageError(f"listening on {host} needs a token (--token-file), or --open to let everyone in")
    if (tls_cert is None) != (tls_key is None):
        raise UsageError("--tls-cert and --tls-key go together")
    settings = Settings(token, workers, waiting, seconds, reload_every)
    config = uvicorn.Config(
        application(settings), host=host, port=port, log_level="warning", access_log=False, server_header=False,
        lifespan="on", ssl_certfile=tls_cert, ssl_keyfile=tls_key, timeout_graceful_shutdown=int(seconds) + 2,
        timeout_keep_alive=30, h11_max_incomplete_event_size=16_384,
    )  # fmt: skip
    # uvicorn raises the signal that ended it once more; after a clean shutdown there is nothing left to end
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server = uvicorn.Server(config)
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {(error.strerror or str(error)).lower()}") from None
        scheme = "https" if tls_cert else "http"
        click.echo(f"{scheme}://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}", err=True)
        server.run(sockets=[listener])


def _token(file: str | None) -> str | None:
    if file is None:
        return os.environ.get("ASCEND_COMPAT_TOKEN") or None
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the token in {file}: {error}") from None
    if not token:
        raise UsageError(f"{file} holds no token")
    return token
