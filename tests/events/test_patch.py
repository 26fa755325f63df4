"""JSON Patch: RFC 6902, all or nothing, at the cost of what a patch touches."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import operations
from strategies.growth import growth
from strategies.messages import json_values

from seatrial._support.nesting import MAX_DEPTH, is_value_too_deep
from seatrial.events import Patcher
from seatrial.events.patch import copy_json, same_json


def patched(document: Any, *operations: Any) -> Any:
    result, problem = Patcher().apply(copy_json(document), list(operations))
    assert problem is None, problem
    return result


def problem_of(document: Any, *operations: Any) -> str:
    owned = copy_json(document)
    result, problem = Patcher().apply(owned, list(operations))
    assert problem is not None
    assert result is owned
    assert same_json(result, document)
    return problem


# The examples of RFC 6902, appendix A.
RFC = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "q"}], {"foo": ["bar", "q", "baz"]}),
    ({"baz": 1, "foo": 2}, [{"op": "remove", "path": "/baz"}], {"foo": 2}),
    ({"foo": ["a", "b", "c"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["a", "c"]}),
    ({"baz": 1, "foo": 2}, [{"op": "replace", "path": "/baz", "value": 3}], {"baz": 3, "foo": 2}),
    (
        {"foo": {"bar": 1, "waldo": 2}, "qux": {"corge": 3}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": 1}, "qux": {"corge": 3, "thud": 2}},
    ),
    (
        {"foo": ["a", "b", "c", "d"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["a", "c", "d", "b"]},
    ),
    ({"baz": "q", "foo": [1]}, [{"op": "test", "path": "/baz", "value": "q"}], {"baz": "q", "foo": [1]}),
    ({"foo": "bar"}, [{"op": "add", "path": "/child", "value": {"g": {}}}], {"foo": "bar", "child": {"g": {}}}),
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": 1, "xyz": 1}], {"foo": "bar", "baz": 1}),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc"]}], {"foo": ["bar", ["abc"]]}),
]


@pytest.mark.parametrize(("document", "operations", "result"), RFC)
def test_the_examples_of_the_rfc(document: Any, operations: list[Any], result: Any) -> None:
    assert patched(document, *operations) == result


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({"foo": "bar"}, {"op": "add", "path": "/baz/bat", "value": 1}),
        ({"baz": "q"}, {"op": "test", "path": "/baz", "value": "bar"}),
        ({"/": 9, "~1": 10}, {"op": "test", "path": "/~01", "value": "10"}),
        ({}, {"op": "replace", "path": "/new", "value": 1}),
        ({}, {"op": "remove", "path": "/new"}),
        ([1], {"op": "add", "path": "/2", "value": 1}),
        ([1], {"op": "remove", "path": "/-"}),
        ([1], {"op": "replace", "path": "/1", "value": 1}),
        ({}, {"op": "copy", "from": "/x", "path": "/y"}),
        ({"a": {"b": 1}}, {"op": "move", "from": "/a", "path": "/a/b/c"}),
        ({}, {"op": "jump", "path": "/x"}),
        ({}, {"op": ["add"], "path": "/x", "value": 1}),
        ({}, {"op": "add", "path": "/x"}),
        ({}, {"op": "add", "path": "x", "value": 1}),
        ({}, {"op": "add", "path": "/~2", "value": 1}),
        ({}, {"op": "add", "path": None, "value": 1}),
        ({}, {"op": "add", "value": 1}),
        ({}, {"op": "move", "path": "/x"}),
        ({}, "add"),
        ({}, None),
    ],
)
def test_what_the_rfc_makes_an_error_changes_nothing(document: Any, operation: Any) -> None:
    problem_of(document, {"op": "add", "path": "", "value": document}, operation)


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        # fast-json-patch, which AG-UI's own client uses, takes all of these: it moves a document into itself and
        # then cannot write it as JSON any more, takes `01` for 1 and an empty token for an index, and gives a
        # number a member without a trace. The RFC refuses them, and so do we.
        ({"a": {}}, {"op": "move", "from": "", "path": "/a/b"}),
        ([0], {"op": "add", "path": "/01", "value": 1}),
        ([[1], 2], {"op": "copy", "from": "/", "path": ""}),
        (1, {"op": "add", "path": "/x", "value": 1}),
        ({"x": []}, {"op": "move", "from": "/2", "path": ""}),
    ],
)
def test_what_the_other_client_takes_against_the_rfc_is_refused(document: Any, operation: Any) -> None:
    problem_of(document, operation)


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "", "value": 5}, 5),
        ({"op": "replace", "path": "", "value": [1]}, [1]),
        ({"op": "remove", "path": ""}, None),
        ({"op": "copy", "from": "/a", "path": ""}, {"b": 1}),
        ({"op": "move", "from": "/a", "path": ""}, {"b": 1}),
        ({"op": "move", "from": "/a", "path": "/a"}, {"a": {"b": 1}}),
    ],
)
def test_the_whole_document_can_be_the_target(operation: Any, result: Any) -> None:
    assert patched({"a": {"b": 1}}, operation) == result


def test_equality_is_that_of_json() -> None:
    assert same_json({"a": [1, None]}, {"a": [1.0, None]})
    for left, right in [(True, 1), (False, 0), (None, False), ([1], [True]), ({"a": 1}, {"a": 1, "b": 2}), ("1", 1)]:
        assert not same_json(left, right)
        assert not same_json(right, left)


def test_a_failed_patch_is_undone_from_the_last_operation_to_the_first() -> None:
    document = {"list": [1, 2, 3], "gone": {"deep": True}, "kept": 1}
    problem = problem_of(
        document,
        {"op": "remove", "path": "/gone"},
        {"op": "add", "path": "/list/1", "value": 9},
        {"op": "replace", "path": "/list/0", "value": 8},
        {"op": "remove", "path": "/list/3"},
        {"op": "move", "from": "/kept", "path": "/moved"},
        {"op": "add", "path": "", "value": {"other": 1}},
        {"op": "test", "path": "/other", "value": 2},
    )
    assert problem.startswith("operation 6:")


def test_later_patches_do_not_reach_into_earlier_ones() -> None:
    operation = {"op": "add", "path": "/a", "value": {"list": []}}
    patcher = Patcher()
    document, _ = patcher.apply({}, [operation, {"op": "copy", "from": "/a", "path": "/b"}])
    document, _ = patcher.apply(document, [{"op": "add", "path": "/a/list/-", "value": 1}])
    assert document == {"a": {"list": [1]}, "b": {"list": []}}
    assert operation["value"] == {"list": []}


@given(json_values(), st.lists(operations(), max_size=5))
def test_a_patch_applies_as_a_whole_or_not_at_all(document: Any, patch: list[Any]) -> None:
    owned, operations_before = copy_json(document), copy.deepcopy(patch)
    result, problem = Patcher().apply(owned, patch)
    assert patch == operations_before
    step, failed = copy_json(document), None
    for operation in patch:
        step, failed = Patcher().apply(step, [operation])
        if failed is not None:
            break
    assert (problem is None) == (failed is None)
    assert same_json(result, step if problem is None else document)


def test_copies_of_copies_do_not_eat_the_memory() -> None:
    doubling = {"op": "copy", "from": "", "path": "/a"}
    patcher = Patcher(copy_limit=1000)
    document: Any = {"x": 1}
    problems = []
    for _ in range(40):
        document, problem = patcher.apply(document, [doubling, {"op": "copy", "from": "", "path": "/b"}])
        problems.append(problem)
    assert problems[-1] == "operation 0: the patches of this stream copy too much"
    assert len(str(document)) < 20_000


def test_a_long_text_counts_as_more_than_one_value() -> None:
    patcher = Patcher(copy_limit=1000)
    document: Any = {"text": "a" * 10_000, "k" * 10_000: 0}
    problems = []
    for number in range(40):
        document, problem = patcher.apply(document, [{"op": "copy", "from": "/text", "path": f"/{number}"}])
        problems.append(problem)
    assert problems[0] is None
    assert problems[-1] == "operation 0: the patches of this stream copy too much"
    assert len(str(document)) < 100_000


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/0", "value": 0},
        {"op": "remove", "path": "/0"},
        {"op": "move", "from": "/0", "path": "/-"},
        {"op": "move", "from": "/9999", "path": "/0"},
    ],
)
def test_what_shifts_the_items_of_a_long_list_again_and_again_is_refused(operation: Any) -> None:
    patcher = Patcher(shift_limit=1_000_000)
    document: Any = list(range(10_000))
    done = 0
    while True:
        document, problem = patcher.apply(document, [operation])
        if problem is not None:
            break
        done += 1
        assert done <= 101
    assert problem == "operation 0: the patches of this stream move too much inside arrays"
    assert len(document) in (10_000, 10_000 + done, 10_000 - done)
    at_the_end = {"op": "add", "path": "/-", "value": 0}
    assert patcher.apply(document, [at_the_end])[1] is None  # which moves nothing
    assert patcher.apply(document, [operation])[1] == problem


def test_a_document_that_nests_too_deeply_is_left_alone() -> None:
    deep: Any = {}
    for _ in range(MAX_DEPTH - 1):
        deep = {"a": deep}
    to_the_limit = [{"op": "add", "path": "/b", "value": 1}, {"op": "replace", "path": "", "value": deep}]
    owned, problem = Patcher().apply({}, to_the_limit)
    assert problem is None
    assert owned == deep
    for operation in (
        {"op": "add", "path": "/a" * MAX_DEPTH, "value": {}},
        {"op": "add", "path": "/c", "value": deep},
        {"op": "replace", "path": "/a", "value": deep},
        {"op": "copy", "from": "", "path": "/c"},
    ):
        result, problem = Patcher().apply(owned, [{"op": "add", "path": "/b", "value": 1}, operation])
        assert problem == "operation 1: the document would be nested more than 200 levels deep"
        assert result is owned
        assert list(result) == ["a"]


def test_no_chain_of_patches_nests_a_document_too_deeply() -> None:
    document: Any = {"a": {}}
    patcher = Patcher()
    problems = []
    for _ in range(2 * MAX_DEPTH):
        document, problem = patcher.apply(
            document, [{"op": "add", "path": "/b", "value": {}}, {"op": "move", "from": "/a", "path": "/b/a"},
                       {"op": "move", "from": "/b", "path": "/a"}]
        )  # fmt: skip
        problems.append(problem)
    assert {*problems[: MAX_DEPTH - 4]} == {None}
    assert "operation 1: the document would be nested more than 200 levels deep" in problems
    assert not is_value_too_deep(document)


def test_a_patch_costs_what_it_touches() -> None:
    def patching(size: int) -> Callable[[], object]:
        document: Any = {"rows": [{"n": n} for n in range(size)], "done": 0}
        patcher = Patcher()

        def patch() -> None:
            patched = document
            for n in range(500):
                patched, problem = patcher.apply(patched, [{"op": "replace", "path": "/done", "value": n}])
                assert problem is None

        return patch

    # A copy of the document for each patch would make it ten thousand times as much.
    assert growth(patching, 10, 100_000, below=20) < 20
