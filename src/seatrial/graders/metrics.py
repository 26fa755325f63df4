"""Graders of what a run took: time, money, tokens, tool calls, model calls.

A figure that nobody gave is no zero: the grader is `errored`, unless `when_unknown: skip` says otherwise.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from seatrial.errors import SeatrialError
from seatrial.graders.grader import Check, Finding, Grader, Subject, Surroundings, errored, passed_if, skipped
from seatrial.transcript.messages import AssistantMessage, Usage

Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]


class MetricGrader(Grader):
    """What graders of a figure have in common."""

    figure: ClassVar[str]
    """What is measured, in words."""
    unit: ClassVar[str] = ""

    when_unknown: Literal["error", "skip"] = "error"
    """What happens when the figure is not known: the grader is `errored`, or `skipped`."""

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
            return self._finding(self._measure(subject), least, most)

        return Check(find)

    def _finding(self, value: float | None, least: float | None, most: float | None) -> Finding:
        if value is None:
            say = skipped if self.when_unknown == "skip" else errored
            return say(f"{self.figure} is not known")
        if most is not None and value > most:
            return passed_if(False, f"{self.figure}: {_figure(value)}{self.unit} > {_figure(most)}{self.unit} allowed")
        if least is not None and value < least:
            return passed_if(
                False, f"{self.figure}: {_figure(value)}{self.unit} < {_figure(least)}{self.unit} required"
            )
        bounds = [f"at least {_figure(least)}"] if least is not None else []
        bounds += [f"at most {_figure(most)}"] if most is not None else []
        return passed_if(True, f"{self.figure}: {_figure(value)}{self.unit}, {' and '.join(bounds)}{self.unit}")

    @abstractmethod
    def _bounds(self) -> tuple[float | None, float | None]: ...

    @abstractmethod
    def _measure(self, subject: Subject) -> float | None: ...


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
    """`measured`: the attempt that brought the answer, by our clock. `reported`: what the agent says of itself; the
    better one for replayed runs and batches."""

    def _bounds(self) -> tuple[float | None, float | None]:
        return self.min_ms, self.max_ms

    def _measure(self, subject: Subject) -> float | None:
        run = subject.run
        if self.of == "reported":
            return None if run.reading is None else run.reading.transcript.duration_ms
        return run.attempts[-1].duration_ms if run.attempts else run.duration_ms


class Cost(MetricGrader):
    """What the run cost, as the agent reports it."""

    kind: ClassVar[str] = "cost"
    figure: ClassVar[str] = "cost"
    unit: ClassVar[str] = " USD"

    max_usd: Amount | None = None
    """US dollars at most."""
    min_usd: Amount | None = None
    """US dollars at least."""

    def _bounds(self) -> tuple[float | None, float | None]:
        return self.min_usd, self.max_usd

    def _measure(self, subject: Subject) -> float | None:
        return None if subject.run.reading is None else subject.run.reading.transcript.cost_usd


class CountGrader(MetricGrader):
    """What graders of a count have in common."""

    max: Count | None = None
    """So many at most."""
    min: Count | None = None
    """So many at least."""

    def _bounds(self) -> tuple[float | None, float | None]:
        return self.min, self.max


class Tokens(CountGrader):
    """How many tokens the run took, as the agent reports them."""

    kind: ClassVar[str] = "tokens"
    figure: ClassVar[str] = "tokens"

    of: Literal["total", "input", "output"] = "total"
    """Which tokens count; `total` is input and output."""

    def _measure(self, subject: Subject) -> float | None:
        usages = _usages(subject)
        if not usages:
            return None
        read = sum(usage.input_tokens for usage in usages)
        written = sum(usage.output_tokens for usage in usages)
        return {"total": read + written, "input": read, "output": written}[self.of]


class Steps(CountGrader):
    """How many tool calls the agent made."""

    kind: ClassVar[str] = "steps"
    figure: ClassVar[str] = "steps"

    def _measure(self, subject: Subject) -> float | None:
        return len(subject.run.steps)


class ModelCalls(CountGrader):
    """How often the agent asked a model: model steps of its trace, else its assistant messages."""

    kind: ClassVar[str] = "model_calls"
    figure: ClassVar[str] = "model calls"

    def _measure(self, subject: Subject) -> float | None:
        reading = subject.run.reading
        if reading is None:
            return None
        traced = sum(event.type == "model_step" for event in reading.trace or ())
        said = sum(type(message) is AssistantMessage for message in reading.transcript.messages)
        # An answer without a single message says nothing of how it came about.
        return traced or said or None


def _figure(value: float) -> str:
    """Every digit of a whole number, so that it can be told from a bound beside it; of another, what matters."""
    if float(value).is_integer():
        return f"{value:.0f}"
    return f"{value:.6g}" if value < 1e5 else f"{value:.1f}"


def _usages(subject: Subject) -> list[Usage]:
    if subject.run.reading is None:
        return []
    transcript = subject.run.reading.transcript
    if transcript.usage is not None:
        return [transcript.usage]
    messages = [message for message in transcript.messages if type(message) is AssistantMessage]
    return [message.usage for message in messages if message.usage is not None]
