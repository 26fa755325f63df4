"""Tool calls in the shapes that agents write them, read into one.

| shape | from |
| --- | --- |
| `{id?, name, arguments?}` | the agent response, flat |
| `{id?, type?, function: {name, arguments?}}` | OpenAI chat completions |
| `{id?, tool, input?, output?}` | output_messages |
| `{type: "tool_use", id, name, input}` | Anthropic |

The transcript readers and the step extraction share this module, so that both see the same calls.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.transcript.arguments import unparsed_arguments
from seatrial.transcript.note import note_code

TOOL_CALL_DROPPED_NO_NAME = note_code(
    "tool_call_dropped_no_name", "A tool call has no usable name; it was dropped, the rest stays."
)
ARGUMENTS_NOT_JSON = note_code(
    "arguments_not_json", "The arguments of a tool call are text that is not JSON; the text is kept as sent."
)
TOOL_CALL_ID_GENERATED = note_code(
    "tool_call_id_generated", "A tool call has no id; one was made up so that its result can be paired with it."
)

GENERATED_ID_PREFIX = "seatrial_call_"
"""Ids that a reader made up start with this; the trajectory shows such a call without an id."""


class Call(msgspec.Struct, gc=False):
    """One tool call, whatever shape it came in."""

    name: str
    arguments: Any
    """The value as given, null too; `{}` when absent. JSON text is parsed, other text kept by `unparsed_arguments`."""
    id: str | None = None
    not_json: bool = False
    """Whether the arguments were text that is not JSON."""
    output: Any = msgspec.UNSET
    """The result, where the shape carries it inside the call."""


def read_call(value: Any) -> Call | None:
    """The call, or None when the value has no usable name."""
    if type(value) is not dict:
        return None
    get = value.get
    name = get("name")
    if type(name) is str and name:
        arguments = get("arguments", msgspec.UNSET)
        if arguments is msgspec.UNSET:
            arguments = get("input", msgspec.UNSET)
    elif type(function := get("function")) is dict:
        name = function.get("name")
        arguments = function.get("arguments", msgspec.UNSET)
    else:
        name = get("tool")
        arguments = get("input", msgspec.UNSET)
    if type(name) is not str or not name:
        return None
    call_id = get("id")
    call = Call(name, arguments, call_id if type(call_id) is str and call_id else None)
    if type(arguments) is str:
        call.arguments, call.not_json = parse_arguments(arguments)
    elif arguments is msgspec.UNSET:
        call.arguments = {}
    if "output" in value:
        call.output = value["output"]
    return call


def parse_arguments(text: str) -> tuple[Any, bool]:
    """The JSON value of argument text and False; or the sentinel that keeps the text, and True.

    Blank text means no arguments: several providers send it for a call without parameters.
    """
    if not text or text.isspace():
        return {}, False
    try:
        return _ARGUMENTS.decode(text), False
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        # The repaired text differs from the sent one only where it was not text at all (lone surrogates).
        return wire.decode(text.encode("utf-8", "replace"), repairs=[]), False
    except SeatrialError as error:
        return unparsed_arguments(error.message, text), True


_ARGUMENTS: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
