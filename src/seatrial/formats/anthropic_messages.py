"""Messages of the Anthropic API read into the transcript's.

| wire | transcript |
| --- | --- |
| `system` beside the messages, role `system` among them | system messages, one for each block of text |
| `user` with a string or text and image blocks | user message |
| `tool_result` blocks of a `user` message | a tool result each, in their place among the rest |
| `assistant`: `text` | text, and thinking where a hidden tag says so |
| `assistant`: `thinking` with a signature, `redacted_thinking` | native reasoning details |
| `assistant`: `thinking` without a signature | native reasoning text |
| `assistant`: `tool_use` | tool call |

The order of blocks is kept. Calls that the provider ran itself (`server_tool_use` and their results) are dropped with
a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial.formats.calls import nameless_note, read_call
from seatrial.formats.chat import add_block
from seatrial.formats.pairing import Pairing
from seatrial.formats.parts import At, add_plain_part, dropped_part, json_kind, read_blocks, read_part, read_text
from seatrial.formats.roles import RoleTagged, open_message
from seatrial.formats.shape import Shape, drop_key, drop_keys, items, value
from seatrial.formats.tally import Tally
from seatrial.formats.turn import Ending, end_turn, make_call, other_counts, tell_run, token_count
from seatrial.formats.weaving import unweave, unweave_part
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ToolResultMessage,
    Transcript,
    Usage,
    UserMessage,
    pointer,
)
from seatrial.transcript.reasoning import ReasoningEncrypted, ReasoningFormat, ReasoningText, from_items
from seatrial.transcript.salvage import VALUE_DROPPED


class AnthropicMessage(RoleTagged):
    """The keys of a message that are read, or say nothing that is missed. Some keep whole responses as messages."""

    content: msgspec.Raw = msgspec.Raw()
    stop_reason: Any = None
    usage: Any = None
    stop_sequence: Any = None
    id: Any = None
    type: Any = None


_MESSAGE = Shape(AnthropicMessage)
_CONTENT: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_STOP_REASONS = {
    "end_turn": StopReason.END_TURN,
    "stop_sequence": StopReason.END_TURN,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
}
_ROLES = frozenset({"system", "user", "assistant"})
_FORMAT = ReasoningFormat.ANTHROPIC_CLAUDE_V1
_COUNTS = frozenset(Usage.__struct_fields__)
_NOT_METADATA = frozenset({"id", "type", "role", "content", "stop_reason", "usage", "error"})
_BLOCK_KEYS = {
    "text": frozenset({"type", "text"}),
    "image": frozenset({"type", "source"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error"}),
}


class AnthropicMessages:
    """Reads the messages of one conversation one after the other, so that results find their calls."""

    def __init__(self, tally: Tally, messages: list[Message]) -> None:
        self.messages = messages
        self._tally = tally
        self._pairing = Pairing()

    def read(self, data: msgspec.Raw, at: At) -> None:
        """Append the messages that one message stands for."""
        message = open_message(data, _MESSAGE, _ROLES, self.messages, self._tally, at)
        if message is None:
            return
        content = (*at, "content")
        if message.role == "system":
            self.add_system(message.content, content)
            return
        blocks = self.blocks(message.content, content)
        if message.role == "user":
            self._add_user(blocks, content)
            return
        answer = self.add_assistant(blocks, content)
        drop_key("stop_sequence", message.stop_sequence, self._tally, at)
        if message.stop_reason is not None:
            end_turn(answer, Ending(message.stop_reason), _STOP_REASONS, Transcript(), self._tally, at)
        if message.usage is not None:
            answer.usage, rest = read_usage(message.usage, self._tally, (*at, "usage"))
            drop_keys(rest, frozenset(), self._tally, (*at, "usage"))

    def add_system(self, data: msgspec.Raw, at: At) -> None:
        """Append a prompt: a string, or a message for each block of text."""
        blocks = self.blocks(data, at)
        if type(blocks) is list:
            for index, block in enumerate(blocks):
                self._note_keys(block, (*at, index))
                if type(text := read_part(block)) is TextBlock:
                    self.messages.append(SystemMessage(text.text))
                else:
                    self._tally.notes.append(dropped_part(block, (*at, index)))
        elif blocks is not None:
            self.messages.append(SystemMessage(read_text(blocks, at, self._tally.notes)))

    def add_assistant(self, blocks: Any, at: At) -> AssistantMessage:
        """Append an assistant message; its stop reason is what its tool calls, or their absence, tell."""
        content: list[AssistantBlock] = []
        if type(blocks) is list:
            for index, block in enumerate(blocks):
                for read in self._assistant_blocks(block, (*at, index)):
                    add_block(content, read)
        elif blocks is not None:
            content += unweave(read_text(blocks, at, self._tally.notes), self._tally, at)
        message = AssistantMessage(content, StopReason.END_TURN)
        if message.tool_calls():
            message.stop_reason = StopReason.TOOL_USE
        self.messages.append(message)
        return message

    def add_response(self, said: dict[str, Any], blocks: Any, ending: Ending, run: Transcript, at: At) -> None:
        """Append the message of a response; `said` is what else the response says."""
        message = self.add_assistant(blocks, (*at, "content"))
        ending.stop_reason = said.get("stop_reason")
        end_turn(message, ending, _STOP_REASONS, run, self._tally, (*at, "stop_reason"))
        for key, what in said.items():
            if key not in _NOT_METADATA and what is not None:
                tell_run(run, key, what, self._tally, at)
        if said.get("usage") is not None:
            message.usage, rest = read_usage(said["usage"], self._tally, (*at, "usage"))
            if rest:
                tell_run(run, "usage", rest, self._tally, at)

    def blocks(self, data: msgspec.Raw, at: At) -> Any:
        """What a `content` holds: blocks, or anything else; None for nothing."""
        if not data:
            return None
        try:
            return _CONTENT.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # One by one, so that a block that cannot be read spoils nothing but itself.
            entries = items(data, self._tally, at)
        if entries is None:
            return value(data, self._tally, at)
        return [value(entry, self._tally, (*at, index)) for index, entry in enumerate(entries)]

    def _assistant_blocks(self, block: Any, at: At) -> Sequence[AssistantBlock]:
        self._note_keys(block, at)
        kind = block.get("type") if type(block) is dict else None
        if kind == "text" and type(text := block.get("text")) is str:
            return unweave_part(text, self._tally, at)
        if kind == "thinking" and type(text := block.get("thinking")) is str:
            signature = block.get("signature")
            if type(signature) is not str:
                return [ReasoningBlock(text)]
            return [from_items([ReasoningText(format=_FORMAT, text=text, signature=signature)])]
        if kind == "redacted_thinking" and type(data := block.get("data")) is str:
            return [from_items([ReasoningEncrypted(format=_FORMAT, data=data)])]
        if kind == "tool_use":
            call = read_call(block)
            if call is not None:
                return [make_call(call, self._pairing, self._tally, at)]
            self._tally.notes.append(nameless_note(pointer(*at)))
            return []
        self._tally.notes.append(dropped_part(block, at))
        return []

    def _add_user(self, blocks: Any, at: At) -> None:
        if type(blocks) is not list:
            text = "" if blocks is None else read_text(blocks, at, self._tally.notes)
            self.messages.append(UserMessage(text))
            return
        said: list[TextBlock | ImageBlock] = []
        results = 0
        for index, block in enumerate(blocks):
            self._note_keys(block, (*at, index))
            if type(block) is dict and block.get("type") == "tool_result":
                if said:
                    self.messages.append(UserMessage(said))
                    said = []
                self.messages.append(self._result(block, (*at, index)))
                results += 1
            else:
                add_plain_part(block, (*at, index), said, self._tally.notes)
        if said or not results:
            self.messages.append(UserMessage(said))

    def _result(self, block: dict[str, Any], at: At) -> ToolResultMessage:
        call_id = block.get("tool_use_id")
        result = self._pairing.answered(call_id if type(call_id) is str else None, None, at, self._tally.notes)
        content = block.get("content")
        for index, part in enumerate(content if type(content) is list else []):
            self._note_keys(part, (*at, "content", index))
        result.content = read_blocks(content, (*at, "content"), self._tally.notes)
        result.is_error = block.get("is_error") is True
        return result

    def _note_keys(self, block: Any, at: At) -> None:
        kind = block.get("type") if type(block) is dict else None
        if type(kind) is str and (known := _BLOCK_KEYS.get(kind)) is not None:
            drop_keys(block, known, self._tally, at)


def read_usage(given: Any, tally: Tally, at: At) -> tuple[Usage | None, dict[str, Any]]:
    """The counts, and those that have no field of their own."""
    if type(given) is not dict:
        tally.add(VALUE_DROPPED, at, f"expected an object of token counts, got {json_kind(given)}")
        return None, {}
    counts = [token_count(given, key, tally, at) for key in Usage.__struct_fields__]
    return Usage(*counts), other_counts(given, _COUNTS)
