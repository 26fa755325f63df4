"""What every request passes before a route sees it, and every response on its way out.

Plain ASGI, and nothing of it stands between a stream and its connection once the stream has begun: a response is
looked at when it starts, and its body goes past.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable
from typing import cast

from litestar.datastructures import Headers
from litestar.enums import ScopeType
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp, HTTPScope, Message, Receive, ReceiveMessage, Scope, Send

from seatrial.errors import SeatrialError
from seatrial.explorer.assets import FOLDER
from seatrial.runs.served import ApiKey
from seatrial.server.access import Keys, check_host, check_origin, check_scope
from seatrial.server.listener import CONNECTION, MAX_HEAD_BYTES
from seatrial.server.logs import REQUEST, log
from seatrial.server.metrics import Metrics
from seatrial.server.problems import CODE, RefusedError, problem_response
from seatrial.server.rates import Rates
from seatrial.server.settings import ServerSettings
from seatrial.server.sign_in import UNSIGNED, may_sign_in, to_sign_in
from seatrial.server.visits import VISIT, visit_of

PUBLIC = frozenset({"/healthz", "/readyz"})
"""For probes, which have no key and do not know the server's name."""
DOCUMENT = "/schema/openapi.json"
"""Needs no key: it says the same of every server."""

BODIES = frozenset({"POST", "PUT", "PATCH", "DELETE"})

SECURITY_HEADERS: list[tuple[bytes, bytes]] = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]
HTML_TYPE = b"text/html"
NO_STORE = (b"cache-control", b"no-store")

_PREFLIGHT: list[tuple[bytes, bytes]] = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID"),
    (b"access-control-max-age", b"600"),
]
_EXPOSED = (b"access-control-expose-headers", b"Location, Retry-After, X-Request-Id")


