"""The ASGI application: routes, limits, reload."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ascend_compat._version import __version__
from ascend_compat.errors import CompatError
from ascend_compat.report import json_report
from ascend_compat.service import admission, requests
from ascend_compat.service.openapi import description
from ascend_compat.service.pool import Pool
from ascend_compat.service.requests import MAX_BODY, MAX_NAME, BadRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ascend_compat.check.engine import Engine

T = TypeVar("T")
_LOG = logging.getLogger("ascend_compat.service")
_BODY_SECONDS = 10.0
_DISCARDED = 16_000_000

_LISTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "models": ("SELECT id, name_en, name_zh, family, type, modality, hf_ids FROM model", ("family",)),
    "features": ('SELECT id, "group", name_en, name_zh, what_en, what_zh FROM feature', ("group",)),
    "releases": ("SELECT product, release, ordinal, date, date_of FROM release", ("product",)),
    "cells": (
        'SELECT product, release, framework, model, "column", status, condition, condition_zh, source FROM cell',
        ("product", "release", "framework", "model", "status"),
    ),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a service behaves. ``seconds`` bound one answer; ``waiting`` requests may wait for a worker; ``every`` is in seconds."""

    token: str | None = None
    workers: int = 2
    waiting: int = 64
    seconds: float = 10.0
    every: float = 30.0


class Service:
    """State of one application: the pool, its threads, and how many requests are in."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.pool = Pool(settings.workers)
        self.threads = ThreadPoolExecutor(settings.workers, thread_name_prefix="check")
        self.inside = 0

    async def run(self, work: Callable[[Engine], T]) -> T:
        """``work`` on a worker, within the limits; raises HTTPException 429 or 503."""
        if self.inside >= self.settings.workers + self.settings.waiting:
            raise HTTPException(429, "too many requests at once", {"Retry-After": "1"})
        self.inside += 1
        running: list[Engine] = []
        future = asyncio.get_running_loop().run_in_executor(self.threads, self.pool.run, work, running)
        future.add_done_callback(self._left)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.settings.seconds)
        except asyncio.TimeoutError:
            future.cancel()
            for engine in running:
                engine.con.interrupt()
            raise HTTPException(503, "the answer took too long") from None

    def _left(self, future: asyncio.Future[Any]) -> None:
        self.inside -= 1
        if not future.cancelled():
            future.exception()

    async def watch(self) -> None:
        """Look for new data from time to time, and whenever ``SIGHUP`` says so."""
        wake = asyncio.Event()
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError, AttributeError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, wake.set)
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(wake.wait(), self.settings.every)
            wake.clear()
            try:
                if await asyncio.to_thread(self.pool.reload):
                    _LOG.warning("new data: %s", self.pool.content)
            except (CompatError, OSError) as error:
                _LOG.error("the data did not load, the old goes on answering: %s", error)

    def close(self) -> None:
        """Wait for what runs, then close the database."""
        self.threads.shutdown(wait=True, cancel_futures=True)
        self.pool.close()


def application(settings: Settings) -> Starlette:
    """The application; the matrix is opened when it starts."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.service = service = await asyncio.to_thread(Service, settings)
        watcher = asyncio.create_task(service.watch())
        try:
            yield
        finally:
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watcher
            await asyncio.to_thread(service.close)

    document = description()

    async def openapi(_: Request) -> Response:
        return JSONResponse(document)

    routes = [
        Route("/v1/check", _guarded(_check), methods=["POST"]),
        Route("/v1/admission", _guarded(_admission), methods=["POST"]),
        *(Route(f"/v1/{name}", _guarded(_listing(name)), methods=["GET"]) for name in _LISTS),
        Route("/healthz", _health, methods=["GET"]),
        Route("/openapi.json", openapi, methods=["GET"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _refused})


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)


