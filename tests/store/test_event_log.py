"""Events of runs that go on, on both stores."""

from __future__ import annotations

import pytest
from strategies import records

from seatrial.errors import SeatrialError
from seatrial.runs import RunKey
from seatrial.store import Store, open_store

KEY = RunKey("crew", "case-0", 1)


def test_events_are_numbered_from_0_without_a_gap(filled: Store) -> None:
    filled.begin_run("exp-1", KEY, "run-1")
    receipts = [filled.append_events("run-1", events) for events in ([b"0"], [b"1", b"2"], [], [b"3"])]
    assert [receipt.wait() for receipt in receipts] == [0, 2, 2, 3]
    assert filled.events("run-1") == [(0, b"0"), (1, b"1"), (2, b"2"), (3, b"3")]


def test_events_are_read_by_range(filled: Store) -> None:
    events = [b'{"n":%d,"pad":"%s"}' % (number, b"x" * (number % 50)) for number in range(3000)]
    filled.begin_run("exp-1", KEY, "run-1")
    for start, end in ((0, 1), (1, 2), (2, 700), (700, 701), (701, 3000)):
        filled.append_events("run-1", events[start:end])
    filled.append_events("run-1", []).wait()
    for after in (-1, 0, 1, 255, 256, 699, 700, 701, 2500, 2998, 2999, 5000, 10**19):
        for limit in (1, 3, 300, 10_000):
            expected = list(enumerate(events))[after + 1 : after + 1 + limit]
            assert filled.events("run-1", after=after, limit=limit) == expected
    assert filled.events("run-1", limit=0) == []


def test_a_huge_event_is_an_event(filled: Store) -> None:
    events = [b"1", b'"%s"' % (b"y" * 3_000_000), b"2"]
    filled.begin_run("exp-1", KEY, "run-1")
    filled.append_events("run-1", events).wait()
    assert [event for _, event in filled.events("run-1")] == events


def test_a_line_break_in_an_event_does_not_make_two_of_it(filled: Store) -> None:
    filled.begin_run("exp-1", KEY, "run-1")
    filled.append_events("run-1", [b'{\n  "type": "A"\n}', b"2"]).wait()
    assert filled.events("run-1") == [(0, b'{   "type": "A" }'), (1, b"2")]


def test_an_append_that_says_where_it_begins_is_refused_elsewhere(filled: Store) -> None:
    filled.begin_run("exp-1", KEY, "run-1")
    assert filled.append_events("run-1", [b"0"], first=0).wait() == 0
    for first in (0, 2):
        with pytest.raises(SeatrialError, match="next event of run run-1 is 1") as caught:
            filled.append_events("run-1", [b"x"], first=first).wait()
        assert (caught.value.code, caught.value.details) == ("sequence_conflict", {"head": 0})
    assert filled.append_events("run-1", [b"1"], first=1).wait() == 1


def test_a_recorded_run_goes_behind_its_live_events(filled: Store) -> None:
    run = records.run(run_id="run-1")
    filled.begin_run("exp-1", KEY, "run-1", started_at=1)
    filled.append_events("run-1", [b"0", b"1"])
    assert filled.record_run(run, events=[b"2"], first=2).wait()
    assert filled.run("run-1") == run
    assert [event for _, event in filled.events("run-1")] == [b"0", b"1", b"2"]


def test_it_need_not_say_how_many_those_were(filled: Store, where: str) -> None:
    filled.begin_run("exp-1", KEY, "run-1")
    filled.append_events("run-1", [b"0", b"1"]).wait()
    with open_store(where) as other:
        assert other.record_run(records.run(run_id="run-1"), events=[b"2"]).wait()
    assert [event for _, event in filled.events("run-1")] == [b"0", b"1", b"2"]


def test_a_run_that_another_store_began_is_recorded_by_this_one(filled: Store, where: str) -> None:
    with open_store(where) as other:
        other.begin_run("exp-1", KEY, "run-1")
        other.append_events("run-1", [b"0", b"1"]).wait()
    run = records.run(run_id="run-1")
    assert filled.record_run(run, events=[b"2"], first=2).wait()
    assert filled.run("run-1") == run
    assert [event for _, event in filled.events("run-1")] == [b"0", b"1", b"2"]


def test_two_stores_that_append_to_one_run_leave_no_gap_and_lose_nothing(filled: Store, where: str) -> None:
    filled.begin_run("exp-1", KEY, "run-1").wait()
    with open_store(where) as other:
        for number in range(10):
            assert (filled, other)[number % 2].append_events("run-1", [b"%d" % number]).wait() == number
    assert filled.events("run-1") == [(number, b"%d" % number) for number in range(10)]


