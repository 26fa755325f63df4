from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.assignments import Pairs, ascending, best, respects

from seatrial.trajectory import (
    Assertion,
    Divergence,
    MatchResult,
    Status,
    Step,
    compile_expectation,
    expectation_from_steps,
    match,
    match_trajectory,
    steps_given,
)
from seatrial.trajectory.item import fits


def items(*names: str) -> list[dict[str, Any]]:
    """`search` is any search, `search:1` one with the argument q = "1"."""
    return [
        {"tool": name} if not argument else {"tool": name, "args": {"q": argument}} for name, argument in _cut(names)
    ]


def steps(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "arguments": {"q": argument} if argument else {}} for name, argument in _cut(names)]


def _cut(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, argument) for name, _, argument in (text.partition(":") for text in names)]


def pairs(result: MatchResult) -> Pairs:
    return [(pair.expected, pair.actual) for pair in result.matched]


@pytest.mark.parametrize(
    ("mode", "expected", "actual", "passed", "score"),
    [
        ("in_order", ["a", "b"], ["a", "x", "b"], True, 1),
        ("in_order", ["a", "b"], ["b", "a"], False, 1 / 2),
        ("in_order", ["a", "b", "c"], [], False, 0),
        ("exact", ["a", "b"], ["a", "b"], True, 1),
        ("exact", ["a", "b"], ["a", "x", "b"], False, 2 / 3),
        ("exact", ["a", "b"], ["a"], False, 1 / 2),
        ("exact", ["a", "b"], ["b", "a"], False, 1 / 2),
        ("superset", ["a", "b"], ["b", "x", "a"], True, 1),
        ("superset", ["a", "a"], ["a"], False, 1 / 2),
        ("subset", ["a", "b", "c"], ["c", "a"], True, 1),
        ("subset", ["a"], ["a", "a", "x", "y"], False, 1 / 4),
        ("subset", ["a"], [], True, 1),
        ("unordered", ["a", "b"], ["b", "a"], True, 1),
        ("unordered", ["a", "b"], ["b", "a", "a"], False, 2 / 3),
        ("unordered", ["a", "b", "b"], ["b", "a"], False, 2 / 3),
        ("partial_order", ["a", "b"], ["b", "a"], True, 1),
    ],
)
def test_a_mode_passes_and_scores_as_the_table_says(
    mode: str, expected: list[str], actual: list[str], passed: bool, score: float
) -> None:
    result = match_trajectory(mode, items(*expected), steps(*actual))
    assert result.passed is passed
    assert result.score == pytest.approx(score)


@pytest.mark.parametrize(
    ("minimums", "maximums", "passed", "score"),
    [
        ({"search": 2}, {}, True, 1),
        ({"search": 3}, {}, False, 0),
        ({"search": 3, "read": 1}, {}, False, 1 / 2),
        ({"search": 3, "write": 0}, {}, False, 1 / 2),
        ({"search": 1}, {"search": 1}, False, 1 / 2),
        ({"search": 1}, {"search": 2, "write": 0}, True, 1),
        ({"s*": 2, "[rw]*": 1}, {}, True, 1),
        ({}, {"read": 1}, True, 1),
        ({"search": 0}, {"search": 1}, False, 1 / 2),
    ],
)
def test_any_order_counts_calls_by_tool(
    minimums: dict[str, int], maximums: dict[str, int], passed: bool, score: float
) -> None:
    actual = steps("search:1", "read", "search:2")
    result = match_trajectory("any_order", minimums, actual, maximums=maximums)
    assert (result.passed, result.score) == (passed, score)


def test_any_order_tells_which_calls_count_for_nothing() -> None:
    result = match_trajectory("any_order", {"a": 2}, steps("a", "x", "b", "b"), maximums={"b": 1})
    assert result.extra == [1, 3]
    assert result.precision == 1 / 2
    assert result.recall == 1 / 2
    assert [assertion.passed for assertion in result.assertions] == [False, False]


PARTIAL = [
    {"tool": "plan", "id": "plan"},
    {"tool": "search", "id": "s", "after": ["plan"]},
    {"tool": "read", "id": "r", "after": ["plan"]},
    {"tool": "answer", "after": ["s", "r"]},
]


