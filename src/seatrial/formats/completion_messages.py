"""Messages of the chat completions API, OpenAI's and OpenRouter's, read into the transcript's.

| wire | transcript |
| --- | --- |
| `system`, `developer` | system message |
| `user` with a string or parts | user message |
| `assistant`: `content` | text, and thinking where a hidden tag says so |
| `assistant`: `reasoning` (or `reasoning_content`), `reasoning_details` | native reasoning, in front of the content |
| `assistant`: `tool_calls`, legacy `function_call` | tool calls, after the content |
| `tool`, legacy `function` | tool result |
| any other role | custom message that holds the original |
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.formats.calls import Call, nameless_note, read_call
from seatrial.formats.chat import ROLE_READ_AS, TOOL_CALLS_INVALID
from seatrial.formats.pairing import Pairing
from seatrial.formats.parts import At, dropped_part, json_kind, read_blocks, read_part, read_prompt, read_text
from seatrial.formats.roles import RoleTagged, open_message
from seatrial.formats.shape import Shape, drop_key, drop_keys, items
from seatrial.formats.tally import Tally
from seatrial.formats.turn import make_call
from seatrial.formats.weaving import unweave, unweave_part
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    Message,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
    note_code,
    pointer,
)

REFUSAL_READ_AS_TEXT = note_code(
    "refusal_read_as_text", "The model refused; what it said is kept as visible text.", "harmless"
)
CUSTOM_TOOL_CALL = note_code(
    "custom_tool_call",
    "A call of a tool that takes free text was read as one with that text as its arguments.",
    "harmless",
)


class CompletionMessage(RoleTagged):
    """The keys of a message that are read, or known to be left out."""

    content: Any = None
    tool_calls: Any = None
    tool_call_id: Any = None
    name: Any = None
    function_call: Any = None
    refusal: Any = None
    reasoning: Any = None
    reasoning_content: Any = None
    reasoning_details: msgspec.Raw = msgspec.Raw()
    annotations: Any = None
    audio: Any = None
    images: Any = None
    id: Any = None
    index: Any = None


MESSAGE = Shape(CompletionMessage)
_COSMETIC = frozenset({"role", "id", "index"})
_READ = {
    "system": _COSMETIC | {"content"},
    "user": _COSMETIC | {"content"},
    "tool": _COSMETIC | {"content", "tool_call_id", "name"},
    "assistant": _COSMETIC
    | {"content", "tool_calls", "function_call", "refusal", "reasoning", "reasoning_content", "reasoning_details"},
}
_DROPPED = {
    role: tuple(field for field in CompletionMessage.__struct_fields__ if field not in read)
    for role, read in _READ.items()
}
ASSISTANT_DROPPED = _DROPPED["assistant"]
_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_PART_KEYS = frozenset({"type", "text", "refusal", "image_url"})
_IMAGE_KEYS = frozenset({"url"})
_CALL_KEYS = frozenset({"id", "type", "index", "function", "custom", "name", "arguments", "input", "tool"})
_FUNCTION_KEYS = frozenset({"name", "arguments"})


class CompletionMessages:
    """Reads the messages of one conversation one after the other, so that results find their calls."""

    def __init__(self, tally: Tally, messages: list[Message]) -> None:
        self.messages = messages
        self._tally = tally
        self._pairing = Pairing()

    def read(self, data: msgspec.Raw, at: At) -> None:
        """Append the message in these bytes of JSON."""
        message = open_message(data, MESSAGE, _ROLES, self.messages, self._tally, at)
        if message is None:
            return
        role = _ROLES[message.role]
        if role != message.role:
            read_as = f"read the role {message.role!r} as {role!r}"
            self._tally.add(ROLE_READ_AS, (*at, "role"), read_as, each=message.role)
        if role == "assistant":
            self.add_assistant(message, at)
            return
        self._note_dropped(role, message, at)
        content = (*at, "content")
        self._note_parts(message.content, content)
        if role == "tool":
            self.messages.append(self._result(message, at))
        elif role == "user":
            self.messages.append(UserMessage(self._user_content(message.content, content)))
        else:
            self.messages.append(SystemMessage(read_prompt(message.content, content, self._tally.notes)))

    def add_assistant(self, message: CompletionMessage, at: At) -> AssistantMessage:
        """Append an assistant message; its stop reason is what its tool calls, or their absence, tell."""
        self._note_dropped("assistant", message, at)
        blocks = self._reasoning(message, at)
        blocks += self._spoken(message.content, (*at, "content"))
        if message.refusal:
            self._note_refusal((*at, "refusal"))
            blocks.append(TextBlock(read_text(message.refusal, (*at, "refusal"), self._tally.notes)))
        calls = self._calls(message, at)
        blocks += calls
        read = AssistantMessage(blocks, StopReason.TOOL_USE if calls else StopReason.END_TURN)
        self.messages.append(read)
        return read

    def _reasoning(self, message: CompletionMessage, at: At) -> list[AssistantBlock]:
        blocks: list[AssistantBlock] = []
        # Both names are in use for the one text, sometimes together.
        key = "reasoning" if message.reasoning else "reasoning_content"
        given = getattr(message, key)
        if given:
            blocks.append(ReasoningBlock(read_text(given, (*at, key), self._tally.notes)))
            if key == "reasoning" and message.reasoning_content != given:
                drop_key("reasoning_content", message.reasoning_content, self._tally, at)
        if message.reasoning_details:
            details = read_details(message.reasoning_details, self._tally, (*at, "reasoning_details"))
            if details:
                blocks.append(ReasoningDetailsBlock(details))
        return blocks

    def _spoken(self, content: Any, at: At) -> list[AssistantBlock]:
        if content is None:
            return []
        if type(content) is not list:
            return [*unweave(read_text(content, at, self._tally.notes), self._tally, at)]
        self._note_parts(content, at)
        blocks: list[AssistantBlock] = []
        for index, part in enumerate(content):
            if type(block := read_part(part)) is TextBlock:
                blocks += unweave_part(block.text, self._tally, (*at, index))
            else:
                self._tally.notes.append(dropped_part(part, (*at, index)))
        return blocks

    def _calls(self, message: CompletionMessage, at: At) -> list[ToolCall]:
        entries = message.tool_calls
        if entries is None:
            entries = []
        elif type(entries) is not list:
            kind = json_kind(entries)
            self._tally.add(TOOL_CALLS_INVALID, (*at, "tool_calls"), f"tool_calls is {kind}, not an array")
            entries = []
        found = [self._call(entry, (*at, "tool_calls", index)) for index, entry in enumerate(entries)]
        if message.function_call:
            found.append(self._call({"function": message.function_call}, (*at, "function_call")))
        return [call for call in found if call is not None]

    def _call(self, entry: Any, at: At) -> ToolCall | None:
        call = read_call(entry)
        if call is None:
            call = self._custom_call(entry, at)
        if call is None:
            self._tally.notes.append(nameless_note(pointer(*at)))
            return None
        drop_keys(entry, _CALL_KEYS, self._tally, at)
        if type(function := entry.get("function")) is dict:
            drop_keys(function, _FUNCTION_KEYS, self._tally, (*at, "function"))
        return make_call(call, self._pairing, self._tally, at)

    def _custom_call(self, entry: Any, at: At) -> Call | None:
        if type(entry) is not dict or type(custom := entry.get("custom")) is not dict:
            return None
        call = read_call({**custom, "id": entry.get("id")})
        if call is not None:
            # Free text, even where it looks like JSON.
            call.arguments, call.not_json = custom.get("input"), False
            self._tally.add(CUSTOM_TOOL_CALL, at, f"a call of the custom tool {call.name[:100]!r}", each="")
        return call

    def _result(self, message: CompletionMessage, at: At) -> ToolResultMessage:
        name = message.name if type(message.name) is str else None
        call_id = message.tool_call_id if type(message.tool_call_id) is str else None
        result = self._pairing.answered(call_id, name, at, self._tally.notes)
        if name is not None:
            result.tool_name = name
        result.content = read_blocks(message.content, (*at, "content"), self._tally.notes)
        return result

    def _user_content(self, content: Any, at: At) -> str | list[UserBlock]:
        if type(content) is list:
            return read_blocks(content, at, self._tally.notes)
        return "" if content is None else read_text(content, at, self._tally.notes)

    def _note_parts(self, content: Any, at: At) -> None:
        if type(content) is not list:
            return
        for index, part in enumerate(content):
            if type(part) is dict and read_part(part) is not None:
                if part.get("type") == "refusal":
                    self._note_refusal((*at, index))
                drop_keys(part, _PART_KEYS, self._tally, (*at, index))
                if type(image := part.get("image_url")) is dict:
                    drop_keys(image, _IMAGE_KEYS, self._tally, (*at, index, "image_url"))

    def _note_refusal(self, at: At) -> None:
        self._tally.add(REFUSAL_READ_AS_TEXT, at, "kept a refusal as visible text", each="")

    def _note_dropped(self, role: str, message: CompletionMessage, at: At) -> None:
        for key in _DROPPED[role]:
            if given := getattr(message, key):
                drop_key(key, given, self._tally, at)


def read_details(data: msgspec.Raw, tally: Tally, at: At) -> list[msgspec.Raw]:
    """The entries of `reasoning_details`, each byte for byte as it was sent."""
    entries = items(data, tally, at)
    if entries is None:
        drop_key("reasoning_details", data, tally, at[:-1])
        return []
    return [_sent(entry, tally, (*at, index)) for index, entry in enumerate(entries)]


def _sent(entry: msgspec.Raw, tally: Tally, at: At) -> msgspec.Raw:
    try:
        str(entry, "utf-8")
    except UnicodeDecodeError:
        tally.add_repairs(["invalid_utf8_replaced"], at)
        return msgspec.Raw(str(entry, "utf-8", "replace").encode())
    # A copy, because a raw value keeps the whole input that it was cut from.
    return entry.copy()
