"""Graders of the answer as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from graders.subjects import subject, verdict
from seatrial.errors import SeatrialError
from seatrial.graders import build_graders


@pytest.mark.parametrize(
    ("answer", "plain", "fenced"),
    [
        ('{"a": 1}', True, True),
        ("17", True, True),
        ("", False, False),
        ("{'a': 1}", False, False),
        ('```json\n{"a": 1}\n```', False, True),
        ("```\n[1]\n```\n", False, True),
        ('```json\r\n{"a": 1}\r\n```', False, True),
        ('Here it is:\n```json\n{"a": 1}\n```', False, False),
        ('{"a": NaN}', False, False),
        ("[" * 5000 + "]" * 5000, False, False),
        ("\ud800", False, False),
    ],
)
def test_is_json_takes_json_and_nothing_else(answer: str, plain: bool, fenced: bool) -> None:
    assert verdict(subject(answer), {"kind": "is_json"}).outcome == ("passed" if plain else "failed")
    assert verdict(subject(answer), {"kind": "is_json", "fenced": True}).outcome == ("passed" if fenced else "failed")


SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "total": {"minimum": 0}}}


def test_json_schema_names_every_violation_with_its_place() -> None:
    assert verdict(subject('{"id": "o-1"}'), {"kind": "json_schema", "schema": SCHEMA}).outcome == "passed"
    found = verdict(subject('{"id": 1, "total": -1}'), {"kind": "json_schema", "schema": SCHEMA})
    assert found.outcome == "failed"
    assert "/id: " in found.reasons[0]
    assert "/total: " in found.reasons[0]
    assert verdict(subject("no"), {"kind": "json_schema", "schema": SCHEMA}).outcome == "failed"


@pytest.mark.parametrize("schema", [{}, {"type": "objet"}, {"$ref": "https://example.com/x.json"}])
def test_a_schema_that_cannot_be_used_is_refused(schema: dict[str, Any]) -> None:
    (grader,) = build_graders([{"kind": "json_schema", "schema": schema}])
    with pytest.raises(SeatrialError) as caught:
        grader.prepare()
    assert (caught.value.code, caught.value.pointer) == ("invalid_config", "/schema")


def test_field_accuracy_compares_every_value_of_what_is_expected() -> None:
    expected = {"order": {"id": "o-1", "items": [{"sku": "a"}, {"sku": "b"}]}, "total": 12.5}
    answer = '{"order": {"id": "o-1", "items": [{"sku": "a"}, {"sku": "c"}]}, "total": 12.50, "more": 1}'
    found = verdict(subject(answer, expected=expected), {"kind": "field_accuracy"})
    assert (found.outcome, found.score) == ("failed", 0.75)
    assert found.reasons == ['3 of 4 fields are right: 0.75; /order/items/1/sku is "c", expected "b"']
    assert [(field.path, field.passed) for field in found.details] == [
        ("/order/id", True),
        ("/order/items/0/sku", True),
        ("/order/items/1/sku", False),
        ("/total", True),
    ]


@pytest.mark.parametrize(
    ("field", "answer", "passes"),
    [
        ({"path": "n", "value": 100, "match": "number", "abs": 0.5}, '{"n": 100.5}', True),
        ({"path": "n", "value": 100, "match": "number", "abs": 0.5}, '{"n": 100.6}', False),
        ({"path": "n", "value": 100, "match": "number", "rel": 0.01}, '{"n": "101"}', True),
        ({"path": "n", "value": 100, "match": "number", "rel": 0.01}, '{"n": 101.1}', False),
        ({"path": "n", "value": 100, "match": "number"}, '{"n": true}', False),
        ({"path": "n", "value": 100, "match": "number"}, '{"n": "nan"}', False),
        ({"path": "d", "value": "2025-03-01", "match": "date"}, '{"d": "2025-03-01T10:00:00"}', True),
        ({"path": "d", "value": "2025-03-01", "match": "date"}, '{"d": "2025-03-02"}', False),
        ({"path": "d", "value": "2025-03-01", "match": "date", "formats": ["%d.%m.%Y"]}, '{"d": "1.3.2025"}', True),
        ({"path": "n", "value": 1.1, "match": "number", "abs": 0.01}, '{"n": 1.11}', True),
        ({"path": "n", "value": 1.1, "match": "number", "rel": 0.1}, '{"n": "1.21"}', True),
        ({"path": "n", "value": 12345678901234567891, "match": "number"}, '{"n": 12345678901234567892}', False),
        ({"path": "n", "value": 0, "match": "number", "abs": 1e308}, '{"n": "1e999999999999999999"}', False),
        ({"path": "d", "value": "2025-03-01", "match": "date"}, '{"d": "1.3.2025"}', False),
        ({"path": "d", "value": "2025-03-01T23:30:00-02:00", "match": "date"}, '{"d": "2025-03-02"}', True),
        ({"path": "t", "value": "Jane  Doe", "match": "text"}, '{"t": " jane doe"}', True),
        ({"path": "t", "value": "Jane", "match": "text"}, '{"t": "John"}', False),
        ({"path": "a.0.b", "value": None}, '{"a": [{"b": null}]}', True),
        ({"path": "a.0.b", "value": None}, '{"a": [{}]}', False),
        ({"path": "/a~1b", "value": 1}, '{"a/b": 1}', True),
        ({"path": "x", "value": True}, '{"x": 1}', False),
    ],
)
def test_fields_are_compared_as_their_match_says(field: dict[str, Any], answer: str, passes: bool) -> None:
    found = verdict(subject(answer), {"kind": "field_accuracy", "fields": [field]})
    assert found.outcome == ("passed" if passes else "failed")


def test_fields_weigh_what_they_are_given() -> None:
    fields = [{"path": "a", "value": 1, "weight": 3}, {"path": "b", "value": 1}]
    found = verdict(subject('{"a": 1, "b": 2}'), {"kind": "field_accuracy", "fields": fields, "min_score": 0.7})
    assert (found.outcome, found.score) == ("passed", 0.75)
    assert "weights 3 / 4" in found.reasons[0]


def test_field_accuracy_without_anything_to_compare_is_errored() -> None:
    assert verdict(subject("{}"), {"kind": "field_accuracy"}).outcome == "errored"
    assert verdict(subject("{}", expected={}), {"kind": "field_accuracy"}).outcome == "errored"
    by_path = {"kind": "field_accuracy", "fields": [{"path": "a"}]}
    assert verdict(subject('{"a": 1}', expected={"b": 1}), by_path).outcome == "errored"


@pytest.mark.parametrize(("match", "wanted"), [("number", "many"), ("date", "soon"), ("text", 1)])
def test_an_expectation_that_no_answer_could_meet_says_nothing_of_the_agent(match: str, wanted: object) -> None:
    grader = {"kind": "field_accuracy", "fields": [{"path": "a", "match": match}]}
    found = verdict(subject('{"a": 1}', expected={"a": wanted}), grader)
    assert found.outcome == "errored"
    assert f"at `a`, which is no {match}" in found.reasons[0]


def test_an_answer_that_is_not_json_has_no_right_field() -> None:
    assert verdict(subject("a is 1", expected={"a": 1}), {"kind": "field_accuracy"}).outcome == "failed"


@pytest.mark.parametrize(
    "field",
    [
        {"path": "a", "value": "x", "match": "number"},
        {"path": "a", "value": "soon", "match": "date"},
        {"path": "a", "value": 1, "match": "text"},
        {"path": "a", "value": 1, "abs": 1},
        {"path": "a", "value": 1, "formats": ["%d"]},
        {"path": "a", "value": 1, "weight": 0},
    ],
)
def test_a_field_that_can_never_be_right_is_refused(field: dict[str, Any]) -> None:
    (grader,) = build_graders([{"kind": "field_accuracy", "fields": [field]}])
    with pytest.raises(SeatrialError):
        grader.prepare()
