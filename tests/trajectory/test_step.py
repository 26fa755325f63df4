from __future__ import annotations

import msgspec
import pytest
from msgspec import UNSET

from seatrial.trajectory.step import Moment, Step, duration, milliseconds, summarise


def test_a_step_always_writes_index_name_arguments_source_and_status_and_leaves_out_what_is_not_known() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Step(0, "search", {}))) == {
        "index": 0,
        "name": "search",
        "arguments": {},
        "source": "trace",
        "status": "unknown",
    }


def test_a_null_result_is_not_the_same_as_no_result() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Step(0, "a", {}, result=None)))["result"] is None
    assert msgspec.json.decode(b'{"index":0,"name":"a","arguments":{}}', type=Step).result is UNSET


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (1000, 1250, 250),
        (1000.5, 1001, 0.5),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01.500Z", 1500),
        ("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00", 0),
        (0, "1970-01-01T00:00:01Z", 1000),
        (2000, 1000, None),
        ("soon", 1000, None),
        (float("nan"), 1000, None),
        (float("inf"), float("inf"), None),
        (True, 2000, None),
        (None, 1000, None),
        (1000, None, None),
    ],
)
def test_a_duration_is_end_minus_start_where_both_are_known_and_in_order(
    start: Moment | None, end: Moment | None, expected: float | None
) -> None:
    assert duration(Step(0, "a", {}, started_at=start, ended_at=end)) == expected


def test_a_given_duration_counts_more_than_start_and_end() -> None:
    assert duration(Step(0, "a", {}, started_at=0, ended_at=1000, duration_ms=7)) == 7


@pytest.mark.parametrize("moment", ["", "2026-13-01", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_text_that_is_no_moment_never_raises(moment: str) -> None:
    assert milliseconds(moment) is None or isinstance(milliseconds(moment), float)


def test_a_summary_counts_steps_by_name_errors_model_calls_times_and_durations() -> None:
    summary = summarise(
        [
            Step(0, "search", {}, status="ok", started_at="2026-01-01T00:00:05Z", ended_at="2026-01-01T00:00:06Z"),
            Step(1, "read", {}, status="error", started_at="2026-01-01T00:00:02Z"),
            Step(2, "search", {}, status="timeout", ended_at="2026-01-01T00:00:09Z", duration_ms=10),
        ],
        model_calls=4,
    )
    assert msgspec.to_builtins(summary) == {
        "steps": 3,
        "by_name": {"search": 2, "read": 1},
        "errors": 2,
        "model_calls": 4,
        "first_start": "2026-01-01T00:00:02Z",
        "last_end": "2026-01-01T00:00:09Z",
        "duration_ms": {"search": 1010},
    }


def test_a_summary_of_nothing_is_all_zero() -> None:
    assert msgspec.to_builtins(summarise([], 0)) == {
        "steps": 0,
        "by_name": {},
        "errors": 0,
        "model_calls": 0,
        "first_start": None,
        "last_end": None,
        "duration_ms": {},
    }
