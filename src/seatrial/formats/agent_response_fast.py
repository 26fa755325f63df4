"""The fast path for agent responses: well-formed bodies are decoded into structs and converted in one pass.

The structs have nothing but the keys that are read here. Whatever does not fit them (other keys, results of unknown
calls, thinking tags, too many messages) is left to the careful reader in `seatrial.formats.agent_response`, which gives
the same result where both can read a body.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from seatrial._support.nesting import is_too_deep
from seatrial.formats.chat.calls import generated_id, generated_id_note, nameless_note
from seatrial.formats.chat.content import add_block
from seatrial.formats.chat.hidden_calls import may_hold_call
from seatrial.formats.chat.limits import most_pieces
from seatrial.formats.chat.parts import has_visible_text, read_raw_thought
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    Message,
    Note,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultBlock,
    ToolResultMessage,
    UserMessage,
)
from seatrial.transcript.arguments import (
    arguments_note,
    encoded_twice_note,
    read_arguments,
)

_LEVELS = 20
"""Arguments and metadata are nested less deeply than this, and so no body that is read here is nested too deeply."""


class _Function(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    name: str = ""
    arguments: Any = UNSET


class _Call(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A tool call, flat or nested; the same keys as `read_call` takes, but for `tool`."""

    id: str | None = None
    name: str | None = None
    arguments: Any = UNSET
    input: Any = UNSET
    function: _Function | None = None
    type: str | None = None


