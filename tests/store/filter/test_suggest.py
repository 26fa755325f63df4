"""What is suggested while a filter is typed, on both stores."""

from __future__ import annotations

import pytest
from strategies import records

from seatrial.runs import Case
from seatrial.store import RunFilter, Store
from seatrial.store.filter import parse_filter
from seatrial.trajectory.step import Step


@pytest.fixture
def told(store: Store) -> Store:
    cases = [Case(id=f"case-{index}", instruction="", tags=["vip", "account"][: index + 1]) for index in range(3)]
    store.create_experiment(records.experiment(), cases)
    for index, tools in enumerate((["refund"], ["refund", "refund", "find order"], ["lookup"])):
        steps = [Step(number, name, {}, f"c{number}", "messages", "ok") for number, name in enumerate(tools)]
        outcome = "failed" if index == 0 else "passed"
        store.record_run(records.run(index, agent=f"clerk-{index % 2}", steps=steps, outcome=outcome)).wait()  # type: ignore[arg-type]
    return store


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("to", ["tokens:", "tool:", "toolfail:"]),
        ("tool:", ["tool:refund (2)", 'tool:"find order" (1)', "tool:lookup (1)"]),
        ("-tool:re", ["tool:refund (2)"]),
        ("tool:refund,l", ["tool:refund,lookup (1)"]),
        ("x (tag:v", ["tag:vip"]),
        ("agent:", ["agent:clerk-0 (2)", "agent:clerk-1 (1)"]),
        ("case:2", ["case:case-2"]),
        ("outcome:f", ["outcome:failed (1)"]),
        ("outcome!=f", ["outcome!=failed (1)"]),
        ("grader:x=e", ["grader:x=errored"]),
        ("experiment:", ["experiment:refunds"]),
        ("cost>", []),
        ("nofield:a", []),
        ('"tool', []),
    ],
)
def test_fields_and_values_are_suggested_with_their_counts(told: Store, typed: str, suggested: list[str]) -> None:
    found = told.filter_suggestions("exp-1", typed, len(typed))
    assert [each.insert + (f" ({each.runs})" if each.runs is not None else "") for each in found] == suggested
    for each in found:
        assert each.end == len(typed)
        assert 0 <= each.start <= each.end


def test_what_is_suggested_takes_the_place_of_what_was_typed_at_the_caret(told: Store) -> None:
    text = "outcome:failed tool:re cost>1"
    [only] = told.filter_suggestions("exp-1", text, len("outcome:failed tool:re"))
    assert text[: only.start] + only.insert + text[only.end :] == "outcome:failed tool:refund cost>1"


def test_without_an_experiment_only_words_and_names_of_experiments_are_known(told: Store) -> None:
    assert [each.insert for each in told.filter_suggestions(None, "outcome:pa", 10)] == ["outcome:passed"]
    assert told.filter_suggestions(None, "tool:", 5) == []


@pytest.mark.parametrize("name", ["\0", "\ud800", "a\0*", "?\udfff"])
def test_a_name_that_no_store_can_have_matches_nothing(told: Store, name: str) -> None:
    for field in ("case", "agent", "experiment", "why", "tag", "note", "tool", "toolfail", "grader"):
        terms = parse_filter(f"{field}:{name}", 0)
        assert told.count_runs("exp-1", RunFilter(terms=terms)) == 0


def test_nothing_is_suggested_for_a_text_that_no_store_can_have(told: Store) -> None:
    assert told.filter_suggestions("exp-1", "case:\0", 6) == []
