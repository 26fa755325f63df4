"""Placeholders put a value in place, and nothing in a value means anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.agents.cli.placeholders import PLACEHOLDERS, put_in, used


@given(st.text(), st.text())
def test_a_value_is_put_in_as_it_is(prompt: str, case_id: str) -> None:
    values = {"PROMPT": prompt, "EVAL_ID": case_id}
    assert put_in("{PROMPT}", values) == prompt
    assert put_in("--x={EVAL_ID}:{PROMPT}!", values) == f"--x={case_id}:{prompt}!"


@given(st.text())
def test_text_with_doubled_braces_is_itself(text: str) -> None:
    doubled = text.replace("{", "{{").replace("}", "}}")
    assert put_in(doubled, {"PROMPT": "x"}) == text
    assert list(used(doubled)) == []


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_every_placeholder_is_found(name: str) -> None:
    assert list(used(f"a{{{name}}}b")) == [name]
    assert put_in(f"a{{{name}}}b", {name: ""}) == "ab"
