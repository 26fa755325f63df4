"""What a grader is: a small configuration that says what it finds in a run."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec

from seatrial.runs import Case, Judgement, Run


class Subject(msgspec.Struct):
    """What is graded: a finished run and the case it ran."""

    run: Run
    case: Case

    @property
    def answer(self) -> str | None:
        """The agent's answer, None when there is none."""
        return None if self.run.reading is None else self.run.reading.transcript.final_text()


class Finding(msgspec.Struct, kw_only=True):
    """What one grader found, before the common keys (`min_score`, `negate`) are applied."""

    judgement: Judgement
    score: float | None = None
    """0 to 1; None when errored or skipped."""
    reasons: list[str] = []
    """Sentences that show the arithmetic."""
    evidence: list[str] = []
    """JSON pointers into the run: `/answer`, `/messages/3`, `/steps/0`."""
    details: Any = None
    cost_usd: float | None = None


class ChatModel(Protocol):
    """The little that a judge needs of a chat model."""

    async def complete(self, messages: list[dict[str, Any]], *, schema: dict[str, Any] | None = None) -> Completion:
        """One answer, as JSON text when a schema is given."""
        ...


class Completion(msgspec.Struct, kw_only=True):
    """What a chat model answered, and what it cost."""

    text: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class Surroundings(msgspec.Struct, kw_only=True):
    """What a grader may use besides the subject."""

    directory: Path
    """Where the suite file is: relative paths and commands start there."""
    model: ChatModel | None = None
    """For judges; None when no model is configured."""


class Grader(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The keys that every grader has. A kind is a subclass with its own keys and a `grade`."""

    kind: ClassVar[str]

    name: str = ""
    """How reports call it; the kind when absent."""
    weight: float = 1.0
    """Its share in the weighted score of a case."""
    required: bool = True
    """Whether the case fails when this grader does; otherwise it only counts in the score."""
    min_score: float | None = None
    """Pass from this score on, instead of by the grader's own rule."""
    negate: bool = False
    """Pass when the grader fails, and the other way round; a grader that errored stays errored."""

    def prepare(self) -> None:
        """Check and compile the configuration; raises `SeatrialError("invalid_config")`. Called before anything runs."""

    def grade(self, subject: Subject, surroundings: Surroundings) -> Finding | Awaitable[Finding]:
        """Say what is found. May be a coroutine where it waits for a process or a model."""
        raise NotImplementedError
