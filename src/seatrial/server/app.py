"""A server: the application with its operations, probes and figures, and how it runs until a stop is requested."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from difflib import get_close_matches

from litestar import Litestar, Request, Response, get
from litestar.datastructures import State
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

from seatrial._support import wire
from seatrial.agents.agent import Agent
from seatrial.errors import SeatrialError
from seatrial.explorer.routes import PAGE, page_router
from seatrial.server.access import Keys
from seatrial.server.driving import Limits
from seatrial.server.feed import Feeds
from seatrial.server.listener import alongside, http_server, listening_at, url_of
from seatrial.server.logs import log
from seatrial.server.maintenance import Readiness, keep_for
from seatrial.server.metrics import CONTENT_TYPE, Metrics
from seatrial.server.middleware import BODIES, DOCUMENT, Middleware
from seatrial.server.openapi import OpenApiDocument, openapi_document, query_names
from seatrial.server.problems import on_error
from seatrial.server.routes import OPERATIONS
from seatrial.server.service import RunService
from seatrial.server.settings import ServerSettings
from seatrial.server.sign_in import sign_in_router
from seatrial.server.visits import check_form, visit_in
from seatrial.store import Store, identifier
from seatrial.suites.secrets import Secrets

PROVIDED = ("service", "feeds", "store")
"""Parameters of operations that no client gives."""


@functools.cache
def document() -> OpenApiDocument:
    """The OpenAPI document of every server."""
    return openapi_document(OPERATIONS, PROVIDED)


def build_app(
    store: Store, feeds: Feeds, service: RunService, settings: ServerSettings, keys: Keys, metrics: Metrics
) -> ASGIApp:
    """The whole server as one ASGI application."""
    published = wire.encode(document())
    queries = query_names(document())
    readiness = Readiness(store)

    @get("/healthz", sync_to_thread=False)
    def healthz() -> Response[bytes]:
        return _text("ok")

    @get("/readyz")
    async def readyz() -> Response[bytes]:
        if not service.ready:
            raise SeatrialError("shutting_down", "the server is about to stop")
        await readiness.check()
        return _text("ok")

    @get("/metrics", sync_to_thread=False)
    def figures() -> Response[bytes]:
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    @get(DOCUMENT, sync_to_thread=False)
    def openapi() -> Response[bytes]:
        return Response(published, media_type="application/vnd.oai.openapi+json")

    async def check(request: Request[object, object, State]) -> None:
        if PAGE in request.route_handler.opt:
            if request.method in BODIES:
                await check_form(request)
            return
        if request.method in BODIES and visit_in(request).key is not None:
            # Any page that the browser shows could make it send one.
            raise SeatrialError("forbidden", "a session may only send forms", hint="send the key with the request")
        operation = request.route_handler.operation_id if isinstance(request.route_handler, HTTPRouteHandler) else None
        _check_query(request, queries.get(str(operation), frozenset()))
        _check_path(request)

    litestar = Litestar(
        [*OPERATIONS, healthz, readyz, figures, openapi, page_router(), sign_in_router(store, keys, settings)],
        dependencies={
            "service": Provide(lambda: service, sync_to_thread=False),
            "feeds": Provide(lambda: feeds, sync_to_thread=False),
            "store": Provide(lambda: store, sync_to_thread=False),
        },
        exception_handlers={Exception: on_error},
        before_request=check,
        # The middleware has read the body, and measured it.
        request_max_body_size=None,
        openapi_config=None,
        logging_config=None,
    )
    return Middleware(litestar, settings, keys, metrics)


def _check_query(request: Request[object, object, State], known: frozenset[str]) -> None:
    """Refuse an unknown parameter, or one that is given twice, instead of ignoring it."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(sorted(known)) or 'none'}"
            raise SeatrialError("invalid_request", f"unknown parameter {name[:80]!r}", hint=hint)
    if len(set(names)) < len(names):
        raise SeatrialError("invalid_request", "a parameter is given more than once")
    if any("\0" in value for _, value in request.query_params.multi_items()):
        raise SeatrialError("invalid_request", "a parameter contains NUL")


def _check_path(request: Request[object, object, State]) -> None:
    """Answer `not_found` for an id that no store can hold."""
    for name, value in request.path_params.items():
        try:
            identifier(name, str(value))
        except SeatrialError:
            raise SeatrialError("not_found", f"nothing has such a {name}") from None


def _text(text: str) -> Response[bytes]:
    return Response(text.encode(), media_type="text/plain; charset=utf-8")


class Stopping:
    """A request to stop a server."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()

    async def wait(self) -> None:
        """Wait until a stop is requested."""
        await self._asked.wait()

    def ask(self) -> None:
        """Request a graceful stop."""
        self._asked.set()


async def serve(
    store: Store,
    agents: Mapping[str, Agent],
    settings: ServerSettings,
    *,
    limits: Mapping[str, Limits] | None = None,
    secrets: Secrets | None = None,
    stopping: Stopping,
    announce: Callable[[str], None],
) -> None:
    """Serve until a stop is requested, then shut down gracefully.

    Running runs get time to finish, and their subscribers see it. Then the remaining streams end with a hint to
    reconnect, and the connections are closed.
    """
    settings.check()
    await _check_exposure(store, settings)
    keys = Keys(store, may_be_open=settings.loopback)
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(listening_at(settings.host, settings.port))
        feeds = Feeds(store, keepalive_s=settings.keepalive_s, send_timeout_s=settings.send_timeout_s)
        service = RunService(
            store,
            feeds,
            agents,
            limits=limits,
            secrets=secrets,
            drain_s=settings.drain_s,
            push_idle_s=settings.push_idle_s,
        )
        metrics = Metrics(
            {
                "seatrial_runs_active": ("Runs that this server drives, waiting ones included", lambda: service.active),
                "seatrial_subscribers": ("Streams that are being followed", lambda: feeds.subscribers),
            }
        )
        app = build_app(store, feeds, service, settings, keys, metrics)
        background: list[Coroutine[object, object, object]] = [keys.watch()]
        if settings.retention_days is not None:
            background.append(keep_for(store, settings.retention_days))
        await stack.enter_async_context(alongside(*background))
        async with http_server(app, listening):
            async with service:
                store.note_address(url_of(listening))
                announce(url_of(listening))
                await stopping.wait()
                log("stopping")
            await feeds.close()
    log("stopped")


async def _check_exposure(store: Store, settings: ServerSettings) -> None:
    if not settings.loopback and not await asyncio.to_thread(store.keyring.exists):
        raise SeatrialError(
            "usage",
            f"a server at {settings.host} can be reached by others, and the store has no keys",
            hint="make one with `seatrial keys add NAME --scope run`, or serve at 127.0.0.1",
        )
