"""A suite is called by what it says, not by how it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.runs import Case
from seatrial.suites import Suite, case_hash, load_suite, stored_form, suite_hash
from suites.samples import AGENT, load, write

TEXT = """\
name: shop
agents:
  a: {kind: http, endpoint_url: "http://x/${PORT:-80}", auth_credential_value: "${TOKEN}"}
  b: {kind: python, target: "m:f"}
graders: [{kind: equals, value: {x: 1, y: 2}}]
cases:
  - {id: one, instruction: hello, input: {a: 1, b: 2}}
  - {id: two, instruction: bye}
"""
OTHER_WORDS = """\
# The same, in other words.
cases: [{"instruction": "hello", "id": "one", "input": {"b": 2, "a": 1}}, {from: more.jsonl}]
graders:
  - value:
      y: 2
      x: 1
    kind: equals
description: reworded
agents:
  a:
    auth_credential_value: ${TOKEN}
    endpoint_url: http://x/${PORT:-80}
    kind: http
  b:
    kind: python
    target: m:f
"""
TOKEN = {"TOKEN": "t0p-s3cr3t"}


def digest(suite: Suite) -> str:
    return suite_hash(suite, variables={})


def test_order_of_keys_formatting_names_and_files_do_not_matter(tmp_path: Path) -> None:
    write(tmp_path, '{"instruction": "bye", "id": "two"}\n', "more.jsonl")
    assert digest(load(tmp_path, TEXT, TOKEN)) == digest(load(tmp_path, OTHER_WORDS, TOKEN))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hello", "hullo"),
        ("value: {x: 1", "value: {x: 2"),
        ("m:f", "m:g"),
        ("{id: two", "{id: zwei"),
        (":-80", ":-81"),
        ("name: shop", "trials: 2"),
    ],
)
def test_everything_that_changes_a_run_matters(old: str, new: str, tmp_path: Path) -> None:
    assert old in TEXT
    assert digest(load(tmp_path, TEXT, TOKEN)) != digest(load(tmp_path, TEXT.replace(old, new), TOKEN))


def test_the_order_of_cases_matters(tmp_path: Path) -> None:
    suite = load(tmp_path, TEXT, TOKEN)
    turned = load(tmp_path, TEXT, TOKEN)
    turned.cases.reverse()
    assert digest(suite) != digest(turned)


def test_a_function_counts_by_its_name_and_arguments_and_is_not_called(tmp_path: Path) -> None:
    texts = [AGENT + f"cases: [{{from: 'nowhere:make', arguments: {{n: {n}}}}}]\n" for n in (1, 1, 2)]
    one, same, other = (digest(load(tmp_path, text)) for text in texts)
    assert one == same != other


def test_values_of_variables_are_not_a_part_of_it(tmp_path: Path) -> None:
    one, other = load(tmp_path, TEXT, TOKEN), load(tmp_path, TEXT, {"TOKEN": "another", "PORT": "9"})
    assert digest(one) == digest(other)
    assert stored_form(one) == stored_form(other)
    for suite in (one, other):
        shown = json.dumps(stored_form(suite)) + repr(suite) + str(suite)
        assert "t0p-s3cr3t" not in shown
        assert "another" not in shown
        assert "${TOKEN}" in shown


def test_the_stored_form_is_a_suite_again(tmp_path: Path) -> None:
    suite = load(tmp_path, TEXT, TOKEN)
    again = load_suite(write(tmp_path, json.dumps(stored_form(suite))), variables=TOKEN)
    assert again == suite


@given(st.dictionaries(st.text(), st.integers(-(2**63), 2**64 - 1) | st.text(), max_size=5))
def test_a_case_is_called_by_its_content(values: dict[str, int | str]) -> None:
    case = Case(id="a", instruction="x", input=values)
    turned = Case(id="a", instruction="x", input=dict(reversed(list(values.items()))))
    assert case_hash(case) == case_hash(turned)
    assert case_hash(case) != case_hash(Case(id="a", instruction="x", input={**values, "more": 1, "still more": 2}))


def test_a_lone_surrogate_has_a_hash_too() -> None:
    assert len(case_hash(Case(id="a", instruction="\ud800"))) == 32
