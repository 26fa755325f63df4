"""Graders of what a run took: time, money, tokens, tool calls, model calls.

A figure that nobody gave is not zero: the grader is `errored`, unless `when_unknown: skip` says otherwise. A count of
which not all is known is a lower bound: it can break a maximum or reach a minimum, and says nothing else.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from seatrial.errors import SeatrialError
from seatrial.graders.calls import (
    BasisWanted,
    agent_calls,
    based,
    calls_unknown,
    known_of,
    not_observed,
    observed_alone,
    passed_by_report,
    report_is_complete,
)
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored, passed_if
from seatrial.trajectory.completeness import Basis, all_of, at_least, at_most
from seatrial.transcript.messages import AssistantMessage

Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]


class Figure(msgspec.Struct, frozen=True):
    """What was measured."""

    value: float
    exact: bool = True
    """Otherwise there may be more."""


class MetricGrader(Grader):
    """What graders of a figure have in common."""

    figure: ClassVar[str]
    """What is measured, in words."""
    unit: ClassVar[str] = ""

    when_unknown: Literal["error", "skip"] = "error"
    """What happens when the figure is not known well enough to decide: the grader is `errored`, or `skipped`."""

    def prepare(self) -> Check:
        least, most = self._bounds()
        if least is None and most is None:
            names = [name for name in self.__struct_fields__ if name.startswith(("max", "min")) and name != "min_score"]
            raise SeatrialError("invalid_config", f"`{self.kind}` needs a bound", hint=f"give {' or '.join(names)}")
        if most is None and not least:
            raise SeatrialError("invalid_config", f"`{self.kind}` can never be less than 0", hint="give a higher bound")
        if least is not None and most is not None and least > most:
            message = f"nothing is at least {_figure(least)} and at most {_figure(most)}"
            raise SeatrialError("invalid_config", message)

        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            if (refused := self._refused(subject)) is not None:
                return refused
            found = self._finding(subject, least, most)
            if found.outcome == "errored" and self.when_unknown == "skip":
                found.outcome = "skipped"
            return self._accepted(found)

        return Check(find)

    def _finding(self, subject: Subject, least: float | None, most: float | None) -> Finding:
        figure = self._measure(subject)
        if figure is None:
            return errored(f"{self.figure} is not known")
        holds = all_of([at_most(figure.value, most, figure.exact), at_least(figure.value, least, figure.exact)])
        value = f"{'' if figure.exact else 'at least '}{_figure(figure.value)}{self.unit}"
        if holds is None:
            return self._unknown(f"{self.figure}: {value}, and whether there was more is not known", subject)
        if most is not None and figure.value > most:
            return passed_if(False, f"{self.figure}: {value} > {_figure(most)}{self.unit} allowed")
        if least is not None and figure.value < least:
            return passed_if(False, f"{self.figure}: {value} < {_figure(least)}{self.unit} required")
        bounds = [f"at least {_figure(least)}"] if least is not None else []
        bounds += [f"at most {_figure(most)}"] if most is not None else []
        return passed_if(True, f"{self.figure}: {value}, {' and '.join(bounds)}{self.unit}")

    def _refused(self, subject: Subject) -> Finding | None:
        """Why the run is not measured at all."""
        return None

    def _accepted(self, found: Finding) -> Finding:
        """A finding, unless it rests on too little."""
        return found

    def _unknown(self, reason: str, subject: Subject) -> Finding:
        """The finding when more may have been used, and that would decide."""
        return errored(reason)

    @abstractmethod
    def _bounds(self) -> tuple[float | None, float | None]: ...

    @abstractmethod
    def _measure(self, subject: Subject) -> Figure | None: ...


class Latency(MetricGrader):
    """How long the agent took."""

    kind: ClassVar[str] = "latency"
    figure: ClassVar[str] = "latency"
    unit: ClassVar[str] = " ms"

    max_ms: Amount | None = None
    """Milliseconds at most."""
    min_ms: Amount | None = None
    """Milliseconds at least."""
    of: Literal["measured", "reported"] = "measured"
    """`measured`: the attempt that brought the answer, by our clock; not known of replayed runs and in batches.
    `reported`: what the agent says of itself."""

    def _bounds(self) -> tuple[float | None, float | None]:
        return self.min_ms, self.max_ms

    def _measure(self, subject: Subject) -> Figure | None:
        run = subject.run
        if self.of == "reported":
            return _exactly(None if run.reading is None else run.reading.transcript.duration_ms)
        if run.duration_ms is None:
            return None  # a replayed run, or one of a batch: what was measured is not the time that the agent took
        # Of each exchange, the attempt that brought the reply.
        replied = [exchange.attempts[-1].duration_ms for exchange in run.exchanges if exchange.attempts]
        return _exactly(sum(replied) if replied else run.duration_ms)


class Cost(MetricGrader):
    """What the run cost, as the agent reports it. Where an attempt before the last one reached the agent, that is a
    lower bound."""

    kind: ClassVar[str] = "cost"
    version: ClassVar[int] = 2
    figure: ClassVar[str] = "cost"
    unit: ClassVar[str] = " USD"

    max_usd: Amount | None = None
    """US dollars at most."""
    min_usd: Amount | None = None
    """US dollars at least."""

    def _bounds(self) -> tuple[float | None, float | None]:
        return self.min_usd, self.max_usd

    def _measure(self, subject: Subject) -> Figure | None:
        cost = subject.run.cost
        return None if cost is None else Figure(cost, not subject.run.has_uncounted_attempts)


class CountGrader(MetricGrader):
    """What graders of a count have in common."""

    max: Count | None = None
    """At most this many."""
    min: Count | None = None
    """At least this many."""

    def _bounds(self) -> tuple[float | None, float | None]:
        return self.min, self.max


class TokensGrader(CountGrader):
    """How many tokens the run took, as the agent reports them: a sum for the run, else those of its messages. Where an
    attempt before the last one reached the agent, that is a lower bound."""

    kind: ClassVar[str] = "tokens"
    version: ClassVar[int] = 4
    figure: ClassVar[str] = "tokens"

    of: Literal["total", "input", "output"] = "total"
    """Which tokens count; `total` is input and output. Tokens that a cache gave or took are input."""

    def _measure(self, subject: Subject) -> Figure | None:
        reading = subject.run.reading
        if reading is None:
            return None
        used = reading.transcript.tokens()
        if used is None:
            return None
        # Where messages may be missing, so may what they say of tokens.
        exact = reading.transcript.usage is not None or (used.exact and report_is_complete(subject))
        exact = exact and not subject.run.has_uncounted_attempts
        return Figure({"total": used.input + used.output, "input": used.input, "output": used.output}[self.of], exact)


class CallCountGrader(CountGrader):
    """What graders of a count of calls have in common."""

    version: ClassVar[int] = 3

    def _finding(self, subject: Subject, least: float | None, most: float | None) -> Finding:
        found = super()._finding(subject, least, most)
        if found.outcome != "errored":
            found.basis = self._basis(subject, found.outcome == "passed", least, most)
            found.reasons = [based(reason, found.basis) for reason in found.reasons]
        return found

    @abstractmethod
    def _basis(self, subject: Subject, passed: bool, least: float | None, most: float | None) -> Basis:
        """What a finding rests on."""

    def _unknown(self, reason: str, subject: Subject) -> Finding:
        return calls_unknown(reason, known_of(subject))


class Steps(CallCountGrader):
    """How many tool calls the agent made."""

    kind: ClassVar[str] = "steps"
    figure: ClassVar[str] = "steps"

    basis: BasisWanted = "any"
    """`observed`: errored when it would pass only by calls that the agent reports, and that our proxies did not see."""

    def _refused(self, subject: Subject) -> Finding | None:
        return not_observed(subject, self.basis)

    def _accepted(self, found: Finding) -> Finding:
        return passed_by_report(found, self.basis)

    def _basis(self, subject: Subject, passed: bool, least: float | None, most: float | None) -> Basis:
        if (observed := observed_alone(subject)) is None:
            return known_of(subject).basis
        # What the observed calls decide by themselves does not rest on the agent's word.
        count = len(observed)
        decided = all_of([at_most(count, most, False), at_least(count, least, False)])
        return "observed" if decided is passed else "reported"

    def _measure(self, subject: Subject) -> Figure | None:
        return Figure(len(agent_calls(subject)), known_of(subject).level == "complete")


class ModelCalls(CallCountGrader):
    """How often the agent asked a model: model steps of its trace, else its assistant messages."""

    kind: ClassVar[str] = "model_calls"
    figure: ClassVar[str] = "model calls"

    def _measure(self, subject: Subject) -> Figure | None:
        reading = subject.run.reading
        if reading is None:
            return None
        count = sum(event.type == "model_step" for event in reading.trace or ())
        if not count and not reading.answer_only:
            count = sum(type(message) is AssistantMessage for message in reading.transcript.done())
        # An answer without a single message says nothing of how it came about.
        return Figure(count, report_is_complete(subject)) if count else None

    def _basis(self, subject: Subject, passed: bool, least: float | None, most: float | None) -> Basis:
        return "reported"


def _exactly(value: float | None) -> Figure | None:
    return None if value is None else Figure(value)


def _figure(value: float) -> str:
    """Every digit of a whole number, so that it can be told from a bound beside it; of another, what matters."""
    if float(value).is_integer():
        return f"{value:.0f}"
    return f"{value:.6g}" if value < 1e5 else f"{value:.1f}"
