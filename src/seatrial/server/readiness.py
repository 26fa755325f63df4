"""Whether the store takes writes, as those are told who ask often."""

from __future__ import annotations

import asyncio
import time

from seatrial.errors import SeatrialError
from seatrial.store import Receipt, Store

PATIENCE_S = 2.0
"""How long a write may take before the store counts as not ready."""
KEPT_S = 1.0
"""How long an answer counts: whoever asks needs no key, and must not be able to keep the store busy."""


class Readiness:
    """Asks the store to write something, one time after another."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked: Receipt[None] | None = None
        self._asked_at = 0.0
        self._lock = asyncio.Lock()

    async def check(self) -> None:
        """Raise `SeatrialError` when the store refuses to write, or does not get to it in time."""
        async with self._lock:
            if self._asked is None or (self._asked.done and time.monotonic() - self._asked_at > KEPT_S):
                self._asked = None
                self._asked = await asyncio.to_thread(self._store.probe)
                self._asked_at = time.monotonic()
            asked = self._asked
        try:
            async with asyncio.timeout(max(0.0, PATIENCE_S - (time.monotonic() - self._asked_at))):
                await asked
        except TimeoutError:
            raise SeatrialError(
                "store_unavailable", f"the store did not take a write within {PATIENCE_S:g} s"
            ) from None
