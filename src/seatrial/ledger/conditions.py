"""Conditions on the fields of one entity.

A mapping of dotted paths to values or matchers (`{status: paid, total: {$gte: {param: amount}}}`), or the platform's
list (`[{field: status, cmp: eq, value: {const: paid}}]`). All have to hold. A field that is not there fits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import UNSET

from seatrial.errors import SeatrialError
from seatrial.ledger.expressions import Expression, RowScope, compile_tree, field_of, is_constant
from seatrial.ledger.transaction import Refusal
from seatrial.trajectory.config import Path, check_keys, choice, refuse, short, text
from seatrial.trajectory.matchers import compile_value
from seatrial.trajectory.values import TooDeepError, differences

MAX_COMPARED = 1_000_000
"""Characters of a text times those of a pattern: each may have to be compared with each."""
Condition = Callable[[RowScope], bool]
"""Whether the entity that is being looked at fits."""
Fit = Callable[[Any, RowScope], bool]
"""Whether a value fits."""


def compile_where(given: Any, at: Path = ()) -> Condition:
    """The conditions of one entity."""
    if isinstance(given, list):
        return _all([_compared(item, (*at, index)) for index, item in enumerate(given)])
    if not isinstance(given, dict):
        refuse(f"'where' maps fields to values or matchers, got {short(given)}", at)
    return _all([_on_field(name, compile_fit(wanted, (*at, name))) for name, wanted in given.items()])


def compile_fit(given: Any, at: Path = ()) -> Fit:
    """What a value has to be: a value, a matcher, or either with expressions in it."""
    operators = [name for name in given if name.startswith("$")] if _is_object(given) else []
    for name in operators:
        _check_operator(name, at)
    if (operators and all(name in _LITERAL or is_constant(given[name]) for name in operators)) or is_constant(given):
        wanted = compile_value(given, at)
        return lambda value, scope: _fits(wanted, value)
    tree = _operands(given, operators, at) if operators else compile_tree(given, at)

    def fits(value: Any, scope: RowScope) -> bool:
        resolved = tree(scope)
        if resolved is UNSET or (operators and len(resolved) < len(given)):
            return False  # compared with nothing
        if not operators:
            # What an agent sent is a value, even where it looks like a matcher.
            return _fits(resolved, value)
        try:
            return _fits(compile_value(resolved, at), value)
        except SeatrialError:
            return False  # an operand of the agent that nothing compares with

    return fits


def _operands(given: dict[str, Any], operators: list[str], at: Path) -> Expression:
    parts = {
        name: (lambda scope, literal=item: literal)
        if name in _LITERAL or name not in operators
        # The operand of `$not` and its like is a value or a matcher itself.
        else compile_tree(item, (*at, name))
        for name, item in given.items()
    }
    return lambda scope: {name: value for name, part in parts.items() if (value := part(scope)) is not UNSET}


def _check_operator(name: str, at: Path) -> None:
    try:
        compile_value({name: None}, at)
    except SeatrialError as error:
        if error.message.startswith("there is no matcher"):
            raise


def _fits(wanted: Any, value: Any) -> bool:
    if value is UNSET:
        return False
    try:
        return next(differences(wanted, value), None) is None
    except TooDeepError:
        return False


def _on_field(path: str, fits: Fit) -> Condition:
    return lambda scope: fits(field_of(scope, path), scope)


def _all(conditions: Iterable[Condition]) -> Condition:
    each = tuple(conditions)
    return lambda scope: all(condition(scope) for condition in each)


def _is_object(given: Any) -> bool:
    return isinstance(given, dict) and all(isinstance(name, str) for name in given)


_BOUND = {"gt": "$gt", "gte": "$gte", "lt": "$lt", "lte": "$lte"}


def _compared(given: Any, at: Path) -> Condition:
    """One of the platform's comparisons (dispatch.md 8)."""
    if not isinstance(given, dict):
        refuse(f"a comparison has 'field', 'cmp' and 'value', got {short(given)}", at)
    check_keys(given, ("field", "cmp", "value"), "a comparison", at)
    path = text(given.get("field"), "field", (*at, "field"))
    cmp = choice(given.get("cmp", "eq"), _CMP, "cmp", (*at, "cmp"))
    if cmp not in ("exists", "empty") and "value" not in given:
        refuse(f"'{cmp}' compares with a 'value'", at)
    value, inside = given.get("value", True), (*at, "value")
    if cmp in _BOUND:
        return _on_field(path, compile_fit({_BOUND[cmp]: value}, inside))
    if cmp == "in":
        return _on_field(path, compile_fit({"$in": value}, inside))
    if cmp in ("exists", "empty"):
        holds, wanted = (_is_there if cmp == "exists" else _is_empty), compile_tree(value, inside)
        return lambda scope: holds(field_of(scope, path)) is bool(wanted(scope))
    if cmp in ("ilike", "icontains"):
        return _like(path, compile_tree(value, inside), whole=cmp == "ilike")
    fits = compile_fit(value, inside)
    if cmp == "ne":
        return lambda scope: (found := field_of(scope, path)) is not UNSET and not fits(found, scope)
    return _on_field(path, fits)


def _like(path: str, wanted: Expression, *, whole: bool) -> Condition:
    """As SQL has it: `%` is any text, `_` any character, and case does not matter."""

    def holds(scope: RowScope) -> bool:
        found, pattern = field_of(scope, path), wanted(scope)
        if not isinstance(found, str) or not isinstance(pattern, str):
            return False
        if not whole:
            return pattern.casefold() in found.casefold()
        return _like_text(found.casefold(), pattern.casefold())

    return holds


def _like_text(found: str, pattern: str) -> bool:
    if "_" in pattern and len(found) * len(pattern) > MAX_COMPARED:
        raise Refusal(413, "the text is too long to be compared with this pattern")
    # Part by part between the wildcards, each at its first place: no backtracking, whatever an agent sends.
    first, *parts = pattern.split("%")
    if not parts:
        return len(found) == len(first) and _starts(found, first, 0)
    if not _starts(found, first, 0):
        return False
    begin, *between, last = len(first), *parts[:-1], parts[-1]
    for part in between:
        while begin + len(part) <= len(found) and not _starts(found, part, begin):
            begin += 1
        if begin + len(part) > len(found):
            return False
        begin += len(part)
    return len(found) - len(last) >= begin and _starts(found, last, len(found) - len(last))


def _starts(found: str, part: str, begin: int) -> bool:
    if "_" not in part:
        return found.startswith(part, begin)
    window = found[begin : begin + len(part)]
    return len(window) == len(part) and all(b in ("_", a) for a, b in zip(window, part, strict=True))


def _is_there(value: Any) -> bool:
    return value is not UNSET and value is not None


def _is_empty(value: Any) -> bool:
    return value is UNSET or value is None or value in ("", [], {})


_CMP = (*_BOUND, "eq", "ne", "ilike", "icontains", "in", "exists", "empty")
_LITERAL = frozenset({"$schema", "$regex", "$glob"})
"""Matchers whose operand is never worked out."""
