"""**Resuming**: a request for a stream behind the last event but one of a run that has ended with 100,000 events, until
the first byte of the frame that it misses; over the same for a run that has one event. Each of the 300 requests of each
kind has a connection of its own to `seatrial serve`, which has nothing in memory of a run that nobody followed before.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from bench.clock import Race
from bench.figure import Figure, Level, speed
from bench.stream_events import events
from seatrial.events import encode_event
from seatrial.runs import Case, Experiment, Run, RunKey
from seatrial.store import open_store

LONG, SHORT = 100_000, 1
EVENTS_A_COMMIT = 4
ROUNDS = 300


def measure() -> list[Figure | Level]:
    samples: dict[str, list[float]] = {"seatrial": [], "a run of one event": []}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store.db")
        for count in (LONG, SHORT):
            _write(store, count)
        with _server(store) as port:
            for _ in range(ROUNDS):
                samples["seatrial"].append(_first_frame_ns(port, LONG))
                samples["a run of one event"].append(_first_frame_ns(port, SHORT))
    race = Race(samples)
    work = f"first byte of a resumed stream, {LONG:,} events"
    more = max(0.0, race.median("seatrial") - race.median("a run of one event"))
    return [
        Level(f"{work}, over that of one", more, 20e6, "ns"),
        speed(race, work, "a run of one event", at_least=None),
    ]


def _write(path: Path, count: int) -> None:
    encoded = [encode_event(event) for event in events(count)]
    name = f"run-{count}"
    key = RunKey("agent", "case", 1)
    with open_store(path) as store:
        store.create_experiment(
            Experiment(experiment_id=name, name=name, suite={}, suite_hash="", created_at=0),
            [Case(id="case", instruction="")],
        )
        store.begin_run(name, key, name)
        for start in range(0, count, EVENTS_A_COMMIT):
            appended = store.append_events(name, encoded[start : start + EVENTS_A_COMMIT])
        appended.wait()
        store.record_run(Run(run_id=name, experiment_id=name, key=key, status="completed"), first=count).wait()


@contextmanager
def _server(store: Path) -> Iterator[int]:
    program = Path(sys.executable).with_name("seatrial")
    argv = [str(program), "serve", "--json", "--port", "0", "--rate", "0", "--store", str(store)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield urlsplit(json.loads(process.stdout.readline())["url"]).port or 0
        finally:
            process.kill()


def _first_frame_ns(port: int, count: int) -> float:
    cursor = f"?after={count - 2}" if count > 1 else ""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        begun = time.perf_counter_ns()
        connection.sendall(f"GET /v1/runs/run-{count}/stream{cursor} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        received = b""
        while b"\nid: " not in received:
            piece = connection.recv(65536)
            assert piece, received
            received += piece
        spent = time.perf_counter_ns() - begun
    assert f"\nid: run-{count}:{count - 1}\n".encode() in received
    return spent
