"""A template of a request: nothing that a case or a variable holds can leave its place in JSON, a header or a URL."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.setting import a_case
from seatrial._support import wire
from seatrial.agents.http import template
from seatrial.agents.http.config import HttpConfig
from seatrial.agents.http.template import RequestTemplate, Values
from seatrial.errors import SeatrialError

TEXTS = st.text() | st.sampled_from(
    ['"}, "admin": true, {"', "{{run_id}}", "a&b=c#d", "x\r\nSet-Cookie: y", "\\", "${X}"]
)


def values(instruction: str = "hello", **case: Any) -> Values:
    return Values(a_case(instruction=instruction, **case), "run-1")


def shape(value: Any) -> Any:
    """A JSON value with every text but keys taken out."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return "" if isinstance(value, str) else value


BODY = {
    "whole": "{{instruction}}",
    "part": 'say "{{instruction}}" to {{input.name}}',
    "nested": [{"id": "{{case_id}}-{{ run_id }}"}, 1, None],
    "messages": "{{messages}}",
}


@given(TEXTS, TEXTS)
def test_no_instruction_changes_the_structure_of_a_request(instruction: str, name: str) -> None:
    plain = values("x", input={"name": "y"}).json(BODY)
    sent = json.loads(wire.encode(values(instruction or "x", input={"name": name}).json(BODY)))
    assert shape(sent) == shape(plain)
    assert sent["messages"][0]["content"] == sent["whole"]
    if instruction and not any("\ud800" <= letter <= "\udfff" for letter in instruction + name):
        assert sent["whole"] == instruction
        assert sent["part"] == f'say "{instruction}" to {name}'


@given(TEXTS, TEXTS)
def test_a_query_has_the_parameters_of_its_template_whatever_they_hold(instruction: str, name: str) -> None:
    query = values(instruction, input={"name": name}).query({"q": "{{instruction}}", "who are": "is {{input.name}}"})
    assert query.isascii()
    found = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    assert [key for key, _ in found] == ["q", "who are"]
    if not any("\ud800" <= letter <= "\udfff" for letter in instruction + name):
        assert [value for _, value in found] == [instruction, f"is {name}"]


@given(TEXTS)
def test_a_header_is_one_printable_line_whatever_it_holds(instruction: str) -> None:
    (value,) = values(instruction).headers({"X-Prompt": "p={{instruction}}"}).values()
    assert value.isascii()
    assert value.isprintable()


@given(TEXTS.filter(bool))
def test_the_value_of_a_variable_is_never_a_placeholder(value: str) -> None:
    written = RequestTemplate(body={"key": "${KEY}", "long": "{${KEY}} {{instruction}}"})
    filled = template.resolved(written, {"KEY": value})
    assert values().json(filled.body) == {"key": value, "long": f"{{{value}}} hello"}
    assert repr(filled.body["key"]) == "'${KEY}'"


def test_a_placeholder_that_is_a_whole_text_becomes_the_value_itself() -> None:
    case: dict[str, Any] = {
        "input": {"n": 3, "tags": ["a", {"b": None}]},
        "messages": [{"role": "system", "content": "s"}],
    }
    sent = values(**case).json(
        ["{{input.n}}", "{{ input.tags.1 }}", "n={{input.n}} {{input.tags}}", "{{input}}", "{{messages}}"]
    )
    assert sent == [
        3,
        {"b": None},
        'n=3 ["a",{"b":null}]',
        case["input"],
        [{"role": "system", "content": "s"}, {"role": "user", "content": "hello"}],
    ]


def test_a_literal_pair_of_braces_is_written_twice() -> None:
    assert values().json("{{{{instruction}} is {{instruction}} }} {x}") == "{{instruction}} is hello }} {x}"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("{{instructions}}", "unknown placeholder `{{instructions}}`", "`instruction`"),
        ("{{prompt}}", "unknown placeholder `{{prompt}}`", "one of"),
        ("{{message.0}}", "unknown placeholder", "`messages`"),
        ("{{case_id.x}}", "unknown placeholder", "`case_id`"),
        ("{{input.}}", "unknown placeholder", "`input`"),
        ("{{", "no `}}` closes", "{{{{"),
    ],
)
def test_what_is_no_placeholder_is_an_error_that_names_the_nearest(text: str, message: str, hint: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        template.split(text)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_case_without_what_the_request_needs_cannot_be_sent() -> None:
    with pytest.raises(SeatrialError, match=r"the case `case-1` has no `input\.x\.y`"):
        values(input={"x": {}}).json("{{input.x.y}}")


def test_the_agent_takes_the_keys_of_cases_that_its_request_has() -> None:
    config = HttpConfig(
        endpoint_url="http://x/", request=RequestTemplate(body={"q": "{{instruction}}", "i": "{{input.a}}"})
    )
    assert {"input", "timeout_s"} <= config.taken_keys(None)
    assert "messages" not in config.taken_keys(None)
