"""**Many runs**: the resident memory of `seatrial run` at its largest with 20,000 cases, over that with 1,000; and the
time, by the clock on the wall, that `--resume` takes to find that nothing is left to do of 20,000 runs, the best of
three.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.clock import run_process
from bench.figure import Level
from bench.trial_suites import run_command, write_suite

AGENT = {"kind": "python", "target": "bench.trial_agents:answer"}


def measure() -> list[Level]:
    with tempfile.TemporaryDirectory() as folder:
        thousand, many = (write_suite(Path(folder), AGENT, cases) for cases in (1000, 20_000))
        small = run_process(run_command(thousand)).max_resident
        large = run_process(run_command(many)).max_resident
        resumed_s = min(run_process(run_command(many, "--resume", "latest")).wall_s for _ in range(3))
    return [
        Level("memory of 20,000 cases over that of 1,000", large - small, 60e6, "bytes"),
        Level("resume of 20,000 runs, nothing left to do", resumed_s * 1e9, 2e9, "ns"),
    ]
