"""Work on a large answer: beside the event loop, which others wait for, or in it with turns for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from seatrial.formats.limits import LARGE_BYTES

T = TypeVar("T")

TURN_S = 0.02
"""How long the event loop may be kept without giving others a turn."""


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """What the work comes to: done here for an answer of usual size, in a thread for a large one."""
    return work() if size < LARGE_BYTES else await asyncio.to_thread(work)


class Turns:
    """Lets others have the event loop now and then, in the midst of work that waits for nothing."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + TURN_S

    async def give(self) -> None:
        """Give the others their turn, if it is time."""
        if self._loop.time() >= self._due:
            await asyncio.sleep(0)
            self._due = self._loop.time() + TURN_S
