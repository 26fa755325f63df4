"""The results of several runs of one agent on one case, and whether enough of them passed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Literal, TypeAlias, overload

import msgspec

from seatrial._support.printable import printable
from seatrial.errors import SeatrialError
from seatrial.testing.run_result import RunResult
from seatrial.trajectory.calls import NoVerdictError

MAX_SHOWN = 5
"""Trials that a failed check shows whole."""

Passes: TypeAlias = Callable[[RunResult], object]
"""What a trial must pass: it returns true or false, or asserts and returns nothing."""


class TrialVerdict(msgspec.Struct, frozen=True):
    """What one trial came to."""

    outcome: Literal["passed", "failed", "undecided"]
    """`undecided`: the fault was not the agent's, a grader could not run, or not enough is known of the run."""
    reason: str


class TrialResults(Sequence[RunResult]):
    """The runs of an agent on one case, in the order of the trials."""

    def __init__(self, results: Sequence[RunResult], *, at_least: int, passes: Passes | None = None) -> None:
        self._results = list(results)
        self.at_least = at_least
        """How many of them must pass."""
        self.verdicts = [_verdict(result, passes) for result in self._results]
        """What each came to, in the same order."""

    @overload
    def __getitem__(self, index: int) -> RunResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[RunResult]: ...
    def __getitem__(self, index: int | slice) -> RunResult | list[RunResult]:
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def passed(self) -> int:
        """How many passed."""
        return self._count("passed")

    @property
    def failed(self) -> int:
        """How many failed."""
        return self._count("failed")

    @property
    def undecided(self) -> int:
        """How many cannot be counted as one or the other."""
        return self._count("undecided")

    def check(self) -> None:
        """Fail the test unless enough trials passed.

        Raises `AssertionError` when too few did, whatever the undecided ones would have come to, and `NoVerdictError`
        when it depends on those.
        """
        __tracebackhide__ = True
        if self.passed >= self.at_least:
            return
        if self.passed + self.undecided >= self.at_least:
            raise NoVerdictError(str(self))
        raise AssertionError(str(self))

    def __repr__(self) -> str:
        return f"<TrialResults: {self._summary()}>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """How many passed, and the whole story of those that did not."""
        yield self._summary()
        others = [index for index, verdict in enumerate(self.verdicts) if verdict.outcome != "passed"]
        for index in others[:MAX_SHOWN]:
            verdict = self.verdicts[index]
            yield printable(f"trial {index + 1}: {verdict.outcome}")
            yield from (f"  {line}" for line in printable(verdict.reason).splitlines())
        if len(others) > MAX_SHOWN:
            yield f"and {len(others) - MAX_SHOWN} more that did not pass"

    def _summary(self) -> str:
        undecided = f", {self.undecided} undecided" if self.undecided else ""
        enough = f"at least {self.at_least} must pass"
        return f"{self.passed} of {len(self)} trials passed, {self.failed} failed{undecided}; {enough}"

    def _count(self, outcome: str) -> int:
        return sum(verdict.outcome == outcome for verdict in self.verdicts)


def _verdict(result: RunResult, passes: Passes | None) -> TrialVerdict:
    run = result.run
    if run.errored or run.status not in ("completed", "failed"):
        return TrialVerdict("undecided", f"the fault was not the agent's\n{result}")
    if run.status == "failed":
        return TrialVerdict("failed", str(result))
    graded = result.outcome
    if graded == "failed":
        return TrialVerdict("failed", str(result))
    # What the test asserts can fail a trial that graders leave open, but not pass it.
    asserted = None if passes is None else _asserted(result, passes)
    if asserted is not None and asserted.outcome == "failed":
        return asserted
    if graded == "errored" or (graded == "skipped" and run.verdicts):
        return TrialVerdict("undecided", str(result))
    return asserted or TrialVerdict("passed", "")


def _asserted(result: RunResult, passes: Passes) -> TrialVerdict:
    try:
        held = passes(result)
    except NoVerdictError as error:
        return TrialVerdict("undecided", result.redact(str(error)))
    except AssertionError as error:
        return TrialVerdict("failed", f"{result.redact(str(error))}\n{result}".strip())
    # A function of assertions returns nothing. A lambda has none: `re.search(...)` in one gives None for not found.
    if held is True or (held is None and getattr(passes, "__name__", "") != "<lambda>"):
        return TrialVerdict("passed", "")
    if held is False:
        return TrialVerdict("failed", f"`passes` returned False\n{result}")
    if isinstance(held, Coroutine):
        held.close()  # nobody waits for it, as it may be true whatever comes of it
    given = "nothing" if held is None else f"a {type(held).__name__}"
    hint = "`bool(...)` around the value; a function with assertions is a `def`, and not async"
    raise SeatrialError(
        "invalid_config", f"`passes` returns true or false, or asserts, and returned {given}", hint=hint
    )
