"""Expressions: a value of a world file that is worked out for each call.

| expression | its value |
| --- | --- |
| `{param: path}` | what the agent sent, at a dotted path |
| `{const: v}` | v, whatever it looks like |
| `{entity: type, id: expr, field: path}` | a field of an entity |
| `{row: path}` | a field of the entity that is being looked at; `id` is its id |
| `{response: path}` | what a live endpoint or a recording answered |
| `{new_id: prefix}` | an id that was not there before, the same throughout the call; `k: 2` for a second one |
| `{now: true}`, `{call: true}`, `{actor: true}` | the time of the world, the number of the call, who calls |
| `{sum: q}`, `{min: q}`, `{max: q}`, with `q` = `{entity, where, field}`; `{count: {entity, where}}` | over entities |
| `{add: [a, b]}`, `{sub: [a, b]}`, `{mul: [a, b]}` | exact decimal arithmetic: 0.1 + 0.2 is 0.3 |
| `{format: "refund of {param:amount}"}` | text with values in it |

Everything else is a constant. Objects and lists that are no expression may hold expressions. What has no value (an
argument that was not given) is left out of objects, and is null in lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import UNSET

from seatrial.ledger.ledger import StateView
from seatrial.ledger.rows import Row
from seatrial.trajectory.config import Path, as_written, check_keys, is_number, nearest, refuse, short, text
from seatrial.trajectory.values import value_at

if TYPE_CHECKING:
    from decimal import Decimal


class NoValueError(Exception):
    """An expression has no value where one is needed: the world file is wrong, not the agent."""


class CallScope(Protocol):
    """What expressions know of the call that they are worked out for."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What the agent sent."""

    @property
    def view(self) -> StateView:
        """The state, with what the call has written so far."""

    @property
    def response(self) -> Any:
        """What a live endpoint or a recording answered."""

    @property
    def now(self) -> str:
        """The time of the world."""

    @property
    def number(self) -> int:
        """From 1 in its run."""

    @property
    def actor(self) -> str | None:
        """The label of the sub-agent that calls."""

    def new_id(self, prefix: str, k: int) -> str:
        """An id that is the same throughout the call."""

    def id_field(self, entity_type: str) -> str:
        """Under which name the ids of such entities go."""


class RowScope(msgspec.Struct, frozen=True, eq=False):
    """Where an expression is worked out."""

    call: CallScope
    entity_type: str = ""
    row: Row | None = None
    """The entity that is being looked at."""

    def at(self, entity_type: str, row: Row) -> RowScope:
        """Looking at an entity."""
        return RowScope(self.call, entity_type, row)


Expression = Callable[[RowScope], Any]
"""Gives its value; UNSET when it has none."""


def compile_tree(given: Any, at: Path = ()) -> Expression:
    """The expression that a value of a world file is."""
    if isinstance(given, dict):
        return _compile_object(given, at)
    if isinstance(given, list):
        items = [compile_tree(item, (*at, index)) for index, item in enumerate(given)]
        return lambda scope: [None if (value := item(scope)) is UNSET else value for item in items]
    return lambda scope: given


def is_constant(given: Any) -> bool:
    """Whether a value has no expression anywhere."""
    if isinstance(given, dict):
        return not _FIRST & given.keys() and all(map(is_constant, given.values()))
    return not isinstance(given, list) or all(map(is_constant, given))


def field_of(scope: RowScope, path: str) -> Any:
    """A field of the entity that is being looked at, at a dotted path; UNSET when it is not there."""
    row = scope.row
    if row is None:
        raise NoValueError("there is no row here that `row` could mean")
    if path in row.fields:
        return row.fields[path]
    if path in ("id", scope.call.id_field(scope.entity_type)):
        return row.id
    return value_at(row.fields, tuple(path.split(".")))


def _compile_object(given: dict[str, Any], at: Path) -> Expression:
    names = _FIRST & given.keys()
    if not names:
        parts = {name: compile_tree(item, (*at, name)) for name, item in given.items()}
        return lambda scope: {name: value for name, part in parts.items() if (value := part(scope)) is not UNSET}
    [name, *others] = sorted(names, key=list(given).index)
    if others:
        refuse(f"{name!r} and {others[0]!r} both begin an expression: keep one, or put the object under 'const'", at)
    check_keys(given, (name, *_BESIDE.get(name, ())), f"an expression with {name!r}", at)
    return _COMPILERS[name](given, at)


def _dotted(given: Any, what: str, at: Path) -> str:
    path = text(given, what, at)
    return path.removeprefix("$args.").removeprefix("$.")


def _param(given: dict[str, Any], at: Path) -> Expression:
    path = tuple(_dotted(given["param"], "param", at).split("."))
    return lambda scope: value_at(scope.call.arguments, path)


def _const(given: dict[str, Any], at: Path) -> Expression:
    value = given["const"]
    return lambda scope: value


def _entity(given: dict[str, Any], at: Path) -> Expression:
    if "id" not in given or "field" not in given:
        refuse("the field of an entity needs 'entity', 'id' and 'field'", at)
    entity_type = text(given["entity"], "entity", (*at, "entity"))
    row_id = compile_tree(given["id"], (*at, "id"))
    path = text(given["field"], "field", (*at, "field"))

    def value(scope: RowScope) -> Any:
        found = row_id(scope)
        row = scope.call.view.row(entity_type, found) if isinstance(found, str) else None
        return UNSET if row is None else field_of(scope.at(entity_type, row), path)

    return value


