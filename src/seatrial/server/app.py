"""The application: the operations, the probes, the figures and the document, behind the middleware."""

from __future__ import annotations

import functools
from difflib import get_close_matches

from litestar import Litestar, Request, Response, get
from litestar.datastructures import State
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.server.access import Keys
from seatrial.server.feed import Feeds
from seatrial.server.maintenance import Readiness
from seatrial.server.metrics import CONTENT_TYPE, Metrics
from seatrial.server.middleware import DOCUMENT, Middleware
from seatrial.server.openapi import OpenApiDocument, openapi_document, query_names
from seatrial.server.problems import on_error
from seatrial.server.routes import OPERATIONS
from seatrial.server.service import RunService
from seatrial.server.settings import ServerSettings
from seatrial.store import Store, identifier

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

    def check(request: Request[object, object, State]) -> None:
        operation = request.route_handler.operation_id if isinstance(request.route_handler, HTTPRouteHandler) else None
        _check_query(request, queries.get(str(operation), frozenset()))
        _check_path(request)

    litestar = Litestar(
        [*OPERATIONS, healthz, readyz, figures, openapi],
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
    """Refuse what would be overlooked: a parameter that there is not, or that is given twice."""
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
    """Nothing has an id that no store can keep."""
    for name, value in request.path_params.items():
        try:
            identifier(name, str(value))
        except SeatrialError:
            raise SeatrialError("not_found", f"nothing has such a {name}") from None


def _text(text: str) -> Response[bytes]:
    return Response(text.encode(), media_type="text/plain; charset=utf-8")
