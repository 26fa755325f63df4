"""Exit codes, the same for every command."""

from __future__ import annotations

import signal

from seatrial.errors import SeatrialError

PASSED = 0
FAILED = 1
USAGE = 2
COULD_NOT_RUN = 3


class StoppedBySignal(KeyboardInterrupt):
    """A command was stopped at once, by Ctrl-C or another signal."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


REASONS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
"""Signals that stop a command, and how reports call it."""


def interrupted_as(interrupt: KeyboardInterrupt) -> str:
    """What happened to a command that was interrupted, in one word."""
    return REASONS[interrupt.number if isinstance(interrupt, StoppedBySignal) else signal.SIGINT]


def signal_exit(number: signal.Signals) -> int:
    """How a command ends that a signal stopped, as shells count it."""
    return 128 + number


def interrupted_exit(interrupt: KeyboardInterrupt) -> int:
    """How a command ends that was interrupted."""
    return signal_exit(interrupt.number if isinstance(interrupt, StoppedBySignal) else signal.SIGINT)


def exit_of(*, failed: int, errored: int, unjudged: int = 0, complete: bool = True) -> int:
    """How a command on many runs ends: 1 when any failed, 3 when something could not be run or judged, else 0."""
    if failed:
        return FAILED
    return COULD_NOT_RUN if errored or unjudged or not complete else PASSED


def suite_exit(error: SeatrialError) -> int:
    """How a command ends that was given a suite which cannot be used: 3 when it is only that nothing would judge."""
    return COULD_NOT_RUN if error.code == "not_judged" else USAGE