class _SignedThought(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The usual entry of `thinking`: nothing but texts, so that no call can be in it."""

    type: str
    text: str
    signature: str


class _Text(msgspec.Struct, tag_field="type", tag="text", gc=False, forbid_unknown_fields=True):
    text: str


class _System(msgspec.Struct, tag_field="role", tag="system", gc=False, forbid_unknown_fields=True):
    content: str
    id: str | None = None


class _User(msgspec.Struct, tag_field="role", tag="user", gc=False, forbid_unknown_fields=True):
    content: str | list[_Text]
    id: str | None = None


class _Assistant(msgspec.Struct, tag_field="role", tag="assistant", gc=False, forbid_unknown_fields=True):
    content: str | list[_Text] | None = None
    tool_calls: list[_Call] | None = None
    thinking: list[msgspec.Raw] | None = None
    id: str | None = None


class _Tool(msgspec.Struct, tag_field="role", tag="tool", gc=False, forbid_unknown_fields=True):
    tool_call_id: str
    content: str | list[_Text]
    id: str | None = None
    name: str | None = None


class _Body(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    final_response: str
    messages: list[_System | _User | _Assistant | _Tool]
    metadata: dict[str, Any] | None = None


class WellFormed(msgspec.Struct):
    """What a well-formed body says."""

    answer: str
    messages: list[Message]
    metadata: dict[str, Any]
    notes: list[Note]


def read_well_formed(data: bytes) -> WellFormed | None:
    """What a well-formed body says; None when something in it needs the careful reader."""
    try:
        body = _BODY.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    left = most_pieces(len(data))
    if not has_visible_text(body.final_response) or len(body.messages) > left // 4 or _is_deep(body.metadata):
        return None
    notes: list[Note] = []
    messages: list[Message] = []
    names: dict[str, str] = {}
    for message in body.messages:
        if type(message) is _Tool:
            name = names.get(message.tool_call_id)
            if name is None or (message.name is not None and message.name != name):
                return None
            content = message.content
            results: list[ToolResultBlock] = (
                [TextBlock(content)] if isinstance(content, str) else [TextBlock(part.text) for part in content]
            )
            messages.append(ToolResultMessage(message.tool_call_id, name, results, False))
        elif type(message) is _Assistant:
            blocks: list[AssistantBlock] = []
            if thinking := message.thinking:
                left -= len(thinking)
                if not _add_thinking(blocks, thinking):
                    return None
            said = message.content
            if isinstance(said, str):
                if "<" in said:
                    return None  # a hidden tag, perhaps
                if said:
                    blocks.append(TextBlock(said))
            elif said is not None:
                if any("<" in part.text for part in said):
                    return None
                blocks += [TextBlock(part.text) for part in said]
            stop_reason = _END_TURN
            if calls := message.tool_calls:
                left -= len(calls)
                if not _add_calls(blocks, calls, len(messages), names, notes):
                    return None
                if blocks and type(blocks[-1]) is ToolCall:  # calls come last
                    stop_reason = _TOOL_USE
            messages.append(AssistantMessage(blocks, stop_reason))
        elif type(message) is _User:
            asked = message.content
            messages.append(UserMessage(asked if isinstance(asked, str) else [TextBlock(part.text) for part in asked]))
        elif type(message) is _System:
            messages.append(SystemMessage(message.content))
    return None if left < 0 else WellFormed(body.final_response, messages, body.metadata or {}, notes)


def _add_thinking(blocks: list[AssistantBlock], thinking: list[msgspec.Raw]) -> bool:
    for raw in thinking:
        try:
            _SIGNED_THOUGHT.decode(raw)
        except (msgspec.DecodeError, UnicodeError):
            block = None if is_too_deep(bytes(raw), _LEVELS) else read_raw_thought(raw)
        else:
            # A copy, because a raw value keeps the whole input that it was cut from.
            add_block(blocks, ReasoningDetailsBlock([raw.copy()]))
            continue
        if block is None:
            return False
        if type(block) is ReasoningDetailsBlock:
            try:
                if may_hold_call("", [*map(_decode, block.details)]):
                    return False
            except (msgspec.DecodeError, UnicodeError):
                pass  # a number that nothing can hold: kept as it was sent
        add_block(blocks, block)
    return True


def _add_calls(
    blocks: list[AssistantBlock], calls: list[_Call], message: int, names: dict[str, str], notes: list[Note]
) -> bool:
    """Append the calls that have a name; False when something in them needs the careful reader."""
    for index, call in enumerate(calls):
        name, arguments, function = call.name, call.arguments, call.function
        if arguments is UNSET:
            arguments = call.input
        if function is not None and (function.name or not name):
            name = function.name
            if function.arguments is not UNSET:
                arguments = function.arguments
        if not name:
            notes.append(nameless_note(f"/messages/{message}/tool_calls/{index}"))
            continue
        if type(arguments) is str:
            arguments, not_json, encoded_twice = read_arguments(arguments)
            if not_json:
                notes.append(arguments_note(arguments, f"/messages/{message}/tool_calls/{index}", name))
            if encoded_twice:
                notes.append(encoded_twice_note(f"/messages/{message}/tool_calls/{index}", name))
        elif arguments is UNSET:
            arguments = {}
        elif _is_deep(arguments):
            return False
        call_id = call.id
        if not call_id:
            call_id = generated_id((message, index))
            notes.append(generated_id_note(f"/messages/{message}/tool_calls/{index}", name, call_id))
        if call_id in names:
            return False  # which result is whose takes a closer look
        names[call_id] = name
        blocks.append(ToolCall(call_id, name, arguments))
    return True


def _is_deep(value: Any, levels: int = _LEVELS) -> bool:
    """Whether a value is nested so deeply that the careful reader has to say whether it is too deep."""
    if type(value) is dict:
        value = value.values()
    elif type(value) is not list:
        return False
    for inner in value:
        if (type(inner) is dict or type(inner) is list) and (not levels or _is_deep(inner, levels - 1)):
            return True
    return False


_BODY = msgspec.json.Decoder(_Body)
_SIGNED_THOUGHT = msgspec.json.Decoder(_SignedThought)
_decode = msgspec.json.Decoder().decode
# Looking a member up in its enumeration takes as long as making the message that it is for.
_TOOL_USE = StopReason.TOOL_USE
_END_TURN = StopReason.END_TURN
