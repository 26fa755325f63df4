"""The suites of the trial benchmarks: so many cases, one agent, one trajectory grader."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

COMMAND = "import sys; from seatrial.cli import main; sys.exit(main())"
"""What the console script does."""
GRADER = {"kind": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "search"}]}


def write_suite(folder: Path, agent: dict[str, Any], cases: int, *, concurrency: int = 16) -> Path:
    """A suite file, and the cases beside it."""
    lines = [msgspec.json.encode({"id": f"case-{number}", "instruction": prompt(number)}) for number in range(cases)]
    cases_file = folder / f"cases-{cases}.jsonl"
    cases_file.write_bytes(b"\n".join(lines))
    suite = {
        "name": "bench",
        "concurrency": concurrency,
        "agents": {"agent": agent},
        "cases": [{"from": cases_file.name}],
        "graders": [GRADER],
    }
    file = folder / f"bench-{cases}.suite.yaml"
    file.write_bytes(msgspec.json.encode(suite))  # JSON is YAML
    return file


def run_command(suite: Path, *options: str) -> tuple[str, ...]:
    """`seatrial run` of a suite into a store beside it."""
    store = str(suite.with_suffix(".db"))
    return (sys.executable, "-c", COMMAND, "run", str(suite), "--store", store, "--quiet", *options)


def prompt(number: int) -> str:
    return f"Where is order {number}?"
