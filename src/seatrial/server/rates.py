"""How many requests may come: a token bucket for each key or address."""

from __future__ import annotations

import time
from collections.abc import Callable

from seatrial.server.problems import rate_limited

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
