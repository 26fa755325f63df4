"""What reports are made of: plain rows, in the order of the suite's cases."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import Literal, Protocol

import msgspec
from msgspec.structs import asdict

from seatrial.reports.findings import RunFinding
from seatrial.reports.votes import JudgeLine
from seatrial.runs import Case, Experiment, ModelCosts, Outcome
from seatrial.store import (
    CaseTags,
    Cell,
    Changes,
    Counted,
    GraderCounts,
    NoteTotals,
    RunSummary,
    StoredOutcome,
    Totals,
    agent_totals,
    cell_of,
    is_timed,
)
from seatrial.trajectory.completeness import Basis, Level
from seatrial.trajectory.step import Source
from seatrial.transcript import Weight

MAX_FLAKY = 100
"""Flaky cases that are listed; all are counted."""
_ROWS_AT_ONCE = 500

CallState = Literal["matched", "differs", "missing", "extra"]
Channel = Literal["text", "thinking", "reasoning", "call", "result", "error"]


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
    source: Source | None
    sources: list[Source]
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
    outcome: Outcome
    score: float | None = None
    required: bool = False
    reasons: list[str] = []
    code: str = ""
    """Why it errored or was skipped: `calls_unknown`, `judge_skipped`, ..."""
    basis: Basis | None = None
    """Of a verdict on calls: whether they were observed, or only reported by the agent."""
    calls: list[CallLine] = []
    """For a trajectory: expected against actual."""
    judges: list[JudgeLine] = []
    """For a judge, and for several graders of which some are judges: the votes."""

    @property
    def name(self) -> str:
        """The grader, and what its word rests on: `refunds (on reported calls)`."""
        return grader_name(self.grader, self.basis)

    @property
    def word(self) -> str:
        """Its outcome, with why there is none: `errored (calls_unknown)`."""
        return f"{self.outcome} ({self.code})" if self.code else self.outcome


class ChangesLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent changed in its workspace."""

    summary: str
    files: list[str] = []
    """A line for each, the first of them."""
    patch: str = ""
    """The beginning of it."""


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
    sentence: str = ""
    """What came of the run, in one sentence with a place: `First wrong at step 2: ...`."""
    findings: list[RunFinding] = []
    """Where it went wrong, in the order of the run."""
    code: str = ""
    """Of a run that errored without a fault, why it could not be graded: `calls_unknown`, `judge_skipped`, ..."""
    instruction: str = ""
    answer: str | None = None
    fault_detail: str | None = None
    verdicts: list[VerdictLine] = []
    speech: list[SpeechLine] = []
    speech_left_out: int = 0
    changes: ChangesLine | None = None
    """What the agent changed in its workspace; None when it had none."""


class RunRow(RunSummary, kw_only=True, gc=False):
    """One run as a line of a report: what the store counts of it, and more where that was asked for."""

    detail: RunDetail | None = None
    """Of runs that did not pass, and only where it was asked for."""
    judges: ModelCosts | None = None
    """What asking models to grade it cost; None where none was asked. Only where details were asked for, like the next.
    """
    completeness: CompletenessLine | None = None
    notes: list[NoteLine] = msgspec.field(default_factory=list)
    """The first of them, the most serious before the others."""
    note_counts: list[NoteCount] = msgspec.field(default_factory=list)
    """All of them, by code and weight."""
    tags: Sequence[str] = ()
    """Those of its case."""

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
        """Why a run is in no rate: the class of its fault, or else its outcome; None when it counts. Of one that
        errored without a fault, where there are details, why it could not be graded (`calls_unknown`, ...)."""
        if self.outcome in ("passed", "failed"):
            return None
        why = self.error_class or (None if self.detail is None else self.detail.code or None)
        return (why if self.outcome == "errored" else None) or self.outcome


class Rows(Protocol):
    """Gives the rows of an experiment as often as asked, made as they are taken: no report needs them all at once."""

    def __call__(
        self,
        *,
        agent: str | None = None,
        detailed: bool = False,
        outcomes: frozenset[StoredOutcome] = frozenset(),
        run_ids: frozenset[str] = frozenset(),
    ) -> Iterable[RunRow]:
        """In the order of the suite, all rows of a case together; of all agents or of one, and with sets that are not
        empty, only of these outcomes or runs.

        With `detailed`, all of them have their notes, and those that did not pass the reason.
        """
        ...


class Counts(Protocol):
    """What is counted of an experiment already, so that its rows need not be read."""

    def totals(self) -> Totals:
        """What all runs add up to."""
        ...

    def cells(self, agent: str) -> list[Cell]:
        """What an agent made of each case that it has runs of, in the order of the suite."""
        ...

    def add_examples(self, cells: list[Cell]) -> None:
        """Say which runs of these cells to look at."""
        ...


class ReportSource(msgspec.Struct, frozen=True):
    """An experiment to be reported."""

    experiment: Experiment
    rows: Rows
    counts: Counts
    graders: list[GraderCounts] = []
    notes: NoteTotals = NoteTotals()
    errored_with_failure: dict[str, int] = {}
    """Of each agent, how many runs errored although a grader failed them."""
    planned: int | None = None
    """How many runs it comes to, where that is known."""
    judges: dict[str, ModelCosts] = {}
    """What asking models to grade the runs of each agent cost."""
    tags: Callable[[], CaseTags] = CaseTags
    """Gives the tags of its cases."""
    cases: Callable[[], Iterable[Case]] = tuple
    """Gives its cases, but for those that are damaged."""


def matrix(rows: Iterable[RunSummary]) -> Iterator[tuple[str, dict[str, Cell]]]:
    """Cases x agents: for each case what each agent made of it, with a run to look at for each outcome."""
    for case_id, group in groupby(rows, attrgetter("case_id")):
        some = list(group)
        counted = Changes()
        counted.add(map(Counted, some))
        examples: dict[tuple[str, StoredOutcome], str] = {}
        for row in some:
            examples.setdefault((row.agent, row.outcome), row.run_id)
        cells = {agent: cell_of(asdict(sums)) for (_, agent), sums in counted.cells.items()}
        for agent, cell in cells.items():
            cell.passed_run = examples.get((agent, "passed"))
            cell.failed_run = examples.get((agent, "failed"))
            cell.errored_run = examples.get((agent, "errored"))
        yield case_id, cells


def totals_of(rows: Iterable[RunSummary]) -> Totals:
    """What rows add up to, counted by going over them."""
    counted = Changes()
    durations: dict[str, array[float]] = {}
    remaining = iter(rows)
    while some := list(islice(remaining, _ROWS_AT_ONCE)):
        counted.add(map(Counted, some))
        for row in some:
            if row.duration_ms is not None and is_timed(row):
                durations.setdefault(row.agent, array("d")).append(row.duration_ms)
    counted.close()
    agents = agent_totals(counted.tallies, {agent: sorted(some) for agent, some in durations.items()})
    cells = [cell_of(asdict(sums)) for sums in counted.cells.values() if sums.passed > 0 < sums.failed]
    return Totals(
        agents=agents,
        cases=len({case_id for case_id, _ in counted.cells}),
        most_trials=max([agent.most_trials for agent in agents], default=0),
        flaky=cells[:MAX_FLAKY],
    )


class CountedRows:
    """The counts of rows that are at hand."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def totals(self) -> Totals:
        return totals_of(self._rows())

    def cells(self, agent: str) -> list[Cell]:
        return [cells[agent] for _, cells in matrix(self._rows(agent=agent))]

    def add_examples(self, cells: list[Cell]) -> None:
        """They have them."""
