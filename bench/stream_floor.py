"""The floor of the stream subjects: a plain asyncio server on uvloop that writes prepared bytes.

`python -m bench.stream_floor EVENTS GROUP PAUSE_MS` listens on a free port of 127.0.0.1 and prints it. Any request is
answered with the head of a stream. A line on its standard input has it begin: the frames of a group of events, joined
and put into one chunk of HTTP beforehand, are written to the transport of one subscriber after the other; then, after
the pause, those of the next group. Nothing is stored, no position is kept, nobody is waited for. Prints at what time
each group was written.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import ClassVar

import uvloop

from bench.stream_client import HINT
from bench.stream_events import frames


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-store\r\n"
    b"transfer-encoding: chunked\r\n\r\n" + chunk(HINT)
)


class Connection(asyncio.Protocol):
    subscribers: ClassVar[list[asyncio.Transport]] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # it is always this kind
        self.transport = transport

    def data_received(self, _: bytes) -> None:
        self.transport.write(_HEAD)
        self.subscribers.append(self.transport)


async def main(count: int, group: int, pause_s: float) -> None:
    prepared = [chunk(data) for data in frames(count, group)]
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    times = []
    for data in prepared:
        times.append(time.perf_counter_ns())
        for subscriber in Connection.subscribers:
            subscriber.write(data)
        await asyncio.sleep(pause_s)
    print(json.dumps(times), flush=True)
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) / 1000))
