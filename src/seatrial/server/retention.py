"""Forgetting the events of runs that ended long ago; what is known of the runs themselves stays."""

from __future__ import annotations

import asyncio
import time
from typing import NoReturn

from seatrial.errors import SeatrialError
from seatrial.server.logs import log
from seatrial.store import Store

EVERY_S = 3600.0

_RUNS_AT_ONCE = 100
_DAY_MS = 24 * 3600 * 1000


async def keep_for(store: Store, days: float, every_s: float = EVERY_S) -> NoReturn:
    """Forget now and then what is older; without end."""
    while True:
        try:
            forgotten = await forget_before(store, round(time.time() * 1000 - days * _DAY_MS))
        except SeatrialError as error:
            log("retention", code=error.code)
        else:
            if forgotten:
                log("retention", runs=forgotten)
        await asyncio.sleep(every_s)


async def forget_before(store: Store, ended_at: int) -> int:
    """Forget the events of runs that ended before a time (in ms); says of how many."""
    count = 0
    while run_ids := await asyncio.to_thread(store.ended_before, ended_at, _RUNS_AT_ONCE):
        for run_id in run_ids:
            head = await asyncio.to_thread(store.run_head, run_id)
            await store.forget_events(run_id, head.following)
        count += len(run_ids)
    return count
