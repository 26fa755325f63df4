"""Observed calls: what went through our tool proxy, and how it compares with what the agent reports.

The proxy writes every request for a tool into `ObservedCalls`, also one that it refuses. An agent that may have tools
of its own is known by both: its steps are the observed calls, and every reported call that is not one of those.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from seatrial.trajectory.step import Step
from seatrial.trajectory.values import keys
from seatrial.transcript.note import Note, note_code

MAX_OBSERVED_CALLS = 5_000
"""How many calls of one run are recorded."""
MAX_OBSERVED_BYTES = 32 * 1024 * 1024
"""What the arguments and results of one run may take in memory, about."""
_BYTES_A_VALUE = 60
"""What a value takes in memory besides its text, about."""

OBSERVED_CALLS_CUT = note_code(
    "observed_calls_cut",
    "The agent made more, or larger, calls through the tool proxy than are recorded for one run.",
    "serious",
)
CALLS_IN_EARLIER_ATTEMPT = note_code(
    "calls_in_earlier_attempt",
    "Calls were made in an earlier attempt, which a fault ended, or may have been: nothing lists what it called. They "
    "are not in the run's steps. Its events have those that are known, unless the process of that attempt ended.",
    "serious",
)
REPORTED_CALL_NOT_OBSERVED = note_code(
    "reported_call_not_observed", "The agent reports a call that did not go through the tool proxy.", "look"
)


class ObservedCalls(msgspec.Struct):
    """The calls of one attempt at a run that went through the tool proxy, in the order in which they came."""

    steps: list[Step] | None = None
    """None: the agent was not told of a proxy."""
    incomplete: int = 0
    """Calls that are not recorded, or without their arguments or result, because there were too many or too large."""
    bytes_left: int = MAX_OBSERVED_BYTES

    def begin(self, step: Step) -> bool:
        """Record a call before anything is known of it but its name; False when there are too many."""
        if self.steps is None:
            self.steps = []
        if len(self.steps) >= MAX_OBSERVED_CALLS or not self.fits(step.name.encode("utf-8", "replace")):
            self.incomplete += 1
            return False
        step.index = len(self.steps)
        self.steps.append(step)
        return True

    def drop(self, step: Step) -> None:
        """Take a call out again, which was one already."""
        steps = self.steps or []
        if step.index < len(steps) and steps[step.index] is step:
            del steps[step.index]
            for index, later in enumerate(steps[step.index :], step.index):
                later.index = index

    def fits(self, data: bytes) -> bool:
        """Whether there is room for arguments or a result of this text; what is refused is counted by the caller."""
        values = data.count(b",") + data.count(b"{") + data.count(b"[")
        size = len(data) + _BYTES_A_VALUE * (1 + values)
        if size > self.bytes_left:
            return False
        self.bytes_left -= size
        return True

    @property
    def size(self) -> int:
        """What is recorded takes so much in memory, about."""
        return MAX_OBSERVED_BYTES - self.bytes_left

    @property
    def note(self) -> Note | None:
        """Says that not every call is recorded, when that is so."""
        if not self.incomplete:
            return None
        text = f"{self.incomplete:,} calls through the tool proxy are not recorded, or without arguments or result"
        return Note(OBSERVED_CALLS_CUT, "", text)


class ReportDiff(msgspec.Struct):
    """Observed calls against reported ones, by their indices."""

    unreported: list[int]
    """Observed calls that the agent does not report."""
    unobserved: list[int]
    """Reported calls that were not observed."""
    differing: list[tuple[int, int]]
    """An observed and a reported call of the same tool with the same id, but with other arguments."""


def diff_report(observed: Sequence[Step], reported: Sequence[Step]) -> ReportDiff:
    """Which calls have no counterpart: one of the same id and tool, else one of the same tool and arguments."""
    made, said = report_keys(observed, b"observed"), report_keys(reported, b"reported")
    by_id: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for index, step in enumerate(reported):
        if step.id is not None and step.executed_by != "user":
            by_id[step.id, step.name].append(index)
    paired: dict[int, int] = {}
    for index, step in enumerate(observed):
        if step.id is not None and (same := by_id.get((step.id, step.name))):
            paired[same.pop(0)] = index
    left = Counter(made)
    left.subtract(made[index] for index in paired.values())
    unobserved = []
    for index, call in enumerate(said):
        # What a user's own tool did is nobody's report on the agent.
        if index in paired or reported[index].executed_by == "user":
            continue
        if left[call] > 0:
            left[call] -= 1
        else:
            unobserved.append(index)
    taken = {*paired.values()}
    # Of equal calls, the last ones are those that were not reported.
    unreported = []
    for index in range(len(made) - 1, -1, -1):
        if index not in taken and left[made[index]] > 0:
            left[made[index]] -= 1
            unreported.append(index)
    differing = [(at, index) for index, at in paired.items() if made[at] != said[index]]
    return ReportDiff(unreported[::-1], unobserved, sorted(differing))


def interleaved(observed: Sequence[Step], reported: Sequence[Step], diff: ReportDiff) -> list[tuple[bool, int]]:
    """All calls once, as (whether it is an observed one, its index): the observed ones in their order, the others where
    the agent reports them between those. An observed call that is not reported stands before the next one that is."""
    unreported, unobserved = {*diff.unreported}, {*diff.unobserved}
    places: list[tuple[bool, int]] = []
    following = iter(range(len(observed)))
    for index, step in enumerate(reported):
        if index in unobserved or step.executed_by == "user":
            places.append((False, index))
            continue
        for at in following:
            places.append((True, at))
            if at not in unreported:
                break
    return places + [(True, at) for at in following]


def report_keys(steps: Sequence[Step], side: bytes) -> list[bytes]:
    """A key for each call, in which null arguments are no arguments: a trace cannot tell the two apart."""
    values = [[step.name, {} if step.arguments is None else step.arguments, step.arguments_text] for step in steps]
    return keys(values, side)
