"""Work on a large answer: beside the event loop, which others wait for, or in it with turns for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import TypeVar

from seatrial.formats.chat.limits import LARGE_BYTES

T = TypeVar("T")

READERS = 2
"""How many large answers are worked on at once."""
TURN_S = 0.02
"""How long the event loop may be kept without giving others a turn."""


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """What the work comes to: done here for an answer of usual size, in a thread for a large one."""
    if size < LARGE_BYTES:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_readers(), copy_context().run, work)


@cache
def _readers() -> ThreadPoolExecutor:
    # Not those of the loop, which the store is reached with: answers that take long to read hold up only each other.
    return ThreadPoolExecutor(READERS, "seatrial-read")


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
