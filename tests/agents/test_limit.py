"""The nearer of an agent's own timeout and the run's deadline counts, and says which it was."""

from __future__ import annotations

import pytest

from agents.setting import a_request
from seatrial.agents.limit import time_limit


@pytest.mark.parametrize(
    ("left_s", "own_s", "seconds", "error_class"),
    [
        (5.0, None, 5.0, "deadline_exceeded"),
        (5.0, 9.0, 5.0, "deadline_exceeded"),
        (5.0, 5.0, 5.0, "deadline_exceeded"),
        (9.0, 5.0, 5.0, "agent_timeout"),
        (None, 5.0, 5.0, "agent_timeout"),
    ],
)
def test_the_nearer_limit_counts(left_s: float | None, own_s: float | None, seconds: float, error_class: str) -> None:
    limit = time_limit(a_request(timeout_s=left_s), own_s)
    assert limit.seconds == seconds
    assert limit.fault().error_class == error_class
    assert "5 s" in limit.fault().message


def test_there_may_be_no_limit() -> None:
    assert time_limit(a_request(timeout_s=None)).seconds is None
