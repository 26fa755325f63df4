"""A service on loopback that speaks the protocol of streams to the letter, with a log that the test writes."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

import msgspec
from aiohttp import web

from seatrial._support.portal import Portal
from seatrial.client import Client, EventStream
from seatrial.events import cursor_text, encode_sse, envelope_bytes, envelope_head
from seatrial.events.types import RunStatus

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

RUN = "run-1"
A_RUN = {"runId": "r", "threadId": "t", "agent": "shop", "status": "running", "createdAt": "2026-11-15T20:00:00Z"}
HASTY: dict[str, Any] = {"patience_s": 1.0, "first_wait_s": 0.001, "longest_wait_s": 0.02}
"""Waits for tests."""


def script(count: int = 6) -> list[dict[str, Any]]:
    """A legal run of so many events, at least 4."""
    return [
        {"type": "RUN_STARTED", "threadId": "t", "runId": RUN},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        *[
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": f"né {number}\n\n"}
            for number in range(count - 4)
        ],
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": RUN},
    ]


def envelope(sequence: int, event: dict[str, Any], run_id: str = RUN) -> bytes:
    return envelope_bytes(envelope_head(run_id, "t"), sequence, msgspec.json.encode(event))


def frame(sequence: int, event: dict[str, Any], run_id: str = RUN) -> bytes:
    return encode_sse(envelope(sequence, event, run_id), id=cursor_text(run_id, sequence))


def keepalive(sequence: int, run_id: str = RUN) -> bytes:
    return msgspec.json.encode({"type": "KEEPALIVE", "cursor": {"runId": run_id, "sequence": sequence}})


def terminal(status: str = "completed", run_id: str = RUN) -> bytes:
    return msgspec.json.encode({"type": "TERMINAL", "runId": run_id, "status": status})


def a_stream(count: int = 6, status: str = "completed") -> bytes:
    """The whole stream of a script."""
    frames = [frame(number, event) for number, event in enumerate(script(count))]
    return b"".join([*frames, encode_sse(terminal(status))])


def problem(status: int, code: str, **members: Any) -> web.Response:
    body = {"title": "no", "status": status, "code": code, "detail": f"this is {code}", **members}
    return web.Response(
        status=status,
        body=msgspec.json.encode(body),
        content_type="application/problem+json",
        headers={"Retry-After": str(members["retry"])} if "retry" in members else None,
    )


class Request(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class ScriptedService:
    """One run with a log; everything that it was asked is kept."""

    def __init__(
        self,
        events: Iterable[dict[str, Any]] | None = None,
        *,
        status: RunStatus | None = "completed",
        keepalive_s: float = 5.0,
        first: int = 0,
    ) -> None:
        self.events = list(script() if events is None else events)
        self.status = status
        """None: the run goes on."""
        self.keepalive_s = keepalive_s
        self.first = first
        """The first event that is kept."""
        self.retry_ms: int | None = None
        self.refusals: deque[web.Response] = deque()
        """Answers that are given in place of the next streams."""
        self.requests: list[Request] = []
        self._news = asyncio.Condition()

    async def append(self, *events: dict[str, Any], status: RunStatus | None = None) -> None:
        async with self._news:
            self.events += events
            self.status = status
            self._news.notify_all()

    async def stream(self, request: web.Request) -> web.StreamResponse:
        await self._seen(request)
        if self.refusals:
            return self.refusals.popleft()
        after = int(request.query["after"]) if "after" in request.query else None
        if after is not None and after >= len(self.events):
            return problem(409, "cursor_ahead", head=len(self.events) - 1)
        position = -1 if after is None else after
        if position + 1 < self.first:
            return problem(410, "cursor_expired", first=self.first)
        types = set(request.query["types"].split(",")) if "types" in request.query else None
        sse = "ndjson" not in request.headers["Accept"]
        response = web.StreamResponse()
        response.content_type = "text/event-stream" if sse else "application/x-ndjson"
        await response.prepare(request)
        with suppress(ConnectionError):
            if sse and self.retry_ms is not None:
                await response.write(b"retry: %d\n\n" % self.retry_ms)
            await self._play(response, position, types, encode_sse if sse else lambda data: data + b"\n")
        return response

    async def _play(
        self,
        response: web.StreamResponse,
        position: int,
        types: set[str] | None,
        framed: Callable[[bytes], bytes],
    ) -> None:
        while True:
            ready = list(enumerate(self.events))[position + 1 :]
            position += len(ready)
            frames = [framed(envelope(number, event)) for number, event in ready if not types or event["type"] in types]
            if frames:
                await response.write(b"".join(frames))
            if self.status is not None and position + 1 == len(self.events):
                await response.write(framed(terminal(self.status)))
                return
            try:
                async with asyncio.timeout(self.keepalive_s), self._news:
                    await self._news.wait_for(self._has_news(position))
            except TimeoutError:
                await response.write(framed(keepalive(position)))

    def _has_news(self, position: int) -> Callable[[], bool]:
        return lambda: len(self.events) > position + 1 or self.status is not None

    async def _seen(self, request: web.Request) -> bytes:
        body = await request.read()
        self.requests.append(
            Request(request.method, request.raw_path, dict(request.query), dict(request.headers), body)
        )
        return body


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    """The port of a server on loopback that answers every request with the handler."""
    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def sending(*bodies: bytes | web.Response, content_type: str = "text/event-stream") -> Handler:
    """Answers each request with the next body, which is then closed in order; the last one is given for ever."""
    left = deque(bodies)

    async def handler(request: web.Request) -> web.StreamResponse:
        body = left.popleft() if len(left) > 1 else left[0]
        if isinstance(body, web.Response):
            return web.Response(status=body.status, body=body.body, headers=body.headers)
        return web.Response(body=body, content_type=content_type)

    return handler


@asynccontextmanager
async def a_client(port: int, **options: Any) -> AsyncIterator[Client]:
    options = {**HASTY, "idle_s": 5.0, **options}
    async with Client(f"http://127.0.0.1:{port}", **options) as client:
        yield client


async def sequences(stream: EventStream) -> list[int]:
    """The sequences of all events, to the end."""
    return [envelope.sequence async for envelope in stream]


class Desk:
    """Answers every request with the next of its answers, the last one for ever."""

    def __init__(self, *answers: Mapping[str, Any] | web.Response) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, str, Any]] = []
        self.headers: list[Mapping[str, str]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append((request.method, request.raw_path, json.loads(body) if body else None))
        self.headers.append(request.headers)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, web.Response):
            return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        return web.json_response(answer)


class Place(NamedTuple):
    """A service that runs beside a test that is not async."""

    portal: Portal
    service: ScriptedService
    port: int
    desk: Desk
    desk_port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving_in_a_thread(events: list[dict[str, Any]], **options: Any) -> Iterator[Place]:
    portal = Portal()

    async def a_service() -> ScriptedService:
        return ScriptedService(events, **options)

    service, desk = portal.run(a_service()), Desk(A_RUN)
    places = [serving(service.stream), serving(desk.answer)]
    port, desk_port = (portal.run(place.__aenter__()) for place in places)
    try:
        yield Place(portal, service, port, desk, desk_port)
    finally:
        for place in places:
            portal.run(place.__aexit__(None, None, None))
        portal.close()
