"""Programs under test end when Seatrial is killed: a small process waits for that, and does nothing else.

A program of others does not look whether we are still there, and the system's own way (PR_SET_PDEATHSIG) is Linux only,
ends the program without what it started, and has to be asked for between fork and exec, where nothing of ours may run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Self


class Watchdog:
    """Ends process groups that would outlive us. Where it cannot be started, nothing is watched; all else goes on."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with suppress(OSError):
            # Not in our session, so that Ctrl-C leaves it alone, nor with our output, whose end others may wait for.
            self._process = subprocess.Popen(  # noqa: S603 - this very file
                [sys.executable, "-I", "-S", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                bufsize=0,
                start_new_session=True,
            )
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()

    def guard(self, group: int) -> None:
        """See to it that a group does not outlive us."""
        self._tell(group)

    def release(self, group: int) -> None:
        """Forget a group; to be told before its number can be another's."""
        self._tell(-group)

    def _tell(self, number: int) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(b"%d\n" % number)


def watch(told: Iterable[bytes]) -> None:
    """Take numbers of groups, negative ones to forget; when no more come, end those that are left."""
    groups: set[int] = set()
    for line in told:
        number = int(line)
        if number > 0:
            groups.add(number)
        else:
            groups.discard(-number)
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    watch(sys.stdin.buffer)
