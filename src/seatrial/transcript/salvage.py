"""Messages out of JSON that does not quite hold them: what is sound stays, the rest is noted.

The walk goes down level by level with every value still as bytes, so that reasoning details come out as they
were sent and a value that cannot be read spoils nothing but itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.transcript.arguments import unparsed_arguments
from seatrial.transcript.messages import (
    AssistantBlock,
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    Timestamp,
    TokenCount,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserBlock,
    UserMessage,
    joined_text,
)
from seatrial.transcript.note import Note, note_code, pointer, repair_notes

ROLE_UNKNOWN = note_code(
    "role_unknown", "A message has a role that is not known; it is kept whole as a custom message.", "serious"
)
UNKNOWN_STOP_REASON = note_code(
    "unknown_stop_reason",
    "An assistant message has a stop reason that the transcript does not know; read as `other`.",
    "look",
)
STOP_REASON_GUESSED = note_code(
    "stop_reason_guessed",
    "An assistant message has no stop reason; its tool calls, or their absence, decided it.",
    "harmless",
)
MESSAGE_DROPPED = note_code(
    "message_dropped", "An entry among the messages is not a JSON object; it was dropped.", "serious"
)
BLOCK_DROPPED = note_code(
    "block_dropped", "A content block has no known type, or lacks what its type needs; it was dropped.", "serious"
)
CONTENT_RESHAPED = note_code(
    "content_reshaped",
    "The content of a message has another shape than its role asks for; it was turned into that.",
    "look",
)
VALUE_DROPPED = note_code("value_dropped", "An optional value has the wrong type or range; it was dropped.", "look")
VALUE_MISSING = note_code("value_missing", "A required value is missing; an empty one is used instead.", "look")
TEXT_FROM_JSON = note_code("text_from_json", "A value that should be text is something else; its JSON is used.", "look")
VALUE_UNREADABLE = note_code(
    "value_unreadable", "A value cannot be held (a number out of range); its JSON is kept as text.", "look"
)
TOOL_CALL_ID_GENERATED = note_code(
    "tool_call_id_generated",
    "A tool call has no id; one was made up so that its result can be paired with it.",
    "harmless",
)

MAX_TIMESTAMP = 2**64 - 1
GENERATED_ID_PREFIX = "seatrial_call_"
"""Ids that a reader made up start with this."""

Path: TypeAlias = tuple[str | int, ...]
Block = TypeVar("Block")


def salvage_messages(data: bytes, notes: list[Note]) -> list[Message]:
    """The messages in a JSON array of them, in an object that holds one as `messages`, or in a single message."""
    place = _Place(data, (), notes)
    members = place.members()
    if members is not None and "role" in members:
        items: list[_Place] | None = [place]
    else:
        place = place if members is None else members["messages"]
        items = place.items()
    if items is None:
        expected = "an array of messages, an object with `messages`, a message, or one message per line"
        raise SeatrialError("invalid_document", f"expected {expected}", pointer=pointer(*place.at))
    return [message for item in items if (message := _message(item)) is not None]


def salvage_message(data: bytes, at: Path, notes: list[Note]) -> Message | None:
    """The message in these bytes of JSON, with a note for each repair; None when there is nothing to keep.

    `at` is where the bytes stand in the document. Messages that are sound come out as the typed decoder gives them.
    """
    return _message(_Place(data, at, notes))


def typed_message(data: bytes) -> Message | None:
    """The message in these bytes when it is sound, else None."""
    message = wire.decode_sound(data, _MESSAGE)
    return None if message is None or hidden_fault(message) is not None else message


def hidden_fault(message: Message) -> tuple[Path, str] | None:
    """What the typed decoder cannot see, and where: it does not know 2**64, and takes raw details as they are."""
    timestamp = message.timestamp
    if timestamp is not None and timestamp > MAX_TIMESTAMP:
        return ("timestamp",), f"Expected `int` <= {MAX_TIMESTAMP}"
    if type(message) is AssistantMessage:
        for index, block in enumerate(message.content):
            if type(block) is ReasoningDetailsBlock and not all(map(_is_utf8, block.details)):
                return ("content", index, "details"), "Invalid UTF-8"
    return None


def _is_utf8(raw: msgspec.Raw) -> bool:
    try:
        bytes(raw).decode()
    except UnicodeDecodeError:
        return False
    return True


class _Place:
    """A JSON value, still as bytes, where it stands, and the list that notes about it go to."""

    __slots__ = ("at", "data", "notes")

    def __init__(self, data: bytes, at: Path, notes: list[Note]) -> None:
        self.data = data
        """Without white space around it; empty when there is no such value."""
        self.at = at
        self.notes = notes

    def note(self, code: str, message: str) -> None:
        self.notes.append(Note(code, pointer(*self.at), message))

    def kind(self) -> str:
        return _KINDS.get(self.data[:1], "a number")

    def is_empty(self) -> bool:
        """Whether there is nothing here, or null."""
        return self.data in (b"", b"null")

    def members(self) -> _Members | None:
        if self.data[:1] != b"{":
            return None
        members = self.decoded(_OBJECT).items()
        return _Members(self, {key: _Place(bytes(raw), (*self.at, key), self.notes) for key, raw in members})

    def items(self) -> list[_Place] | None:
        if self.data[:1] != b"[":
            return None
        items = self.decoded(_ARRAY)
        return [_Place(bytes(raw), (*self.at, index), self.notes) for index, raw in enumerate(items)]

    def string(self) -> str | None:
        """The string, or None when it is anything else."""
        if self.data[:1] != b'"':
            return None
        text: str = self.decoded()
        return text

    def text(self) -> str | None:
        """The string; the JSON of anything else, with a note; None when empty."""
        if self.is_empty():
            return None
        text = self.string()
        if text is None:
            self.note(TEXT_FROM_JSON, f"expected a string, got {self.kind()}; its JSON is taken as the text")
            text = self.json()
        return text

    def required_text(self) -> str:
        text = self.text()
        if text is None:
            self.note(VALUE_MISSING, f"the message has no {self.at[-1]}")
            return ""
        return text

    def number(self, decoder: msgspec.json.Decoder[int]) -> int | None:
        if self.is_empty():
            return None
        try:
            value = decoder.decode(self.data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.note(VALUE_DROPPED, str(error))
            return None
        if value > MAX_TIMESTAMP:
            self.note(VALUE_DROPPED, "the number does not fit into 64 bits")
            return None
        return value

    def flag(self) -> bool:
        if self.data not in (b"true", b"false", b""):
            self.note(VALUE_DROPPED, f"expected a boolean, got {self.kind()}; read as false")
        return self.data == b"true"

    def value(self) -> Any:
        """Any value; its JSON as a string where it cannot be held; None when there is nothing."""
        if self.is_empty():
            return None
        try:
            return self.decoded()
        except SeatrialError as error:
            self.note(VALUE_UNREADABLE, error.message)
            return self.json()

    def raw(self) -> msgspec.Raw:
        """The bytes as they are, but for those that are not UTF-8."""
        text = self.json().encode()
        if text != self.data:
            self.repaired(["invalid_utf8_replaced"])
        return msgspec.Raw(text)

    def json(self) -> str:
        return self.data.decode("utf-8", "replace")

    def decoded(self, decoder: msgspec.json.Decoder[Any] | None = None) -> Any:
        repairs: list[wire.Repair] = []
        value = wire.decode(self.data, decoder, repairs)
        self.repaired(repairs)
        return value

    def repaired(self, repairs: list[wire.Repair]) -> None:
        if repairs:
            self.notes.extend(repair_notes(repairs, pointer(*self.at)))


class _Members(dict[str, _Place]):
    """The members of an object; one that is not there is an empty place."""

    def __init__(self, owner: _Place, members: dict[str, _Place]) -> None:
        super().__init__(members)
        self.owner = owner

    def __missing__(self, key: str) -> _Place:
        return _Place(b"", (*self.owner.at, key), self.owner.notes)


def _message(place: _Place) -> Message | None:
    sound = typed_message(place.data)
    if sound is not None:
        return sound
    message = place.members()
    if message is None:
        place.note(MESSAGE_DROPPED, f"expected a message, got {place.kind()}")
        return None
    role = message["role"].string()
    if role in _ROLES:
        return _ROLES[role](message)
    place.note(ROLE_UNKNOWN, "the message has no role" if role is None else f"unknown role {role[:100]!r}")
    return CustomMessage("unknown" if role is None else role, place.value())


def _system(message: _Members) -> Message:
    content = _user_content(message["content"])
    if not isinstance(content, str):
        message["content"].note(CONTENT_RESHAPED, "a system prompt is a string; the text blocks were joined")
        content = joined_text(content)
    return SystemMessage(content, message["timestamp"].number(_TIMESTAMP))


def _user(message: _Members) -> Message:
    return UserMessage(_user_content(message["content"]), message["timestamp"].number(_TIMESTAMP))


def _assistant(message: _Members) -> Message:
    content: list[AssistantBlock] = _blocks(message["content"], _assistant_block)
    return AssistantMessage(
        content,
        _stop_reason(message["stop_reason"], content),
        message["error_message"].text(),
        message["timestamp"].number(_TIMESTAMP),
        _usage(message["usage"]),
    )


def _tool_result(message: _Members) -> Message:
    return ToolResultMessage(
        message["tool_call_id"].required_text(),
        message["tool_name"].required_text(),
        _blocks(message["content"], _user_block),
        message["is_error"].flag(),
        message["narration"].text(),
        message["details"].value(),
        message["timestamp"].number(_TIMESTAMP),
    )


def _custom(message: _Members) -> Message:
    kind = message["kind"].required_text()
    return CustomMessage(kind, message["payload"].value(), message["timestamp"].number(_TIMESTAMP))


def _user_content(place: _Place) -> str | list[UserBlock]:
    return _blocks(place, _user_block) if place.data[:1] in (b"[", b"{") else place.required_text()


def _blocks(place: _Place, read: Callable[[_Members], Block | None]) -> list[Block]:
    if place.is_empty():
        place.note(VALUE_MISSING, "the message has no content")
        return []
    items = place.items()
    if items is None:
        place.note(CONTENT_RESHAPED, f"expected an array of blocks, got {place.kind()}")
    blocks: list[Block] = []
    for item in [place] if items is None else items:
        members = item.members()
        if members is None and not item.is_empty():
            if items is not None:
                item.note(CONTENT_RESHAPED, f"expected a block, got {item.kind()}; it is taken as text")
            text = item.string()
            bare = TextBlock(item.json() if text is None else text)
            members = _Place(wire.encode(bare), item.at, item.notes).members()
        block = None if members is None else read(members)
        if block is not None:
            blocks.append(block)
        else:
            item.note(BLOCK_DROPPED, f"no usable block in {item.json()[:100]}")
    return blocks


def _user_block(block: _Members) -> UserBlock | None:
    kind = block["type"].string()
    if kind == "text" and (text := block["text"].text()) is not None:
        return TextBlock(text)
    if kind == "image" and (source := block["source"].text()) is not None:
        return ImageBlock(source, block["media_type"].text(), block["alt"].text())
    return None


def _assistant_block(block: _Members) -> AssistantBlock | None:
    kind = block["type"].string()
    if kind in _TEXT_BLOCKS and (text := block["text"].text()) is not None:
        return _TEXT_BLOCKS[kind](text)
    if kind == "reasoning_details" and "details" in block:
        return ReasoningDetailsBlock(_details(block["details"]))
    if kind == "tool_call" and (name := block["name"].string()):
        return ToolCall(_call_id(block["id"]), name, _arguments(block["arguments"]))
    return None


def _details(place: _Place) -> list[msgspec.Raw]:
    items = place.items()
    if items is None:
        place.note(CONTENT_RESHAPED, f"expected an array of details, got {place.kind()}")
        items = [place]
    return [item.raw() for item in items]


def _call_id(place: _Place) -> str:
    call_id = place.text()
    if call_id is None:
        # The position makes it the same on every reading, and no other call's.
        call_id = GENERATED_ID_PREFIX + "_".join([str(part) for part in place.at if isinstance(part, int)])
        place.note(TOOL_CALL_ID_GENERATED, f"the tool call has no id; it is called {call_id}")
    return call_id


def _arguments(place: _Place) -> Any:
    if not place.data:
        place.note(VALUE_MISSING, "the tool call has no arguments")
        return {}
    try:
        return place.decoded()
    except SeatrialError as error:
        place.note(VALUE_UNREADABLE, error.message)
        return unparsed_arguments(error.message, place.json())


def _stop_reason(place: _Place, content: list[AssistantBlock]) -> StopReason:
    if place.is_empty():
        calls = any(isinstance(block, ToolCall) for block in content)
        reason = StopReason.TOOL_USE if calls else StopReason.END_TURN
        place.note(STOP_REASON_GUESSED, f"no stop reason; read as {reason.value!r}")
        return reason
    name = place.string()
    if name in _STOP_REASONS:
        return _STOP_REASONS[name]
    place.note(UNKNOWN_STOP_REASON, f"unknown stop reason {place.json()[:100]}; read as 'other'")
    return StopReason.OTHER


def _usage(place: _Place) -> Usage | None:
    counts = place.members()
    if counts is None:
        if not place.is_empty():
            place.note(VALUE_DROPPED, f"expected an object of token counts, got {place.kind()}")
        return None
    return Usage(*[counts[name].number(_TOKEN_COUNT) or 0 for name in Usage.__struct_fields__])


_KINDS = {b'"': "a string", b"{": "an object", b"[": "an array", b"t": "a boolean", b"f": "a boolean", b"n": "null"}
_STOP_REASONS: dict[str | None, StopReason] = {reason.value: reason for reason in StopReason}
_TEXT_BLOCKS: dict[str | None, type[TextBlock | ThinkingBlock | ReasoningBlock]] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "reasoning": ReasoningBlock,
}
_ROLES: dict[str | None, Callable[[_Members], Message]] = {
    "system": _system,
    "user": _user,
    "assistant": _assistant,
    "tool_result": _tool_result,
    "custom": _custom,
}
_MESSAGE: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_OBJECT: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
_TIMESTAMP: msgspec.json.Decoder[int] = msgspec.json.Decoder(Timestamp)
_TOKEN_COUNT: msgspec.json.Decoder[int] = msgspec.json.Decoder(TokenCount)
