"""Predicates: what holds in a state.

| predicate | holds when |
| --- | --- |
| `{entity: type, id: expr, where: {..}}` | the entity is there, and fits |
| `{entity: type, where: {..}}` | some entity fits |
| `{entity: type, where: {..}, count: matcher}` | that many fit |
| `{flag: name}` | the flag is set |
| `{all: [..]}`, `{any: [..]}`, `{not: p}` | all, some, or it not |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from seatrial.ledger.conditions import compile_fit, compile_where
from seatrial.ledger.expressions import NoValueError, RowScope, compile_tree
from seatrial.ledger.ledger import StateView
from seatrial.trajectory.config import Path, check_keys, nearest, refuse, short, text

Predicate: TypeAlias = Callable[[RowScope], bool]

_KINDS = ("entity", "flag", "all", "any", "not")


class Looking(msgspec.Struct, eq=False):
    """Looking at a state outside of any call: there are no arguments, and nothing can be made."""

    view: StateView
    id_fields: Mapping[str, str] = {}
    arguments: dict[str, Any] = {}
    response: Any = None
    now: str = ""
    number: int = 0
    actor: str | None = None

    def new_id(self, prefix: str, k: int) -> str:
        """Nothing is made here."""
        raise NoValueError("'new_id' makes an id in a call; there is no call here")

    def id_field(self, entity_type: str) -> str:
        """Under which name the ids of such entities go."""
        return self.id_fields.get(entity_type, "id")


def holds(predicate: Predicate, view: StateView, id_fields: Mapping[str, str] | None = None) -> bool:
    """Whether it holds in a state, outside of any call."""
    return predicate(RowScope(Looking(view, id_fields or {})))


_OF_CALLS = {"param": str, "response": str, "new_id": str, "now": bool, "call": bool, "actor": bool}
"""Expressions that mean nothing outside of a call, and what they take: a field of an entity may be called the same."""


def refuse_calls(given: Any, at: Path = ()) -> None:
    """Refuse an expression that only has a value in a call."""
    if isinstance(given, dict):
        for name in _OF_CALLS.keys() & given.keys():
            if len(given) == 1 and isinstance(given[name], _OF_CALLS[name]):
                refuse(f"'{name}' has a value in a call, and there is none here", at)
        for name, value in given.items():
            refuse_calls(value, (*at, name))
    elif isinstance(given, list):
        for index, value in enumerate(given):
            refuse_calls(value, (*at, index))


def compile_predicate(given: Any, at: Path = (), types: Iterable[str] | None = None) -> Predicate:
    """The predicate that a world file or a grader gives; `types` are the entity types that there are, if known."""
    if not isinstance(given, dict):
        refuse(f"a predicate is an object, got {short(given)}", at)
    kinds = [name for name in _KINDS if name in given]
    if len(kinds) != 1:
        wrong = next((name for name in given if name not in ("id", "where", "count")), "")
        if not kinds:
            hint = nearest(wrong, _KINDS) if wrong else None
            refuse(f"a predicate has one of {', '.join(_KINDS)}", at, hint)
        refuse(f"a predicate has one of {' and '.join(kinds)}; join several with 'all' or 'any'", at)
    [kind] = kinds
    if kind == "entity":
        return _entity(given, at, types)
    check_keys(given, (kind,), "a predicate", at)
    value, inside = given[kind], (*at, kind)
    if kind == "flag":
        flag = text(value, "flag", inside)
        return lambda scope: flag in scope.call.view.flags
    if kind == "not":
        wanted = compile_predicate(value, inside, types)
        return lambda scope: not wanted(scope)
    if not isinstance(value, list) or not value:
        refuse(f"'{kind}' takes a list of predicates, got {short(value)}", inside)
    parts = [compile_predicate(part, (*inside, index), types) for index, part in enumerate(value)]
    joined = all if kind == "all" else any
    return lambda scope: joined(part(scope) for part in parts)


def _entity(given: dict[str, Any], at: Path, types: Iterable[str] | None) -> Predicate:
    check_keys(given, ("entity", "id", "where", "count"), "a predicate on an entity", at)
    entity_type = text(given["entity"], "entity", (*at, "entity"))
    if types is not None and entity_type not in types:
        refuse(f"there is no entity type {entity_type!r}", (*at, "entity"), nearest(entity_type, types))
    where = compile_where(given.get("where", {}), (*at, "where"))
    if "id" in given:
        if "count" in given:
            refuse("a predicate with 'id' looks at one entity, and has no 'count'", at)
        row_id = compile_tree(given["id"], (*at, "id"))

        def fits_one(scope: RowScope) -> bool:
            found = row_id(scope)
            row = scope.call.view.row(entity_type, found) if isinstance(found, str) else None
            return row is not None and where(scope.at(entity_type, row))

        return fits_one
    if "count" not in given:
        return lambda scope: any(where(scope.at(entity_type, row)) for row in scope.call.view.rows(entity_type))
    wanted = compile_fit(given["count"], (*at, "count"))

    def counted(scope: RowScope) -> bool:
        number = sum(where(scope.at(entity_type, row)) for row in scope.call.view.rows(entity_type))
        return wanted(number, scope)

    return counted
