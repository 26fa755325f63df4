"""Every grader has a time limit that ends it, and none keeps the others waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any, ClassVar

import pytest

from graders.subjects import grade, step, subject, verdict
from seatrial._support.time_limit import TimeLimit, check_time, current_limit
from seatrial.graders import Grader, Subject, Surroundings, build_graders
from seatrial.graders.grader import Check, Finding, passed_if
from seatrial.graders.prepared import Prepared, prepare_all
from seatrial.graders.registry import GRADERS

ENDLESS = {"kind": "regex", "pattern": "^(a+)+$", "timeout_s": 0.3}
TEXT = "a" * 99_000 + "!"


@pytest.mark.parametrize("negate", [False, True])
def test_a_pattern_that_never_ends_is_errored_and_the_other_graders_judge(negate: bool) -> None:
    (endless, other), outcome = grade(subject(TEXT), {**ENDLESS, "negate": negate}, {"kind": "contains", "value": "!"})
    assert (endless.outcome, other.outcome, outcome.outcome) == ("errored", "passed", "errored")
    assert endless.reasons == ["the grader took longer than 0.3 s, its time limit (`timeout_s`)"]


def test_a_trajectory_that_takes_too_long_to_compare_is_errored() -> None:
    expected = [{"tool": "t", "args": {"v": {"$regex": "^(a+)+$"}}}]
    steps = [step(index, "t", {"v": TEXT}) for index in range(100)]
    grader = {"kind": "tool_trajectory", "mode": "superset", "expected": expected, "timeout_s": 0.3}
    found = verdict(subject(steps=steps), grader)
    assert found.outcome == "errored"
    assert "longer than 0.3 s" in found.reasons[0]


@pytest.mark.parametrize("mode", ["exact", "in_order", "unordered", "superset", "subset", "partial_order"])
def test_a_hundred_thousand_calls_end_within_the_time_limit(mode: str) -> None:
    steps = [step(index, f"tool_{index % 7}", {"n": index % 3}) for index in range(100_000)]
    expected = [{"tool": f"tool_{index % 7}", "args": {"n": {"$gte": index % 4}}} for index in range(300)]
    grader = {"kind": "tool_trajectory", "mode": mode, "expected": expected, "timeout_s": 0.5}
    found = verdict(subject(steps=steps), grader)
    assert found.outcome in ("failed", "errored")


def test_the_event_loop_goes_on_while_a_grader_computes() -> None:
    async def play() -> bool:
        # Long enough that a busy machine lets this loop go on meanwhile.
        (endless,) = prepare_all(build_graders([{**ENDLESS, "timeout_s": 2}]))
        waiting = endless.judge(subject(TEXT), Surroundings())
        assert isinstance(waiting, Awaitable)
        judging = asyncio.ensure_future(waiting)
        await asyncio.sleep(0.01)
        went_on = not judging.done()
        assert (await judging).outcome == "errored"
        return went_on

    assert asyncio.run(play())


class Slow(Grader):
    """Takes longer than is done at once, and not longer than it may."""

    threads: ClassVar[list[str]] = []

    def prepare(self) -> Check:
        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            Slow.threads.append(threading.current_thread().name)
            limit = current_limit()
            assert limit is not None
            if limit.seconds < 1:
                limit.until = 0.0
            check_time()
            return passed_if(True, "it has ended")

        return Check(find)


def test_a_check_that_takes_longer_is_begun_again_in_a_thread_and_counts() -> None:
    async def play() -> str:
        slow = Prepared(Slow(), "slow", Slow().prepare(), b"")
        waiting = slow.judge(subject(), Surroundings())
        assert isinstance(waiting, Awaitable)
        return (await waiting).outcome

    Slow.threads.clear()
    assert asyncio.run(play()) == "passed"
    first, second = Slow.threads
    assert (first, second != first) == (threading.current_thread().name, True)


def test_a_limit_around_a_grader_is_not_changed_by_it() -> None:
    with TimeLimit(60) as around:
        (contains,) = prepare_all(build_graders([{"kind": "contains", "value": "done"}]))
        contains.judge(subject(), Surroundings())
        assert current_limit() is around


def test_graders_within_a_composite_have_time_limits_of_their_own() -> None:
    composite = {"kind": "composite", "rule": "all", "graders": [ENDLESS, {"kind": "contains", "value": "!"}]}
    found = verdict(subject(TEXT), composite)
    assert found.outcome == "errored"
    assert "longer than 0.3 s" in " ".join(found.reasons)


@pytest.mark.parametrize("kind", list(GRADERS))
def test_every_kind_takes_a_time_limit(kind: str) -> None:
    assert "timeout_s" in GRADERS[kind].__struct_fields__
    assert GRADERS[kind].default_timeout_s > 0


@pytest.mark.parametrize("seconds", [0, -1, 100_000, "1"])
def test_a_time_limit_that_is_none_is_refused(seconds: Any) -> None:
    from seatrial.errors import SeatrialError

    with pytest.raises(SeatrialError) as caught:
        build_graders([{"kind": "contains", "value": "a", "timeout_s": seconds}])
    assert caught.value.pointer == "/0/timeout_s"


def test_the_time_limit_is_no_part_of_what_is_found() -> None:
    (short, long), _ = grade(subject(), *({"kind": "contains", "value": "a", "timeout_s": s} for s in (1, 2)))
    assert short.key == long.key != ""
