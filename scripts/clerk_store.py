"""The store with a story: two versions of the support clerk of the examples, one of them worse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("2.3.2", "2.4.0")
"""Of the clerk; the experiments are called `clerk-` and one of these."""


def make_clerk_store(path: Path, trials: int = 5) -> None:
    """Run the clerk's suite with each version, into a store at this path."""
    for version in VERSIONS:
        command = [str(Path(sys.executable).with_name("seatrial")), "run", "examples/clerk.suite.yaml", "--quiet"]
        options = ["--trials", str(trials), "--name", f"clerk-{version}", "--store", str(path)]
        environment = {**os.environ, "CLERK_VERSION": version}
        done = subprocess.run(  # noqa: S603 (our own command)
            [*command, *options], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        # 1: some runs failed, as they are meant to.
        if done.returncode != 1 or not path.exists():
            raise RuntimeError(f"the clerk's suite ended with {done.returncode}:\n{done.stdout}{done.stderr}")
