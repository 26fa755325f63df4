"""What a tool gives back."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.transcript.messages import TextBlock, ToolResultBlock


class ToolResult(msgspec.Struct, omit_defaults=True):
    """The outcome of one tool call, before it becomes a message."""

    content: list[ToolResultBlock]
    """What the model sees."""
    is_error: bool = False
    details: Any = None
    """Structured payload for the host; never sent to a model."""
    terminate: bool = False
    """Whether the tool votes to end the run."""
    narration: str | None = None
    """One sentence on what the tool did."""

    @classmethod
    def text(cls, text: str) -> ToolResult:
        """A result of one text block."""
        return cls([TextBlock(text)])

    @classmethod
    def terminal(cls, text: str) -> ToolResult:
        """A result that votes to end the run."""
        return cls([TextBlock(text)], terminate=True)

    @classmethod
    def error(cls, text: str) -> ToolResult:
        """A result that tells of a failure."""
        return cls([TextBlock(text)], is_error=True)

    @classmethod
    def argument_validation_error(cls, tool: str, text: str) -> ToolResult:
        """A failure that the model can mend by calling again with other arguments."""
        details = {"kind": "tool_argument_validation", "recoverable": True, "display_hidden": True, "tool": tool}
        return cls([TextBlock(text)], is_error=True, details=details)

    def with_narration(self, narration: str) -> ToolResult:
        """The same result with this narration, trimmed; a blank one changes nothing."""
        narration = narration.strip()
        return msgspec.structs.replace(self, narration=narration) if narration else self
