"""Steps that are handed over as such: objects that need no more than a `name`, and `arguments` if there are any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.nesting import is_value_too_deep
from seatrial.trajectory.step import Step, elapsed
from seatrial.transcript.note import pointer


def steps_given(values: Sequence[Step | Mapping[str, Any]], at: tuple[str | int, ...] = ()) -> list[Step]:
    """The steps, numbered by their place. Arguments in the form of text are read as JSON, as they are in messages.

    Raises `SeatrialError("invalid_document")` for what is no step. A key that a step does not have is an error too:
    what a check is about may stand under `args`.
    """
    if not isinstance(values, list | tuple):
        raise SeatrialError("invalid_document", "expected an array of steps", pointer=pointer(*at))
    return [
        msgspec.structs.replace(value, index=index) if isinstance(value, Step) else _step(value, index, (*at, index))
        for index, value in enumerate(values)
    ]


def _step(value: Any, index: int, at: tuple[str | int, ...]) -> Step:
    if not isinstance(value, Mapping):
        raise SeatrialError("invalid_document", "expected a step, an object with a name", pointer=pointer(*at))
    # A null says nothing, but for the two that can be anything.
    given = {key: item for key, item in value.items() if item is not None or key in ("arguments", "result")}
    if not given.get("name"):
        raise SeatrialError("invalid_document", "a step needs a name", pointer=pointer(*at))
    for key in value:
        if key not in _KEYS:
            raise SeatrialError("invalid_document", _unknown(key), pointer=pointer(*at, str(key)))
    if is_value_too_deep(value):
        raise wire.too_deep()
    try:
        step = msgspec.convert({"arguments": {}, **given, "index": index}, Step)
    except msgspec.ValidationError as error:
        found = wire.invalid_document(error)
        where = pointer(*at) + (found.pointer or "")
        raise SeatrialError("invalid_document", f"not a step: {found.message}", pointer=where) from None
    if type(step.arguments) is str and step.arguments_text is None:
        from seatrial.transcript.arguments import parse_arguments  # only here, to keep `seatrial match` quick to start

        arguments, not_json = parse_arguments(step.arguments)
        if not_json:
            step.arguments, step.arguments_text = None, step.arguments
        else:
            step.arguments = arguments
    if step.duration_ms is None:
        step.duration_ms = elapsed(step.started_at, step.ended_at)
    return step


_KEYS = frozenset(field.encode_name for field in msgspec.structs.fields(Step))
_MEANT = {
    **dict.fromkeys(("args", "input", "parameters", "params", "kwargs"), "arguments"),
    **dict.fromkeys(("output", "response", "content"), "result"),
    **dict.fromkeys(("tool", "tool_name", "function"), "name"),
    **dict.fromkeys(("tool_call_id", "call_id"), "id"),
    **dict.fromkeys(("is_error", "isError", "success", "failed"), "status"),
}


def _unknown(key: Any) -> str:
    from difflib import get_close_matches  # only for a mistake

    near = _MEANT.get(key) or next(iter(get_close_matches(str(key), _KEYS, n=1)), None)
    known = f"write `{near}`" if near else "its keys are " + ", ".join(sorted(_KEYS))
    return f"a step has no key {str(key)[:60]!r}; {known}"
