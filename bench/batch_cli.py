"""**A batch program** that answers 5,000 cases, run by `seatrial run`, graded and stored as above. The figure is the
CPU time of one case more, of all processes, less what the program alone takes for it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from bench.clock import Growing, race_growing
from bench.figure import Level
from bench.trial_suites import prompt, run_command, write_suite

PROGRAM = str(Path(__file__).with_name("batch_agent.py"))


def measure() -> list[Level]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def run(cases: int) -> tuple[str, ...]:
            command = [sys.executable, PROGRAM, "{PROMPT_FILE}"]
            suite = write_suite(folder, {"kind": "cli", "command": command, "batch": True}, cases)
            for store in folder.glob("*.db*"):
                store.unlink()
            return run_command(suite)

        def alone(cases: int) -> tuple[str, ...]:
            prompts = folder / f"prompts-{cases}.jsonl"
            lines: list[Any] = [
                {"id": f"case-{n}", "prompt": prompt(n), "files": [], "input": None} for n in range(cases)
            ]
            prompts.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
            return (sys.executable, PROGRAM, str(prompts))

        race = race_growing({"seatrial": Growing(run), "the program alone": Growing(alone)})
    over = race.median("seatrial") - race.median("the program alone")
    return [Level("one case more of a batch program, over its own time", over, 1_500_000, "ns")]
