"""How much a client may ask for: requests in a time, the size of a request's head and of its body."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from litestar.types import Receive

from seatrial.errors import SeatrialError
from seatrial.server.problems import RefusedError, rate_limited

MAX_HEAD_BYTES = 32 * 1024
"""Request line and headers together."""
MAX_HEADERS = 100
BODY_PATIENCE_S = 60.0
"""How long a body may take to arrive."""

_MAX_BUCKETS = 10_000


class Rates:
    """A token bucket for each key or address. For the thread of its event loop alone."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, who: str) -> None:
        """Count one request; raises `rate_limited` when there were too many."""
        if self._rate == 0:
            return
        now = self._clock()
        # Taken out and put back, so that those unused for the longest time come first.
        tokens, since = self._buckets.pop(who, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._rate)
        refused = tokens < 1
        self._buckets[who] = (tokens if refused else tokens - 1, now)
        if len(self._buckets) > _MAX_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        if refused:
            raise rate_limited((1 - tokens) / self._rate)


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
        async with asyncio.timeout(BODY_PATIENCE_S):
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
            408, "invalid_request", f"the body did not arrive within {BODY_PATIENCE_S:.0f} s", headers=close
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
