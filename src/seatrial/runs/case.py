"""A task for agents."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from seatrial.runs.workspace import WorkspaceSource
from seatrial.transcript import Message, Note

ExpectedOutcome = Literal["completion", "refusal"]


if TYPE_CHECKING:
    GraderEntry: TypeAlias = Any
else:
    GraderEntry = dict[str, Any]
"""The keys of a grader. In Python also a grader or a function, of which `Suite` takes the keys."""


class CaseTask(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """What every case has, in this order."""

    id: Annotated[str, Meta(min_length=1, max_length=256)]
    """Unique in its suite."""
    instruction: str
    """The prompt."""


class Case(CaseTask, omit_defaults=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One task: instruction, input, world seed, expectations."""

    input: dict[str, Any] = {}
    """What the agent sees besides the prompt."""
    messages: list[dict[str, Any]] = []
    """Conversation before the instruction, OpenAI style. Agents get it as it is written."""
    files: list[str] = []
    """Paths for the agent: a program, or a function with the parameter `files`."""
    expected: Any = None
    """The reference answer, for graders that compare with one."""
    expected_outcome: ExpectedOutcome = "completion"
    """Whether doing the task is right, or refusing it."""
    expected_outcome_detail: str | None = None
    """The expected outcome in words, for the judge."""
    graders: list[GraderEntry] = []
    """Graders of this case alone, beside those of the suite."""
    threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The weighted score this case needs; the suite's when absent."""
    tags: list[str] = []
    """For choosing cases (`--tag`), and for results by tag."""
    metadata: dict[str, Any] = {}
    """Whatever else should stay with the case; only your own graders read it."""
    world: dict[str, Any] = {}
    """What the world of its suite begins with, by axis name: `initial_state`, `flags`. Others are not supported yet."""
    workspace: Annotated[str, Meta(min_length=1)] | WorkspaceSource | None = None
    """The folder that the agent works in, copied for each attempt: what it is made of, or only `from`."""
    timeout_s: Annotated[float, Meta(gt=0)] | None = None
    """The deadline of its runs; the agent's or the suite's when absent."""

    @property
    def conversation(self) -> list[Message]:
        """The messages as a transcript has them: read once, and not to be changed."""
        return self._read[0]

    @property
    def conversation_notes(self) -> list[Note]:
        """What could not be read of the messages, with pointers into their list."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[list[Message], list[Note]]:
        if not self.messages:
            return [], []
        # Here, because most cases have no messages, and reading them needs all dialects.
        from seatrial.formats.chat.reader import messages_from_objects

        notes: list[Note] = []
        return messages_from_objects(self.messages, notes), notes
