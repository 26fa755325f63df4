"""JSON values as HTML."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.explorer.json_view import MAX_NODES, json_view, one_line_json
from seatrial.store import LongText

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


def test_a_short_value_is_on_a_line_and_a_long_one_is_a_tree() -> None:
    assert json_view({"a": [1, "b", None, True]}).count("<ul>") == 0
    tree = json_view({"a": {"b": {"c": {"d": ["x" * 100] * 9}}}})
    assert tree.count("<details open>") == 1
    assert tree.count("<details>") == 3
    assert "9\N{NO-BREAK SPACE}items" in tree


def test_a_long_array_is_in_hundreds_and_what_is_left_out_is_counted() -> None:
    view = json_view(list(range(10_000)), "/steps/0/result", lambda pointer: f"/text{pointer}")
    assert "<summary>100 to 199</summary>" in view
    assert "9751 more" in view
    assert 'href="/text/steps/0/result"' in view
    assert view.count("<li>") < MAX_NODES + 10


def test_what_is_kept_elsewhere_says_how_much_it_is() -> None:
    text = LongText("/steps/0/result/log", "a" * 64, 48_000, 1_000)
    view = json_view({"log": "beginning"}, "/steps/0/result", str, {text.pointer: text})
    assert "beginning…" in view
    assert "1000 lines, 48\N{NO-BREAK SPACE}KB" in view
    value = LongText("/steps/0/result", "a" * 64, 48_000, 1)
    assert "48\N{NO-BREAK SPACE}KB of JSON" in json_view(None, "/steps/0/result", str, {value.pointer: value})


def test_the_value_that_differs_is_marked() -> None:
    assert '<mark><span class="jn">238</span></mark>' in json_view({"amount": 238}, "/a", str, {}, ["/a/amount"])
    deep = {"x": {"y": {"z": {"amount": 238, "pad": "p" * 600}}}}
    assert json_view(deep, "", str, {}, ["/x/y/z/amount"]).count("<details open>") == 3


@given(JSON)
def test_nothing_in_a_value_is_markup(value: Any) -> None:
    shown = json_view(value)
    for tag in ("<script", "<img", "onerror", "javascript:"):
        assert tag not in shown or "&lt;" in shown


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\u202eevil\u200b"])
def test_hostile_keys_and_texts_are_escaped_and_visible(text: str) -> None:
    for value in ({text: text}, {text: [text * 300]}, [text] * 200):
        shown = json_view(value, "", quote)
        assert "<script" not in shown
        assert "<img" not in shown
        assert "\u202e" not in shown
        assert "\u200b" not in shown
    assert "\u202e" not in (one_line_json({text: text}) or "")


def test_values_that_go_deep_or_are_odd_are_shown_all_the_same() -> None:
    deep: Any = "end"
    for _ in range(400):
        deep = [deep]
    assert "nested deeper" in json_view(deep)
    assert "too long" in json_view([10**5000, "x" * 600])
    assert json_view({}) == '<code class="j">{}</code>'
    assert json_view([]) == '<code class="j">[]</code>'
