"""What reports are made of: plain rows, in the order of the suite's cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Literal, Protocol

import msgspec

from seatrial.runs import Experiment, Judgement, RunStatus
from seatrial.store import GraderCounts, NoteTotals, Outcome
from seatrial.trajectory.completeness import Basis, Level
from seatrial.trajectory.step import Source as StepSource
from seatrial.transcript import Weight

GRADER_ERRORED = "grader_errored"
"""Why a run errored that has an answer: a grader could not judge it."""

CallState = Literal["matched", "differs", "missing", "extra"]
Channel = Literal["text", "thinking", "reasoning", "call", "result", "error"]
CallsKnown = Literal["complete", "partial", "none", "not recorded", "no answer"]
"""How much is known of the calls of a run: a level; or nothing, because the version that recorded it did not check, or
because there was no answer to read."""


class NoteLine(msgspec.Struct, frozen=True):
    """Something that was dropped, guessed or repaired in what an agent sent."""

    code: str
    weight: Weight
    pointer: str
    message: str


class NoteCount(msgspec.Struct, frozen=True):
    """Notes of one code and weight on one run."""

    code: str
    weight: Weight
    count: int


class CompletenessLine(msgspec.Struct, frozen=True):
    """What is known of the calls of a run."""

    level: Level
    basis: Basis | None
    """What a verdict on the calls rests on; None when there is nothing to rest on."""
    source: StepSource | None
    sources: list[StepSource]
    reasons: list[NoteLine]
    """Why it is not complete, the first of them."""
    omitted: int
    """Reasons that are left out."""


class CallLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of expected against actual calls."""

    state: CallState
    expected: str | None = None
    actual: str | None = None
    differences: list[str] = []


def grader_name(grader: str, basis: Basis | None) -> str:
    """A grader, with what its verdict on calls rests on."""
    return grader if basis is None else f"{grader} (on {basis} calls)"


