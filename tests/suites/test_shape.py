"""Whatever `msgspec` refuses is told in words, and nothing that it takes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from seatrial.problems import Problems
from seatrial.suites.shape import choose, compare, fit


class Point(msgspec.Struct, forbid_unknown_fields=True):
    x: int
    y: Annotated[float, Meta(ge=0, lt=10)] = 0.0


class Circle(msgspec.Struct, tag_field="kind", tag="circle", forbid_unknown_fields=True):
    centre: Point
    words: list[str] = []


class Square(msgspec.Struct, tag_field="kind", tag="square", forbid_unknown_fields=True):
    side: Literal["short", "long"]
    notes: dict[str, int | None] = {}


class Sheet(msgspec.Struct, forbid_unknown_fields=True, rename={"source": "from"}):
    shapes: dict[str, Circle | Square] = {}
    source: str | list[str] | Point = ""
    anything: Any = None
    flag: bool = False


keys = st.sampled_from(
    ["shapes", "from", "anything", "flag", "kind", "centre", "side", "x", "y", "words", "notes", "a"]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-1, 11)
    | st.floats(-1, 11)
    | st.sampled_from(["circle", "square", "long", ""])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


@given(st.dictionaries(keys, values, max_size=4) | values)
def test_a_value_is_told_of_exactly_when_msgspec_refuses_it(value: Any) -> None:
    problems = Problems()
    compare(value, Sheet, (), problems)
    try:
        msgspec.convert(value, Sheet)
    except msgspec.ValidationError:
        assert problems.found
    else:
        assert problems.found == []


def said(value: Any, kind: Any = Sheet) -> list[tuple[str, str]]:
    problems = Problems()
    assert fit(value, kind, (), problems) is None
    return [(problem.pointer, problem.message) for problem in problems.found]


def test_every_difference_is_told_with_its_pointer() -> None:
    value = {
        "shapes": {
            "a": {"kind": "circle", "centre": {"x": "1", "y": 10}, "words": ["ok", 1, None]},
            "b": {"kind": "square", "notes": {"n": "x"}},
            "c": {"kind": "triangle"},
            "d": {"kind": 3},
            "e": 5,
        },
        "from": 3,
        "flag": "yes",
    }
    assert said(value) == [
        ("/shapes/a/centre/x", "`x` must be a whole number, not text"),
        ("/shapes/a/centre/y", "`y` must be less than 10, not 10"),
        ("/shapes/a/words/1", "item 2 of `words` must be text, not a whole number"),
        ("/shapes/a/words/2", "item 3 of `words` must be text, not empty"),
        ("/shapes/b", "the key `side` is missing in `b`"),
        ("/shapes/b/notes/n", "`n` must be a whole number, not text"),
        ("/shapes/c/kind", "unknown kind `triangle`"),
        ("/shapes/d/kind", "`kind` must be text, not a whole number"),
        ("/shapes/e", "`e` must be a mapping, not a whole number"),
        ("/from", "`from` must be text or a list or a mapping, not a whole number"),
        ("/flag", "`flag` must be `true` or `false`, not text"),
    ]


def test_a_rule_that_the_walk_does_not_know_is_told_in_msgspecs_words() -> None:
    class Limited(msgspec.Struct):
        few: Annotated[list[int], Meta(max_length=1)]

    assert said({"few": [1, 2]}, Limited) == [("/few", "Expected `array` of length <= 1")]


def test_what_fits_is_converted() -> None:
    problems = Problems()
    assert fit({"shapes": {"a": {"kind": "square", "side": "long"}}}, Sheet, (), problems) == Sheet(
        shapes={"a": Square("long")}
    )
    assert problems.found == []


def test_a_kind_that_is_near_none_is_told_with_all_that_there_are() -> None:
    problems = Problems()
    known = {f"kind-{number}": number for number in range(30)}
    assert choose({"kind": "xyz"}, "kind", known, (), problems) is None
    (problem,) = problems.error().problems
    assert problem.hint is not None
    assert all(f"`{name}`" in problem.hint for name in known)
