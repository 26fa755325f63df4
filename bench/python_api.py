"""**From Python**: `st.run` of one trivial case in a program of its own, from the start of the interpreter to the
printed result, against an interpreter that does nothing; and one case more through `st.run`, against one case more
through `seatrial run`. Both run the same 5,000 cases with the same agent and the same grader, and store them in SQLite;
the figure is what 5,000 cases take less what 1,000 take, over 4,000. CPU time of whole processes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.clock import Growing, race_growing, race_processes
from bench.figure import Figure, cost
from bench.trial_suites import run_command, write_suite

AGENT = {"kind": "python", "target": "bench.trial_agents:answer"}
COMMAND_LINE = "`seatrial run`"


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        one = race_processes(
            {
                "seatrial": (sys.executable, "-m", "bench.python_program", "one", str(Path(folder, "one.db"))),
                "python -c pass": (sys.executable, "-c", "pass"),
            }
        )
        many = race_growing(
            {
                "seatrial": Growing(_program(Path(folder, "python"))),
                COMMAND_LINE: Growing(_command(Path(folder, "command"))),
            }
        )
    return [
        cost(one, "`st.run` of one trivial case, whole process", "python -c pass", at_most=25),
        cost(many, "one case more through `st.run`", COMMAND_LINE, at_most=1.1),
    ]


def _program(folder: Path) -> Callable[[int], tuple[str, ...]]:
    folder.mkdir()

    def command(cases: int) -> tuple[str, ...]:
        _empty(folder)
        return (sys.executable, "-m", "bench.python_program", str(cases), str(folder / "runs.db"))

    return command


def _command(folder: Path) -> Callable[[int], tuple[str, ...]]:
    folder.mkdir()

    def command(cases: int) -> tuple[str, ...]:
        suite = write_suite(folder, AGENT, cases)
        _empty(folder)
        return run_command(suite)

    return command


def _empty(folder: Path) -> None:
    """Each run begins with an empty store."""
    for store in folder.glob("*.db*"):
        store.unlink()
