"""One run's world: what calls answer, what they do, and what is recorded of them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from world.worlds import REFUND_DESK, Caller, in_loop, problems_of, world_of

from seatrial.events.types import Event
from seatrial.ledger.transaction import Refusal
from seatrial.world.session import WorldSession
from seatrial.world.user_handler import WorldContext


@in_loop
async def test_a_refund_moves_the_money_once() -> None:
    call = Caller(REFUND_DESK)
    assert await call("get_order", order_id="o-1") == {"id": "o-1", "customer": "c-9", "total": 30, "status": "paid"}
    assert await call("issue_refund", order_id="o-1", amount=30) == {"refund_id": "r-1"}
    again = await call("issue_refund", order_id="o-1", amount=30)
    assert again == {"error": {"code": 409, "message": "not refundable"}}
    assert await call("list_refunds", order_id="o-1") == {"refunds": [{"id": "r-1", "order_id": "o-1", "amount": 30}]}
    record = call.session.close()
    assert record.last.state["refund"] == {"r-1": {"order_id": "o-1", "amount": 30}}
    assert (record.last.root, record.made) == (record.root, frozenset({"r-1"}))
    assert [(each.tool, each.status, len(each.changes)) for each in record.calls] == [
        ("get_order", "ok", 0),
        ("issue_refund", "ok", 2),
        ("issue_refund", "refused", 0),
        ("list_refunds", "ok", 0),
    ]


@in_loop
async def test_every_call_is_in_the_events_before_it_is_answered_with_what_it_did() -> None:
    call = Caller(REFUND_DESK)
    before = call.session.close().root
    call = Caller(REFUND_DESK)
    await call("issue_refund", order_id="o-1", amount=30, actor="desk/refunds")
    called, answered = call.events
    assert (called.name, answered.name) == ("tool.called", "tool.answered")
    assert called.value["at"] == "2026-03-02T09:00:01.000Z"
    assert called.value["arguments"] == {"order_id": "o-1", "amount": 30}
    value = answered.value
    assert (value["call"], value["n"], value["status"], value["actor"]) == (1, 1, "ok", "desk/refunds")
    assert value["ledger_root"] != before
    assert [change["op"] for change in value["diff"]["changes"]] == ["add", "update"]
    assert value["diff"]["changes"][1]["fields"] == {"status": {"before": "paid", "after": "refunded"}}


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("issue_refund", {"order_id": "o-9", "amount": 1}, {"error": {"code": 404, "message": "no such order"}}),
        ("issue_refund", {"order_id": "o-1", "amount": 31}, {"error": {"code": 409, "message": "not refundable"}}),
        ("get_order", {"order_id": "o-9"}, {"error": "order o-9 not found"}),
        ("get_ordr", {}, (404, "tool_not_found")),
        ("escalate", {}, {"ok": True}),
    ],
)
@in_loop
async def test_the_world_says_no_as_a_real_one_would(tool: str, arguments: dict[str, Any], answer: Any) -> None:
    call = Caller(REFUND_DESK)
    assert await call(tool, **arguments) == answer
    assert call.session.fault is None


@in_loop
async def test_wrong_arguments_do_nothing_and_count_for_no_rule() -> None:
    call = Caller(REFUND_DESK)
    answer = await call("issue_refund", order_id="o-1", amount=-1)
    assert answer["error"]["code"] == 422
    assert answer["error"]["message"].startswith("/amount: ")
    await call("issue_refund", order_id="o-1", amount=1)
    invalid, valid = call.answered
    assert (invalid["status"], invalid["source"], "n" in invalid) == ("invalid", "error", False)
    assert (valid["status"], valid["n"], valid["call"]) == ("ok", 1, 2)


@in_loop
async def test_a_key_is_answered_once_and_another_body_is_a_conflict() -> None:
    call = Caller(REFUND_DESK)
    one, other = await asyncio.gather(
        call("issue_refund", key="k", order_id="o-1", amount=30),
        call("issue_refund", key="k", order_id="o-1", amount=30),
    )
    assert one == other == {"refund_id": "r-1"}
    assert await call("issue_refund", key="k", order_id="o-1", amount=29) == (409, "idempotency_conflict")
    assert len(call.answered) == 1


@in_loop
async def test_calls_of_a_run_are_answered_one_by_one_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    module = ModuleType("slow_tools")
    running: list[int] = []

    async def slow(number: int, world: WorldContext) -> int:
        running.append(number)
        await asyncio.sleep(0)
        assert running[-1] == number
        world.ledger.add("seen", f"s-{number}", {"at": world.call})
        return number

    module.slow = slow  # type: ignore[attr-defined]
    sys.modules["slow_tools"] = module
    world = world_of({"tools": [{"name": "slow", "input_schema": {"type": "object"}, "python": "slow_tools:slow"}]})
    call = Caller(world)
    assert await asyncio.gather(*(call("slow", number=number) for number in range(50))) == list(range(50))
    assert [each["call"] for each in call.answered] == list(range(1, 51))


def tool(function: Any, **more: Any) -> Caller:
    """A world with one tool that a function answers."""
    module = ModuleType("tools_of_a_test")
    module.answer = function  # type: ignore[attr-defined]
    sys.modules["tools_of_a_test"] = module
    spec = {"name": "ask", "input_schema": {"type": "object"}, "python": "tools_of_a_test:answer", **more}
    return Caller(world_of({"tools": [spec], "limits": {"handler_timeout_s": 0.2}}))


def raises(error: BaseException) -> Any:
    def answer(**arguments: Any) -> None:
        raise error

    return answer


async def hangs() -> None:
    await asyncio.sleep(3600)


@pytest.mark.parametrize(
    ("function", "more", "message"),
    [
        (raises(KeyError("x")), {}, "KeyError"),
        (raises(SystemExit(3)), {}, "SystemExit"),
        (raises(StopIteration()), {}, "StopIteration"),
        (hangs, {}, "it took longer than 0.2 s"),
        (lambda: object(), {}, "its answer is not JSON"),
        (lambda: "x" * 5_000_000, {}, "its answer has 5,000,002 bytes"),
        (lambda: 3, {"output_schema": {"type": "object"}}, "its answer breaks the `output_schema`"),
    ],
)
@in_loop
async def test_a_broken_handler_is_a_fault_of_the_world_and_the_agent_learns_nothing_of_it(
    function: Any, more: dict[str, Any], message: str
) -> None:
    call = tool(function, **more)
    assert await call("ask") == {"error": {"code": 500, "message": "internal error"}}
    assert call.session.fault is not None
    assert message in call.session.fault.message
    assert call.answered[0]["status"] == "faulted"


@in_loop
async def test_a_refusal_of_a_function_is_an_answer_and_takes_back_what_it_did() -> None:
    def answer(world: WorldContext) -> None:
        world.ledger.add("order", world.new_id("o"), {})
        raise Refusal(409, "closed")

    call = tool(answer)
    assert await call("ask") == {"error": {"code": 409, "message": "closed"}}
    assert call.session.fault is None
    assert call.session.close().last.state == {}


@in_loop
async def test_named_exceptions_mean_no() -> None:
    call = tool(raises(ValueError("not on Sundays")), refusals=["ValueError"])
    assert await call("ask") == {"error": {"code": 409, "message": "not on Sundays"}}
    assert call.session.fault is None


@in_loop
async def test_what_a_function_reads_is_a_copy() -> None:
    def answer(world: WorldContext) -> str:
        world.ledger.add("order", "o-1", {"items": [1]})
        fields = world.ledger.get("order", "o-1")
        assert fields is not None
        fields["items"].append(2)
        return "ok"

    call = tool(answer)
    assert await call("ask") == "ok"
    assert call.session.close().last.state == {"order": {"o-1": {"items": [1]}}}


@in_loop
async def test_a_repeated_run_meets_the_same_world_and_another_trial_another_chance() -> None:
    def answer(world: WorldContext) -> list[Any]:
        return [world.random.random(), world.now, world.new_id("x"), world.new_id("x")]

    module = ModuleType("chance")
    module.answer = answer  # type: ignore[attr-defined]
    sys.modules["chance"] = module
    world = world_of({"tools": [{"name": "ask", "input_schema": {"type": "object"}, "python": "chance:answer"}]})
    first, again, other = Caller(world), Caller(world), Caller(world, trial=2)
    answers = [[await each("ask"), await each("ask")] for each in (first, again, other)]
    assert answers[0] == answers[1] != answers[2]
    assert answers[0][0][1:] == ["2026-01-01T00:00:01.000Z", "x-1", "x-2"]


@in_loop
async def test_ids_of_the_seed_are_not_made_again() -> None:
    call = Caller(REFUND_DESK, state={"refund": {"r-1": {"order_id": "o-2", "amount": 9.5}}})
    assert await call("issue_refund", order_id="o-1", amount=30) == {"refund_id": "r-2"}


@in_loop
async def test_a_run_has_a_limit_of_calls_and_a_closed_one_takes_none() -> None:
    call = Caller(world_of(REFUND_DESK, limits={"max_calls": 1}))
    await call("escalate")
    assert await call("escalate") == (401, "run_token_rejected")
    assert call.session.limit_reached
    call.session.close()
    assert await call("escalate") == (401, "run_token_expired")


@in_loop
async def test_more_calls_at_once_than_may_wait_are_sent_away() -> None:
    call = Caller(world_of(REFUND_DESK, limits={"queue_length": 2}))
    record, recorded = call.session._emit, asyncio.Event()

    async def record_later(event: Event) -> None:
        await recorded.wait()
        await record(event)

    call.session._emit = record_later
    asked = [asyncio.create_task(call("escalate")) for _ in range(9)]
    while call.session._waiting < 2:
        await asyncio.sleep(0)
    recorded.set()
    answers = await asyncio.gather(*asked)
    assert answers.count((503, "lock_contention")) > 0
    assert answers.count({"ok": True}) >= 2
    assert [event.name for event in call.events].count("tool.refused") == answers.count((503, "lock_contention"))


@in_loop
async def test_tools_of_a_sub_agent_look_unknown_to_others() -> None:
    spec = {"name": "pay", "input_schema": {"type": "object"}, "stub": "paid", "visible_to": ["desk/*"]}
    call = Caller(world_of({"tools": [spec]}))
    assert await call("pay") == (404, "tool_not_found")
    assert await call("pay", actor="desk/refunds") == "paid"


@in_loop
async def test_a_stub_answers_by_arguments() -> None:
    answers = [{"args": {"day": {"$in": ["sat", "sun"]}}, "response": "closed"}, {"response": "open"}]
    call = Caller(world_of({"tools": [{"name": "hours", "input_schema": {"type": "object"}, "stub": answers}]}))
    assert (await call("hours", day="sat"), await call("hours", day="mon")) == ("closed", "open")


@in_loop
async def test_effects_on_lists_and_objects() -> None:
    change = [
        {"op": "list_append", "entity_type": "cart", "id": "c", "field": "items", "value": {"param": "item"}},
        {"op": "map_set", "entity_type": "cart", "id": "c", "field": "counts", "member": {"param": "item"}, "delta": 1},
        {"op": "list_remove", "entity_type": "cart", "id": "c", "field": "wanted", "value": {"param": "item"}},
        {"op": "update", "entity_type": "cart", "id": "c", "fields": {"n": {"add": [{"row": "n"}, 1]}}},
        {"op": "set_flag", "flag": "full", "when": {"entity": "cart", "where": {"n": {"$gte": 2}}}},
    ]
    spec = {
        "name": "put",
        "input_schema": {"type": "object"},
        "effects": change,
        "answer": {"carts": {"count": {"entity": "cart"}}},
    }
    call = Caller(world_of({"tools": [spec], "initial_state": {"cart": {"c": {"n": 0, "wanted": ["tea"]}}}}))
    for item in ("tea", "milk", "tea"):
        assert await call("put", item=item) == {"carts": 1}
    last = call.session.close().last
    assert last.state["cart"]["c"] == {
        "n": 3, "wanted": [], "items": ["tea", "milk", "tea"], "counts": {"tea": 2, "milk": 1},
    }  # fmt: skip
    assert last.flags == {"full"}


@in_loop
async def test_an_effect_that_breaks_the_schema_is_rolled_back_whole() -> None:
    call = Caller(
        world_of(
            {
                "ledger_schema": {
                    "entities": [{"type": "refund", "fields": [{"name": "of", "type": "string", "ref": "refund"}]}]
                },
                "tools": [
                    {
                        "name": "ask",
                        "input_schema": {"type": "object"},
                        "effects": [{"op": "add", "entity_type": "refund", "id": "r", "fields": {"of": "nothing"}}],
                    }
                ],
            }
        )
    )
    assert await call("ask") == {"error": {"code": 500, "message": "internal error"}}
    assert call.session.fault is not None
    assert "'of' names refund 'nothing', which is not in the state" in call.session.fault.message
    assert call.session.close().last.state == {}


@in_loop
async def test_what_runs_when_the_run_ends_has_no_effect() -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def answer(world: WorldContext) -> str:
        world.ledger.add("order", "o-1", {})
        started.set()
        await go.wait()
        return "done"

    call = tool(answer)
    waiting = asyncio.create_task(call("ask"))
    await started.wait()
    record = call.session.close()
    go.set()
    assert await waiting == (401, "run_token_expired")
    assert record.last.state == {}
    assert record.calls == []


TOOL: dict[str, Any] = {"name": "get_order", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"tools": [{**TOOL, "stub": 1, "ledger_read": {"op": "get", "entity_type": "order", "id": "o"}}]},
            "/tools/0/stub: tool 'get_order' has two handlers, 'ledger_read' and 'stub': keep one",
        ),
        (
            {"tools": [TOOL]},
            "/tools/0: tool 'get_order' has nothing that answers it (give it one of ",
        ),
        (
            {"initial_state": {"order": [{"id": "o-1"}]}},
            "/initial_state/order: the rows of 'order' must be a mapping of id to fields, not a list",
        ),
        (
            {
                "ledger_schema": {
                    "entities": [
                        {
                            "type": "order",
                            "fields": [{"name": "status", "type": "string", "enum": ["paid", "refunded"]}],
                        }
                    ]
                },
                "initial_state": {"order": {"o-1": {"status": "open"}}},
            },
            "/initial_state/order/o-1/status: order o-1: 'status' is 'open', not one of 'paid', 'refunded'",
        ),
        (
            {
                "ledger_schema": {
                    "entities": [
                        {"type": "order"},
                        {"type": "refund", "fields": [{"name": "order_id", "type": "string", "ref": "order"}]},
                    ]
                },
                "initial_state": {"refund": {"r-1": {"order_id": "o-9"}}},
            },
            "/initial_state/refund/r-1/order_id: refund r-1: 'order_id' names order 'o-9', which is not in the state",
        ),
        (
            {
                "ledger_schema": {"entities": [{"type": "order"}]},
                "tools": [{**TOOL, "ledger_read": {"op": "list", "entity_type": "ordr"}}],
            },
            "/tools/0/ledger_read/entity_type: there is no entity type 'ordr' (did you mean 'order'?)",
        ),
        (
            {"tools": [{**TOOL, "input_schema": {"type": "objekt"}, "stub": 1}]},
            "/tools/0/input_schema: the schema cannot be used: ",
        ),
        (
            {"tools": [{**TOOL, "stub": 1}, {**TOOL, "stub": 2}]},
            "/tools/1/name: there are two tools 'get_order' (tools of a world have different names)",
        ),
    ],
)
def test_a_slip_in_a_world_is_named_with_its_place(given: dict[str, Any], problem: str) -> None:
    [found] = problems_of(given)
    assert found.startswith(problem)


@in_loop
async def test_a_session_on_a_large_seed_costs_nothing_after_the_first() -> None:
    world = world_of({"initial_state": {"row": {f"r-{number}": {"n": number} for number in range(5_000)}}})
    start = world.start()

    async def ignore(event: Any) -> None: ...

    sessions = [WorldSession(world, start, case_id="c", trial=trial, emit=ignore) for trial in range(100)]
    assert all(session.close().root == start.ledger.root for session in sessions)


@in_loop
async def test_what_refers_to_a_removed_entity_breaks_the_schema() -> None:
    remove = {
        "name": "drop",
        "input_schema": {"type": "object"},
        "effects": [{"op": "remove", "entity_type": "order", "id": "o-1"}],
    }
    world = world_of(REFUND_DESK, tools=[remove])
    free, referred = Caller(world), Caller(world, state={"refund": {"r-1": {"order_id": "o-1", "amount": 30}}})
    assert await free("drop") == {"ok": True}
    assert await referred("drop") == {"error": {"code": 500, "message": "internal error"}}
    assert referred.session.fault is not None
    assert "'order_id' names order 'o-1'" in referred.session.fault.message


@in_loop
async def test_a_run_has_a_limit_of_what_its_calls_may_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.world.session.MAX_RECORDED_BYTES", 400)
    note = {"op": "add", "entity_type": "note", "id": {"new_id": "n"}, "fields": {"text": {"param": "text"}}}
    call = Caller(world_of({"tools": [{"name": "note", "input_schema": {"type": "object"}, "effects": [note]}]}))
    assert (await call("note", text="x" * 100))["ok"]
    assert (await call("note", text="x" * 300))["error"]["code"] == 413
    assert call.session.limit_reached
    assert len(call.session.close().last.state["note"]) == 1


@in_loop
async def test_a_value_that_is_no_json_in_the_state_is_a_fault() -> None:
    def answer(world: WorldContext) -> None:
        world.ledger.add("thing", "t-1", {"value": object()})

    call = tool(answer)
    assert await call("ask") == {"error": {"code": 500, "message": "internal error"}}
    assert call.session.fault is not None
    assert call.session.close().last.state == {}
