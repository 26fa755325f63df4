"""Role-tagged chat messages, as decoded JSON, read into the transcript's: what can be read is, the rest gets a note.

The agent response and `output_messages` share this reader. Its vocabulary differs between them:

- both: `role`, `content` (text, parts, anything else as JSON text), `tool_calls`, `tool_call_id`, `thinking`, and
  Anthropic's `tool_use` and `tool_result` parts;
- `output_messages` only: camelCase keys, calls as `{tool, input, output}`, `timestamp`, `is_error`, custom messages.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from seatrial import wire
from seatrial.formats.call_facts import CallFacts, read_call_facts
from seatrial.formats.calls import generated_id, generated_id_note, nameless_note, not_json_note, read_call
from seatrial.formats.pairing import Pairing
from seatrial.formats.parts import (
    At,
    Thought,
    add_plain_part,
    dropped_part,
    json_kind,
    read_blocks,
    read_part,
    read_prompt,
    read_text,
    read_thought,
)
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    Note,
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
from seatrial.transcript.salvage import MAX_TIMESTAMP, MESSAGE_DROPPED, ROLE_UNKNOWN, VALUE_DROPPED

MESSAGES_MISSING = note_code(
    "messages_missing", "The source has no messages; one assistant message with the answer stands for them.", "harmless"
)
MESSAGES_INVALID = note_code("messages_invalid", "The messages are not an array; they were ignored.", "serious")
MESSAGE_DROPPED_NO_ROLE = note_code(
    "message_dropped_no_role", "A message has no role; it was dropped, the rest stays.", "serious"
)
ROLE_READ_AS = note_code("role_read_as", "A role by another name was read as the one it stands for.", "harmless")
TOOL_CALLS_INVALID = note_code("tool_calls_invalid", "The tool calls are not an array; they were ignored.", "serious")
CALLS_OUTSIDE_ASSISTANT = note_code(
    "calls_outside_assistant",
    "A message of another role has tool calls; they follow it as an assistant message.",
    "look",
)
THINKING_INVALID = note_code(
    "thinking_invalid", "A thinking entry is not an object; text was kept as reasoning.", "look"
)
TOOL_RESULT_REPEATED = note_code(
    "tool_result_repeated",
    "A result came inside its call and again as a message; if they are equal, one is kept.",
    "look",
)

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}
_CALL_PARTS = ("tool_use", "server_tool_use", "tool_call")


def messages_from_objects(
    messages: list[Any], notes: list[Note], *, at: At = (), facts: dict[str, CallFacts] | None = None
) -> list[Message]:
    """Messages of an `output_messages` array that is decoded already; what was dropped or guessed is noted.

    What is said of calls beyond the transcript's fields goes to `facts`, by call id.
    """
    reader = ChatReader(notes, provider=True)
    for index, message in enumerate(messages):
        reader.read(message, (*at, index))
    if facts is not None:
        facts.update(reader.facts)
    return reader.messages


class ChatReader:
    """Reads messages one after the other and remembers the calls, so that results find theirs."""

    def __init__(self, notes: list[Note], *, provider: bool) -> None:
        self.messages: list[Message] = []
        self._notes = notes
        self._provider = provider
        """Whether the vocabulary of `output_messages` is understood."""
        self._pairing = Pairing()
        self.facts: dict[str, CallFacts] = {}
        """What `output_messages` say of calls beyond the transcript's fields, by call id."""
        self._inside: dict[str, ToolResultMessage] = {}
        """Results that came inside their calls, by id."""

    def read(self, value: Any, at: At) -> None:
        """Append the messages that one value stands for."""
        if type(value) is not dict:
            self._note(MESSAGE_DROPPED, at, f"expected a message, got {json_kind(value)}")
            return
        role = value.get("role")
        if type(role) is not str or not role:
            self._note(MESSAGE_DROPPED_NO_ROLE, at, "dropped a message without a role")
            return
        known = _ROLES.get(role)
        if known is not None and known != role:
            self._note(ROLE_READ_AS, (*at, "role"), f"read the role {role!r} as {known!r}")
        timestamp = self._timestamp(value, at)
        calls, results = self._calls(value, at)
        if known == "assistant":
            self._assistant(value, at, calls, timestamp)
        else:
            if known == "user":
                self._user(value.get("content"), (*at, "content"), timestamp)
            elif known == "tool":
                self._tool(value, at, timestamp)
            elif known == "system":
                prompt = read_prompt(value.get("content"), (*at, "content"), self._notes)
                self.messages.append(SystemMessage(prompt, timestamp))
            else:
                self._custom(value, role, at, timestamp)
            if calls:
                self._note(CALLS_OUTSIDE_ASSISTANT, at, f"tool calls in a message of the role {role[:40]!r}")
                self.messages.append(AssistantMessage([*calls], StopReason.TOOL_USE))
        self.messages.extend(results)

    def _assistant(self, value: dict[str, Any], at: At, calls: list[ToolCall], timestamp: int | None) -> None:
        blocks: list[AssistantBlock] = []
        results: list[ToolResultMessage] = []
        self._thinking(value.get("thinking"), (*at, "thinking"), blocks)
        content = value.get("content")
        if type(content) is list:
            for index, part in enumerate(content):
                self._assistant_part(part, (*at, "content", index), blocks, results)
        elif content is not None and content != "":
            blocks.append(TextBlock(read_text(content, (*at, "content"), self._notes)))
        blocks.extend(calls)
        called = any(type(block) is ToolCall for block in blocks)
        reason = StopReason.TOOL_USE if called else StopReason.END_TURN
        self.messages.append(AssistantMessage(blocks, reason, None, timestamp))
        self.messages.extend(results)

    def _assistant_part(
        self, part: Any, at: At, blocks: list[AssistantBlock], results: list[ToolResultMessage]
    ) -> None:
        kind = part.get("type") if type(part) is dict else None
        if kind in _CALL_PARTS:
            call = self._call(part, at, results)
            if call is not None:
                blocks.append(call)
        elif kind == "tool_result":
            results.append(self._result_part(part, at))
        elif (block := read_part(part)) is None or isinstance(block, ImageBlock):
            self._notes.append(dropped_part(part, at))
        else:
            add_block(blocks, block)

    def _thinking(self, entries: Any, at: At, blocks: list[AssistantBlock]) -> None:
        if entries is None:
            return
        if type(entries) is not list:
            entries = [entries]
        for index, entry in enumerate(entries):
            block = entry if isinstance(entry, Thought) else read_thought(entry)
            if block is not None:
                add_block(blocks, block)
                continue
            self._note(THINKING_INVALID, (*at, index), f"a thinking entry is {json_kind(entry)}, not an object")
            if type(entry) is str:
                blocks.append(ReasoningBlock(entry))

    def _user(self, content: Any, at: At, timestamp: int | None) -> None:
        if type(content) is not list:
            text = "" if content is None else read_text(content, at, self._notes)
            self.messages.append(UserMessage(text, timestamp))
            return
        # Anthropic's tool results stand inside user messages; each becomes a message of its own, in its place.
        blocks: list[UserBlock] = []
        for index, part in enumerate(content):
            if type(part) is dict and part.get("type") == "tool_result":
                if blocks:
                    self.messages.append(UserMessage(blocks, timestamp))
                    blocks = []
                self.messages.append(self._result_part(part, (*at, index)))
            else:
                add_plain_part(part, (*at, index), blocks, self._notes)
        if blocks or not content:
            self.messages.append(UserMessage(blocks, timestamp))

    def _tool(self, value: dict[str, Any], at: At, timestamp: int | None) -> None:
        call_id = value.get("tool_call_id")
        if call_id is None and self._provider:
            call_id = value.get("toolCallId")
        name = value.get("name")
        content = value.get("content")
        message = self._answered(call_id, name if type(name) is str else None, at)
        message.content = read_blocks(content, (*at, "content"), self._notes)
        message.timestamp = timestamp
        if type(content) is dict:
            message.details = content
        if self._provider:
            message.is_error = self._flag(value, "is_error", at)
        inside = self._inside.pop(message.tool_call_id, None)
        if inside is not None:
            self._note(TOOL_RESULT_REPEATED, at, f"call {message.tool_call_id[:40]!r} has a result inside it already")
            if inside.content == message.content:
                return
        self.messages.append(message)

    def _result_part(self, part: dict[str, Any], at: At) -> ToolResultMessage:
        message = self._answered(part.get("tool_use_id", part.get("tool_call_id")), None, at)
        message.content = read_blocks(part.get("content"), (*at, "content"), self._notes)
        message.is_error = self._flag(part, "is_error", at)
        return message

    def _answered(self, call_id: Any, name: str | None, at: At) -> ToolResultMessage:
        return self._pairing.answered(call_id if type(call_id) is str else None, name, at, self._notes)

    def _custom(self, value: dict[str, Any], role: str, at: At, timestamp: int | None) -> None:
        kind = value.get("kind")
        if self._provider and role == "custom" and type(kind) is str:
            self.messages.append(CustomMessage(kind, value.get("payload"), timestamp))
            return
        self._note(ROLE_UNKNOWN, (*at, "role"), f"kept a message of the unknown role {role[:40]!r} as a custom one")
        self.messages.append(CustomMessage(role, value, timestamp))

    def _calls(self, value: dict[str, Any], at: At) -> tuple[list[ToolCall], list[ToolResultMessage]]:
        """The calls, and the results that came inside them."""
        calls: list[ToolCall] = []
        results: list[ToolResultMessage] = []
        key = "toolCalls" if self._provider and value.get("tool_calls") is None else "tool_calls"
        entries = value.get(key)
        if entries is None:
            return calls, results
        if type(entries) is not list:
            self._note(TOOL_CALLS_INVALID, (*at, key), f"{key} is {json_kind(entries)}, not an array")
            return calls, results
        for index, entry in enumerate(entries):
            call = self._call(entry, (*at, key, index), results)
            if call is not None:
                calls.append(call)
        return calls, results

    def _call(self, entry: Any, at: At, results: list[ToolResultMessage]) -> ToolCall | None:
        """The call; a result that came inside it goes to `results`."""
        # dispatch.md N2: in an agent response only `name` and `function.name` name a call.
        given = read_call(entry, tool_key=self._provider)
        if given is None:
            self._notes.append(nameless_note(pointer(*at)))
            return None
        if given.not_json:
            self._notes.append(not_json_note(pointer(*at), given.name))
        has_output = self._provider and given.output is not msgspec.UNSET
        call = ToolCall(given.id or generated_id(at), given.name, given.arguments)
        # A call that brings its own result needs no id to be paired with it.
        if given.id is None and not has_output:
            self._notes.append(generated_id_note(pointer(*at), call.name, call.id))
        self._pairing.called(call.id, call.name, answered=has_output)
        if has_output:
            result = self._inside[call.id] = _inside_result(call, given.output)
            results.append(result)
        if self._provider and (facts := read_call_facts(entry)) is not None:
            self.facts[call.id] = facts
        return call

    def _timestamp(self, value: dict[str, Any], at: At) -> int | None:
        given = value.get("timestamp") if self._provider else None
        if given is None:
            return None
        milliseconds = given if type(given) is int else _milliseconds(given)
        if milliseconds is not None and 0 <= milliseconds <= MAX_TIMESTAMP:
            return milliseconds
        self._note(
            VALUE_DROPPED, (*at, "timestamp"), "expected milliseconds since the epoch, or ISO 8601 with an offset"
        )
        return None

    def _flag(self, value: dict[str, Any], key: str, at: At) -> bool:
        given = value.get(key)
        if given is not None and type(given) is not bool:
            self._note(VALUE_DROPPED, (*at, key), f"expected true or false, got {json_kind(given)}")
        return given is True

    def _note(self, code: str, at: At, message: str) -> None:
        self._notes.append(Note(code, pointer(*at), message))


def add_block(blocks: list[AssistantBlock], block: AssistantBlock) -> None:
    """Append a block; details that follow each other are one block, as providers send them."""
    if type(block) is ReasoningDetailsBlock and blocks and type(last := blocks[-1]) is ReasoningDetailsBlock:
        last.details.extend(block.details)
    else:
        blocks.append(block)


def _inside_result(call: ToolCall, output: Any) -> ToolResultMessage:
    if type(output) is str:
        return ToolResultMessage(call.id, call.name, [TextBlock(output)])
    if output is None:
        return ToolResultMessage(call.id, call.name, [])
    # What is not text is kept twice: as the text a model would see, and as the value it is.
    return ToolResultMessage(call.id, call.name, [TextBlock(wire.encode(output).decode())], details=output)


def _milliseconds(given: Any) -> int | None:
    if type(given) is not str:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        return None
    # A time without an offset could be anyone's.
    return None if moment.tzinfo is None else (moment - _EPOCH) // timedelta(milliseconds=1)


_EPOCH = datetime.fromtimestamp(0, UTC)
