"""`seatrial serve` for the stream subjects: `python -m bench.stream_server EVENTS GROUP PAUSE_MS FOLDER`.

The whole server on uvloop, with its store in SQLite and one agent. The agent waits for a line on standard input, and
then says its events in groups, with a pause between them: each is verified, encoded, appended to the store, committed,
and published. Prints its port, and later at what time each group was said.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import uvloop

from bench.stream_events import events
from seatrial.agents.python.agent import PythonAgent
from seatrial.agents.python.config import PythonConfig
from seatrial.events import Event
from seatrial.server.app import Stopping, serve
from seatrial.server.settings import ServerSettings
from seatrial.store import open_store


async def main(count: int, group: int, pause_s: float, folder: Path) -> None:
    async def talk() -> AsyncIterator[Event]:
        said = events(count)
        await asyncio.to_thread(sys.stdin.readline)
        times = []
        for start in range(0, count, group):
            times.append(time.perf_counter_ns())
            for event in said[start : start + group]:
                yield event
            await asyncio.sleep(pause_s)
        print(json.dumps(times), flush=True)
        await asyncio.to_thread(sys.stdin.readline)

    agent = PythonAgent(PythonConfig(target=""), directory=Path(), timeout_s=None, function=talk)
    with open_store(folder / "store.db") as store:
        await serve(
            store,
            {"talker": agent},
            ServerSettings(port=0, rate=0),
            stopping=Stopping(),
            announce=lambda url: print(url.rpartition(":")[2], flush=True),
        )


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) / 1000, Path(sys.argv[4])))