def _row(given: dict[str, Any], at: Path) -> Expression:
    path = text(given["row"], "row", (*at, "row"))
    return lambda scope: field_of(scope, path)


def _response(given: dict[str, Any], at: Path) -> Expression:
    path = _dotted(given["response"], "response", at)
    parts = () if path == "$" else tuple(path.split("."))
    return lambda scope: value_at(scope.call.response, parts)


def _new_id(given: dict[str, Any], at: Path) -> Expression:
    prefix = text(given["new_id"], "new_id", (*at, "new_id"))
    k = given.get("k", 1)
    if type(k) is not int or k < 1:
        refuse(f"k counts the ids of a call from 1, got {short(k)}", (*at, "k"))
    return lambda scope: scope.call.new_id(prefix, k)


def _fact(name: str) -> Callable[[dict[str, Any], Path], Expression]:
    def compile_fact(given: dict[str, Any], at: Path) -> Expression:
        if given[name] is not True:
            refuse(f"{name!r} takes true, got {short(given[name])}", at)
        attribute = {"call": "number"}.get(name, name)
        return lambda scope: getattr(scope.call, attribute)

    return compile_fact


def _aggregate(name: str) -> Callable[[dict[str, Any], Path], Expression]:
    def compile_aggregate(given: dict[str, Any], at: Path) -> Expression:
        from seatrial.ledger.conditions import compile_where

        query, inside = given[name], (*at, name)
        if not isinstance(query, dict) or "entity" not in query:
            refuse(f"{name!r} takes an object with 'entity', got {short(query)}", at)
        known = ("entity", "where") if name == "count" else ("entity", "where", "field")
        check_keys(query, known, f"{name!r}", inside)
        entity_type = text(query["entity"], "entity", inside)
        where = compile_where(query.get("where", {}), (*inside, "where"))
        path = "id" if name == "count" else text(query.get("field"), "field", (*inside, "field"))

        def value(scope: RowScope) -> Any:
            rows = (scope.at(entity_type, row) for row in scope.call.view.rows(entity_type))
            chosen = [each for each in rows if where(each)]
            if name == "count":
                return len(chosen)
            values = [found for each in chosen if is_number(found := field_of(each, path))]
            if name == "sum":
                return _plain(sum(map(as_written, values), as_written(0)))
            return (min if name == "min" else max)(values) if values else UNSET

        return value

    return compile_aggregate


def _arithmetic(name: str) -> Callable[[dict[str, Any], Path], Expression]:
    def compile_arithmetic(given: dict[str, Any], at: Path) -> Expression:
        operands = given[name]
        if not isinstance(operands, list) or len(operands) < 2:
            refuse(f"{name!r} takes a list of two or more values, got {short(operands)}", at)
        parts = [compile_tree(operand, (*at, name, index)) for index, operand in enumerate(operands)]

        def value(scope: RowScope) -> Any:
            numbers = [_number(part(scope), name) for part in parts]
            found = numbers[0]
            for number in numbers[1:]:
                found = found + number if name == "add" else found - number if name == "sub" else found * number
            return _plain(found)

        return value

    return compile_arithmetic


def _number(value: Any, name: str) -> Decimal:
    if not is_number(value):
        raise NoValueError(f"{name!r} needs numbers, got {'nothing' if value is UNSET else short(value)}")
    return as_written(value)


def _plain(number: Decimal) -> int | float:
    if number == number.to_integral_value() and abs(number) < 2**63:
        return int(number)
    if not isfinite(found := float(number)):
        raise NoValueError("the result is too large for a number of JSON")
    return found


_PLACE = re.compile(r"\{([a-z_]+)(?::([^{}]*))?\}")
_IN_TEXT = ("param", "row", "response", "new_id", "now", "call", "actor")


def _format(given: dict[str, Any], at: Path) -> Expression:
    template = text(given["format"], "format", (*at, "format"))
    parts: list[str | Expression] = []
    end = 0
    for found in _PLACE.finditer(template):
        name, path = found.group(1), found.group(2)
        if name not in _IN_TEXT:
            refuse(f"'format' knows no {{{name}}}", (*at, "format"), nearest(name, _IN_TEXT))
        parts += [template[end : found.start()], _COMPILERS[name]({name: True if path is None else path}, at)]
        end = found.end()
    parts.append(template[end:])

    def value(scope: RowScope) -> str:
        return "".join(part if isinstance(part, str) else as_text(part(scope)) for part in parts)

    return value


def as_text(value: Any) -> str:
    """A value within text: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is UNSET else msgspec.json.encode(value).decode()


_COMPILERS: dict[str, Callable[[dict[str, Any], Path], Expression]] = {
    "param": _param,
    "const": _const,
    "entity": _entity,
    "row": _row,
    "response": _response,
    "new_id": _new_id,
    "format": _format,
    **{name: _fact(name) for name in ("now", "call", "actor")},
    **{name: _aggregate(name) for name in ("sum", "min", "max", "count")},
    **{name: _arithmetic(name) for name in ("add", "sub", "mul")},
}
_FIRST = frozenset(_COMPILERS)
_BESIDE: Mapping[str, Iterable[str]] = {"entity": ("id", "field"), "new_id": ("k",)}
