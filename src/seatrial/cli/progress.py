"""A counter on standard error for long work; silent when nobody is watching."""

from __future__ import annotations

import sys
import time
from types import TracebackType

INTERVAL_S = 0.2
SILENT_S = 0.5
"""Work that ends sooner than this shows no counter at all."""


class Progress:
    """Counts things done; used as a context manager so that the line is always cleared."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self.done = 0
        self.started = time.monotonic()
        self.next_draw = self.started + SILENT_S if sys.stderr.isatty() else float("inf")
        self.drawn = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def advance(self, count: int = 1) -> None:
        """Some more are done."""
        self.done += count
        if self.done & 63 == 0 and (now := time.monotonic()) >= self.next_draw:
            rate = self.done / (now - self.started)
            sys.stderr.write(f"\r\x1b[K{self.done:,} {self.noun} ({rate:,.0f}/s)")
            sys.stderr.flush()
            self.drawn = True
            self.next_draw = now + INTERVAL_S
