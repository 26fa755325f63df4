"""Time, as an argument: the wall clock for stamps, the monotonic one for durations."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks, since the wall clock may jump."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go backwards."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()
