"""Tool calls in the shapes that agents write them, read into one.

| shape | from |
| --- | --- |
| `{id?, name, arguments?}` | the agent response, flat |
| `{id?, type?, function: {name, arguments?}}` | OpenAI chat completions |
| `{id?, tool, input?, output?}` | output_messages |
| `{type: "tool_use", id, name, input}` | Anthropic |
| `{id, function: "name", arguments}` | Inspect |
| `{id, name, args}` | LangChain |

The transcript readers and the step extraction share this module, so that both see the same calls.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.transcript.arguments import arguments_note, detect_unparsed, key_twice, parse_arguments
from seatrial.transcript.note import Note, note_code
from seatrial.transcript.salvage import GENERATED_ID_PREFIX as GENERATED_ID_PREFIX
from seatrial.transcript.salvage import TOOL_CALL_ID_GENERATED as TOOL_CALL_ID_GENERATED

TOOL_CALL_DROPPED_NO_NAME = note_code(
    "tool_call_dropped_no_name", "A tool call has no usable name; it was dropped, the rest stays.", "serious"
)
ARGUMENTS_ENCODED_TWICE = note_code(
    "arguments_encoded_twice", "The arguments of a tool call are JSON inside a JSON text; they were decoded.", "look"
)


class Call(msgspec.Struct, gc=False):
    """One tool call, whatever shape it came in."""

    name: str
    arguments: Any
    """The value as given, null too; `{}` when absent. JSON text is parsed, other text kept by `unparsed_arguments`."""
    id: str | None = None
    not_json: bool = False
    """Whether the arguments were text that is not JSON."""
    encoded_twice: bool = False
    """Whether the arguments were JSON inside a JSON text."""
    output: Any = msgspec.UNSET
    """The result, where the shape carries it inside the call."""


def read_call(value: Any) -> Call | None:
    """The call, or None when the value has no usable name."""
    if type(value) is not dict:
        return None
    get = value.get
    name = get("name")
    function = get("function")
    if type(function) is dict and (function.get("name") or not name):
        # A name beside the function is some label; the function is what was called.
        name = function.get("name")
        arguments = function["arguments"] if "arguments" in function else _first(value, ("arguments", "input", "args"))
    elif type(name) is str and name:
        arguments = _first(value, ("arguments", "input", "args"))
    elif type(function) is str:  # Inspect
        name, arguments = function, get("arguments", msgspec.UNSET)
    else:
        name = get("tool")
        arguments = _first(value, ("input", "arguments", "args"))
    if type(name) is not str or not name:
        return None
    call_id = get("id") or get("call_id")
    call = Call(name, arguments, call_id if type(call_id) is str and call_id else None)
    set_arguments(call, arguments)
    if "output" in value:
        call.output = value["output"]
    return call


def set_arguments(call: Call, arguments: Any) -> None:
    """Give a call its arguments: JSON text is parsed, none at all is `{}`."""
    if type(arguments) is str:
        call.arguments, call.not_json = parse_arguments(arguments)
        if type(call.arguments) is str:
            call.arguments = inside_text(call.arguments)
            call.not_json = detect_unparsed(call.arguments) is not None
            call.encoded_twice = type(call.arguments) is dict and not call.not_json
    else:
        call.arguments = {} if arguments is msgspec.UNSET else arguments


def inside_text(text: str) -> Any:
    """The object that a text holds as JSON, where arguments were encoded twice; any other text is itself.

    An object that has a key twice is kept by `unparsed_arguments`.
    """
    arguments, not_json = parse_arguments(text)
    if not_json and key_twice(text) is None:
        return text
    return arguments if type(arguments) is dict and text.strip() else text


def _first(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((value[key] for key in keys if key in value), msgspec.UNSET)


def generated_id(at: tuple[str | int, ...]) -> str:
    """The id of a call that has none: its position, which is the same on every reading, and no other call's."""
    return GENERATED_ID_PREFIX + "_".join([str(part) for part in at if type(part) is int])


def nameless_note(at: str) -> Note:
    """The note for a call that was dropped because nothing names its tool."""
    return Note(TOOL_CALL_DROPPED_NO_NAME, at, "dropped a tool call without a name")


def encoded_twice_note(at: str, name: str, arguments: Any = None) -> Note:
    """The note for a call whose arguments were JSON in a JSON text."""
    if detect_unparsed(arguments) is not None:
        return arguments_note(arguments, at, name)
    return Note(ARGUMENTS_ENCODED_TWICE, at, f"the arguments for {name[:40]!r} are JSON in a JSON text")


def generated_id_note(at: str, name: str, call_id: str) -> Note:
    """The note for a call that got an id."""
    return Note(TOOL_CALL_ID_GENERATED, at, f"a call of {name[:40]!r} has no id; made up {call_id!r}")
