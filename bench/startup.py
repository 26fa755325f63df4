"""**The command as a whole process**, from the start of the interpreter to its end: `seatrial match` of ten lines,
against an interpreter that does nothing, both with their bytecode cached. CPU time, as the kernel counts it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bench.clock import race_processes
from bench.figure import Figure, cost

LINES = 10
COMMAND = "import sys; from seatrial.cli import main; sys.exit(main())"
"""What the console script does."""


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lines.jsonl")
        file.write_bytes(b"\n".join(_line(number) for number in range(LINES)))
        match = (sys.executable, "-c", COMMAND, "match", str(file))
        results = subprocess.run(match, check=True, capture_output=True).stdout.splitlines()
        assert [msgspec.json.decode(line)["passed"] for line in results] == [True] * LINES
        result = race_processes(
            {
                "seatrial": match,
                "python -c pass": (sys.executable, "-c", "pass"),
            }
        )
    return [cost(result, f"`seatrial match` of {LINES} lines, whole process", "python -c pass", at_most=12)]


def _line(number: int) -> bytes:
    calls = [{"name": name, "arguments": {"order": number, "query": "late"}} for name in ("search", "refund", "email")]
    expected = [{"tool": call["name"], "args": call["arguments"]} for call in calls]
    return msgspec.json.encode({"id": f"case-{number}", "mode": "exact", "expected": expected, "actual": calls})
