"""**HTTP agents**: 10,000 calls, 1,000 at once, to an agent in a process of its own that sleeps 100 ms and answers with
8 KB. Seatrial reads, grades and stores each run; its suite and its cases are with the store before. The floor is a bare
aiohttp loop that posts the instruction alone and reads the body. Calls per second by the clock on the wall; the times
are those of one call.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

from bench.clock import Race
from bench.figure import Figure, speed
from bench.trial_suites import prompt, write_suite
from seatrial.engine import create_experiment, launch
from seatrial.store import open_store
from seatrial.suites import load_suite

CALLS = 10_000
AT_ONCE = 1000
ROUNDS = 7


def measure() -> list[Figure]:
    samples: dict[str, list[float]] = {"seatrial": [], "bare aiohttp loop": []}
    with tempfile.TemporaryDirectory() as folder, _agent() as url:
        suite = write_suite(Path(folder), {"kind": "http", "endpoint_url": url}, CALLS, concurrency=AT_ONCE)
        for number in range(ROUNDS):
            samples["bare aiohttp loop"].append(asyncio.run(_bare(url)))
            samples["seatrial"].append(_seatrial(suite, Path(folder, f"{number}.db")))
    work = f"call of an HTTP agent, {AT_ONCE:,} at once"
    return [speed(Race(samples), work, "bare aiohttp loop", at_least=0.4)]


@contextmanager
def _agent() -> Iterator[str]:
    argv = [sys.executable, "-m", "bench.slow_agent"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
        finally:
            process.stdin.close()


def _seatrial(file: Path, store_file: Path) -> float:
    suite = load_suite(str(file))
    with open_store(str(store_file)) as store:
        experiment = create_experiment(store, suite, variables=os.environ)
        begun = time.perf_counter_ns()
        tally = asyncio.run(launch(experiment, suite, store, variables=os.environ))
        spent = time.perf_counter_ns() - begun
    assert tally.outcomes == {"passed": CALLS}
    return spent / CALLS


async def _bare(url: str) -> float:
    numbers = iter(range(CALLS))

    async def work(session: aiohttp.ClientSession) -> None:
        for number in numbers:
            async with session.post(url, json={"instruction": prompt(number)}) as response:
                assert len(await response.read()) > 8000

    begun = time.perf_counter_ns()
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work(session))
    return (time.perf_counter_ns() - begun) / CALLS
