"""**Looking from the terminal**: the first page of a run of 100,000 events, and of a search in 100,000 runs for a word
that all of them have and for one that one of them has. Time by the clock on the wall, of the whole command, over that
of the same command in a store of one short run; in turns, medians. Memory is the command's resident memory at its
largest.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.clock import run_process
from bench.figure import Level
from bench.store_growth import _case, _experiment, _run, _talk
from bench.trial_suites import COMMAND
from seatrial.store import open_store

EVENTS = 100_000
RUNS = 100_000
PER_CASE = 500
"""Runs of a case."""
ROUNDS = 9
RARE = "xylophone"
MOST_NS = 300e6
MOST_BYTES = 150e6


def measure() -> list[Level]:
    with tempfile.TemporaryDirectory() as folder:
        small, long, large = (Path(folder, f"{name}.db") for name in ("small", "long", "large"))
        _short(small)
        _long(long)
        _many(large)
        return [
            *_looked(f"`show` of a run of {EVENTS:,} events", ("show", "run-1"), long, small),
            *_looked(f"`search` in {RUNS:,} runs, a word of all", ("search", "said"), large, small),
            *_looked(f"`search` in {RUNS:,} runs, a word of one", ("search", RARE), large, small),
        ]


def _looked(work: str, command: tuple[str, ...], store: Path, small: Path) -> list[Level]:
    walls: dict[Path, list[float]] = {store: [], small: []}
    memory = 0
    for number in range(ROUNDS + 1):
        for path in (store, small):
            spent = run_process((sys.executable, "-c", COMMAND, *command, "--store", str(path)))
            if number:  # the first round warms up
                walls[path].append(spent.wall_s * 1e9)
            if path == store:
                memory = max(memory, spent.max_resident)
    over = [large - little for large, little in zip(walls[store], walls[small], strict=True)]
    return [
        Level(f"{work}: over start-up", max(0.0, median(over)), MOST_NS, "ns"),
        Level(f"{work}: memory", memory, MOST_BYTES, "bytes"),
    ]


def _short(path: Path) -> None:
    with open_store(path) as store:
        store.create_experiment(_experiment("small"), [_case(0)])
        run = _run("small", "crew", 0, 1)
        run.run_id = "run-1"
        run.steps[0].arguments["instrument"] = RARE
        store.record_run(run).wait()


def _long(path: Path) -> None:
    with open_store(path) as store:
        store.create_experiment(_experiment("small"), [_case(0)])
        run = _talk(0)
        run.run_id = "run-1"
        assert run.reading is not None
        said = run.reading.transcript.messages
        said[1:-1] = said[1:-1] * (EVENTS // 24)
        step = run.steps[0]
        run.steps = [step] * 3 * (EVENTS // 24)
        events = [
            b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-%d","delta":"A few words."}' % (index // 24)
            for index in range(EVENTS)
        ]
        store.record_run(run, events=events).wait()


def _many(path: Path) -> None:
    with open_store(path) as store:
        store.create_experiment(_experiment("small"), [_case(index) for index in range(RUNS // PER_CASE)])
        receipts = []
        for number in range(RUNS):
            run = _run("small", "crew", number // PER_CASE, number % PER_CASE + 1)
            if number == RUNS // 2:
                run.steps[0].arguments["instrument"] = RARE
            receipts.append(store.record_run(run))
            if len(receipts) == 256:
                receipts.pop().wait()
                receipts.clear()
        for receipt in receipts:
            receipt.wait()
