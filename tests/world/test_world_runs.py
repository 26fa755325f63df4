"""Suites with a world: agents of several kinds act on it, graders judge what they left, and stores keep it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from world.worlds import REFUND_DESK

import seatrial as st
from seatrial.agents.config import Retry
from seatrial.suites import validate_suite
from seatrial.world.agent_tools import SyncTools, ToolError, Tools

REFUNDED: list[dict[str, Any]] = [
    {"kind": "entity_field", "entity": "order/o-1", "field": "status", "equals": "refunded"},
    {"kind": "effects", "op": "add", "type": "refund", "exactly": 1},
    {"kind": "side_effects", "allow": ["order/o-1.status", "refund/*"]},
    {"kind": "invariants", "never": [{"entity": "refund", "count": {"$gt": 1}}]},
    {
        "kind": "tool_trajectory",
        "mode": "in_order",
        "expected": [{"tool": "issue_refund", "args": {"order_id": "o-1", "amount": 30}}],
    },
]


def suite(agent: Any, graders: list[dict[str, Any]] | None = None, **more: Any) -> st.Suite:
    case = st.Case("plain", "Refund order o-1 in full.", graders=REFUNDED if graders is None else graders)
    return st.Suite(agents={"desk": agent}, cases=[case], world={**yaml.safe_load(REFUND_DESK), **more})


async def refunds(instruction: str, tools: Tools) -> str:
    order = await tools.get_order(order_id="o-1")
    refund = await tools.call("issue_refund", order_id="o-1", amount=order["total"])
    return f"Refunded: {refund['refund_id']}."


def refunds_in_a_thread(instruction: str, tools: SyncTools) -> str:
    return str(tools.issue_refund(order_id="o-1", amount=tools.get_order(order_id="o-1")["total"]))


def refunds_over_http(instruction: str, proxy_url: str, run_token: str) -> str:
    def call(tool: str, **arguments: Any) -> Any:
        request = urllib.request.Request(
            f"{proxy_url}/tools/{tool}",
            json.dumps(arguments).encode(),
            {"Authorization": f"Bearer {run_token}", "Idempotency-Key": f"{tool}-1"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["response"]

    order = call("get_order", order_id="o-1")
    call("issue_refund", order_id="o-1", amount=order["total"])
    # A client that lost the answer asks once more, with the same key: nothing happens twice.
    return str(call("issue_refund", order_id="o-1", amount=order["total"]))


async def only_says_so(instruction: str, tools: Tools) -> str:
    return "I have refunded your order."


@pytest.mark.parametrize("agent", [refunds, refunds_in_a_thread, refunds_over_http])
def test_an_agent_of_any_kind_acts_on_the_same_world(agent: Any) -> None:
    result = st.run(suite(agent), store="memory:", progress=False)
    [run] = list(result.runs)
    assert [(each.grader, each.outcome, each.reasons) for each in run.verdicts if each.outcome != "passed"] == []
    assert run.world is not None
    assert [call.tool for call in run.world.calls] == ["get_order", "issue_refund"]
    assert [step.name for step in run.steps] == ["get_order", "issue_refund"]
    assert {step.source for step in run.steps} == {"observed"}


def test_an_agent_that_only_says_so_fails_by_what_it_did() -> None:
    result = st.run(suite(only_says_so, REFUNDED[:4]), store="memory:", progress=False)
    [run] = list(result.runs)
    assert run.outcome == "failed"
    outcomes = {each.grader: each.outcome for each in run.verdicts}
    assert outcomes == {
        "entity_field": "failed",
        "effects": "failed",
        "side_effects": "passed",
        "invariants": "passed",
    }


def test_every_trial_has_a_world_of_its_own_and_is_graded_again_from_the_store(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    result = st.run(suite(refunds), trials=3, store=store, progress=False)
    assert [run.outcome for run in result.runs] == ["passed"] * 3
    from seatrial.cli.main import main

    assert main(["grade", "latest", "--store", str(store)]) == 0


async def calls_what_breaks(instruction: str, tools: Tools) -> str:
    return str(await tools.broken())


def breaks() -> None:
    raise KeyError("the author's mistake")


def test_a_broken_world_says_nothing_of_the_agent() -> None:
    tool = {"name": "broken", "input_schema": {"type": "object"}, "python": f"{__name__}:breaks"}
    result = st.run(suite(calls_what_breaks, tools=[tool], graders=None), store="memory:", progress=False)
    [run] = list(result.runs)
    assert (run.outcome, run.errored) == ("errored", True)
    assert run.fault is not None
    assert run.fault.error_class == "handler_fault"
    assert "the tool 'broken' of the world: KeyError" in run.fault.message


async def asks_for_everything(instruction: str, tools: Tools) -> str:
    with pytest.raises(ToolError, match="there is no tool 'delete_account'"):
        await tools.delete_account()
    assert (await tools.get_order(order_id=7))["error"]["code"] == 422
    with pytest.raises(ToolError, match="not refundable"):
        await tools.raising().issue_refund(order_id="o-1", amount=31)
    assert [tool["name"] for tool in tools.schema("anthropic")] == [
        "get_order",
        "list_refunds",
        "issue_refund",
        "escalate",
    ]
    assert tools.schema("openai")[3]["function"]["parameters"] == {"type": "object"}
    await tools.actor("desk/night").escalate()
    return "Done."


def test_refusals_are_recorded_as_what_they_are() -> None:
    graders: list[dict[str, Any]] = [
        {"kind": "flag_set", "flag": "escalated"},
        {"kind": "effects", "op": "set_flag", "actor": "desk/*", "exactly": 1},
        {"kind": "entity_count", "type": "refund", "count": 0},
        {"kind": "entity_absent", "entity": "refund/r-1"},
        {"kind": "never_calls", "tools": ["delete_account"]},
    ]
    result = st.run(suite(asks_for_everything, graders), store="memory:", progress=False)
    [run] = list(result.runs)
    outcomes = {each.grader: (each.outcome, each.reasons) for each in run.verdicts}
    assert outcomes.pop("never_calls")[0] == "failed"
    assert [outcome for outcome, _ in outcomes.values()] == ["passed"] * 4, outcomes
    assert [step.status for step in run.steps] == ["error", "error", "error", "ok"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"world": None}, "the grader `entity_field` judges the state of a world, and the suite has none"),
        (
            {"agents": {"desk": st.stream(url="http://127.0.0.1:9/agent")}},
            "the agent `desk` cannot call the tools of the world",
        ),
        (
            {"cases": [st.Case("c", "x", world={"failure_rules": [{"trigger": "*"}]}, graders=REFUNDED)]},
            "`world.failure_rules` is not supported yet",
        ),
        (
            {
                "cases": [
                    st.Case("c", "x", world={"initial_state": {"order": {"o-9": {"status": "open"}}}}, graders=REFUNDED)
                ]
            },
            "order o-9: 'status' is 'open', not one of 'paid', 'refunded'",
        ),
    ],
)
def test_what_a_world_cannot_do_is_said_before_anything_runs(changes: dict[str, Any], problem: str) -> None:
    plain = suite(refunds)
    keys = {"agents": plain.agents, "cases": plain.cases, "world": plain.world}
    found = validate_suite(st.Suite(**{**keys, **changes}), grading="all")
    assert any(problem in each.message for each in found), [each.message for each in found]


def test_a_case_lays_its_rows_over_those_of_the_world() -> None:
    seed = {"initial_state": {"order": {"o-1": {"total": 12}, "o-2": None}}}
    graders: list[dict[str, Any]] = [
        {"kind": "entity_field", "entity": "order/o-1", "fields": {"total": 12, "customer": "c-9"}},
        {"kind": "entity_absent", "entity": "order/o-2"},
        {"kind": "effects", "type": "refund", "where": {"amount": 12}, "exactly": 1, "unique_by": "order_id"},
    ]
    plain = suite(refunds)
    case = st.Case("seeded", "Refund order o-1.", world=seed, graders=graders)
    result = st.run(st.Suite(agents=plain.agents, cases=[case], world=plain.world), store="memory:", progress=False)
    [run] = list(result.runs)
    assert [(each.outcome, each.reasons) for each in run.verdicts if each.outcome != "passed"] == []


def test_the_desk_of_the_page_on_worlds_prints_what_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from seatrial.cli.main import main

    root = Path(__file__).parents[2]
    shown = (root / "docs" / "worlds.md").read_text(encoding="utf-8").split("...\n", 1)[1].split("```", 1)[0]
    assert main(["run", str(root / "examples" / "desk.suite.yaml"), "--store", str(tmp_path / "runs.db")]) == 1
    assert shown in capsys.readouterr().out


async def wipes_and_is_interrupted(instruction: str, tools: Tools, attempt: int) -> str:
    if attempt == 1:
        await tools.issue_refund(order_id="o-1", amount=30)
        raise st.InfrastructureError("the model is overloaded")
    return "Nothing to do."


def test_what_an_earlier_attempt_did_is_not_forgotten() -> None:
    graders: list[dict[str, Any]] = [
        {"kind": "side_effects", "allow": []},
        {"kind": "effects", "op": "add", "max": 0},
        {"kind": "invariants", "never": [{"entity": "refund"}]},
        {"kind": "entity_absent", "entity": "refund/r-1"},
    ]
    plain = suite(wipes_and_is_interrupted, graders)
    again = st.Suite(agents=plain.agents, cases=plain.cases, world=plain.world, retry=Retry(attempts=2, first_wait_s=0))
    [run] = list(st.run(again, store="memory:", progress=False).runs)
    assert len(run.attempts) == 2
    assert [each.outcome for each in run.verdicts] == ["errored", "errored", "errored", "passed"]
    assert run.outcome == "errored"


@pytest.mark.parametrize(
    ("grader", "problem"),
    [
        ({"kind": "effects", "type": "ordr", "max": 0}, "there is no entity type 'ordr'"),
        ({"kind": "effects", "tool": "issue_refnd", "max": 0}, "there is no tool 'issue_refnd'"),
        ({"kind": "entity_absent", "entity": "ordr/o-1"}, "there is no entity type 'ordr'"),
        ({"kind": "entity_count", "type": "ordr", "count": 0}, "there is no entity type 'ordr'"),
        ({"kind": "flag_set", "flag": "escaleted", "clear": True}, "there is no flag 'escaleted'"),
        ({"kind": "invariants", "never": [{"not": {"entity": "ordr"}}]}, "there is no entity type 'ordr'"),
        ({"kind": "side_effects", "allow": ["refnd/*"]}, "there is no entity type 'refnd'"),
    ],
)
def test_a_grader_that_names_what_the_world_does_not_have_is_refused(grader: dict[str, Any], problem: str) -> None:
    found = validate_suite(suite(refunds, [grader]), grading="all")
    assert [problem in each.message for each in found] == [True]


def test_an_expression_of_calls_means_nothing_to_a_grader() -> None:
    grader = {"kind": "invariants", "never": [{"entity": "order", "where": {"total": {"$gt": {"param": "limit"}}}}]}
    found = validate_suite(suite(refunds, [grader]), grading="all")
    assert ["'param' has a value in a call" in each.message for each in found] == [True]
