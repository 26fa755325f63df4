"""The store with a story: versions of the support clerk of the examples, the last of them worse.

What happens in it is the same each time: the clerk follows dice that always fall the same way. 2.3.1 and 2.3.2 are as
good as each other. 2.4.0 refunds ten times too much where a part is due, repeats refunds that may have been booked, and
claims e-mails that it did not send; cases pass in one trial and fail in the next; the small clerk is at times
overloaded, and these runs are errored. Its experiments are called `clerk-` and the version.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("2.3.2", "2.4.0")
"""Those that are compared: before, and worse."""
HISTORY = ("2.3.1", *VERSIONS)
"""With one before these, so that a case has a past."""


def clerk_command(version: str, trials: int = 5) -> tuple[str, dict[str, str]]:
    """The command that runs the clerk's suite with a version, and the variables that it needs. It ends with 1: some
    runs fail, as they are meant to."""
    command = f"seatrial run examples/clerk.suite.yaml --quiet --trials {trials} --name clerk-{version}"
    return command, {"CLERK_VERSION": version}


def make_clerk_store(path: Path, trials: int = 5, versions: Sequence[str] = VERSIONS) -> None:
    """Run the clerk's suite with each version, into a store at this path."""
    for version in versions:
        command, variables = clerk_command(version, trials)
        name, *arguments = shlex.split(command)
        done = subprocess.run(  # noqa: S603 (our own command)
            [Path(sys.executable).with_name(name), *arguments, "--store", path],
            cwd=ROOT,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 1 or not path.exists():
            raise RuntimeError(f"the clerk's suite ended with {done.returncode}:\n{done.stdout}{done.stderr}")
