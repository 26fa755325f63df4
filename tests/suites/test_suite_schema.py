"""The published schema says the same of a suite as the validation does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from seatrial.suites.reference import suite_reference
from seatrial.suites.schema import STRUCTS, field_docs, suite_json_schema
from suites.test_load import WHOLE

SCHEMA = suite_json_schema()
BAD = Path(__file__).parent / "bad"


def errors(value: Any) -> list[str]:
    return [error.message for error in jsonschema_rs.validator_for(SCHEMA).iter_errors(value)]


def test_a_whole_suite_fits() -> None:
    assert errors(yaml.safe_load(WHOLE)) == []


@pytest.mark.parametrize(
    "name",
    ["unknown-key", "wrong-type", "a-fraction", "a-truth", "out-of-range", "nested-unknown-keys", "not-a-mapping",
     "cases-are-no-list", "unknown-kind-of-agent", "no-kind-of-agent", "a-key-of-another-kind", "a-wrong-choice",
     "a-bad-target", "headers", "unknown-grader", "graders", "cases", "worlds"],
)  # fmt: skip
def test_what_has_the_wrong_shape_does_not_fit(name: str) -> None:
    assert errors(yaml.safe_load((BAD / f"{name}.yaml").read_text(encoding="utf-8")))


def test_every_key_is_described() -> None:
    for struct in STRUCTS:
        described = field_docs(struct)
        assert [name for name in struct.__struct_fields__ if name not in described] == [], struct.__name__


def test_descriptions_reach_the_editor() -> None:
    properties = SCHEMA["$defs"]["SuiteFile"]["properties"]
    assert properties["trials"]["description"] == "How often each agent runs each case."
    assert SCHEMA["$defs"]["Equals"]["properties"]["value"]["description"] == (
        "What the answer must be; the case's `expected` when absent."
    )
    assert (
        SCHEMA["$defs"]["Equals"]["properties"]["weight"]["description"] == "Its share in the weighted score of a case."
    )


def test_the_reference_has_every_key() -> None:
    text = suite_reference()
    for struct in STRUCTS:
        for name in struct.__struct_encode_fields__:
            assert f"| `{name}` |" in text, f"{struct.__name__}.{name}"
