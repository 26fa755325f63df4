"""Steps: the tool calls of a run, each with its result, and what they add up to.

`steps_given` reads steps that are handed over as such: objects that need no more than a `name`, and `arguments` if
there are any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial._support.nesting import is_value_too_deep
from seatrial.errors import SeatrialError
from seatrial.formats.chat.calls import ExecutedBy
from seatrial.transcript.note import pointer

Source = Literal["observed", "trace", "messages", "events"]
"""`observed` went through our tool proxy; `trace` was written down as one; the others were said along the way."""
Status = Literal["ok", "error", "timeout", "cancelled", "unknown"]
ProxyMode = Literal["simulated", "recorded", "stubbed", "injected", "passthrough"]
"""How the tool proxy answered a call."""
Moment: TypeAlias = str | int | float
"""ISO 8601 text or milliseconds since the epoch, kept as given."""
FAILED: frozenset[Status] = frozenset({"error", "timeout", "cancelled"})
"""The statuses of a call that did not do what it was made for."""


class Step(msgspec.Struct, omit_defaults=True, gc=False):
    """One tool call. `index`, `name`, `arguments`, `source` and `status` are always written, the rest where known."""

    index: int
    name: str
    arguments: Any
    """The JSON value; `{}` when the call has none; null when they were not JSON."""
    id: str | None = None
    # A factory is never equal to a default, so msgspec writes these two always.
    source: Source = msgspec.field(default_factory=lambda: "trace")
    status: Status = msgspec.field(default_factory=lambda: "unknown")
    result: Any = UNSET
    arguments_text: str | None = None
    """The arguments as sent, when they are not JSON. Such a call fits only where arguments are not looked at."""
    error: str | None = None
    started_at: Moment | None = None
    ended_at: Moment | None = None
    duration_ms: float | None = None
    tokens: int | None = None
    """Input and output tokens of the model call that asked for this; on the first where it asked for several."""
    actor: str | None = None
    """Which agent made the call, where there are several."""
    parent: str | None = None
    """Id of the call inside which this one was made."""
    mode: ProxyMode | None = None
    """How an observed call was answered."""
    executed_by: ExecutedBy = "agent"
    """Who ran the tool. Calls of the provider are the agent's doing; those of a user are not."""


class StepSummary(msgspec.Struct):
    """What the agent's steps of a run add up to. A figure that is not known is null, never 0."""

    steps: int | None
    """Unless all calls are known, there may be more; null when none is known."""
    by_name: dict[str, int]
    errors: int | None
    """Steps with the status `error`, `timeout` or `cancelled`; as many at least, unless all calls are known."""
    model_calls: int | None
    first_start: Moment | None
    last_end: Moment | None
    duration_ms: dict[str, float]
    """By name, over the steps whose duration is known."""


def duration(step: Step) -> float | None:
    """Milliseconds that a step took: as given, else end - start; None when unknown or negative."""
    if step.duration_ms is not None and step.duration_ms >= 0:
        return step.duration_ms
    return elapsed(step.started_at, step.ended_at)


def elapsed(start: Moment | None, end: Moment | None) -> float | None:
    """Milliseconds between two moments; None when one is unknown or they are the wrong way round."""
    if start is None or end is None:
        return None
    first, last = milliseconds(start), milliseconds(end)
    if first is None or last is None or last < first:
        return None
    return last - first


def milliseconds(moment: Moment) -> float | None:
    """A moment as milliseconds since the epoch; text without an offset is taken as UTC. None when it is no moment."""
    if type(moment) is int or type(moment) is float:
        return moment if abs(moment) < 1e300 else None
    if type(moment) is not str:
        return None
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(moment)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000
    except (ValueError, OverflowError):
        return None


def summarise(steps: Iterable[Step], model_calls: int | None, *, complete: bool = True) -> StepSummary:
    """Count and add up what the agent did; `complete` says whether these are all of its steps."""
    by_name: dict[str, int] = {}
    took: dict[str, float] = {}
    errors = count = 0
    starts: list[tuple[float, Moment]] = []
    ends: list[tuple[float, Moment]] = []
    for step in steps:
        if step.executed_by == "user":
            continue
        count += 1
        by_name[step.name] = by_name.get(step.name, 0) + 1
        errors += step.status in FAILED
        if (spent := duration(step)) is not None:
            took[step.name] = took.get(step.name, 0) + spent
        for moments, moment in ((starts, step.started_at), (ends, step.ended_at)):
            if moment is not None and (at := milliseconds(moment)) is not None:
                moments.append((at, moment))
    return StepSummary(
        steps=count if count or complete else None,
        by_name=by_name,
        errors=errors if count or complete else None,
        model_calls=model_calls,
        first_start=min(starts, key=lambda pair: pair[0])[1] if starts else None,
        last_end=max(ends, key=lambda pair: pair[0])[1] if ends else None,
        duration_ms=took,
    )


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
    if step.error is not None and step.error.strip():
        if step.status == "ok":
            message = "a step that has an `error` did not end with the status `ok`"
            raise SeatrialError("invalid_document", message, pointer=pointer(*at, "status"))
        step.status = "error" if step.status == "unknown" else step.status
    if type(step.arguments) is str and step.arguments_text is None:
        from seatrial.transcript.arguments import read_arguments  # only here, to keep `seatrial match` quick to start

        arguments, not_json, _ = read_arguments(step.arguments)
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
