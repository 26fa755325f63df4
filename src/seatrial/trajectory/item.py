"""Items: the calls that are expected or forbidden, and whether a step is one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from seatrial.errors import SeatrialError
from seatrial.trajectory.matchers import Names, compile_value, has_matcher
from seatrial.trajectory.step import Status, Step
from seatrial.trajectory.values import (
    ArgsMatch,
    Difference,
    Matcher,
    Path,
    TooDeepError,
    as_given,
    differences,
    differences_at,
)

_MOST_UNWRAPPED = 20


class ExpectedCall(msgspec.Struct, frozen=True):
    """One call as a configuration describes it, compiled."""

    tool: Names
    args: Any = UNSET
    """With matchers compiled; UNSET when arguments are not looked at."""
    args_match: ArgsMatch = "exact"
    paths: list[Path] | None = None
    """When given, only these paths of the arguments are compared."""
    result: Any = UNSET
    status: Status | None = None
    actor: str | None = None
    max_duration_ms: float | None = None
    """Checked of the step that the item is matched with; it does not decide which."""
    id: str | None = None
    after: tuple[str, ...] = ()


def item_of(step: Step) -> ExpectedCall:
    """The item that describes a call just like this one, its result and status aside."""
    args = step.arguments
    if step.arguments_text is not None:
        args = Matcher(step.arguments_text, lambda value: False)
    return ExpectedCall(Names.literal(step.name), args)


def is_plain(item: ExpectedCall) -> bool:
    """Whether nothing but the equality of name and arguments decides."""
    return (
        item.tool.globs is None
        and len(item.tool.given) == 1
        and item.result is UNSET
        and item.status is None
        and item.actor is None
        and (item.args is UNSET or (item.args_match == "exact" and item.paths is None and not has_matcher(item.args)))
    )


def is_name_only(item: ExpectedCall) -> bool:
    """Whether nothing but the name decides."""
    return item.args is UNSET and item.result is UNSET and item.status is None and item.actor is None


def fits(item: ExpectedCall, step: Step) -> bool:
    """Whether the step is a call that the item describes. Values nested too deeply to be followed do not fit."""
    if not item.tool.fits(step.name):
        return False
    try:
        return next(_differences(item, step), None) is None
    except TooDeepError:
        return False


def may_fit(item: ExpectedCall, step: Step) -> bool:
    """Whether nothing speaks against it but what the record does not say: with every such fact taken as fitting."""
    if not item.tool.fits(step.name):
        return False
    try:
        return all(unrecorded(found) is not None for found in _differences(item, step))
    except TooDeepError:
        return False


def leaves_out(item: ExpectedCall, step: Step) -> bool:
    """Whether the record does not say something of the step that the item asks for."""
    return (
        (item.status is not None and step.status == "unknown")
        or (item.actor is not None and step.actor is None)
        or (item.result is not UNSET and step.result is UNSET)
    )


def fits_or_unknown(item: ExpectedCall, step: Step) -> bool | None:
    """The same, for whoever must not take a call for another one: None when the record does not say.

    Models write numbers, objects and flags as text: `"500"` is 500 here, since a tool takes it for that. And some
    records wrap the arguments (`{"kwargs": {...}}`, `[{...}]`): a call that fits without the wrapping may be meant.
    """
    if not item.tool.fits(step.name):
        return False
    fit = _fits_as_written(item, step)
    if fit is False and item.args is not UNSET:
        for inner in _unwrapped(step.arguments):
            if _fits_as_written(item, msgspec.structs.replace(step, arguments=inner)) is not False:
                return None
    return fit


def _unwrapped(arguments: Any) -> Iterator[dict[str, Any]]:
    """The arguments inside the arguments, where there is nothing beside them."""
    items = arguments if type(arguments) is list else []
    if type(arguments) is dict and len(arguments) == 1:
        items = [*arguments.values()]
        if type(items[0]) is str:
            items = [*_otherwise_written(items[0])]
    return (inner for inner in items[:_MOST_UNWRAPPED] if type(inner) is dict)


def _fits_as_written(item: ExpectedCall, step: Step) -> bool | None:
    unknown = False
    try:
        for found in _differences(item, step):
            if missing_fact(found, step) is not None:
                unknown = True
            elif not _fits_otherwise_written(item, found):
                return False
    except TooDeepError:
        return None
    except SeatrialError as error:
        if error.code != "text_too_long":
            raise
        return None
    return None if unknown else True


def _fits_otherwise_written(item: ExpectedCall, found: Difference) -> bool:
    """Whether a value fits once it is read as the JSON in its text, or, where it is no text, taken as JSON text."""
    if found.expected is UNSET or found.actual is UNSET or not found.pointer.startswith("/arguments/"):
        return False
    expected = compile_value(found.expected, ())
    return any(
        next(differences(expected, other, item.args_match), None) is None for other in _otherwise_written(found.actual)
    )


def _otherwise_written(value: Any) -> Iterator[Any]:
    try:
        if type(value) is str:
            yield msgspec.json.decode(value)
        else:
            yield msgspec.json.encode(value).decode()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return


def missing_fact(found: Difference, step: Step) -> str | None:
    """What the record does not say of a step, where a difference is due to nothing else."""
    if found.pointer == "/arguments" and step.arguments_text is not None:
        return "arguments as JSON"
    return unrecorded(found)


def unrecorded(found: Difference) -> str | None:
    """The same for what a record may leave out: a step's status, its result, or who made the call."""
    if found.pointer == "/status" and found.actual == "unknown":
        return "status"
    return found.pointer[1:] if found.pointer in ("/result", "/actor") and found.actual is UNSET else None


def explain(item: ExpectedCall, step: Step) -> list[Difference]:
    """Every place where the step is not what the item describes."""
    found: list[Difference] = []
    if not item.tool.fits(step.name):
        found.append(Difference("/name", str(item.tool), step.name))
    try:
        found.extend(_differences(item, step))
    except TooDeepError:
        found.append(Difference("/arguments", UNSET, "nested too deeply to be compared"))
    return found


def _differences(item: ExpectedCall, step: Step) -> Iterator[Difference]:
    if item.status is not None and step.status != item.status:
        yield Difference("/status", item.status, step.status)
    if item.actor is not None and step.actor != item.actor:
        yield Difference("/actor", item.actor, UNSET if step.actor is None else step.actor)
    if item.args is not UNSET:
        if step.arguments_text is not None:
            yield Difference("/arguments", as_given(item.args), step.arguments_text)
        elif item.paths is not None:
            yield from differences_at(item.paths, item.args, step.arguments, ("arguments",))
        else:
            yield from differences(item.args, step.arguments, item.args_match, ("arguments",))
    if item.result is not UNSET:
        if step.result is UNSET:
            yield Difference("/result", as_given(item.result))
        else:
            yield from differences(item.result, step.result, "exact", ("result",))
