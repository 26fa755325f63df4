"""What expressions, conditions and predicates say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from ledger.states import shop
from seatrial.errors import SeatrialError
from seatrial.ledger.conditions import compile_where
from seatrial.ledger.expressions import NoValueError, RowScope, compile_tree
from seatrial.ledger.ledger import Ledger, StateView
from seatrial.ledger.predicates import compile_predicate, holds


class OneCall(msgspec.Struct, eq=False):
    view: StateView
    arguments: dict[str, Any] = {}
    response: Any = None
    now: str = "2026-01-01T00:00:03Z"
    number: int = 3
    actor: str | None = "supervisor/refunds"

    def new_id(self, prefix: str, k: int) -> str:
        return f"{prefix}-{k}"

    def id_field(self, entity_type: str) -> str:
        return {"order": "order_id"}.get(entity_type, "id")


def scope(at: str | None = None, **arguments: Any) -> RowScope:
    call = OneCall(shop(), arguments, {"data": {"id": 7}})
    if at is None:
        return RowScope(call)
    entity_type, row_id = at.split("/")
    row = call.view.row(entity_type, row_id)
    assert row is not None
    return RowScope(call).at(entity_type, row)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (3, 3),
        ({"param": "order.id"}, "o-1"),
        ({"param": "$args.order.id"}, "o-1"),
        ({"param": "nothing"}, UNSET),
        ({"const": {"param": "x"}}, {"param": "x"}),
        ({"entity": "order", "id": {"param": "order.id"}, "field": "total"}, 30),
        ({"entity": "order", "id": "o-9", "field": "total"}, UNSET),
        ({"entity": "order", "id": "o-1", "field": "order_id"}, "o-1"),
        ({"row": "amount"}, 12.5),
        ({"row": "id"}, "r-0"),
        ({"response": "$.data.id"}, 7),
        ({"response": "$"}, {"data": {"id": 7}}),
        ({"new_id": "r"}, "r-1"),
        ({"new_id": "r", "k": 2}, "r-2"),
        ({"now": True}, "2026-01-01T00:00:03Z"),
        ({"call": True}, 3),
        ({"actor": True}, "supervisor/refunds"),
        ({"sum": {"entity": "order", "field": "total"}}, 42.5),
        ({"max": {"entity": "order", "field": "total"}}, 30),
        ({"min": {"entity": "order", "where": {"status": "lost"}, "field": "total"}}, UNSET),
        ({"count": {"entity": "order", "where": {"total": {"$gt": {"param": "least"}}}}}, 1),
        ({"add": [0.1, 0.2]}, 0.3),
        ({"sub": [30, {"param": "least"}, 5]}, 5),
        ({"mul": [1.1, 1.1]}, 1.21),
        ({"format": "{param:order.id} at {now}: {param:least} {param:nothing}."}, "o-1 at 2026-01-01T00:00:03Z: 20 ."),
        ({"a": {"param": "nothing"}, "b": [{"param": "nothing"}, {"param": "least"}]}, {"b": [None, 20]}),
    ],
)
def test_an_expression_has_its_value(expression: Any, value: Any) -> None:
    found = compile_tree(expression)(scope("refund/r-0", order={"id": "o-1"}, least=20))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"param": "a", "const": 1}, "'param' and 'const' both begin an expression: keep one, or put the object"),
        ({"param": "a", "default": 1}, "an expression with 'param' has no key 'default'"),
        ({"param": 3}, "param must be text that is not empty, got 3"),
        ({"entity": "order", "id": "o-1"}, "the field of an entity needs 'entity', 'id' and 'field'"),
        ({"now": "yes"}, "'now' takes true, got 'yes'"),
        ({"add": [1]}, "'add' takes a list of two or more values, got list"),
        ({"sum": {"field": "total"}}, "'sum' takes an object with 'entity', got dict"),
        ({"format": "{parm:x}"}, "'format' knows no {parm}"),
    ],
)
def test_a_slip_in_an_expression_is_refused(expression: Any, message: str) -> None:
    with pytest.raises(SeatrialError) as error:
        compile_tree(expression)
    assert error.value.message.startswith(message)


def test_arithmetic_on_what_is_no_number_is_a_fault_of_the_world() -> None:
    with pytest.raises(NoValueError, match="'add' needs numbers, got nothing"):
        compile_tree({"add": [1, {"param": "x"}]})(scope())


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        ({}, True),
        ({"status": "paid"}, True),
        ({"status": "paid", "total": 29}, False),
        ({"total": {"$gte": {"param": "amount"}}}, True),
        ({"total": {"$gt": {"param": "amount"}}}, False),
        ({"total": {"$gte": {"param": "missing"}}}, False),
        ({"total": {"$gte": {"param": "weird"}}}, False),
        ({"status": {"param": "weird"}}, False),
        ({"customer": {"$in": ["c-9", {"param": "amount"}]}}, True),
        ({"customer": {"$not": {"param": "amount"}}}, True),
        ({"absent": {"$not": 1}}, False),
        ({"order_id": "o-1"}, True),
        ([{"field": "status", "cmp": "eq", "value": {"const": "paid"}}], True),
        ([{"field": "status", "cmp": "ne", "value": "paid"}], False),
        ([{"field": "absent", "cmp": "ne", "value": "paid"}], False),
        ([{"field": "customer", "cmp": "ilike", "value": "C-%"}], True),
        ([{"field": "customer", "cmp": "ilike", "value": "%_9"}], True),
        ([{"field": "customer", "cmp": "ilike", "value": "_9"}], False),
        ([{"field": "customer", "cmp": "icontains", "value": "-"}], True),
        ([{"field": "total", "cmp": "lt", "value": 31}], True),
        ([{"field": "total", "cmp": "in", "value": [1, 30]}], True),
        ([{"field": "absent", "cmp": "exists", "value": False}], True),
        ([{"field": "absent", "cmp": "empty"}], True),
        ([{"field": "status", "cmp": "empty"}], False),
    ],
)
def test_a_condition_fits_or_does_not(where: Any, fits: bool) -> None:
    found = compile_where(where)(scope("order/o-1", amount=30, weird={"$any": True}))
    assert found is fits


def test_what_an_agent_sends_is_a_value_even_where_it_looks_like_a_matcher() -> None:
    assert compile_where({"status": {"param": "status"}})(scope("order/o-1", status={"$any": True})) is False


def test_like_needs_no_backtracking() -> None:
    view = Ledger.of({"t": {"a": {"text": "a" * 20_000}}})
    row = view.row("t", "a")
    assert row is not None
    call = OneCall(view, {"like": "%a" * 200 + "b"})
    where = compile_where([{"field": "text", "cmp": "ilike", "value": {"param": "like"}}])
    assert where(RowScope(call).at("t", row)) is False


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ({"entity": "order", "id": "o-1"}, True),
        ({"entity": "order", "id": "o-3"}, False),
        ({"entity": "order", "id": "o-1", "where": {"status": "refunded"}}, False),
        ({"entity": "order", "where": {"status": "refunded"}}, True),
        ({"entity": "order", "count": 2}, True),
        ({"entity": "refund", "where": {"amount": {"$gt": 12}}, "count": {"$lte": 1}}, True),
        ({"flag": "escalated"}, False),
        ({"not": {"flag": "escalated"}}, True),
        ({"all": [{"entity": "order"}, {"flag": "escalated"}]}, False),
        ({"any": [{"entity": "order"}, {"flag": "escalated"}]}, True),
    ],
)
def test_a_predicate_holds_or_does_not(predicate: Any, expected: bool) -> None:
    assert holds(compile_predicate(predicate), shop()) is expected


@pytest.mark.parametrize(
    ("predicate", "message", "hint"),
    [
        ({"entitty": "order"}, "a predicate has one of entity, flag, all, any, not", "did you mean 'entity'?"),
        ({"entity": "order", "flag": "f"}, "a predicate has one of entity and flag; join several", None),
        ({"entity": "ordr"}, "there is no entity type 'ordr'", "did you mean 'order'?"),
        ({"entity": "order", "id": "o-1", "count": 1}, "a predicate with 'id' looks at one entity", None),
        ({"all": []}, "'all' takes a list of predicates, got list", None),
    ],
)
def test_a_slip_in_a_predicate_is_refused(predicate: Any, message: str, hint: str | None) -> None:
    with pytest.raises(SeatrialError) as error:
        compile_predicate(predicate, types=["order", "refund"])
    assert error.value.message.startswith(message)
    assert hint is None or error.value.hint == hint