def test_a_run_that_goes_on_is_not_done(filled: Store) -> None:
    filled.begin_run("exp-1", KEY, "run-1").wait()
    assert filled.done_keys("exp-1") == {}
    assert filled.runs("exp-1")[0].outcome == "unfinished"


def test_an_unfinished_run_makes_room_for_the_one_that_resumes_it(filled: Store) -> None:
    filled.begin_run("exp-1", KEY, "dead")
    filled.append_events("dead", [b"0", b"1"])
    filled.begin_run("exp-1", KEY, "alive")
    filled.append_events("alive", [b"0"]).wait()
    assert [run.run_id for run in filled.runs("exp-1")] == ["alive"]
    with pytest.raises(SeatrialError) as caught:
        filled.append_events("dead", [b"2"]).wait()
    assert caught.value.code == "not_found"


def test_a_finished_run_replaces_an_unfinished_one_of_its_key(filled: Store) -> None:
    filled.begin_run("exp-1", KEY, "dead")
    filled.append_events("dead", [b"0"])
    assert filled.record_run(records.run(run_id="alive"), events=[b"1"]).wait()
    assert [run.run_id for run in filled.runs("exp-1")] == ["alive"]
    assert filled.events("alive") == [(0, b"1")]


def test_a_run_that_another_process_took_over_is_not_stored_without_its_first_events(filled: Store, where: str) -> None:
    filled.begin_run("exp-1", KEY, "first")
    filled.append_events("first", [b"0", b"1"]).wait()
    with open_store(where) as other:
        other.begin_run("exp-1", KEY, "second").wait()
        assert filled.record_run(records.run(run_id="first"), events=[b"2"], first=2).wait() is False
        assert other.record_run(records.run(run_id="second"), events=[b"0"]).wait()
    assert [run.run_id for run in filled.runs("exp-1")] == ["second"]


def test_a_run_recorded_whole_replaces_what_it_appended_in_an_earlier_life(filled: Store, where: str) -> None:
    with open_store(where) as other:
        other.begin_run("exp-1", KEY, "same")
        other.append_events("same", [b"0", b"1"]).wait()
    assert filled.record_run(records.run(run_id="same"), events=[b"0", b"1", b"2"], first=0).wait()
    assert [event for _, event in filled.events("same")] == [b"0", b"1", b"2"]


def test_a_run_is_not_begun_where_one_has_ended(filled: Store) -> None:
    filled.record_run(records.run(run_id="done")).wait()
    for run_id in ("done", "other"):
        with pytest.raises(SeatrialError) as caught:
            filled.begin_run("exp-1", KEY, run_id).wait()
        assert caught.value.code == "conflict"


def test_a_run_that_is_begun_again_begins_anew(filled: Store) -> None:
    filled.begin_run("exp-1", KEY, "run-1")
    filled.append_events("run-1", [b"old", b"older"])
    filled.begin_run("exp-1", KEY, "run-1")
    assert filled.append_events("run-1", [b"new"]).wait() == 0
    assert filled.events("run-1") == [(0, b"new")]


def test_a_run_is_not_begun_for_an_unknown_case(filled: Store) -> None:
    with pytest.raises(SeatrialError) as caught:
        filled.begin_run("exp-1", RunKey("crew", "nope", 1), "run-1").wait()
    assert caught.value.code == "not_found"


def test_events_of_an_unknown_run_are_not_found(filled: Store) -> None:
    with pytest.raises(SeatrialError):
        filled.append_events("nope", [b"0"]).wait()
    with pytest.raises(SeatrialError):
        filled.events("nope")


def test_the_same_events_of_another_process_are_not_taken_for_ones_own(filled: Store, where: str) -> None:
    filled.begin_run("exp-1", KEY, "run-1").wait()
    with open_store(where) as other:
        assert filled.append_events("run-1", [b"0"], first=0).wait() == 0
        assert other.append_events("run-1", [b"1"], first=1).wait() == 1
        assert other.append_events("run-1", [b"1"], first=2).wait() == 2
        # What this one remembers of the run is behind what there is.
        with pytest.raises(SeatrialError) as caught:
            filled.append_events("run-1", [b"1"], first=1).wait()
        assert caught.value.code == "sequence_conflict"
        assert filled.append_events("run-1", [b"1"]).wait() == 3
    assert len(filled.events("run-1")) == 4
