"""What a grader is: a small configuration from which a check is prepared, once, for many runs."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, Meta

from seatrial._support import wire
from seatrial._support.registry import where
from seatrial.errors import SeatrialError
from seatrial.graders.chat_model import ChatModel, CountedModel
from seatrial.runs import Case, ModelCosts, Outcome, Run
from seatrial.trajectory.completeness import Basis, ScoreRange
from seatrial.trajectory.prose import shown

FOR_GRADERS = frozenset({"expected", "expected_outcome", "expected_outcome_detail"})
"""The keys of a case that only graders read."""

GraderWeight = Annotated[float, Meta(ge=0, le=1_000_000)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Share = Annotated[float, Meta(gt=0, le=1)]
"""A score to reach. Not 0, which everything reaches."""
MAX_LISTED = 5


class CommandEnd(NamedTuple):
    """How a command in a workspace ended."""

    code: int | None
    """Its exit code, negative for a signal; None when it took too long and was ended."""
    output: str
    """What it wrote to standard output: the end of it."""
    cut: bool
    """Whether there was more before that."""
    log: str
    """The last lines that it wrote to standard error."""


class OpenWorkspace(Protocol):
    """The workspace of a run that has just ended."""

    async def run(self, argv: list[str], limit_s: float) -> CommandEnd:
        """Run a command in it. Raises `OSError` when it cannot be started, `SeatrialError` when nothing can be."""
        ...


class Subject(msgspec.Struct):
    """What is graded: a finished run and the case it ran."""

    run: Run
    """As the agent said it, secrets of the suite included; of a run that is graded again, as it was stored."""
    case: Case
    kept: Run | None = None
    """What is stored of the run, where that is another object: the same without secrets."""
    workspace: OpenWorkspace | None = None
    """Where the agent worked, while that is there; None when it is gone, or there was none."""

    @property
    def stored(self) -> Subject:
        """What is graded as it is stored, so that it can be shown to others: a model, for example."""
        return self if self.kept is None else Subject(self.kept, self.case, workspace=self.workspace)

    @property
    def answer(self) -> str | None:
        """The agent's answer, None when there is none."""
        return None if self.run.reading is None else self.run.reading.transcript.final_text()


class Finding(msgspec.Struct, kw_only=True):
    """What one grader found, before the common keys (`min_score`, `negate`) are applied."""

    outcome: Outcome
    score: float | None = None
    """0 to 1. When absent, 1 for passed and 0 for failed."""
    score_range: ScoreRange | None = None
    """Between what the score lies, where not all that it depends on is known; None when it is exact."""
    reasons: list[str] = []
    """Sentences that show the arithmetic."""
    code: str = ""
    """Why it errored or was skipped, in a word of letters and `_`."""
    evidence: list[str] = []
    """JSON pointers into the run: `/answer`, `/messages/3`, `/steps/0`."""
    details: Any = None
    basis: Basis | None = None
    """For a finding on calls: whether they were observed, or only reported by the agent."""
    cost_usd: float | None = None
    """What asking models cost; like the next three, counted where the grader asks the model of its surroundings."""
    least_cost_usd: float | None = None
    """What is known of it, where that is not all."""
    tokens: int | None = None
    least_tokens: int | None = None

    def add_costs(self, costs: ModelCosts) -> None:
        """Say what asking models cost, but for what is said already."""
        if self.cost_usd is None:
            self.cost_usd, self.least_cost_usd = costs.cost_usd, costs.least_cost_usd
        if self.tokens is None:
            self.tokens, self.least_tokens = costs.tokens, costs.least_tokens


class Surroundings(msgspec.Struct, kw_only=True):
    """What a grader may use besides the subject."""

    directory: Path = Path()
    """Where the suite file is: commands and Python targets start there."""
    model: ChatModel | None = None
    """For judges; None when no model is configured, or none is to be asked."""
    counted: CountedModel | None = None
    """The same, where what it costs is counted for one verdict."""
    skips_judges: bool = False
    """Whether judges are left out on purpose."""

    def for_one_verdict(self) -> Surroundings:
        """The same, with a model that counts what it costs from here on."""
        if self.model is None:
            return self
        counted = CountedModel(self.model)
        return msgspec.structs.replace(self, model=counted, counted=counted)


Find: TypeAlias = Callable[[Subject, Surroundings], Finding | Awaitable[Finding]]


class WorldNames(msgspec.Struct, frozen=True):
    """What a check names of a world: where there is no such thing, it would find nothing for ever."""

    types: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    """Tools, or globs of them."""