class VerdictLine(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A grader's word on a run."""

    grader: str
    kind: str
    judgement: Judgement
    score: float | None = None
    required: bool = False
    reasons: list[str] = []
    basis: Basis | None = None
    """Of a verdict on calls: whether they were observed, or only reported by the agent."""
    calls: list[CallLine] = []
    """For a trajectory: expected against actual."""

    @property
    def name(self) -> str:
        """The grader, and what its word rests on: `refunds (on reported calls)`."""
        return grader_name(self.grader, self.basis)


class SpeechLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that was said, in one channel."""

    role: str
    channel: Channel
    text: str
    message: int = 0
    """Which message of the transcript it is from."""
    given: bool = False
    """Whether the run started from it: then it is not the agent's doing."""
    notes: list[NoteLine] = []
    """What was noted on the message, where it is certain which one a note is about."""


class RunDetail(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Why a run did not pass, with every text cut to a length that a page can bear."""

    message: str
    """The reason, in a sentence or a few."""
    instruction: str = ""
    answer: str | None = None
    fault_detail: str | None = None
    verdicts: list[VerdictLine] = []
    speech: list[SpeechLine] = []
    speech_left_out: int = 0


class RunRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run as a line of a table."""

    run_id: str
    agent: str
    case_id: str
    trial: int
    status: RunStatus
    outcome: Outcome
    score: float | None = None
    error_class: str | None = None
    started_at: int | None = None
    duration_ms: float | None = None
    attempts: int = 1
    steps: int | None = None
    """None when unknown; when `calls` is not `complete`, there may be more."""
    calls: Level | None = None
    """How complete the steps are; None when there was no answer to read, or nobody had worked it out."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    detail: RunDetail | None = None
    """Of runs that did not pass, and only where it was asked for."""
    completeness: CompletenessLine | None = None
    """Only where details were asked for, like the next."""
    notes: list[NoteLine] = []
    """The first of them, the most serious before the others."""
    note_counts: list[NoteCount] = []
    """All of them, by code and weight."""

    @property
    def calls_known(self) -> CallsKnown:
        """How much is known of its calls."""
        return self.calls or ("not recorded" if self.status == "completed" else "no answer")

    @property
    def calls_incomplete(self) -> bool:
        """Whether it had an answer, and calls that nobody knows of may have been made."""
        return self.calls_known in ("partial", "none", "not recorded")

    def noted(self, weight: Weight) -> int:
        """How many notes of this weight there are."""
        return sum(counted.count for counted in self.note_counts if counted.weight == weight)

    @property
    def needs_look(self) -> bool:
        """Whether something was noted that is not harmless."""
        return self.calls == "partial" or any(counted.weight != "harmless" for counted in self.note_counts)

    @property
    def left_out(self) -> str | None:
        """Why a run is in no rate: the class of its fault, `grader_errored`, or its outcome; None when it counts."""
        if self.outcome in ("passed", "failed"):
            return None
        if self.outcome != "errored":
            return self.outcome
        return self.error_class or GRADER_ERRORED


class Cell(msgspec.Struct, gc=False):
    """What one agent made of one case, over all trials."""

    passed: int = 0
    failed: int = 0
    errored: int = 0
    other: int = 0
    """Skipped, ungraded, cancelled or unfinished."""
    score_sum: float = 0.0
    scored: int = 0
    passed_run: str | None = None
    failed_run: str | None = None
    errored_run: str | None = None
    """The first run that passed, failed, errored: examples to look at."""
    incomplete: int = 0
    """Runs whose calls are not all known."""

    @property
    def runs(self) -> int:
        """All runs that were counted."""
        return self.passed + self.failed + self.errored + self.other

    @property
    def graded(self) -> int:
        """Runs that say something of the agent."""
        return self.passed + self.failed

    @property
    def rate(self) -> float | None:
        """Share of the graded runs that passed."""
        return self.passed / self.graded if self.graded else None

    @property
    def score(self) -> float | None:
        """Mean score of the runs that have one."""
        return self.score_sum / self.scored if self.scored else None

    @property
    def flaky(self) -> bool:
        """Whether some trials passed and some failed."""
        return self.passed > 0 and self.failed > 0

    def add(self, row: RunRow) -> None:
        """Count one more run."""
        self.incomplete += row.calls_incomplete
        if row.outcome == "passed":
            self.passed += 1
            self.passed_run = self.passed_run or row.run_id
        elif row.outcome == "failed":
            self.failed += 1
            self.failed_run = self.failed_run or row.run_id
        elif row.outcome == "errored":
            self.errored += 1
            self.errored_run = self.errored_run or row.run_id
        else:
            self.other += 1
        # A run that errored may have scores of graders that could run; they would be half the truth.
        if row.score is not None and row.outcome in ("passed", "failed"):
            self.score_sum += row.score
            self.scored += 1

    def join(self, other: Cell) -> None:
        """Count what another cell has counted; the examples stay."""
        self.passed += other.passed
        self.failed += other.failed
        self.errored += other.errored
        self.other += other.other
        self.score_sum += other.score_sum
        self.scored += other.scored
        self.incomplete += other.incomplete


class Rows(Protocol):
    """Gives the rows of an experiment as often as asked, made as they are taken: no report needs them all at once."""

    def __call__(self, *, agent: str | None = None, detailed: bool = False) -> Iterable[RunRow]:
        """In the order of the suite, all rows of a case together; of all agents or of one.

        With `detailed`, all of them have their notes, and those that did not pass the reason.
        """
        ...


class Source(msgspec.Struct, frozen=True):
    """An experiment to be reported."""

    experiment: Experiment
    rows: Rows
    graders: list[GraderCounts] = []
    notes: NoteTotals = NoteTotals()


def matrix(rows: Iterable[RunRow]) -> Iterator[tuple[str, dict[str, Cell]]]:
    """Cases x agents: for each case what each agent made of it."""
    for case_id, some in groupby(rows, attrgetter("case_id")):
        cells: dict[str, Cell] = {}
        for row in some:
            cells.setdefault(row.agent, Cell()).add(row)
        yield case_id, cells