def _guarded(handler: Any) -> Any:
    """A handler behind the token; what a client did wrong is 400 with its sentence."""

    async def guarded(request: Request) -> Response:
        service: Service = request.app.state.service
        token = service.settings.token
        if token is not None:
            given = request.headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
                raise HTTPException(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
        try:
            answer: Response = await handler(request, service)
        except BadRequest as error:
            raise HTTPException(400, str(error)) from None
        return answer

    return guarded


async def _body(request: Request) -> bytes:
    """The body, at most :data:`MAX_BODY` bytes of it, within :data:`_BODY_SECONDS`.

    Of a larger one up to :data:`_DISCARDED` bytes are read and dropped before it is refused: a connection closed
    under a client that still writes is reset, and the client never sees why.
    """
    length = 0

    async def gather() -> bytes:
        nonlocal length
        parts = bytearray()
        async for part in request.stream():
            length += len(part)
            if length > _DISCARDED:
                break
            if length > MAX_BODY:
                parts.clear()
            else:
                parts += part
        return bytes(parts)

    too_large = HTTPException(413, f"the body is larger than {MAX_BODY // 1_000_000} MB", {"Connection": "close"})
    stated = request.headers.get("content-length", "0")
    if stated.isdecimal() and int(stated) > MAX_BODY and "expect" in request.headers:
        raise too_large
    try:
        body = await asyncio.wait_for(gather(), _BODY_SECONDS)
    except asyncio.TimeoutError:
        if length > MAX_BODY:
            raise too_large from None
        raise HTTPException(408, "the body did not arrive in time", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise BadRequest("the client went away") from None
    if length > MAX_BODY:
        raise too_large
    return body


def _language(request: Request) -> str:
    language = request.query_params.get("lang", "en")
    if language not in ("en", "zh"):
        raise BadRequest("lang is en or zh")
    return language


async def _check(request: Request, service: Service) -> Response:
    language = _language(request)
    asked = requests.question(requests.parse(await _body(request)))

    def work(engine: Engine) -> str:
        return json_report.render(requests.answer(engine, asked), language)

    return Response(await service.run(work), media_type="application/json")


async def _admission(request: Request, service: Service) -> Response:
    language = _language(request)
    body = requests.parse(await _body(request))
    return JSONResponse(await service.run(lambda engine: admission.review(engine, body, language)))


def _listing(name: str) -> Any:
    select, filters = _LISTS[name]

    async def listing(request: Request, service: Service) -> Response:
        where, values = [], []
        for key, value in request.query_params.multi_items():
            if key in filters:
                if not value or len(value) > MAX_NAME or "\0" in value:
                    raise BadRequest(f"{key} is not a text of 1 to {MAX_NAME} characters")
                where.append(f'"{key}" = ?')
                values.append(value)
            elif key not in ("limit", "offset"):
                raise BadRequest(
                    f"unknown parameter {key[:MAX_NAME]!r}; known are {', '.join((*filters, 'limit', 'offset'))}"
                )
        limit, offset = _number(request, "limit", 100, 1, 1000), _number(request, "offset", 0, 0, 1_000_000)
        sql = f"{select} WHERE {' AND '.join(where)}" if where else select

        def work(engine: Engine) -> dict[str, Any]:
            total = engine.con.execute(f"SELECT count(*) FROM ({sql})", values).fetchall()[0][0]
            found = engine.con.execute(f"{sql} ORDER BY ALL LIMIT {limit} OFFSET {offset}", values)
            columns = [column[0] for column in found.description or ()]
            return {"total": total, "rows": [dict(zip(columns, row)) for row in found.fetchall()]}

        return JSONResponse(await service.run(work))

    return listing


def _number(request: Request, name: str, default: int, least: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise BadRequest(f"{name} is not a whole number from {least} to {most}")
    return int(text)


async def _health(request: Request) -> Response:
    service: Service = request.app.state.service
    return JSONResponse({"status": "ok", "content": service.pool.content, "version": __version__})
