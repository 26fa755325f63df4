"""The canonical transcript: who said what, in which channel, and which tools were called.

The JSON of these types is the JSON of the seed's `AgentMessage`: tagged by `role` (messages) and
`type` (blocks), tag first, keys in declaration order, `None` omitted. Unknown keys are ignored on
read; wrong scalar types are refused. A message without a timestamp stays without one.

Channel separation, which every writer keeps:

- `ThinkingBlock` is text that the model wrote itself, inside hidden tags of its visible stream.
  It goes back into the wire `content` as a `<thought>` tag and never anywhere else.
- `ReasoningBlock` and `ReasoningDetailsBlock` are the provider's own side channel. They go back
  into the wire `reasoning` and `reasoning_details` and never into `content`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import msgspec

Timestamp = Annotated[int, msgspec.Meta(ge=0)]
"""Milliseconds since the epoch. The upper end, 2**64 - 1, is past what msgspec can check; `document` does."""
TokenCount = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class StopReason(StrEnum):
    """Why an assistant turn ended."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    ERROR = "error"
    ABORTED = "aborted"
    OTHER = "other"


class Usage(msgspec.Struct):
    """Token counts that the provider reported for one model call. All four are always written."""

    input_tokens: TokenCount = 0
    output_tokens: TokenCount = 0
    cache_creation_input_tokens: TokenCount = 0
    cache_read_input_tokens: TokenCount = 0

    @property
    def total_input(self) -> int:
        """All that the model was given to read, from a cache or not."""
        return self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens


class TextBlock(msgspec.Struct, tag_field="type", tag="text", gc=False):
    """Visible text."""

    text: str


class ImageBlock(msgspec.Struct, tag_field="type", tag="image", omit_defaults=True, gc=False):
    """An image, by data URL or external URL."""

    source: str
    media_type: str | None = None
    alt: str | None = None


class ThinkingBlock(msgspec.Struct, tag_field="type", tag="thinking", gc=False):
    """Prompted thinking: captured from hidden tags in the visible stream."""

    text: str


class ReasoningBlock(msgspec.Struct, tag_field="type", tag="reasoning", gc=False):
    """Native reasoning text, from the provider's side channel."""

    text: str


class ReasoningDetailsBlock(msgspec.Struct, tag_field="type", tag="reasoning_details", gc=False):
    """Native reasoning details, byte for byte as the provider sent them."""

    details: list[msgspec.Raw]


class ToolCall(msgspec.Struct, tag_field="type", tag="tool_call", gc=False):
    """A request to run a tool."""

    id: str
    name: str
    arguments: Any
    """Any JSON value. Arguments that were not JSON are kept in the sentinel of `arguments.unparsed_arguments`."""


UserBlock: TypeAlias = TextBlock | ImageBlock
ToolResultBlock: TypeAlias = TextBlock | ImageBlock
AssistantBlock: TypeAlias = TextBlock | ThinkingBlock | ReasoningBlock | ReasoningDetailsBlock | ToolCall


class SystemMessage(msgspec.Struct, tag_field="role", tag="system", omit_defaults=True, gc=False):
    """A system prompt, usually one, at the head."""

    content: str
    timestamp: Timestamp | None = None


class UserMessage(msgspec.Struct, tag_field="role", tag="user", omit_defaults=True, gc=False):
    """What the user said: a plain string, or blocks. One text block is not the same as a string."""

    content: str | list[UserBlock]
    timestamp: Timestamp | None = None

    def plain_text(self) -> str:
        """The string, or the text blocks joined."""
        return self.content if isinstance(self.content, str) else joined_text(self.content)


class AssistantMessage(msgspec.Struct, tag_field="role", tag="assistant", omit_defaults=True, gc=False):
    """What the model said: text, hidden channels and tool calls, in the order in which they came."""

    content: list[AssistantBlock]
    stop_reason: StopReason
    error_message: str | None = None
    timestamp: Timestamp | None = None
    usage: Usage | None = None

    def plain_text(self) -> str:
        """The visible text: text blocks joined with nothing between."""
        return joined_text(self.content)

    def thinking_text(self) -> str:
        """Prompted thinking: thinking blocks joined with a newline."""
        return "\n".join([b.text for b in self.content if type(b) is ThinkingBlock])

    def reasoning_text(self) -> str:
        """Native reasoning: reasoning blocks joined with nothing between."""
        return "".join([b.text for b in self.content if type(b) is ReasoningBlock])

    def tool_calls(self) -> list[ToolCall]:
        """The tool calls in source order."""
        return [b for b in self.content if type(b) is ToolCall]

    def reasoning_details_values(self) -> list[msgspec.Raw]:
        """All details of all reasoning_details blocks, flattened, as sent."""
        return [d for b in self.content if type(b) is ReasoningDetailsBlock for d in b.details]


class ToolResultMessage(msgspec.Struct, tag_field="role", tag="tool_result", omit_defaults=True, gc=False):
    """The output of a tool call."""

    tool_call_id: str
    tool_name: str
    content: list[ToolResultBlock]
    # A factory is never equal to a default, so msgspec writes the key always, as the seed does.
    is_error: bool = msgspec.field(default_factory=lambda: False)
    narration: str | None = None
    """One sentence on what the tool did, written by the tool."""
    details: Any = None
    """Structured payload for the host; never sent to a model."""
    timestamp: Timestamp | None = None

    def plain_text(self) -> str:
        """Text blocks joined with nothing between; images are skipped."""
        return joined_text(self.content)


class CustomMessage(msgspec.Struct, tag_field="role", tag="custom", omit_defaults=True, gc=False):
    """An application's own message: carried, never interpreted."""

    kind: str
    payload: Any = msgspec.field(default_factory=lambda: None)
    timestamp: Timestamp | None = None


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage | CustomMessage

Messages: TypeAlias = list[Message]
"""A transcript as the seed has it: an array."""


def joined_text(blocks: Iterable[AssistantBlock | ImageBlock]) -> str:
    """The text blocks among these, joined with nothing between."""
    return "".join([b.text for b in blocks if type(b) is TextBlock])


def assistant_content(text: str | None = None, tool_calls: Iterable[ToolCall] = ()) -> list[AssistantBlock]:
    """Text (left out when blank, kept untrimmed otherwise), then the calls in order."""
    blocks: list[AssistantBlock] = []
    if text is not None and text.strip():
        blocks.append(TextBlock(text))
    blocks.extend(tool_calls)
    return blocks


def text_content(text: str) -> list[TextBlock]:
    """One text block, also for the empty string."""
    return [TextBlock(text)]