@pytest.mark.parametrize(
    ("actual", "passed", "score"),
    [
        (["plan", "search", "read", "answer"], True, 1),
        (["plan", "read", "x", "search", "answer"], True, 1),
        (["search", "plan", "read", "answer"], False, 3 / 4),
        (["plan", "search", "answer", "read"], False, 3 / 4),
        (["answer", "plan", "search", "read"], False, 3 / 4),
        (["answer", "read", "plan"], False, 1 / 4),
        ([], False, 0),
    ],
)
def test_partial_order_wants_each_item_after_those_it_waits_for(actual: list[str], passed: bool, score: float) -> None:
    result = match_trajectory("partial_order", PARTIAL, steps(*actual))
    assert (result.passed, result.score) == (passed, score)


def test_an_item_left_out_still_keeps_those_on_its_two_sides_apart() -> None:
    expected = [{"tool": "a", "id": "a"}, {"tool": "b", "id": "b", "after": ["a"]}, {"tool": "c", "after": ["b"]}]
    assert match_trajectory("partial_order", expected, steps("c", "a")).score == 1 / 3


def test_a_partial_order_past_its_budget_is_errored_and_says_so() -> None:
    # Forty items with little order among them, each with a few scattered steps, most of which contradict each other.
    expected = [
        {"tool": [f"t{(index * 7) % 40}", f"t{(index * 11 + 3) % 40}", f"t{(index * 23 + 5) % 40}"], "id": str(index)}
        | ({"after": [str(index - 7), str(index - 9)]} if index >= 9 else {})
        for index in range(40)
    ]
    actual = [{"name": f"t{(index * 29 + 11) % 40}"} for index in range(40)]
    result = match_trajectory("partial_order", expected, actual)
    assert result.errored is not None
    assert not result.passed
    assert result.score == 0
    assert "No verdict" in result.prose


def test_an_item_may_name_alternatives_and_globs() -> None:
    expected = [{"tool": ["find", "search"]}, {"tool": "read_*"}, {"tool": "?"}]
    assert match_trajectory("exact", expected, steps("search", "read_file", "x")).passed
    assert not match_trajectory("exact", expected, steps("search", "Read_file", "x")).passed


@pytest.mark.parametrize(
    ("item", "step", "fitting"),
    [
        ({"status": "ok"}, {"status": "ok"}, True),
        ({"status": "ok"}, {"status": "error"}, False),
        ({"status": "ok"}, {}, False),
        ({}, {"status": "error"}, True),
        ({"actor": "x"}, {"actor": "x"}, True),
        ({"actor": "x"}, {}, False),
        ({"result": {"n": 1}}, {"result": {"n": 1.0}}, True),
        ({"result": None}, {"result": None}, True),
        ({"result": None}, {}, False),
        ({"result": {"$contains": "ok"}}, {"result": "all ok"}, True),
    ],
)
def test_status_actor_and_result_are_checked_where_the_item_has_them(
    item: dict[str, Any], step: dict[str, Any], fitting: bool
) -> None:
    assert match_trajectory("exact", [{"tool": "t", **item}], [{"name": "t", **step}]).passed is fitting


def test_items_that_name_a_tool_with_and_without_arguments_share_its_calls_optimally() -> None:
    result = match_trajectory("superset", items("a", "a:1"), steps("a:1", "a:2"))
    assert result.passed
    assert pairs(result) == [(0, 1), (1, 0)]


# Constraints


