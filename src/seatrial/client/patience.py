"""How long to try: waits that grow, within a time that starts anew after each success."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Patience(msgspec.Struct, kw_only=True, frozen=True):
    """How long failures are put up with, and how long to wait between them."""

    seconds: float
    """From the first failure, without anything new since; a server that asks for a longer wait is not waited for."""
    first_wait_s: float
    """Before the second attempt; each further wait is twice as long."""
    longest_wait_s: float


class PatienceLeft:
    """What is left of a patience."""

    def __init__(self, patience: Patience, now: Callable[[], float], chance: Callable[[], float]) -> None:
        """`now` is a clock in seconds, `chance` gives numbers from 0 to 1."""
        self._patience = patience
        self._now = now
        self._chance = chance
        self._began = 0.0
        """When the first of the failures was."""
        self._grown_s = 0.0
        """The last wait, before chance had its say; 0 when nothing has failed."""

    def refill(self) -> None:
        """Something new came."""
        self._grown_s = 0.0

    def wait_s(self, asked_s: float | None = None) -> float | None:
        """Count a failure; how long to wait before the next attempt, or None when there is to be none.

        A server that went away is missed by all its clients at once, so each waits a little longer or shorter than the
        others. None comes before the time that a server asked for.
        """
        now = self._now()
        if self._grown_s == 0.0:
            self._began = now
        self._grown_s = min(self._grown_s * 2 or self._patience.first_wait_s, self._patience.longest_wait_s)
        wait_s = self._grown_s * (0.5 + 0.5 * self._chance())
        if asked_s is not None:
            wait_s = max(wait_s, asked_s * (1.0 + 0.25 * self._chance()))
        return wait_s if now + wait_s - self._began <= self._patience.seconds else None
