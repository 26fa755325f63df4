"""Tools that are declared, and need no code: `ledger_read`, `effects`, `stub`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from seatrial.ledger.conditions import compile_fit, compile_where
from seatrial.ledger.expressions import Expression, NoValueError, RowScope, compile_tree, field_of
from seatrial.ledger.rows import Row
from seatrial.ledger.transaction import LedgerTransaction, Refusal
from seatrial.trajectory.config import Path, as_written, is_number, refuse
from seatrial.trajectory.values import same
from seatrial.world.definition import Effect, LedgerRead, StubAnswer, ToolSpec
from seatrial.world.tool import KnownNames, OngoingCall, ToolHandler, compile_when, text_id

MAX_LISTED = 10_000
"""Entities in one answer."""


def ledger_read(given: LedgerRead, around: KnownNames, at: Path) -> ToolHandler:
    """A tool that reads entities."""
    around.check_type(given.entity_type, (*at, "entity_type"))
    if given.op == "get":
        return _get(given, at)
    return _list(given, at)


def _get(given: LedgerRead, at: Path) -> ToolHandler:
    if given.id is UNSET:
        refuse("`op: get` needs the 'id' of the entity", at)
    row_id = compile_tree(given.id, (*at, "id"))
    where = compile_where(given.where, (*at, "where"))
    missing = None if given.not_found is UNSET else compile_tree(given.not_found, (*at, "not_found"))

    async def handle(call: OngoingCall) -> Any:
        scope = call.scope()
        found = text_id(row_id(scope), f"the id of the {given.entity_type}")
        row = call.transaction.row(given.entity_type, found)
        if row is None or not where(scope.at(given.entity_type, row)):
            if missing is not None:
                return missing(scope)
            return {"error": f"{given.entity_type} {found} not found"}
        return _shown(given, row, scope)

    return handle


def _list(given: LedgerRead, at: Path) -> ToolHandler:
    if given.id is not UNSET:
        refuse("`op: list` has no 'id'; choose entities with 'where'", (*at, "id"))
    where = compile_where(given.where, (*at, "where"))
    limit = compile_tree(given.limit, (*at, "limit"))

    async def handle(call: OngoingCall) -> Any:
        scope = call.scope()
        inside = (scope.at(given.entity_type, row) for row in call.transaction.rows(given.entity_type))
        chosen = [each for each in inside if where(each)]
        for order in reversed(given.order_by):
            chosen.sort(key=_sort_key(order.field), reverse=order.direction == "desc")
        most = limit(scope)
        most = most if type(most) is int and 0 <= most < MAX_LISTED else MAX_LISTED
        rows = [_shown(given, each.row, scope) for each in chosen[:most] if each.row is not None]
        return rows if given.wrap is None else {given.wrap: rows}

    return handle


def _shown(given: LedgerRead, row: Row, scope: RowScope) -> dict[str, Any]:
    inside = scope.at(given.entity_type, row)
    if given.project is None:
        return {scope.call.id_field(given.entity_type): row.id, **row.fields}
    found = {out: field_of(inside, field) for out, field in given.project.items()}
    return {out: value for out, value in found.items() if value is not UNSET}


def _sort_key(field: str) -> Callable[[RowScope], Any]:
    def place(scope: RowScope) -> Any:
        value = field_of(scope, field)
        if is_number(value):
            return (0, as_written(value), "")
        if isinstance(value, str):
            return (1, 0, value)
        # Values that have no order keep the one in which they came to be.
        return (2 if isinstance(value, bool) else 3, 0, str(value) if isinstance(value, bool) else "")

    return place


def effects(spec: ToolSpec, around: KnownNames, at: Path) -> ToolHandler:
    """A tool that changes the state, and answers what it is told to."""
    steps = [_effect(effect, around, (*at, "effects", index)) for index, effect in enumerate(spec.effects or ())]
    answer = None if spec.answer is UNSET else compile_tree(spec.answer, (*at, "answer"))

    async def handle(call: OngoingCall) -> Any:
        scope = call.scope()
        for step in steps:
            step(call.transaction, scope)
        if answer is not None:
            return answer(scope)
        added = [change.id for change in call.transaction.changes() if change.op == "add"]
        return {"ok": True, **({"id": added[0]} if len(added) == 1 else {"ids": added} if added else {})}

    return handle


_Step = Callable[[LedgerTransaction, RowScope], None]


def _effect(given: Effect, around: KnownNames, at: Path) -> _Step:
    when = compile_when(given.when, around, (*at, "when"))
    step = (
        _flag_effect(given, around, at) if given.op in ("set_flag", "clear_flag") else _entity_effect(given, around, at)
    )
    if when is None:
        return step

    def conditional(transaction: LedgerTransaction, scope: RowScope) -> None:
        if when(scope):
            step(transaction, scope)

    return conditional


def _flag_effect(given: Effect, around: KnownNames, at: Path) -> _Step:
    flag = given.flag
    if not flag:
        refuse(f"'{given.op}' needs a 'flag'", at)
    if not around.takes_flag(flag):
        refuse(f"there is no flag {flag!r}", (*at, "flag"))
    if given.op == "set_flag":
        return lambda transaction, scope: transaction.set_flag(flag)
    return lambda transaction, scope: transaction.clear_flag(flag)


def _entity_effect(given: Effect, around: KnownNames, at: Path) -> _Step:
    entity_type = given.entity_type
    if entity_type is None or given.id is UNSET:
        refuse(f"'{given.op}' needs 'entity_type' and 'id'", at)
    around.check_type(entity_type, (*at, "entity_type"))
    row_id = compile_tree(given.id, (*at, "id"))
    what = f"the id of the {entity_type}"

    def at_row(transaction: LedgerTransaction, scope: RowScope) -> tuple[str, RowScope]:
        found = text_id(row_id(scope), what)
        return found, scope.at(entity_type, transaction.existing(entity_type, found))

    if given.op == "remove":
        return lambda transaction, scope: transaction.remove(entity_type, text_id(row_id(scope), what))
    if given.op in ("add", "update"):
        fields = {name: compile_tree(value, (*at, "fields", name)) for name, value in given.fields.items()}

        def put(transaction: LedgerTransaction, scope: RowScope) -> None:
            found = text_id(row_id(scope), what)
            known = transaction.row(entity_type, found)
            inside = scope if known is None else scope.at(entity_type, known)
            values = {name: value for name, part in fields.items() if (value := part(inside)) is not UNSET}
            if given.op == "add":
                transaction.add(entity_type, found, values, upsert=given.upsert)
            else:
                transaction.update(entity_type, found, values)

        return put
    if given.field is None:
        refuse(f"'{given.op}' needs a 'field'", at)
    change = _field_change(given, at)

    def alter(transaction: LedgerTransaction, scope: RowScope) -> None:
        found, inside = at_row(transaction, scope)
        field = given.field or ""
        transaction.update(entity_type, found, {field: change(field_of(inside, field), inside)})

    return alter


def _field_change(given: Effect, at: Path) -> Callable[[Any, RowScope], Any]:
    """The new value of a field that is a list or an object."""
    value = compile_tree(given.value, (*at, "value"))
    if given.op != "map_set":
        if given.value is UNSET:
            refuse(f"'{given.op}' needs a 'value'", at)
        if given.op == "list_append":
            return lambda held, scope: [*_kept(held, list, scope), _needed(value, scope)]
        return lambda held, scope: _without(_kept(held, list, scope), _needed(value, scope))
    if given.member is UNSET or (given.value is UNSET) == (given.delta is UNSET):
        refuse("'map_set' needs a 'member', and one of 'value' and 'delta'", at)
    member = compile_tree(given.member, (*at, "member"))
    delta = compile_tree(given.delta, (*at, "delta"))

    def set_member(held: Any, scope: RowScope) -> dict[str, Any]:
        kept = dict(_kept(held, dict, scope))
        name = text_id(member(scope), "the member")
        if given.delta is UNSET:
            kept[name] = _needed(value, scope)
            return kept
        before, by = kept.get(name, 0), delta(scope)
        if not is_number(before) or not is_number(by):
            raise NoValueError("'delta' needs numbers")
        total = as_written(before) + as_written(by)
        kept[name] = int(total) if total == total.to_integral_value() else float(total)
        return kept

    return set_member


def _kept(held: Any, kind: type, scope: RowScope) -> Any:
    if held is UNSET or held is None:
        return kind()
    if not isinstance(held, kind):
        raise NoValueError(f"the field of {scope.entity_type} is not a {kind.__name__}")
    return held


def _needed(value: Expression, scope: RowScope) -> Any:
    found = value(scope)
    if found is UNSET:
        raise NoValueError("the value of an effect is nothing")
    return found


def _without(items: list[Any], wanted: Any) -> list[Any]:
    for index, item in enumerate(items):
        if item == wanted and (isinstance(item, dict | list) or same(item, wanted)):
            return items[:index] + items[index + 1 :]
    return items


def stub(given: Any, at: Path) -> ToolHandler:
    """A tool that always answers the same, or by its arguments."""
    if not (isinstance(given, list) and given and all(isinstance(item, dict) and "response" in item for item in given)):
        return _constant(given)
    answers = []
    for index, item in enumerate(given):
        here = (*at, "stub", index)
        if unknown := item.keys() - {"args", "response"}:
            refuse(f"an answer of a stub has 'args' and 'response', not {sorted(unknown)[0]!r}", here)
        answer = StubAnswer(item["response"], item.get("args"))
        if answer.args is None and index < len(given) - 1:
            refuse("an answer without 'args' is for every call: it has to be the last", here)
        fits = (
            None
            if answer.args is None
            else {name: compile_fit(wanted, (*here, "args", name)) for name, wanted in answer.args.items()}
        )
        answers.append((fits, answer.response))

    async def handle(call: OngoingCall) -> Any:
        scope = call.scope()
        for fits, response in answers:
            if fits is None or all(fit(call.arguments.get(name, UNSET), scope) for name, fit in fits.items()):
                return response
        raise Refusal(404, "there is no answer for these arguments")

    return handle


def _constant(answer: Any) -> ToolHandler:
    async def handle(call: OngoingCall) -> Any:
        return answer

    return handle