@pytest.mark.parametrize(
    ("constraint", "violating"),
    [
        ({"forbidden": [{"tool": "delete*"}]}, [2]),
        ({"forbidden": [{"tool": "read", "args": {"q": "1"}}]}, [1]),
        ({"forbidden": [{"tool": "read", "args": {"q": "2"}}]}, []),
        ({"allowed": ["search", "re*"]}, [2]),
        ({"allowed": ["read"]}, [2]),  # search is expected, and so allowed
        ({"allowed": []}, [1, 2]),
        ({"allowed": ["*"]}, []),
        ({"max_calls": 2}, [None]),
        ({"max_calls": 3}, []),
        ({"min_calls": 4}, [None]),
        ({"min_calls": 3}, []),
        ({"no_errors": True}, [0, 1, 2]),
        ({"no_errors": False}, []),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["in_order", "any_order"])
def test_a_violated_constraint_fails_the_verdict_and_makes_the_score_zero(
    mode: str, constraint: dict[str, Any], violating: list[int | None]
) -> None:
    actual: list[dict[str, Any]] = [
        {"name": "search", "status": "cancelled"},
        {"name": "read", "arguments": {"q": "1"}, "status": "error"},
        {"name": "delete_all", "status": "timeout"},
    ]
    expected: Any = {"search": 1} if mode == "any_order" else items("search")
    result = match_trajectory(mode, expected, actual, **constraint, min_score=0.1)
    assert [violation.actual for violation in result.violations] == violating
    assert [violation.constraint for violation in result.violations] == [*constraint] * len(violating)
    assert result.passed is not bool(violating)
    assert result.score == (0 if violating else 1)
    if constraint != {"no_errors": False}:
        assert result.assertions[-1].passed is not bool(violating)


# Failed calls and retries


FLAKY: list[dict[str, Any]] = [
    {"name": "a", "arguments": {"q": "1"}, "status": "error"},
    {"name": "b", "status": "timeout"},
    {"name": "a", "arguments": {"q": "1"}, "status": "ok"},
    {"name": "a", "arguments": {"q": "1"}, "status": "error"},
    {"name": "c", "status": "ok"},
]


def test_by_default_a_step_counts_whatever_its_status() -> None:
    assert match_trajectory("exact", items("a", "b", "a", "a", "c"), FLAKY).passed


def test_failed_calls_that_are_ignored_are_removed_first_and_indices_stay_those_of_the_given_steps() -> None:
    result = match_trajectory("exact", items("a:1", "c", "d"), FLAKY, failed_calls="ignore", max_calls=2)
    assert pairs(result) == [(0, 2), (1, 4)]
    assert result.missing == [2]
    assert result.extra == []
    assert result.violations == []
    assert result.first_divergence == Divergence(2, None)
    assert "3 calls that failed left out" in result.prose


def test_a_forbidden_call_that_failed_is_still_a_call_where_failed_calls_are_ignored() -> None:
    wanted: dict[str, Any] = {"failed_calls": "ignore"}
    assert match_trajectory("superset", items("c"), FLAKY, **wanted, max_calls=2).passed
    for constraint in ({"forbidden": [{"tool": "b"}]}, {"allowed": ["a"]}):
        result = match_trajectory("superset", items("c"), FLAKY, **wanted, **constraint)
        assert [(violation.constraint, violation.actual) for violation in result.violations] == [(*constraint, 1)]
        assert result.outcome == "failed"


def test_a_tool_that_must_not_be_called_must_not_be_tried_either() -> None:
    def outcome(**bounds: Any) -> str:
        config = compile_expectation({"mode": "any_order", "failed_calls": "ignore", **bounds})
        return match(config, steps_given(FLAKY)).outcome

    assert outcome(maximums={"b": 0}) == "failed"
    assert outcome(maximums={"a": 1}) == "passed"
    assert outcome(minimums={"b": 1}) == "failed"


def test_a_retry_that_is_collapsed_joins_a_failed_step_with_the_next_equal_call() -> None:
    result = match_trajectory("exact", items("b", "a:1", "a:1", "c"), FLAKY, retries="collapse")
    assert result.passed
    assert pairs(result) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_a_failed_step_without_an_equal_call_after_it_is_no_retry() -> None:
    actual: list[dict[str, Any]] = [
        {"name": "a", "arguments": {"q": 1}, "status": "error"},
        {"name": "a", "arguments": {"q": 2}},
    ]
    assert match_trajectory("exact", items("a", "a"), actual, retries="collapse").passed
    assert match_trajectory("exact", items("a"), [actual[0], {**actual[0], "status": "ok"}], retries="collapse").passed


# Durations


def timed(*limits: float) -> list[dict[str, Any]]:
    return [{"tool": "a", "max_duration_ms": limit} for limit in limits]


def test_a_duration_adds_an_assertion_that_passes_fails_or_is_skipped() -> None:
    actual: list[dict[str, Any]] = [
        {"name": "a", "duration_ms": 10},
        {"name": "a", "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:01Z"},
        {"name": "a", "started_at": 5},
    ]
    result = match_trajectory("exact", timed(10, 999, 1), actual)
    assert [(found.passed, found.skipped) for found in result.assertions] == [
        (True, False),
        (True, False),
        (False, False),
        (False, True),
    ]
    assert not result.passed
    assert result.score == (3 + 1) / (3 + 2)
    assert "it took 1000 ms" in result.prose


def test_a_missing_item_has_no_duration_to_check() -> None:
    result = match_trajectory("exact", timed(1, 1), [{"name": "a", "duration_ms": 1}])
    assert len(result.assertions) == 2
    assert result.score == (1 + 1) / (2 + 1)


def test_a_duration_that_is_not_known_makes_the_verdict_errored() -> None:
    result = match_trajectory("exact", timed(1), [{"name": "a"}])
    assert (result.outcome, result.error_code, result.score) == ("errored", "calls_unknown", 1)
    assert "how long step 0 (a) took" in result.prose


def test_a_duration_that_is_not_known_does_not_matter_when_the_score_is_reached_without_it() -> None:
    actual: list[dict[str, Any]] = [{"name": "a", "duration_ms": 1}, {"name": "a"}]
    assert match_trajectory("exact", timed(1, 1), actual, min_score=0.75).passed
    assert match_trajectory("exact", timed(1, 1), actual, min_score=0.8).outcome == "errored"
    assert match_trajectory("exact", timed(0, 1), actual).outcome == "failed"


def test_a_score_that_reaches_min_score_passes() -> None:
    expected, actual = items("a", "b", "c"), steps("a", "b")
    assert match_trajectory("in_order", expected, actual, min_score=0.66).passed
    assert not match_trajectory("in_order", expected, actual, min_score=0.67).passed
    slow = match_trajectory("exact", timed(1), [{"name": "a", "duration_ms": 2}], min_score=0.5)
    assert slow.passed
    assert slow.score == 0.5


# The result as data


def test_precision_recall_and_f1() -> None:
    result = match_trajectory("superset", items("a", "b", "c", "d"), steps("a", "x", "y", "b", "z"))
    assert (result.precision, result.recall) == (2 / 5, 2 / 4)
    assert result.f1 == pytest.approx(2 * 0.4 * 0.5 / 0.9)
    nothing = match_trajectory("superset", items("a"), [])
    assert (nothing.precision, nothing.recall, nothing.f1) == (1, 0, 0)
    wrong = match_trajectory("superset", items("a"), steps("b"))
    assert (wrong.precision, wrong.recall, wrong.f1) == (0, 0, 0)


def test_the_smallest_actual_indices_are_reported() -> None:
    assert pairs(match_trajectory("in_order", items("a"), steps("a", "a"))) == [(0, 0)]
    assert pairs(match_trajectory("in_order", items("x", "y"), steps("y", "x"))) == [(1, 0)]
    assert pairs(match_trajectory("superset", items("a", "b"), steps("b", "a", "b"))) == [(0, 1), (1, 0)]
    assert pairs(match_trajectory("subset", items("b", "a", "b"), steps("a", "b"))) == [(1, 0), (2, 1)]


def test_a_mismatch_is_the_nearest_unmatched_step_of_that_name() -> None:
    result = match_trajectory("in_order", items("a:1", "b:1"), steps("a:1", "b:2", "c", "b:3"))
    assert [(found.expected, found.actual) for found in result.mismatches] == [(1, 1)]
    assert [(found.pointer, found.expected, found.actual) for found in result.mismatches[0].differences] == [
        ("/arguments/q", "1", "2")
    ]
    later = match_trajectory("in_order", items("b:1"), steps("x", "y", "b:2", "b:3"))
    assert later.mismatches[0].actual == 2
    assert match_trajectory("in_order", items("b:1"), steps("a:1")).mismatches == []


def test_a_call_in_the_wrong_place_is_a_mismatch_without_differences() -> None:
    result = match_trajectory("in_order", items("a", "b"), steps("b", "a"))
    assert [(found.expected, found.actual, found.differences) for found in result.mismatches] == [(0, 1, [])]
    assert "wrong place" in result.prose


@pytest.mark.parametrize(
    ("mode", "expected", "actual", "divergence"),
    [
        ("exact", ["a", "b"], ["a", "b"], None),
        ("exact", ["a", "b"], ["a", "b", "c"], Divergence(None, 2)),
        ("exact", ["a", "b", "c"], ["a", "c"], Divergence(1, 1)),
        ("exact", ["a", "b"], ["a"], Divergence(1, None)),
        ("in_order", ["a", "b"], ["x", "a"], Divergence(1, None)),
        ("in_order", ["a:1", "b"], ["a:2", "b"], Divergence(0, 0)),
        ("in_order", ["a"], ["x", "a"], None),
        ("superset", ["a", "b"], ["b"], Divergence(0, None)),
        ("subset", ["a"], ["a", "x"], Divergence(None, 1)),
        ("subset", ["a", "b"], ["a"], None),
        ("unordered", ["a", "b"], ["x", "a"], Divergence(1, 0)),
    ],
)
def test_the_first_divergence_is_where_they_part(
    mode: str, expected: list[str], actual: list[str], divergence: Divergence | None
) -> None:
    assert match_trajectory(mode, items(*expected), steps(*actual)).first_divergence == divergence


def test_prose_says_what_was_expected_what_happened_and_where_they_part() -> None:
    result = match_trajectory("exact", items("search", "read:1", "write"), steps("search", "read:2", "write", "write"))
    assert result.prose == (
        "Expected exactly 3 calls in this order: search, read, write. "
        "The agent made 4 calls: search, read, write, write. "
        "Missing: read (item 1). "
        "Beyond what was expected: read (step 1), write (step 3). "
        'They diverge at item 1: the nearest call is step 1, where /arguments/q is "2" instead of "1". '
        "Failed with a score of 0.5 (2 of 4)."
    )
    assert match_trajectory("exact", items("a", "b"), steps("a", "b")).prose == (
        "Expected exactly 2 calls in this order: a, b. The agent made exactly these. Passed with a score of 1 (2 of 2)."
    )


@pytest.mark.parametrize("name", ["line\nbreak", "\x1b[31mred", "x" * 100_000])
def test_prose_stays_one_short_printable_paragraph_whatever_a_tool_is_called(name: str) -> None:
    actual = [{"name": name, "arguments": {"q": name}}] * 50
    for mode, options in (("exact", {}), ("subset", {"forbidden": [{"tool": "*"}]}), ("superset", {"allowed": []})):
        prose = match_trajectory(mode, [{"tool": "a", "args": {"q": 1}}, *items("b")], actual, **options).prose
        assert prose.isprintable()
        assert len(prose) < 3000


def test_a_match_without_assertions_of_durations_has_one_for_its_mode() -> None:
    assert match_trajectory("superset", items("a", "b"), steps("a")).assertions == [
        Assertion("every expected call: 1 of 2", False)
    ]


# Against the definition


TOOLS = st.sampled_from(["a", "b"])
ARGUMENTS = st.sampled_from([{}, {"x": 1}, {"x": 2}, {"x": 1, "y": True}])
STATUSES: st.SearchStrategy[Status] = st.sampled_from(["ok", "error"])
STEPS = st.lists(
    st.builds(lambda name, arguments, status: Step(0, name, arguments, status=status), TOOLS, ARGUMENTS, STATUSES),
    max_size=5,
)
PLAIN = st.fixed_dictionaries({"tool": TOOLS}, optional={"args": ARGUMENTS})
GENERAL = st.fixed_dictionaries(
    {"tool": st.sampled_from(["a", "b", "*", "[a]", ["a", "b"], ["b", "c"]])},
    optional={
        "args": st.sampled_from(
            [{}, {"x": 1}, {"x": {"$gt": 1}}, {"x": {"$any": True}}, {"$not": {}}, {"x": {"$in": [1]}}]
        ),
        "args_match": st.sampled_from(["exact", "superset", "subset", "ignore"]),
        "status": STATUSES,
    },
)
MODES = st.sampled_from(["in_order", "exact", "superset", "subset", "unordered"])


def check(mode: str, expected: list[dict[str, Any]], actual: list[Step], before: list[int] | None = None) -> None:
    configuration = {"mode": mode, "expected": expected}
    if mode == "partial_order":
        configuration["expected"] = [
            {**item, "id": str(index), "after": [str(other) for other in range(len(expected)) if earlier >> other & 1]}
            for index, (item, earlier) in enumerate(zip(expected, before or [], strict=True))
        ]
    expectation = compile_expectation(configuration)
    rows = [sum(1 << index for index, step in enumerate(actual) if fits(item, step)) for item in expectation.items]
    legal = {"in_order": ascending, "exact": ascending, "partial_order": respects(before or [])}.get(mode)
    wanted = best(rows, len(actual), legal) if legal else best(rows, len(actual))
    found, size, made = len(wanted), len(expected), len(actual)
    total = {"subset": made, "exact": max(size, made), "unordered": max(size, made)}.get(mode, size)
    result = match(expectation, actual)
    assert pairs(result) == wanted
    assert result.passed is (found == total)
    assert result.score == (found / total if total else 1)
    assert result.missing == [item for item in range(size) if item not in {item for item, _ in wanted}]
    assert result.extra == [step for step in range(made) if step not in {step for _, step in wanted}]


@settings(max_examples=300)
@given(MODES, st.lists(PLAIN, min_size=1, max_size=5), STEPS)
def test_plain_items_are_matched_as_the_definition_says(
    mode: str, expected: list[dict[str, Any]], actual: list[Step]
) -> None:
    check(mode, expected, actual)


@settings(max_examples=300)
@given(MODES, st.lists(GENERAL, min_size=1, max_size=5), STEPS)
def test_items_with_globs_alternatives_and_matchers_are_matched_as_the_definition_says(
    mode: str, expected: list[dict[str, Any]], actual: list[Step]
) -> None:
    check(mode, expected, actual)


@settings(max_examples=200)
@given(st.lists(GENERAL, min_size=1, max_size=4), STEPS, st.data())
def test_partial_orders_are_matched_as_the_definition_says(
    expected: list[dict[str, Any]], actual: list[Step], data: st.DataObject
) -> None:
    before = [0] * len(expected)
    for item in range(len(expected)):
        for other in range(item):
            if data.draw(st.booleans()):
                before[item] |= before[other] | 1 << other
    check("partial_order", expected, actual, before)


@given(MODES, STEPS.filter(len), STEPS)
def test_a_reference_run_is_matched_as_items_with_its_names_and_arguments_are(
    mode: Any, reference: list[Step], actual: list[Step]
) -> None:
    expected = [{"tool": step.name, "args": step.arguments} for step in reference]
    assert match(expectation_from_steps(mode, reference), actual) == match(
        compile_expectation({"mode": mode, "expected": expected}), actual
    )


def test_a_forbidden_call_does_not_escape_by_an_argument_more() -> None:
    forbidding = {"mode": "superset", "expected": ["look"], "forbidden": [{"tool": "refund", "args": {"order": "A-1"}}]}
    steps = [Step(0, "look", {}), Step(1, "refund", {"order": "A-1", "amount": 200})]
    assert not match(compile_expectation(forbidding), steps).passed
    other = [Step(0, "look", {}), Step(1, "refund", {"order": "A-2", "amount": 200})]
    assert match(compile_expectation(forbidding), other).passed


@pytest.mark.parametrize(
    ("forbidden", "made", "hit"),
    [
        ({"amount": {"$gt": 100}}, {"amount": "500"}, True),
        ({"amount": {"$gt": 100}}, {"amount": "50"}, False),
        ({"amount": {"$gt": 100}}, {"amount": "a lot"}, False),
        ({"amount": {"$approx": 500}}, {"amount": "500.0"}, True),
        ({"amount": {"$in": [500]}}, {"amount": "500"}, True),
        ({"amount": 500}, {"amount": "500"}, True),
        ({"user": "7"}, {"user": 7}, True),
        ({"user": "7"}, {"user": 8}, False),
        ({"force": True}, {"force": "true"}, True),
        ({"force": True}, {"force": "false"}, False),
        ({"order": {"amount": {"$gt": 100}}}, {"order": '{"amount": 500, "currency": "EUR"}'}, True),
        ({"order": {"amount": {"$gt": 100}}}, {"order": '{"amount": 5}'}, False),
        ({"user": "7", "amount": {"$gt": 100}}, {"user": "7", "amount": "500"}, True),
        ({"user": "7", "amount": {"$gt": 100}}, {"amount": "500"}, False),
    ],
)
def test_a_forbidden_call_does_not_escape_by_writing_its_arguments_as_text(
    forbidden: dict[str, Any], made: dict[str, Any], hit: bool
) -> None:
    config = {"mode": "subset", "expected": ["*"], "forbidden": [{"tool": "refund", "args": forbidden}]}
    assert match(compile_expectation(config), [Step(0, "refund", made)]).passed is not hit


def test_an_expected_call_is_not_made_by_one_with_its_arguments_as_text() -> None:
    config = {"mode": "superset", "expected": [{"tool": "refund", "args": {"amount": {"$lte": 25}}}]}
    assert not match(compile_expectation(config), [Step(0, "refund", {"amount": "20"})]).passed


def test_the_name_of_a_tool_stands_for_a_call_of_it() -> None:
    steps = [Step(0, "look", {"at": "it"}), Step(1, "refund", {})]
    assert match(compile_expectation({"mode": "exact", "expected": ["look", "refund"]}), steps).passed
    assert not match(
        compile_expectation({"mode": "exact", "expected": ["look"], "forbidden": ["refund"]}), steps
    ).passed
