"""Servers of streams and their subscribers, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.stream_events import RUN, THREAD

FLOOR = "prepared bytes"


class Delivered(NamedTuple):
    """Events on their way to all subscribers; times are nanoseconds of one clock."""

    said: list[int]
    """When each group of events was there."""
    arrived: list[list[int]]
    """When each event was with each subscriber, the first one first."""
    resident: int
    """Bytes of memory that the server took at its largest."""

    @property
    def spent_ns(self) -> int:
        """From the first event to the moment when the last subscriber has the last one."""
        return self.arrived[-1][-1] - self.said[0]


def deliver(name: str, subscribers: int, count: int, group: int, pause_ms: int = 0) -> Delivered:
    """Have Seatrial, or the floor, deliver so many events of one run to so many subscribers."""
    with ExitStack() as stack:
        server, port = stack.enter_context(serving(name, count, group, pause_ms))
        client = stack.enter_context(_process("bench.stream_client", port, subscribers, count))
        _line(client)
        _tell(server)
        said = json.loads(_line(server))
        arrived = json.loads(_line(client))
        status = Path(f"/proc/{server.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return Delivered(said, arrived, resident * 1024)


@contextmanager
def serving(name: str, count: int, group: int, pause_ms: int) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server that waits for a line, and its port."""
    with tempfile.TemporaryDirectory() as folder:
        ours = name == "seatrial"
        argv = ["bench.stream_server" if ours else "bench.stream_floor", count, group, pause_ms, *[folder] * ours]
        with _process(*argv) as process:
            port = int(_line(process))
            if ours:
                body = json.dumps({"agent": "talker", "runId": RUN, "threadId": THREAD}).encode()
                headers = {"content-type": "application/json"}
                request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/runs", body, headers)
                urllib.request.urlopen(request).close()
            yield process, port


@contextmanager
def _process(module: str | int, *arguments: str | int) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", str(module), *map(str, arguments)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args!r} ended")
    return line


def _tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