class Middleware:
    """The outermost application of a server."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, keys: Keys, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._keys = keys
        self._metrics = metrics
        self._rates = Rates(settings.rate, settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            # There are no web sockets here, and uvicorn runs us without lifespan.
            return
        context = _RequestContext(scope, send)
        with self._metrics.in_progress.track_inprogress():
            try:
                await self._answer(context, receive)
            except SeatrialError as error:
                context.code = error.code
                await problem_response(error, scope)(scope, receive, context.send)
            finally:
                context.log(self._metrics)

    async def _answer(self, context: _RequestContext, receive: Receive) -> None:
        scope = context.scope
        check_head(scope["headers"], len(scope["raw_path"]) + len(scope["query_string"]))
        if scope["path"] in PUBLIC:
            return await self._app(scope, receive, context.send)
        headers = context.headers
        check_host(headers.get("host"), self._settings)
        origin = check_origin(headers.get("origin"), headers.get("host"), self._settings)
        if origin is not None:
            context.extra = [(b"access-control-allow-origin", origin.encode()), (b"vary", b"Origin"), _EXPOSED]
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                context.extra += _PREFLIGHT
                return await ASGIResponse(status_code=204)(scope, receive, context.send)
        if scope["path"] == DOCUMENT or scope["path"].startswith(FOLDER):
            self._rates.take(context.address)
            return await self._app(scope, receive, context.send)
        visit = context.visit
        visit.introduce()
        if scope["path"] in UNSIGNED:
            self._rates.take(context.address)
            key, session = None, None
        else:
            session = None if "authorization" in headers else visit.session
            try:
                key = await self._admit(context, session)
            except SeatrialError as error:
                if error.code != "unauthorized" or not may_sign_in(scope, headers):
                    raise
                return await to_sign_in(scope)(scope, receive, context.send)
        if scope["method"] in BODIES:
            receive = _Replayed(
                await read_body(receive, context.declared_length(), self._settings.max_body_bytes), receive
            )
        # What answers a POST may be a stream, too.
        with self._keys.holding(key, context.abort, session):
            return await self._app(scope, receive, context.send)

    async def _admit(self, context: _RequestContext, session: str | None) -> ApiKey | None:
        authorization = context.headers.get("authorization")
        key = self._keys.remembered(authorization, session)
        # Guesses at keys are counted against the address that they come from.
        self._rates.take(context.address if key is None else key.key_id)
        if key is None:
            key = await self._keys.key_of(authorization, session)
        context.key = key
        if session is not None:
            context.visit.key = key
            context.visit.introduce()
        check_scope(key, "run" if context.scope["method"] in BODIES else "read")
        return key


class _RequestContext:
    """What the middleware knows of one request."""

    def __init__(self, scope: HTTPScope, send: Send) -> None:
        self.scope = scope
        self.headers = Headers.from_scope(scope)
        client = scope.get("client")
        self.address = "@" if client is None else f"@{client[0]}"
        self.request_id = secrets.token_hex(8)
        self.key: ApiKey | None = None
        self.code: str | None = None
        self.extra: list[tuple[bytes, bytes]] = []
        self._send = send
        self._began = time.perf_counter()
        self.visit = visit_of(self.headers)
        scope["state"][VISIT] = self.visit
        self._connection = (scope.get("extensions") or {}).get(CONNECTION, {})
        self._connection["send"] = send
        self._started: float | None = None
        self._status = 0

    async def send(self, message: Message) -> None:
        """Passes messages on; headers that every response has are added to its start."""
        if message["type"] == "http.response.start":
            self._started = time.perf_counter()
            self._status = message["status"]
            headers = list(message["headers"])
            if not any(name == b"cache-control" for name, _ in headers):
                headers.append(NO_STORE)
            request_id = (b"x-request-id", self.request_id.encode())
            given = {name for name, _ in headers}
            if self.visit.is_new and any(name == b"content-type" and HTML_TYPE in value for name, value in headers):
                # The forms of the page are tied to it.
                headers.append((b"set-cookie", self.visit.form_cookie().encode()))
            careful = [header for header in SECURITY_HEADERS if header[0] not in given]
            message["headers"] = [*headers, *careful, *self.extra, request_id]
        await self._send(message)

    def abort(self) -> None:
        """Close the connection at once, where the ASGI server allows it."""
        if "abort" in self._connection:
            cast("Callable[[], None]", self._connection["abort"])()

    def declared_length(self) -> int | None:
        """What the request says of the length of its body."""
        text = self.headers.get("content-length")
        if text is None:
            return None
        if not text.isascii() or not text.isdigit():
            raise RefusedError(400, "invalid_request", "Content-Length is not a number")
        return int(text[:20])

    def log(self, metrics: Metrics) -> None:
        """Count the request, and write its line."""
        now = time.perf_counter()
        route = self.scope.get("path_template") or "(none)"
        metrics.request(self.scope["method"], route, self._status, (self._started or now) - self._began)
        if route in PUBLIC and self._status < 400:
            return
        log(
            REQUEST,
            request_id=self.request_id,
            method=self.scope["method"],
            route=route,
            of=next((str(value) for value in (self.scope.get("path_params") or {}).values()), None),
            status=self._status,
            code=self.code or self.scope["state"].get(CODE),
            key_id=None if self.key is None else self.key.key_id,
            ms=round((now - self._began) * 1000, 3),
        )


class _Replayed:
    """`receive` for an application behind one that has read the body already."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> ReceiveMessage:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


MAX_HEADERS = 100
BODY_TIMEOUT_S = 60.0
"""How long a body may take to arrive."""


def check_head(headers: Iterable[tuple[bytes, bytes]], target: int) -> None:
    """Refuse a head that is too large; `target` is the length of path and query."""
    count, size = 0, target
    for name, value in headers:
        count += 1
        size += len(name) + len(value) + 4
    if count > MAX_HEADERS or size > MAX_HEAD_BYTES:
        raise RefusedError(
            431, "too_large", f"a request's head has at most {MAX_HEADERS} headers and {MAX_HEAD_BYTES} bytes"
        )


async def read_body(receive: Receive, declared: int | None, limit: int) -> bytes:
    """The whole body of a request. Refused as soon as it is known to be larger than the limit."""
    if declared is not None and declared > limit:
        raise _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise RefusedError(400, "invalid_request", "the connection ended before the body did")
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        close = {"connection": "close"}
        raise RefusedError(
            408, "invalid_request", f"the body did not arrive within {BODY_TIMEOUT_S:.0f} s", headers=close
        ) from None


def _too_large(limit: int) -> SeatrialError:
    # The rest is not read: the connection cannot be used again.
    return RefusedError(
        413,
        "too_large",
        f"the body is larger than {limit} bytes",
        headers={"connection": "close"},
        hint="send it in parts, or start the server with a larger --max-body",
    )
