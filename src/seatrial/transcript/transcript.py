"""A whole transcript, and what its source said about the run beside the messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from seatrial.transcript.identity import RunIdentity
from seatrial.transcript.messages import AssistantMessage, Message, Usage


class Tokens(NamedTuple):
    """What a run used."""

    input: int
    """Those that a cache gave or took are among them."""
    output: int
    exact: bool
    """Whether that is all: not when some of the messages say nothing of it."""


class Transcript(msgspec.Struct, omit_defaults=True):
    """One conversation as the canonical record has it."""

    messages: list[Message] = []
    answer: str | None = None
    """The user-visible answer that the source named outside the messages (`final_response`, `text`)."""
    identity: RunIdentity | None = None
    usage: Usage | None = None
    """Token counts for the whole run, where the source gave them apart from single messages."""
    cost_usd: float | None = None
    duration_ms: float | None = None
    metadata: dict[str, Any] = {}
    """What else the source said about the run, open by key."""
    given: list[int] = []
    """Indices of the messages that the run started from, ascending: earlier conversation and the instruction, which
    are never the agent's doing."""

    def done(self) -> list[Message]:
        """The messages that came of the run: all but the given ones."""
        if not self.given:
            return self.messages
        given = set(self.given)
        return [message for index, message in enumerate(self.messages) if index not in given]

    def tokens(self) -> Tokens | None:
        """What the run used: as the source summed it up, else what its own messages say; None when nothing says."""
        if self.usage is not None:
            return Tokens(self.usage.total_input, self.usage.output_tokens, True)
        said = [message for message in self.done() if type(message) is AssistantMessage]
        usages = [message.usage for message in said if message.usage is not None]
        if not usages:
            return None
        read, written = sum([usage.total_input for usage in usages]), sum([usage.output_tokens for usage in usages])
        return Tokens(read, written, len(usages) == len(said))

    def final_text(self) -> str | None:
        """The answer: the one named by the source, else the last assistant message of the run with text, else None."""
        if self.answer:
            return self.answer
        for message in reversed(self.done()):
            if type(message) is AssistantMessage and (text := message.plain_text()):
                return text
        return self.answer
