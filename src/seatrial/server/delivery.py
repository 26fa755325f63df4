"""A stream on its way to a client: sent as it comes, until it ends, the client leaves, or takes nothing any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import cast

from litestar.types import Receive, Scope, Send

from seatrial.server.counters import COUNTERS
from seatrial.server.listener import CONNECTION, alongside
from seatrial.server.subscription import Subscription

PIECE_BYTES = 64 * 1024
"""What is sent at once, at most. A client that does not take it in time is cut off."""


async def deliver(
    subscription: Subscription,
    chunks: AsyncGenerator[bytes, None],
    content_type: bytes,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Answer a request with what a subscription is read into, and close it.

    A client that leaves ends the subscription, so that the chunks come to their end.
    """
    loop = asyncio.get_running_loop()
    subscription.abort = _abort(scope)
    headers = [(b"content-type", content_type), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
    try:
        async with alongside(_watch(receive, subscription)), aclosing(chunks):
            subscription.join()
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            # Nobody on the way wants to see more of a response than its start.
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
