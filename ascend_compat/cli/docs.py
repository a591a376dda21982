"""``ascend-compat docs``: support documentation made from the matrix."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ascend_compat.cli.options import write
from ascend_compat.errors import UsageError

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group()
def docs() -> None:
    """Make the support documentation from the matrix."""


@docs.command()
@click.option("--out", type=_FOLDER, default=Path("site"), show_default=True, help="Folder to write to.")
@click.option(
    "--lang", type=click.Choice(["en", "zh", "both"]), default="both", show_default=True, help="Languages to write."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "markdown"]),
    default="html",
    show_default=True,
    help="A site, or plain Markdown for another site.",
)
def build(out: Path, lang: str, form: str) -> None:
    """Write all pages, with a JSON twin beside each."""
    from ascend_compat.docs.build import LANGUAGES
    from ascend_compat.docs.build import build as make
    from ascend_compat.matrix.store import connect

    try:
        count = make(connect(), out, LANGUAGES if lang == "both" else (lang,), form)
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}") from error
    write(f"{count} pages in {out}")


@docs.command()
@click.option("--out", type=_FOLDER, default=Path("site"), show_default=True, help="Folder that holds the site.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 for any free one.")
def serve(out: Path, port: int) -> None:
    """Show a built site on this machine alone, until Ctrl-C."""
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    if not (out / "index.html").is_file():
        raise UsageError(f"no site in {out}; make one first: ascend-compat docs build --out {out}")
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=str(out)))
    except OSError as error:
        raise UsageError(f"cannot listen on port {port}: {error.strerror}") from error
    with server:
        write(f"http://127.0.0.1:{server.server_port}/")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


@docs.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def update(files: tuple[Path, ...]) -> None:
    """Make the generated parts of Markdown FILES anew.

    A part stands between `<!-- generated: NAME ARGUMENTS -->` and `<!-- /generated -->`. NAME is counts, releases PRODUCT,
    matrix PRODUCT RELEASE FRAMEWORK, or health PRODUCT; `lang=zh` at the end gives Chinese.
    """
    for path, before, after in _updates(files):
        if after != before:
            path.write_text(after, encoding="utf-8", newline="\n")
            write(f"updated {path}")


@docs.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Say which Markdown FILES have generated parts that are out of date; exit code 1 if any."""
    import difflib

    stale = 0
    for path, before, after in _updates(files):
        if after != before:
            stale += 1
            lines = difflib.unified_diff(
                before.splitlines(), after.splitlines(), str(path), f"{path} (made anew)", lineterm=""
            )
            write("\n".join(lines))
    if stale:
        write(f"{stale} out of date; run: ascend-compat docs update FILE")
        sys.exit(1)


@docs.command()
@click.argument("model")
@click.option("--framework", help="With --feature: the badge of one claim.")
@click.option("--feature", help="With --framework: the badge of one claim.")
def badge(model: str, framework: str | None, feature: str | None) -> None:
    """Print the badge (SVG) of MODEL, or of one of its claims, as the AscendFactory release that states it last has it."""
    from ascend_compat.docs.listing import badges
    from ascend_compat.matrix.names import Names
    from ascend_compat.matrix.store import connect

    if (framework is None) != (feature is None):
        raise UsageError("--framework and --feature go together")
    con = connect()
    names = Names(con)
    found = names.model(model)
    if found is None:
        raise UsageError(f"no model is called {model!r}")
    wanted = f"models/{found.id}"
    if framework and feature:
        wanted = f"{names.framework(framework)}/{found.id}/{names.feature(feature)}"
    svg = dict(badges(con)).get(wanted)
    if svg is None:
        raise UsageError(f"no AscendFactory release states {feature} of {found.id} in {framework}")
    write(svg.rstrip())


def _updates(files: tuple[Path, ...]) -> list[tuple[Path, str, str]]:
    from ascend_compat.docs.update import updated
    from ascend_compat.matrix.store import connect

    con = connect()
    made = []
    for path in files:
        try:
            before = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {path}: {error}") from error
        made.append((path, before, updated(con, before, str(path))))
    return made
