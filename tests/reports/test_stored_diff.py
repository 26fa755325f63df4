"""Two stored runs aligned by ranges: as `seatrial diff` aligns them, whatever their length."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import records

from seatrial.reports import stored_diff
from seatrial.reports.run_diff import compare_runs, divergence, divergence_sentence
from seatrial.reports.stored_diff import NONE, AlignedRows, aligned_rows, divergence_of
from seatrial.runs import Run
from seatrial.store import Store
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.step import Step

_numbers = itertools.count()
_CALLS = st.lists(
    st.tuples(
        st.sampled_from(["find", "refund", "mail"]),
        st.sampled_from([{}, {"n": 1}, {"n": 1.0}, {"n": True}, {"n": [1]}]),
    ),
    max_size=12,
)
_COMPLETENESS = st.sampled_from([None, Completeness("complete"), Completeness("partial"), Completeness("none")])


def stored(store: Store, steps: list[Step], **fields: Any) -> Run:
    number = next(_numbers)
    run = records.run(0, run_id=f"run-{number}", trial=number + 1, steps=steps, **fields)
    store.record_run(run).wait()
    return run


def steps_of(calls: list[tuple[str, Any]]) -> list[Step]:
    return [Step(index, name, arguments) for index, (name, arguments) in enumerate(calls)]


def aligned(store: Store, a: Run, b: Run) -> AlignedRows:
    return aligned_rows(store, store.run_record(a.run_id), store.run_record(b.run_id))


@pytest.fixture
def filled(store: Store) -> Store:
    store.create_experiment(records.experiment(), records.cases(1))
    return store


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(_CALLS, _CALLS, _COMPLETENESS, _COMPLETENESS, st.integers(1, 5))
def test_rows_and_sentence_are_those_of_the_terminal(
    filled: Store, a: Any, b: Any, known_a: Any, known_b: Any, at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stored_diff, "STEPS_AT_ONCE", at_once)
        one = stored(filled, steps_of(a), completeness=known_a)
        other = stored(filled, steps_of(b), completeness=known_b)
        rows = aligned(filled, one, other)
        found = divergence_of(filled, filled.run_record(one.run_id), filled.run_record(other.run_id), rows)
    whole = compare_runs(one, other)
    diff = whole.calls.diff
    pairs = [(step_a, step_b) for step_a, step_b in zip(rows.a, rows.b, strict=True) if NONE not in (step_a, step_b)]
    assert pairs == [(pair.a, pair.b) for pair in diff.aligned]
    of_kind = {
        kind: [row for row in range(len(rows)) if rows.kind(row) == kind] for kind in ("differs", "only_a", "only_b")
    }
    assert [rows.a[row] for row in of_kind["differs"]] == [pair.a for pair in diff.aligned if pair.differences]
    assert [rows.a[row] for row in of_kind["only_a"]] == diff.only_a
    assert [rows.b[row] for row in of_kind["only_b"]] == diff.only_b
    assert rows.first_divergence == diff.first_divergence
    assert divergence_sentence(found) == divergence(whole)
    covered = [row for first, count in rows.stretches() for row in range(first, first + count)]
    assert covered == list(range(len(rows)))


def test_arguments_that_are_kept_elsewhere_are_compared_whole(filled: Store) -> None:
    long = "x" * 40_000
    a = stored(filled, [Step(0, "write", {"text": f"{long}a"}), Step(1, "write", {"text": long})])
    b = stored(filled, [Step(0, "write", {"text": f"{long}b"}), Step(1, "write", {"text": long})])
    rows = aligned(filled, a, b)
    assert [rows.kind(row) for row in range(len(rows))] == ["differs", "equal"]


def test_equal_calls_with_other_results_are_marked(filled: Store) -> None:
    long = "y" * 40_000
    a = [Step(0, "f", {}, result="1"), Step(1, "f", {}, result=f"{long}a"), Step(2, "f", {}, status="ok")]
    b = [Step(0, "f", {}, result="2"), Step(1, "f", {}, result=f"{long}b"), Step(2, "f", {}, status="ok")]
    rows = aligned(filled, stored(filled, a), stored(filled, b))
    assert [rows.kind(row) for row in range(len(rows))] == ["result", "result", "equal"]
    assert list(rows.stretches()) == [(0, 3)]


def test_how_much_slower_b_was_is_known_only_with_all_durations(filled: Store) -> None:
    a = [Step(0, "f", {}, duration_ms=10.0), Step(1, "f", {})]
    b = [Step(0, "f", {}, duration_ms=15.0), Step(1, "f", {}, duration_ms=1.0)]
    rows = aligned(filled, stored(filled, a), stored(filled, b))
    assert rows.slower_in(0, 1) == 5.0
    assert rows.slower_in(0, 2) is None


def test_a_long_alignment_is_made_once_and_anew_for_another_run(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_diff, "KEPT_FROM", 1)
    a, b = stored(filled, steps_of([("f", {})])), stored(filled, steps_of([("f", {})]))
    assert aligned(filled, a, b) is aligned(filled, a, b)
    assert aligned(filled, b, a) is not aligned(filled, a, b)


def test_a_run_of_which_not_all_calls_are_known_is_not_said_to_make_no_further_call(filled: Store) -> None:
    a = stored(filled, steps_of([("f", {})]))
    b = stored(filled, [], completeness=Completeness("partial"))
    records_ = filled.run_record(a.run_id), filled.run_record(b.run_id)
    found = divergence_of(filled, *records_, aligned_rows(filled, *records_))
    assert (
        divergence_sentence(found, "A", "B")
        == "They diverge at step 0: A calls f, B makes no further call that is known."
    )


def test_one_call_with_another_argument_names_the_argument(filled: Store) -> None:
    def sentence(one: Any, other: Any) -> str:
        a, b = stored(filled, steps_of([("f", one)])), stored(filled, steps_of([("f", other)]))
        return divergence(compare_runs(a, b))

    assert sentence({"amount": 1}, {"amount": 2}) == "They diverge at step 0: both call f, b with another amount."
    assert sentence({"a": 1, "b": 1}, {"a": 2}) == "They diverge at step 0: both call f, b with another a and b."
    assert sentence({"<b>": 1}, {"<b>": 2}).endswith("b with other arguments.")
    assert sentence([1], [2]).endswith("b with other arguments.")
