"""The text of a filter, read and written."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.store.filter.conditions import _CONDITIONS
from seatrial.store.filter.fields import FIELDS, FieldName
from seatrial.store.filter.language import (
    MAX_DEPTH,
    MAX_FILTER,
    MAX_TERMS,
    AnyOf,
    FieldCondition,
    FilterError,
    TextSearch,
    parse_filter,
    with_term,
    without_each,
    written_term,
)

NOW = 1_795_000_000_000  # 2026-11-18


def test_terms_keep_their_place_their_sign_and_their_values() -> None:
    text = 'tool:refund,get_* -outcome:passed  cost>$0.10 "out of stock"'
    terms = parse_filter(text, NOW)
    assert [text[term.start : term.end] for term in terms] == [
        "tool:refund,get_*",
        "-outcome:passed",
        "cost>$0.10",
        '"out of stock"',
    ]
    assert [term.negated for term in terms] == [False, True, False, False]
    tool, _, cost, said = (term.condition for term in terms)
    assert isinstance(tool, FieldCondition)
    assert [(value.text, value.pattern) for value in tool.values] == [("refund", False), ("get_*", True)]
    assert isinstance(cost, FieldCondition)
    assert (cost.operator, cost.values[0].number) == (">", 0.1)
    assert said == TextSearch("out of stock")


def test_groups_hold_alternatives() -> None:
    [term] = parse_filter("-(agent:a tool:b or (x or y))", NOW)
    assert term.negated
    assert isinstance(term.condition, AnyOf)
    assert [len(terms) for terms in term.condition.filters] == [2, 1]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("duration<500ms", 500),
        ("duration<2m", 120_000),
        ("duration<1.5h", 5_400_000),
        ("cost=5¢", 0.05),
        ("cost=$2", 2),
        ("tokens>20k", 20_000),
        ("tokens>1.5M", 1_500_000),
        ("score>=0.5", 0.5),
        ("since:7d", NOW - 7 * 86_400_000),
        ("since:2026-11-16", 1_794_787_200_000),
        ("until:2026-11-16", 1_794_787_200_000 + 86_400_000),
    ],
)
def test_units_are_read(text: str, number: float) -> None:
    [term] = parse_filter(text, NOW)
    assert isinstance(term.condition, FieldCondition)
    assert term.condition.values[0].number == pytest.approx(number)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("a tol:refund", "There is no field “tol”. Did you mean tool:?", "tol"),
        ("duration>10x", "“10x” is not a duration. Write 10s, 500ms or 2m.", "10x"),
        ("duration>10", "“10” is not a duration. Write 10s, 500ms or 2m.", "10"),
        ("cost>nan", "“nan” is not an amount of money. Write $0.10 or 5¢.", "nan"),
        ("score>inf", "“inf” is not a number. Write 0.5.", "inf"),
        ('a "out of', "The quote that begins at 3 has no end.", '"out of'),
        ("outcome:fail", "“fail” is not a value of “outcome”. Did you mean outcome:failed?", "fail"),
        ("(a or b", "The “(” that begins at 1 has no “)”.", "(a or b"),
        ("a)", "There is no “(” for this “)”.", ")"),
        ("(a or )", "There is nothing here to filter by.", " )"),
        ("a or b", "“or” stands between filters in parentheses: (tool:a or tool:b).", "or"),
        ("agent>x", "“agent” has no order: “>” cannot be used.", "agent>"),
        ("cost<1,2", "“cost<” takes one value.", "cost<1,"),
        ("cost<unknown", "“unknown” has no order. Write cost:unknown.", "cost<unknown"),
        ("grader:g=good", "A verdict is one of passed, failed, errored, skipped, not “good”.", "good"),
        ("cost > 1", "Field, sign and value stand together, without spaces: cost>1.", ">"),
        ("tool:", "A value of “tool” is missing, such as tool:NAME.", ""),
        ("a --", "There is no word here to look for: a word has letters or digits.", "-"),
        ("since:yesterday", "“yesterday” is not a time. Write 7d, 12h or 2026-11-16.", "yesterday"),
    ],
)
def test_an_error_names_the_place_and_what_may_have_been_meant(text: str, message: str, place: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text, NOW)
    assert (caught.value.message, text[caught.value.start : caught.value.end]) == (message, place)


@pytest.mark.parametrize("text", ["a" * (MAX_FILTER + 1), "a " * (MAX_TERMS + 1), "(" * (MAX_DEPTH + 1) + "a"])
def test_a_filter_has_limits(text: str) -> None:
    with pytest.raises(FilterError, match="at most"):
        parse_filter(text, NOW)


def test_every_field_has_a_condition() -> None:
    assert set(FIELDS) == set(get_args(FieldName)) == set(_CONDITIONS)


@given(st.sampled_from(["agent", "tool", "why", "case"]), st.text(min_size=1, max_size=30))
def test_a_written_term_is_read_as_the_same_value(field: FieldName, value: str) -> None:
    [term] = parse_filter(written_term(field, value), NOW)
    assert isinstance(term.condition, FieldCondition)
    assert (term.condition.field, term.condition.operator) == (field, "=")
    assert [(found.text, found.pattern, found.unknown) for found in term.condition.values] == [(value, False, False)]


@given(st.text(alphabet='ab:-"(),*or <>=$1ms', max_size=60))
def test_any_text_is_a_filter_or_an_error_with_a_place_in_it(text: str) -> None:
    terms, wrong = None, (0, 0)
    try:
        terms = parse_filter(text, NOW)
    except FilterError as error:
        wrong = (error.start, error.end)
    assert 0 <= wrong[0] <= wrong[1] <= len(text)
    for written, rest in [] if terms is None else without_each(text, terms):
        assert terms is not None
        assert len(parse_filter(rest, NOW)) == len(terms) - 1
        assert len(parse_filter(with_term(rest, written), NOW)) == len(terms)
