"""Runs as streams of envelopes, KEEPALIVE and TERMINAL; and how a stream of any view is sent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import cast

from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp, Receive, Scope, Send

from seatrial._support import wire
from seatrial.events import (
    Cursor,
    RunStatus,
    RunStreamTerminal,
    StreamKeepalive,
    encode_ndjson,
    encode_sse,
    encode_sse_comment,
    terminal_text,
)
from seatrial.server.feed import Feeds, Subscription
from seatrial.server.listener import CONNECTION, alongside
from seatrial.server.metrics import COUNTERS
from seatrial.server.problems import RefusedError
from seatrial.server.run_feed import Block, FrameForm

PIECE_BYTES = 64 * 1024
"""What is sent at once, at most. The connection of a client that does not take it in time is closed."""


async def deliver(
    subscription: Subscription,
    chunks: AsyncGenerator[bytes, None],
    content_type: bytes,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Answer a request with the chunks of a subscription, and close the subscription.

    A client that leaves ends the subscription, so that the chunks end.
    """
    loop = asyncio.get_running_loop()
    subscription.abort = _abort(scope)
    headers = [(b"content-type", content_type), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
    try:
        async with alongside(_watch(receive, subscription)), aclosing(chunks):
            subscription.join()
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            # The middleware needs only the start of a response.
            send = cast("Send", (scope.get("extensions") or {}).get(CONNECTION, {}).get("send", send))
            async for chunk in chunks:
                for start in range(0, len(chunk), PIECE_BYTES):
                    subscription.sending_since = loop.time()
                    piece = chunk[start : start + PIECE_BYTES]  # the chunk itself, where it is no larger
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    subscription.sending_since = None
                    COUNTERS.bytes_sent += len(piece)
                    if subscription.closed:
                        return
            subscription.sending_since = loop.time()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        subscription.close()


async def followed(
    subscription: Subscription, keepalive_s: float, framed: Callable[[Block], bytes], keepalive: Callable[[], bytes]
) -> AsyncGenerator[bytes, None]:
    """The frames of a run until it ends; a keepalive whenever there were none for so long."""
    now = asyncio.get_running_loop().time
    quiet_until = now() + keepalive_s
    while True:
        try:
            block = await subscription.take(quiet_until)
            if block is None:
                return
            frames = framed(block)
            if not frames and now() >= quiet_until:
                frames = keepalive()  # events that a view leaves out are silence to its client
        except TimeoutError:
            frames = keepalive()
        if frames:
            yield frames
            quiet_until = now() + keepalive_s


async def _watch(receive: Receive, subscription: Subscription) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    subscription.close()


def _abort(scope: Scope) -> Callable[[], object] | None:
    """What cuts the connection off; under a server that has nothing for it, what ends our own work on it."""
    abort = (scope.get("extensions") or {}).get(CONNECTION, {}).get("abort")
    if callable(abort):
        return abort
    task = asyncio.current_task()
    return task.cancel if task is not None else None


RETRY_MS = 500
"""How long a client is to wait before it comes back, when its connection breaks."""
LEAVING_MS = 1000
"""The same when the server stops: another one has to be there first."""
SPREAD_MS = 3000
"""And clients come back spread over so much more."""

_CONTENT_TYPES: dict[FrameForm, bytes] = {"sse": b"text/event-stream; charset=utf-8", "ndjson": b"application/x-ndjson"}


async def native_stream(
    feeds: Feeds, run_id: str, *, after: int | None, tail: bool, types: frozenset[str] | None, form: FrameForm
) -> ASGIApp:
    """An ASGI application that streams a run from behind a cursor to its end. Raises before anything is sent.

    With `types`, only events of these types are sent. A type that the native view carries as CUSTOM can be asked for
    by its own name, or with all CUSTOM ones.
    """
    subscription = await feeds.open(run_id, after=after, tail=tail)

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        frames = _frames(subscription, form, types, feeds.keepalive_s)
        await deliver(subscription, frames, _CONTENT_TYPES[form], scope, receive, send)

    return stream


async def no_more(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to a client that has TERMINAL: a browser takes it for the end, and does not come back."""
    await ASGIResponse(status_code=204, headers={"cache-control": "no-store"})(scope, receive, send)


async def _frames(
    subscription: Subscription, form: FrameForm, types: frozenset[str] | None, keepalive_s: float
) -> AsyncGenerator[bytes, None]:
    if form == "sse":
        yield _retry(RETRY_MS)
    following = followed(
        subscription, keepalive_s, lambda block: block.framed(form, types), lambda: _keepalive(subscription, form)
    )
    async with aclosing(following):
        async for frames in following:
            yield frames
    if subscription.status is not None:
        yield _terminal(subscription.run_id, subscription.status, form)
    elif subscription.interrupted and form == "sse":
        yield _retry(LEAVING_MS + random.randrange(SPREAD_MS))  # noqa: S311 (nothing to guess here)


def _keepalive(subscription: Subscription, form: FrameForm) -> bytes:
    if subscription.position < 0:
        # There is no cursor before the first event.
        return encode_sse_comment("keepalive") if form == "sse" else b"\n"
    cursor = Cursor(run_id=subscription.run_id, sequence=subscription.position)
    return _framed(wire.encode(StreamKeepalive(cursor)), form)


def _terminal(run_id: str, status: RunStatus, form: FrameForm) -> bytes:
    # With an id of its own: a browser comes back whenever a stream ends, and with this id it is answered not to.
    data = wire.encode(RunStreamTerminal(run_id, status))
    return encode_sse(data, id=terminal_text(run_id)) if form == "sse" else encode_ndjson(data)


def _framed(data: bytes, form: FrameForm) -> bytes:
    return encode_sse(data) if form == "sse" else encode_ndjson(data)


def _retry(milliseconds: int) -> bytes:
    return b"retry: %d\n\n" % milliseconds


SSE = "text/event-stream"
NDJSON = "application/x-ndjson"

_FORMS: dict[FrameForm, str] = {"sse": SSE, "ndjson": NDJSON}


def chosen_form(accept: str | None) -> FrameForm:
    """The form that an Accept header prefers, and server-sent events where it does not care."""
    if not accept or not accept.strip():
        return "sse"
    wishes = [wish for part in accept.split(",") if (wish := _wish(part)) is not None]
    # Python's `max` gives the first of equals.
    best = max(_FORMS, key=lambda form: _quality(_FORMS[form], wishes))
    if _quality(_FORMS[best], wishes) == 0:
        raise RefusedError(406, "invalid_request", f"a stream comes as {SSE} or {NDJSON}", hint="name one in Accept")
    return best


def _wish(part: str) -> tuple[str, float] | None:
    media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return None
            if not 0 <= quality <= 1:
                return None
    return media_type, quality


def _quality(media_type: str, wishes: list[tuple[str, float]]) -> float:
    """What the most particular wish that fits gives the type."""
    kind = media_type.partition("/")[0]
    for fitting in (media_type, f"{kind}/*", "*/*"):
        found = [quality for wish, quality in wishes if wish == fitting]
        if found:
            return max(found)
    return 0.0