class Check(msgspec.Struct, frozen=True):
    """A grader's configuration, compiled. `find` is a coroutine function where it waits for a process or a model."""

    find: Find
    repeatable: bool = True
    """Whether an equal configuration finds the same in an equal run. Not so when it runs code that may have changed."""
    asks_model: bool = False
    """Whether the finding is also the model's."""
    of_answer: bool = False
    """Whether it looks at the answer's text. Negated, it says nothing of a run without an answer: it is errored."""
    positive: bool = False
    """Of a check of the answer: whether it only looks for something, so that it still passes, and scores no less,
    whatever else the answer says. Any other is errored when a part of the answer is missing."""
    of_calls: bool = False
    """Whether it looks at the names, arguments or results of calls."""
    reads: frozenset[str] = frozenset()
    """The keys of a case that it goes by, of those that are there for graders: `expected` and its like."""
    needs: frozenset[str] = frozenset()
    """Those of them without which it cannot judge."""
    names: WorldNames = WorldNames()
    of_diff: bool = False
    """Whether it looks at what changed in the workspace, or at the workspace itself."""
    queues: bool = False
    """Whether it may have to wait before it begins, and keeps its time limit by itself from then on."""
    uses_min_score: bool = False
    """Whether `min_score` is part of how it finds, and is not held against the score it finds."""
    parts: bytes = b""
    """For a grader of graders: the digests of what they check."""
    keeps_time: bool = False
    """Whether it ends by itself at its time limit, and says more about it than anybody else could."""


class _GraderMeta(msgspec.StructMeta, ABCMeta):
    """Structs with an abstract method."""


class Grader(msgspec.Struct, metaclass=_GraderMeta, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The keys that every grader has. A kind is a subclass with its own keys and a `prepare`."""

    kind: ClassVar[str]
    """What suites and reports call it: the name it is registered under, else `package.module:Class`."""
    version: ClassVar[int] = 1
    """Raised when the same configuration may judge the same run otherwise than before. Verdicts of a class that is
    not Seatrial's are reused only where the class sets it: nobody else knows when its code has changed."""
    default_timeout_s: ClassVar[float] = 10.0
    """The time limit of the kind."""

    name: Annotated[str, Meta(max_length=200)] = ""
    """How reports call it; the kind when absent."""
    weight: GraderWeight = 1.0
    """Its share in the weighted score of a case."""
    required: bool = True
    """Whether the case fails when this grader does, and is errored when it is errored or skipped; otherwise it only
    counts in the score."""
    min_score: Share | None = None
    """Pass from this score on, instead of by the grader's own rule."""
    negate: bool = False
    """Pass when the grader fails, and the other way round; one that errored or was skipped stays so."""
    timeout_s: Seconds | None = None
    """How long it may take for one run; then it is ended, and errored. When absent, 10 seconds; 60 for `python`
    and `code`, 600 for `judge`. A `composite` has none but those of its graders."""

    def __init_subclass__(cls) -> None:
        if "kind" not in vars(cls):
            cls.kind = where(cls)

    @property
    def limit_s(self) -> float:
        """Its time limit."""
        return self.default_timeout_s if self.timeout_s is None else self.timeout_s

    @abstractmethod
    def prepare(self) -> Check:
        """Check and compile the configuration, before anything runs; raises `SeatrialError("invalid_config")`."""


def passed_if(condition: bool, *reasons: str, score: float | None = None, evidence: list[str] | None = None) -> Finding:
    """The finding of a plain yes or no."""
    return Finding(
        outcome="passed" if condition else "failed", score=score, reasons=list(reasons), evidence=evidence or []
    )


def errored(*reasons: str, code: str = "grader_errored") -> Finding:
    """The finding of a grader that could not run."""
    return Finding(outcome="errored", reasons=list(reasons), code=code)


def skipped(*reasons: str, code: str = "grader_skipped") -> Finding:
    """The finding of a grader that has nothing to say."""
    return Finding(outcome="skipped", reasons=list(reasons), code=code)


def quoted(value: Any) -> str:
    """A value as JSON, cut where it is long; `missing` for none."""
    if value is UNSET:
        return "missing"
    try:
        return shown(wire.encode(value[:200] if isinstance(value, str) else value).decode())
    except (SeatrialError, TypeError, ValueError):
        return type(value).__name__


def listed(texts: list[str]) -> str:
    """The first few of these texts, and how many more there are."""
    more = f" and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""
    return "; ".join(texts[:MAX_LISTED]) + more
