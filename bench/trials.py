"""**A trial run** of 5,000 cases by an agent that costs nothing, as `seatrial run` from the suite file to the summary:
each case run, read, graded by one `in_order` trajectory grader, and stored in SQLite with its body, events, steps and
verdict. The figure is the CPU time of one case more, of the whole process: what 5,000 cases take less what 1,000 take,
over 4,000. The agent is an async function; one that may block gets a thread, and is shown beside it.

promptfoo and inspect_ai do less for a case: their model is an echo and a mock, no tool is called, and a text is looked
for in the answer. They are given fewer cases because they take longer, and the plain loop more. pydantic-evals calls
the same agent and stores nothing; the plain loop calls it and writes a line of JSON for each case.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import peer_promptfoo
from bench.clock import Growing, race_growing
from bench.figure import Figure, Level, speed
from bench.trial_suites import run_command, write_suite

WORK = "one case more of a trial run"


def measure() -> list[Figure | Level]:
    with tempfile.TemporaryDirectory() as folder:
        contenders = {
            "seatrial": Growing(_run(Path(folder, "async"), "answer")),
            "seatrial, blocking agent": Growing(_run(Path(folder, "blocking"), "answer_in_thread")),
            "plain loop": Growing(_module("peer_loop"), few=10_000, many=50_000),
            "pydantic-evals": Growing(_module("peer_pydantic_evals")),
            "inspect_ai": Growing(_module("peer_inspect"), few=200, many=1000),
        }
        promptfoo = peer_promptfoo.install()
        if promptfoo is not None:
            contenders["promptfoo"] = Growing(lambda cases: promptfoo.command(Path(folder), cases), few=200, many=1000)
        race = race_growing(contenders)
    figures: list[Figure | Level] = [Level(WORK, race.median("seatrial"), 400_000, "ns")]
    if promptfoo is not None:
        figures.append(speed(race, WORK, "promptfoo", at_least=5))
    figures += [
        speed(race, WORK, "inspect_ai", at_least=20),
        speed(race, WORK, "pydantic-evals", at_least=None),
        speed(race, WORK, "plain loop", at_least=None),
        speed(race, WORK, "seatrial, blocking agent", at_least=None),
    ]
    return figures


def _run(folder: Path, function: str) -> Callable[[int], tuple[str, ...]]:
    folder.mkdir()

    def command(cases: int) -> tuple[str, ...]:
        suite = write_suite(folder, {"kind": "python", "target": f"bench.trial_agents:{function}"}, cases)
        for store in folder.glob("*.db*"):
            store.unlink()  # each run begins with an empty one
        return run_command(suite)

    return command


def _module(name: str) -> Callable[[int], tuple[str, ...]]:
    return lambda cases: (sys.executable, "-m", f"bench.{name}", str(cases))
