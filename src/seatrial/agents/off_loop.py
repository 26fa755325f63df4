"""Work on a large answer, beside the event loop, which others wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from seatrial.formats.limits import LARGE_BYTES

T = TypeVar("T")


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """What the work comes to: done here for an answer of usual size, in a thread for a large one."""
    return work() if size < LARGE_BYTES else await asyncio.to_thread(work)
