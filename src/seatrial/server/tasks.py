"""Tasks that go on beside a block of code, and end with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator


@contextlib.asynccontextmanager
async def alongside(*work: Coroutine[object, object, object]) -> AsyncIterator[None]:
    """Do this work while the block lasts. Should it fail, the block is cancelled, and the failure raised."""
    with unwrapped():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()


@contextlib.contextmanager
def unwrapped() -> Iterator[None]:
    """What went wrong first, as itself, where a task group would wrap it."""
    try:
        yield
    except BaseExceptionGroup as group:
        first = group.exceptions[0]
        raise first from first.__cause__
