"""A whole transcript, and what its source said about the run beside the messages."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.transcript.identity import RunIdentity
from seatrial.transcript.messages import AssistantMessage, Message, Usage


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

    def final_text(self) -> str | None:
        """The answer: the one named by the source, else the last assistant message with text, else None."""
        if self.answer:
            return self.answer
        for message in reversed(self.messages):
            if type(message) is AssistantMessage and (text := message.plain_text()):
                return text
        return self.answer
