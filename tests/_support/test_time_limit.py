"""Time limits that the work itself looks at."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from seatrial._support.time_limit import TimeLimit, check_time, current_limit
from seatrial.errors import SeatrialError


def test_without_a_limit_time_does_not_matter() -> None:
    check_time()
    assert current_limit() is None


def test_the_limit_holds_inside_its_block_alone() -> None:
    with TimeLimit(0.001) as limit:
        time.sleep(0.01)
        with pytest.raises(SeatrialError) as caught:
            check_time()
    assert (caught.value.code, limit.expired) == ("time_limit", True)
    check_time()


def test_of_two_limits_the_one_that_ends_first_counts() -> None:
    with TimeLimit(0.001) as outer, TimeLimit(60) as inner:
        time.sleep(0.01)
        with pytest.raises(SeatrialError, match=r"longer than 0\.001 s"):
            check_time()
    assert (outer.expired, inner.expired) == (True, False)


def test_a_limit_says_that_it_ended_something_also_when_the_error_was_swallowed() -> None:
    with TimeLimit(0.001) as limit:
        time.sleep(0.01)
        with suppress(SeatrialError):
            check_time()
    assert limit.expired
