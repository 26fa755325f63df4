"""`verdicts.md` 1, "Claims": what each check says of calls when all, some or none of them are known."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from seatrial.trajectory import MODES, compile_expectation, match, steps_given
from seatrial.trajectory.completeness import (
    CALLS_NOT_LISTED,
    COMPLETE,
    COMPLETENESS_NOT_RECORDED,
    Completeness,
    Level,
    all_of,
    at_least,
    at_most,
    known_calls,
    what_is_missing,
    what_to_do,
)
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.step import Step
from seatrial.transcript import Note

NOTHING_LISTED = Note(CALLS_NOT_LISTED, "", "the agent returned an answer and nothing that lists its calls")
DROPPED = Note("made_up", "/messages/3", "a message of an unknown role was dropped", weight="serious")
KNOWN: dict[Level, Completeness] = {
    "complete": COMPLETE,
    "partial": Completeness("partial", "messages", ["messages"], [DROPPED]),
    "none": Completeness("none", reasons=[NOTHING_LISTED]),
}


def steps(*names: str, **more: Any) -> list[Step]:
    return steps_given([{"name": name, "status": "ok", **more} for name in names])


def expected(*names: str) -> list[dict[str, Any]]:
    return [{"tool": name} for name in names]


def matched(config: dict[str, Any], made: list[Step], level: Level) -> MatchResult:
    return match(compile_expectation(config), made, KNOWN[level])


# Claims, one by one: (configuration, calls that are known, verdict when complete, verdict when not)

AB = expected("a", "b")
IN_ORDER = {"mode": "in_order", "expected": AB}
SUPERSET = {"mode": "superset", "expected": AB}
PARTIAL = {"mode": "partial_order", "expected": [{"tool": "a", "id": "a"}, {"tool": "b", "after": ["a"]}]}
EXACT = {"mode": "exact", "expected": AB}
UNORDERED = {"mode": "unordered", "expected": AB}
SUBSET = {"mode": "subset", "expected": AB}
COUNTS_AB = {"mode": "any_order", "minimums": {"a": 1}}
MET = {"mode": "in_order", "expected": expected("a")}
"""A positive claim that the calls below meet, so that the constraint beside it decides."""

CLAIMS: list[tuple[str, dict[str, Any], list[str], str, str]] = [
    ("in_order, met", IN_ORDER, ["a", "x", "b"], "passed", "passed"),
    ("in_order, not met", IN_ORDER, ["b", "a"], "failed", "errored"),
    ("in_order, nothing known", IN_ORDER, [], "failed", "errored"),
    ("superset, met", SUPERSET, ["b", "x", "a"], "passed", "passed"),
    ("superset, not met", SUPERSET, ["b"], "failed", "errored"),
    ("partial_order, met", PARTIAL, ["a", "x", "b"], "passed", "passed"),
    ("partial_order, not met", PARTIAL, ["b", "a"], "failed", "errored"),
    ("exact, as known", EXACT, ["a", "b"], "passed", "errored"),
    ("exact, too few known", EXACT, ["a"], "failed", "errored"),
    ("exact, nothing known", EXACT, [], "failed", "errored"),
    ("exact, one too many", EXACT, ["a", "b", "x"], "failed", "failed"),
    ("exact, a wrong one", EXACT, ["x"], "failed", "failed"),
    ("exact, the wrong order", EXACT, ["b", "a"], "failed", "failed"),
    ("unordered, as known", UNORDERED, ["b", "a"], "passed", "errored"),
    ("unordered, too few known", UNORDERED, ["b"], "failed", "errored"),
    ("unordered, one too many", UNORDERED, ["b", "a", "a"], "failed", "failed"),
    ("subset, not broken", SUBSET, ["b"], "passed", "errored"),
    ("subset, nothing known", SUBSET, [], "passed", "errored"),
    ("subset, broken", SUBSET, ["x"], "failed", "failed"),
    ("minimum, met", {"mode": "any_order", "minimums": {"a": 1}}, ["a"], "passed", "passed"),
    ("minimum, not met", {"mode": "any_order", "minimums": {"a": 2}}, ["a"], "failed", "errored"),
    ("maximum, not broken", {"mode": "any_order", "maximums": {"a": 1}}, ["a"], "passed", "errored"),
    ("maximum, broken", {"mode": "any_order", "maximums": {"a": 1}}, ["a", "a"], "failed", "failed"),
    ("no calls at all", {"mode": "any_order", "maximums": {"*": 0}}, [], "passed", "errored"),
    ("minimum met, maximum open", {**COUNTS_AB, "maximums": {"b": 0}}, ["a"], "passed", "errored"),
    ("minimum met, maximum broken", {**COUNTS_AB, "maximums": {"b": 0}}, ["a", "b"], "failed", "failed"),
    ("minimum open, maximum broken", {**COUNTS_AB, "maximums": {"b": 0}}, ["b"], "failed", "failed"),
    ("forbidden, not made", {**MET, "forbidden": expected("del*")}, ["a"], "passed", "errored"),
    ("forbidden, made", {**MET, "forbidden": expected("del*")}, ["a", "delete"], "failed", "failed"),
    ("allowed, not broken", {**MET, "allowed": ["b"]}, ["a", "b"], "passed", "errored"),
    ("allowed, broken", {**MET, "allowed": ["b"]}, ["a", "x"], "failed", "failed"),
    ("max_calls, not broken", {**MET, "max_calls": 1}, ["a"], "passed", "errored"),
    ("max_calls, broken", {**MET, "max_calls": 1}, ["a", "x"], "failed", "failed"),
    ("min_calls, met", {**MET, "min_calls": 2}, ["a", "x"], "passed", "passed"),
    ("min_calls, not met", {**MET, "min_calls": 2}, ["a"], "failed", "errored"),
    ("no_errors, none known", {**MET, "no_errors": True}, ["a"], "passed", "errored"),
    ("constraint broken, mode open", {**IN_ORDER, "max_calls": 0}, ["a"], "failed", "failed"),
    ("constraint open, mode broken", {**EXACT, "no_errors": True}, ["x"], "failed", "failed"),
    ("min_score, reached by what cannot be lost", {**IN_ORDER, "min_score": 0.5}, ["a"], "passed", "passed"),
    ("min_score, not reached yet", {**IN_ORDER, "min_score": 0.6}, ["a"], "failed", "errored"),
    ("min_score of exact, could be lost", {**EXACT, "min_score": 0.5}, ["a"], "passed", "errored"),
    ("min_score of exact, out of reach", {**EXACT, "min_score": 0.7}, ["a", "x", "y"], "failed", "failed"),
    ("min_score of subset, in reach", {**SUBSET, "min_score": 0.6}, ["x", "y", "a"], "failed", "failed"),
    ("min_score of subset, out of reach", {**SUBSET, "min_score": 0.9}, ["x"], "failed", "failed"),
    ("min_score of subset, still open", {**SUBSET, "min_score": 0.6}, ["x"], "failed", "errored"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "made", "complete", "otherwise"), [c[1:] for c in CLAIMS], ids=[c[0] for c in CLAIMS]
)
@pytest.mark.parametrize("level", ["complete", "partial", "none"])
def test_a_positive_claim_needs_to_be_met_and_a_negative_one_needs_all_calls(
    level: Level, config: dict[str, Any], made: list[str], complete: str, otherwise: str
) -> None:
    result = matched(config, steps(*made), level)
    assert result.outcome == (complete if level == "complete" else otherwise)
    assert result.level == level
    assert (result.error_code == "calls_unknown") is (result.outcome == "errored")
    assert bool(result.undecided) is (result.outcome == "errored")
    assert result.passed is (result.outcome == "passed")


def test_every_mode_and_every_constraint_is_in_the_table() -> None:
    from seatrial.trajectory.expectation import _CONSTRAINT_KEYS

    assert {config["mode"] for _, config, *_ in CLAIMS} == {*MODES}
    assert {key for _, config, *_ in CLAIMS for key in config} >= {*_CONSTRAINT_KEYS, "min_score", "maximums"}


def test_errored_says_what_is_missing_and_what_to_do_about_it() -> None:
    result = matched({**MET, "forbidden": expected("delete")}, steps("a"), "none")
    assert result.errored == (
        "the agent's calls are unknown: the agent returned an answer and nothing that lists its calls "
        "(calls_not_listed). The agent may have made a forbidden call"
    )
    assert result.hint is not None
    for remedy in ("return the messages", "tool_access: none"):
        assert remedy in result.hint
    partial = matched({**MET, "forbidden": expected("delete")}, steps("a"), "partial")
    assert partial.errored is not None
    assert "(made_up at /messages/3)" in partial.errored
    assert partial.hint is not None
    assert "name the format" in partial.hint


def test_only_a_complete_record_says_that_the_agent_made_no_calls() -> None:
    assert "The agent made no calls." in matched(IN_ORDER, [], "complete").prose
    for level in ("partial", "none"):
        prose = matched(IN_ORDER, [], level).prose
        assert "No calls are known." in prose
        assert "made no calls" not in prose
    assert "1 call is known: a." in matched({**EXACT, "max_calls": 0}, steps("a"), "partial").prose
    assert "No other call is known." in matched({**SUBSET, "max_calls": 0}, steps("a"), "partial").prose


def test_of_many_reasons_the_first_are_shown_and_the_others_counted() -> None:
    notes = [Note("made_up", f"/messages/{index}", "dropped", weight="serious") for index in range(20)]
    text = what_is_missing(Completeness("partial", reasons=notes, omitted=5))
    assert text.count("dropped") == 3
    assert text.endswith("; and 22 more")


def test_a_run_recorded_before_is_known_in_part_and_is_to_be_run_again() -> None:
    known = known_calls(None, "observed")
    assert (known.level, known.basis, known.reasons[0].code) == ("partial", "observed", COMPLETENESS_NOT_RECORDED)
    assert what_to_do(known) == "run it again"
    assert known_calls(COMPLETE) is COMPLETE


def test_observed_calls_of_an_agent_that_may_have_other_tools_are_all_when_it_has_none() -> None:
    known = Completeness("partial", "observed", ["observed"], [NOTHING_LISTED])
    assert "tool_access: world" in what_to_do(known)


# What is not known of a call that is


@pytest.mark.parametrize(
    ("item", "step", "outcome"),
    [
        ({"args": {"id": 5}}, {"arguments_text": '{"id": 5', "arguments": None}, "errored"),
        ({"args": {"id": 5}}, {"arguments": {"id": 5}}, "failed"),
        ({"args": {"id": 5}}, {"arguments": {"id": 6}}, "passed"),
        ({"args": {"id": 5}}, {"arguments": {"kwargs": {"id": 5}}}, "errored"),
        ({"args": {"id": {"$gt": 4}}}, {"arguments": {"input": '{"id": "5"}'}}, "errored"),
        ({"args": {"id": 5}}, {"arguments": [{"id": 6}, {"id": 5}]}, "errored"),
        ({"args": {"id": 5}}, {"arguments": {"kwargs": {"id": 6}}}, "passed"),
        ({"args": {"id": 5}}, {"arguments": {"kwargs": {"id": 5}, "id": 6}}, "passed"),
        ({"args": {"kwargs": {"id": 5}}}, {"arguments": {"kwargs": {"id": 5}}}, "failed"),
        ({}, {"arguments_text": "{", "arguments": None}, "failed"),
        ({"args": {"id": 5}, "status": "ok"}, {"arguments_text": "{", "arguments": None, "status": "error"}, "passed"),
        ({"status": "ok"}, {"status": "unknown"}, "errored"),
        ({"status": "ok"}, {"status": "error"}, "passed"),
        ({"result": {"deleted": True}}, {}, "errored"),
        ({"result": {"deleted": True}}, {"result": {"deleted": False}}, "passed"),
        ({"actor": "planner"}, {}, "errored"),
        ({"actor": "planner"}, {"actor": "writer"}, "passed"),
    ],
)
def test_a_call_that_may_be_the_forbidden_one_is_undetermined_and_never_passes(
    item: dict[str, Any], step: dict[str, Any], outcome: str
) -> None:
    config = {"mode": "any_order", "maximums": {"zzz": 0}, "forbidden": [{"tool": "delete", **item}]}
    result = matched(config, steps_given([{"name": "delete", "status": "ok", **step}]), "complete")
    assert result.outcome == outcome
    if outcome == "errored":
        assert (result.error_code, result.undecided[0].actual) == ("calls_unknown", 0)


def test_arguments_that_are_not_json_fit_no_expected_call_and_are_one_too_many() -> None:
    odd = steps_given([{"name": "a", "arguments_text": "{", "arguments": None, "status": "ok"}])
    for mode in ("exact", "unordered", "subset"):
        config = {"mode": mode, "expected": [{"tool": "a", "args": {"id": 5}}]}
        for level in KNOWN:
            assert matched(config, odd, level).outcome == "failed"


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        ({"status": "ok"}, "passed"),
        ({"status": "cancelled"}, "failed"),
        ({"status": "error"}, "failed"),
        ({"status": "timeout"}, "failed"),
        ({}, "errored"),
        ({"executed_by": "provider"}, "passed"),
        ({"executed_by": "provider", "status": "error"}, "failed"),
        ({"executed_by": "user", "status": "error"}, "passed"),
    ],
)
def test_no_errors_needs_the_result_of_every_call_but_those_that_a_provider_runs(
    step: dict[str, Any], outcome: str
) -> None:
    config = {"mode": "any_order", "maximums": {"zzz": 0}, "no_errors": True}
    assert matched(config, steps_given([{"name": "a", **step}]), "complete").outcome == outcome


def test_an_expected_call_that_lacks_its_result_is_neither_it_nor_another() -> None:
    config = {"mode": "in_order", "expected": [{"tool": "refund", "status": "ok"}, {"tool": "mail"}]}
    assert matched(config, [*steps("refund", "mail", status="unknown")], "complete").outcome == "errored"
    assert matched(config, [*steps("refund", status="unknown")], "complete").outcome == "failed"
    assert matched(config, [*steps("refund", "mail", status="error")], "complete").outcome == "failed"
    exactly = {"mode": "exact", "expected": [{"tool": "refund", "status": "ok"}]}
    assert matched(exactly, steps("refund", status="unknown"), "complete").outcome == "errored"
    assert matched(exactly, steps("refund", "x", status="unknown"), "complete").outcome == "failed"


def test_how_long_a_call_took_is_open_while_another_one_may_be_the_call_that_is_meant() -> None:
    config = {"mode": "in_order", "expected": [{"tool": "a", "max_duration_ms": 10}]}
    for spent in (5, 50):
        assert matched(config, steps("a", duration_ms=spent), "partial").outcome == "errored"
    assert matched(config, steps("a", duration_ms=5), "complete").outcome == "passed"
    assert matched(config, steps("a", duration_ms=50), "complete").outcome == "failed"


def test_a_failed_call_may_be_joined_with_one_that_is_not_known() -> None:
    config = {"mode": "in_order", "expected": AB, "retries": "collapse"}
    made = [*steps("a", status="error"), *steps("b")]
    assert matched(config, made, "complete").outcome == "passed"
    assert matched(config, made, "partial").outcome == "errored"
    ignoring = {"mode": "superset", "expected": AB, "failed_calls": "ignore"}
    assert matched(ignoring, steps("a", "b", status="unknown"), "partial").outcome == "errored"


# Executed by whom


def test_calls_of_the_user_are_never_the_agents() -> None:
    made = steps_given(
        [
            {"name": "a", "status": "ok"},
            {"name": "delete", "status": "error", "executed_by": "user"},
            {"name": "b", "status": "ok"},
        ]
    )
    for config in (
        EXACT,
        UNORDERED,
        SUBSET,
        {**MET, "forbidden": expected("delete"), "allowed": ["b"], "max_calls": 2, "no_errors": True},
        {"mode": "any_order", "maximums": {"delete": 0}},
    ):
        result = matched(config, made, "complete")
        assert result.outcome == "passed", result.prose
        assert result.user_calls == 1
    assert matched({"mode": "superset", "expected": expected("delete")}, made, "complete").outcome == "failed"
    assert matched({"mode": "any_order", "minimums": {"delete": 1}}, made, "complete").outcome == "failed"
    assert matched({**MET, "min_calls": 3}, made, "complete").outcome == "failed"
    assert "2 calls (1 call of the user left out): a, b" in matched({**EXACT, "min_calls": 3}, made, "complete").prose


def test_calls_that_a_provider_runs_are_calls() -> None:
    made = steps("web_search", executed_by="provider")
    forbids = {"mode": "any_order", "maximums": {"zzz": 0}, "forbidden": expected("web_*")}
    assert matched(forbids, made, "complete").outcome == "failed"
    assert matched({"mode": "superset", "expected": expected("web_search")}, made, "none").outcome == "passed"


# Three values


@pytest.mark.parametrize(
    ("claims", "all_hold"),
    [([], True), ([True, True], True), ([True, None], None), ([None, False], False), ([False, True], False)],
)
def test_one_claim_that_is_broken_decides_and_then_one_that_is_unknown(
    claims: list[bool | None], all_hold: bool | None
) -> None:
    assert all_of(claims) is all_hold


def test_a_count_that_may_be_higher_can_break_a_maximum_and_reach_a_minimum() -> None:
    assert [at_most(3, 2, False), at_most(2, 2, False), at_most(2, 2, True), at_most(9, None, False)] == [
        *(False, None, True, True)
    ]
    assert [at_least(2, 3, False), at_least(3, 3, False), at_least(2, 3, True), at_least(0, None, False)] == [
        *(None, True, False, True)
    ]


# Properties: hiding calls never turns a non-pass into a pass, nor a pass into a failure. Thousands of small checks and
# records are needed to meet the rare ones that matter, so they are drawn by plain means: the same in every run.

NAMES = ("a", "b", "delete")
STATUSES = ("ok", "error", "timeout", "cancelled", "unknown")
POLICIES: tuple[dict[str, Any], ...] = ({}, {"retries": "collapse"}, {"failed_calls": "ignore"})
FEW = 0.25
"""How often a check has a certain constraint: with many at once hardly any check would pass."""
FACTS = ("status", "result", "actor", "duration_ms")


def some(rng: Random, odds: float = 0.5, **values: Callable[[], Any]) -> dict[str, Any]:
    """Each of these keys, or not."""
    return {key: value() for key, value in values.items() if rng.random() < odds}


def item(rng: Random) -> dict[str, Any]:
    return {"tool": rng.choice((*NAMES, "*"))} | some(
        rng,
        FEW,
        args=lambda: {"q": 1},
        status=lambda: rng.choice(("ok", "error")),
        max_duration_ms=lambda: 10,
    )


def item_on_records(rng: Random) -> dict[str, Any]:
    return item(rng) | some(rng, FEW, result=lambda: 1, actor=lambda: "one")


def forbidden(rng: Random) -> list[dict[str, Any]]:
    return [
        {"tool": rng.choice(NAMES)} | some(rng, args=lambda: {"q": 1}, status=lambda: "ok")
        for _ in range(rng.randint(0, 2))
    ]


def constraints(rng: Random) -> dict[str, Callable[[], Any]]:
    return {
        "forbidden": lambda: forbidden(rng),
        "allowed": lambda: rng.choices(NAMES, k=rng.randint(0, 3)),
        "max_calls": lambda: rng.randint(0, 6),
        "min_calls": lambda: rng.randint(0, 6),
        "no_errors": lambda: True,
        "min_score": lambda: rng.choice((0.25, 0.5, 0.75, 1)),
    }


def counts(rng: Random) -> dict[str, int]:
    return {rng.choice((*NAMES, "*")): rng.randint(1, 3) for _ in range(rng.randint(1, 2))}


def counting(rng: Random) -> dict[str, Any]:
    """A check of `any_order` whose minimums and maximums can be met together."""
    while True:
        config = some(rng, FEW, **constraints(rng), minimums=lambda: counts(rng), maximums=lambda: counts(rng))
        most = config.get("maximums", {})
        if ("minimums" in config or "maximums" in config) and all(
            most.get(name, 9) >= least for name, least in config.get("minimums", {}).items()
        ):
            return {"mode": "any_order"} | config


def check(rng: Random, an_item: Callable[[Random], dict[str, Any]] = item) -> dict[str, Any]:
    """A check of any mode, with any constraints and policies."""
    if rng.random() < 0.5:
        config = counting(rng)
    else:
        config = {
            "mode": rng.choice([mode for mode in MODES if mode != "any_order"]),
            "expected": [an_item(rng) for _ in range(rng.randint(1, 3))],
        } | some(rng, FEW, **constraints(rng))
    config |= rng.choice(POLICIES)
    if "failed_calls" in config:
        config.pop("no_errors", None)  # there is no such check
    return config


def calls_made(rng: Random) -> list[dict[str, Any]]:
    return [
        {"name": rng.choice(NAMES), "status": rng.choice(STATUSES), "arguments": rng.choice(({}, {"q": 1}))}
        | some(rng, duration_ms=lambda: rng.choice((1, 100)), executed_by=lambda: rng.choice(("provider", "user")))
        for _ in range(rng.randint(0, 6))
    ]


def calls_recorded(rng: Random) -> list[dict[str, Any]]:
    """Calls of which everything is known."""
    return [
        {
            "name": rng.choice(NAMES),
            "arguments": rng.choice(({}, {"q": 1})),
            "duration_ms": rng.choice((1, 100)),
            "actor": rng.choice(("one", "other")),
            **rng.choice(
                ({"status": "ok", "result": 1}, {"status": "ok", "result": 2}, {"status": "error", "result": 1})
            ),
        }
        for _ in range(rng.randint(0, 5))
    ]


def test_a_failed_call_may_have_been_made_again_when_not_all_calls_are_known() -> None:
    config = {"mode": "any_order", "minimums": {"b": 1}, "no_errors": True, "retries": "collapse"}
    failed = steps_given([{"name": "b", "status": "error"}])
    assert matched(config, failed, "complete").outcome == "failed"
    assert matched(config, failed, "partial").outcome == "errored"
    assert matched({**config, "retries": "count"}, failed, "partial").outcome == "failed"


def test_hiding_calls_decides_nothing_otherwise_than_all_of_them_do() -> None:
    for seed in range(6000):
        rng = Random(seed)
        config, calls = check(rng), calls_made(rng)
        whole = matched(config, steps_given(calls), "complete").outcome
        shown = [call for call in calls if rng.random() < 0.5]
        level: Level = rng.choice(("partial", "none"))
        part = matched(config, steps_given(shown), level).outcome
        # What is decided on a part is decided so on the whole, if that is decided at all.
        assert part in ("errored", whole) or whole == "errored", (config, calls, shown, level)
        assert part != "passed" or whole == "passed", (config, calls, shown, level)


def test_a_negative_claim_that_passes_on_a_complete_record_never_passes_on_the_same_record_called_partial() -> None:
    for seed in range(2000):
        rng = Random(seed)
        calls = calls_made(rng)
        constraint = rng.choice(("forbidden", "allowed", "max_calls", "no_errors"))
        value = constraints(rng)[constraint]()
        if constraint == "forbidden":
            value = value or [{"tool": "delete"}]
        config = {"mode": "any_order", "maximums": {"zzz": 0}, constraint: value}
        for level in ("partial", "none"):
            assert matched(config, steps_given(calls), level).outcome != "passed", (config, calls, level)


def test_leaving_out_what_is_known_of_a_call_never_turns_a_non_pass_into_a_pass() -> None:
    for seed in range(2000):
        rng = Random(seed)
        config, calls = check(rng), calls_made(rng)
        whole = matched(config, steps_given(calls), "complete").outcome
        bare = [{**call, "status": "unknown", "duration_ms": None} if rng.random() < 0.5 else call for call in calls]
        part = matched(config, steps_given(bare), rng.choice(("partial", "none"))).outcome
        assert part != "passed" or whole == "passed", (config, calls, bare)


def test_what_the_record_does_not_say_of_its_calls_never_decides() -> None:
    for seed in range(10_000):
        rng = Random(seed)
        config, calls = check(rng, item_on_records), calls_recorded(rng)
        truth = matched(config, steps_given(calls), "complete")
        bare = [{key: call[key] for key in call if key not in FACTS or rng.random() < 0.5} for call in calls]
        level: Level = "complete"
        if rng.random() < 0.25:
            level, bare = "partial", [call for call in bare if rng.random() < 0.75]
        found = matched(config, steps_given(bare), level)
        assert found.outcome in ("errored", truth.outcome), (config, calls, bare, level)
        if found.outcome != "errored":
            known = found.score_range
            lowest, highest = (found.score, found.score) if known is None else (known.lowest, known.highest)
            assert lowest - 1e-9 <= truth.score <= highest + 1e-9, (config, calls, bare, level)


REFUNDED: dict[str, Any] = {"mode": "superset", "expected": [{"tool": "refund", "status": "ok"}]}


def test_every_call_that_may_be_the_expected_one_is_looked_at_and_not_only_the_nearest() -> None:
    made = steps_given([{"name": "refund", "status": "error"}, {"name": "refund"}])
    for level in KNOWN:
        found = matched(REFUNDED, made, level)
        assert found.outcome == "errored"
        assert "the record does not have its status" in (found.errored or "")
    assert matched(REFUNDED, made[:1], "complete").outcome == "failed"
    assert matched(REFUNDED, [*made, *steps("refund")], "complete").outcome == "passed"


def test_a_call_of_unknown_status_leaves_open_what_depends_on_whether_it_failed() -> None:
    unknown = steps("a", status="unknown")
    ignoring = {"mode": "superset", "expected": expected("a"), "failed_calls": "ignore"}
    assert matched(ignoring, unknown, "complete").outcome == "errored"
    assert matched(ignoring, [*unknown, *steps("a")], "complete").outcome == "passed"
    assert matched(ignoring, steps("b", status="unknown"), "complete").outcome == "failed"
    at_most_once = {"mode": "any_order", "maximums": {"a": 1}, "failed_calls": "ignore"}
    assert matched(at_most_once, [*unknown, *unknown], "complete").outcome == "errored"
    assert matched(at_most_once, [*unknown, *steps("a", "a")], "complete").outcome == "failed"
    assert matched(at_most_once, unknown, "complete").outcome == "passed"
    never = {"mode": "any_order", "maximums": {"a": 0}, "failed_calls": "ignore"}
    assert matched(never, unknown, "complete").outcome == "failed"
    joining = {"mode": "exact", "expected": expected("a"), "retries": "collapse"}
    assert matched(joining, [*unknown, *steps("a")], "complete").outcome == "errored"
    assert matched(joining, unknown, "complete").outcome == "passed"
    limited = {"mode": "superset", "expected": expected("b"), "max_calls": 1, "failed_calls": "ignore"}
    assert matched(limited, [*unknown, *steps("b")], "complete").outcome == "errored"


def test_a_call_that_a_provider_ran_counts_without_a_result() -> None:
    ignoring = {"mode": "superset", "expected": expected("a"), "failed_calls": "ignore"}
    made = steps("a", status="unknown", executed_by="provider")
    assert matched(ignoring, made, "complete").outcome == "passed"
    assert matched(ignoring, made, "partial").outcome == "errored"
