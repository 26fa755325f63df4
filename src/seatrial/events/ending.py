"""How the runs of a stream ended: of one run the worst end counts, whatever is sent after it."""

from __future__ import annotations

from typing import TypeAlias

from seatrial.events.types import CancelledOutcome, Event, InterruptOutcome, RunError, RunFinished, RunStarted

Terminal: TypeAlias = RunFinished | RunError


def is_worse(end: Terminal, other: Terminal) -> bool:
    """Whether a run that has both ends ended this way: a server may report an error, and finish all the same."""
    return _badness(end) > _badness(other)


def _badness(end: Terminal) -> int:
    if isinstance(end, RunError):
        return 3
    if isinstance(end.outcome, CancelledOutcome):
        return 2
    return 1 if isinstance(end.outcome, InterruptOutcome) else 0


class StreamEnding:
    """What the events of a stream, taken one by one, say of how it ended."""

    def __init__(self) -> None:
        self.last: Terminal | None = None
        """How the last run ended; None when it has not, or there was none."""
        self.index: int | None = None
        """Which event that is."""
        self.error: RunError | None = None
        """The first error of any run: a run that comes after it does not undo it."""
        self._taken = 0

    def take(self, event: Event) -> None:
        """Take the next event."""
        if isinstance(event, RunStarted):
            self.last = self.index = None
        elif isinstance(event, RunFinished | RunError):
            if isinstance(event, RunError) and self.error is None:
                self.error = event
            if self.last is None or is_worse(event, self.last):
                self.last, self.index = event, self._taken
        self._taken += 1
