"""The last events of a run in memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial.server.run_feed import BLOCK_BYTES, EVENT_OVERHEAD, KEPT_BYTES, WINDOW_BYTES, EventFraming, Window

FRAMING = EventFraming("run-1", "thread-1")
sizes = st.sampled_from([1, 30, 500, BLOCK_BYTES // 2, BLOCK_BYTES + 1, WINDOW_BYTES // 3])


def read(window: Window, position: int) -> list[bytes]:
    """Everything behind a position."""
    found: list[bytes] = []
    while position + 1 < window.following:
        block = window.since(position)
        assert block.first == position + 1
        assert block.events
        assert block.size <= BLOCK_BYTES or len(block.events) == 1
        found += block.events
        position = block.following - 1
    return found


@given(st.integers(0, 5), st.lists(st.lists(sizes, min_size=1, max_size=20), max_size=12), st.data())
def test_from_every_position_it_gives_what_came_behind_it(
    start: int, appended: list[list[int]], data: st.DataObject
) -> None:
    window = Window(FRAMING, start)
    log: list[bytes] = []
    for lengths in appended:
        new = [b"%d:" % (len(log) + index) + b"x" * length for index, length in enumerate(lengths)]
        log += new
        window.append(new)
        assert window.following == start + len(log)
        held = log[window.base - start :]
        assert sum(len(event) + EVENT_OVERHEAD for event in held) <= WINDOW_BYTES
        for position in data.draw(st.lists(st.integers(window.base - 1, window.following - 1), max_size=5)):
            assert window.holds(position)
            assert read(window, position) == log[position + 1 - start :]
        assert not window.holds(window.base - 2)
        assert not window.holds(window.following)


def test_those_at_the_same_position_get_the_same_block() -> None:
    window = Window(FRAMING, 0)
    window.append([b"0"])
    window.append([b"1", b"2"])
    assert window.since(-1) is window.since(-1)
    assert window.since(-1).events == [b"0", b"1", b"2"]
    assert window.since(0).events == [b"1", b"2"]
    assert window.since(1).events == [b"2"]
    behind = window.since(-1)
    window.append([b"3"])
    assert window.since(-1).events == [*behind.events, b"3"]


def test_what_all_have_is_let_go_but_for_the_last_of_it() -> None:
    window = Window(FRAMING, 0)
    for _ in range(40):
        window.append([b"x" * 10_000])
    window.release(-1)
    assert window.base == 0
    window.release(19)
    assert window.base == 20
    window.release(39)
    assert 40 - KEPT_BYTES // 10_000 <= window.base < 40
    assert len(read(window, window.base - 1)) == 40 - window.base


def test_after_a_jump_it_holds_nothing_until_there_is_more() -> None:
    window = Window(FRAMING, 0)
    window.append([b"0", b"1"])
    window.jump(10)
    assert (window.base, window.following) == (10, 10)
    assert window.holds(9)
    assert not window.holds(1)
    window.append([b"10"])
    assert read(window, 9) == [b"10"]
