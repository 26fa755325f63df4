"""A JSON Schema of a suite, and values of an agent."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial._support.json_schema import MAX_WITH_PATTERNS, Schema
from seatrial.errors import SeatrialError


@pytest.mark.parametrize("pattern", ["^(?=a)a", "(?<!a)b", r"(a)\1"])
def test_a_pattern_that_may_backtrack_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(SeatrialError, match="no look-around and no back references") as caught:
        Schema({"pattern": pattern})
    assert caught.value.code == "invalid_config"


def test_a_pattern_that_other_engines_hang_on_is_linear() -> None:
    schema = Schema({"items": {"pattern": "^(a+)+$"}})
    assert not schema.fits(["a" * 5_000 + "!"] * 100)
    assert schema.fits(["a" * 5_000] * 100)


def test_an_array_with_a_million_problems_is_not_searched_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema({"items": {"type": "string"}})
    value = list(range(200_000))
    assert schema.problems(value, 1_400_000) == ['/0: 0 is not of type "string"']
    assert len(schema.problems(value[:50], 150)) == 20


@pytest.mark.parametrize("schema", [{"pattern": "a"}, {"properties": {"x": {"patternProperties": {"a": {}}}}}])
def test_patterns_are_not_applied_to_megabytes(schema: dict[str, Any]) -> None:
    value = "a" * MAX_WITH_PATTERNS
    for check in (Schema(schema).fits, lambda value: Schema(schema).problems(value, len(value) + 2)):
        with pytest.raises(SeatrialError) as caught:
            check(value)
        assert caught.value.code == "text_too_long"


def test_a_schema_without_patterns_has_no_such_limit() -> None:
    assert Schema({"type": "string"}).fits("a" * MAX_WITH_PATTERNS)
