"""An event loop in a thread of its own, so that plain code can wait for what is async, also inside another loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from seatrial._support.threads import interrupt

T = TypeVar("T")


class Portal:
    """A loop that runs from its first use until it is closed; connections live in it from call to call."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work, name="seatrial", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while True:
            try:
                self._loop.run_forever()
                return
            except (SystemExit, KeyboardInterrupt):
                # The task that kept the loop was interrupted, or a task of somebody's raised it. That task has ended,
                # and the others continue: Ctrl-C is for the main thread.
                continue

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start something in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for something in the loop. When the wait is interrupted, so is the work."""
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def responds(self, within_s: float) -> bool:
        """Whether the loop gets to do something in that time, or is kept by a task that does not wait."""
        asked = self.submit(asyncio.sleep(0))
        try:
            asked.result(within_s)
        except TimeoutError:
            return False
        return True

    def interrupt(self) -> None:
        """End the task that keeps the loop, unless it is in a call to C."""
        if self._thread.ident is not None:
            interrupt(self._thread.ident)

    def close(self) -> None:
        """End the loop, and what still runs in it."""
        self.submit(_wind_up()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _wind_up() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
