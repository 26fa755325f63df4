"""One limit on nesting, the same on every Python, whatever the interpreter's own limits are."""

from __future__ import annotations

import json
import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.messages import json_values

from seatrial import formats
from seatrial._support import wire
from seatrial._support.nesting import _SLICE, MAX_DEPTH, MAX_WRITTEN_DEPTH, is_too_deep, is_value_too_deep
from seatrial.errors import SeatrialError
from seatrial.events import encode_event, read_event
from seatrial.events.codec import encode_events
from seatrial.events.event_reader import decode_event
from seatrial.events.run_input import read_run_input
from seatrial.events.types import CustomEvent
from seatrial.trajectory.match_batch import match_line
from seatrial.trajectory.values import key
from seatrial.transcript.arguments import detect_unparsed, parse_arguments
from seatrial.transcript.document import read_messages

TOO_DEEP = "the JSON is nested more than 200 levels deep"


def depth_of(value: Any) -> int:
    """How deeply a value is nested, for the comparison: one level at a time, without recursion."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def arrays(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def nested(depth: int, leaf: Any = 1) -> Any:
    value = leaf
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def test_the_limits_are_far_below_those_of_every_interpreter() -> None:
    # What follows a value with three Python frames a level still fits, with room for the caller's own stack.
    assert sys.getrecursionlimit() > 3 * MAX_WRITTEN_DEPTH


@given(json_values(), st.integers(0, 12), st.booleans())
def test_bytes_are_too_deep_exactly_when_their_value_is(value: Any, limit: int, indented: bool) -> None:
    data = json.dumps(value, indent=2 if indented else None).encode()
    assert is_too_deep(data, limit) == (depth_of(value) > limit)
    assert is_too_deep(data.decode(), limit) == (depth_of(value) > limit)
    assert is_value_too_deep(value, limit) == (depth_of(value) > limit)


@given(
    st.lists(st.sampled_from(['"', "\\", "[", "]", "{", "}", "a", " ", "\\\\", '\\"']), max_size=40), st.integers(0, 9)
)
def test_brackets_in_strings_do_not_count(text: list[str], limit: int) -> None:
    value = ["".join(text), [{"".join(text): "".join(text)}]]
    assert is_too_deep(json.dumps(value).encode(), limit) == (limit < 3)


@given(st.integers(-9, 9), st.sampled_from([b'"\\"[[[[["', b'"\\\\"', b'"\\\\\\"[[["', b"[[1],2]", b'{"]]]":"}}"}']))
def test_it_makes_no_difference_where_slices_are_cut(shift: int, piece: bytes) -> None:
    filled = b'["' + b"a" * (_SLICE - 6 + shift) + b'",' + piece + b"]"
    depth = depth_of(json.loads(filled))
    assert not is_too_deep(filled, depth)
    assert is_too_deep(filled, depth - 1)


@pytest.mark.parametrize("limit", [2, MAX_DEPTH, MAX_WRITTEN_DEPTH])
@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("around", [b"", b"[]," * 300, b'"' + b"]" * _SLICE + b'",'], ids=["bare", "wide", "slices"])
def test_the_limit_is_exact(limit: int, closed: bool, around: bytes) -> None:
    for depth, expected in ((limit - 1, False), (limit, True), (limit + 5000, True)):
        data = b"[" + around + b"[" * depth + b"]" * (depth + 1) * closed
        assert is_too_deep(data, limit) is expected


@pytest.mark.parametrize(
    "data",
    [b"text " + arrays(5000), b"]" + b"[" * 5000, b"[1 2" + b"[" * 5000, b"{" * 5000, b"[" * 100 + b"x" + b"[" * 900],
)
def test_what_is_not_json_is_never_too_deep(data: bytes) -> None:
    assert not is_too_deep(data)
    with pytest.raises(SeatrialError) as caught:
        wire.decode(data, repairs=[])
    assert caught.value.code == "not_json"


def test_what_is_in_a_value_many_times_is_looked_at_once() -> None:
    value: Any = []
    for _ in range(MAX_DEPTH - 1):
        value = [value, value]
    assert not is_value_too_deep(value)
    assert is_value_too_deep([value])


def in_messages(value: bytes) -> None:
    read_messages(b'[{"role":"custom","kind":"k","payload":' + value + b"}]")


def in_an_agent_response(value: bytes) -> None:
    formats.read(b'{"final_response":"x","metadata":{"m":' + value + b"}}", "agent-response")


def in_a_chat(value: bytes) -> None:
    formats.read(b'{"messages":[{"role":"assistant","content":"x","extra":' + value + b"}]}")


def in_a_run_input(value: bytes) -> None:
    read_run_input(b'{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[],"state":' + value + b"}")


def in_an_event(value: bytes) -> None:
    decode_event(b'{"type":"CUSTOM","name":"n","value":' + value + b"}")


def in_a_line_to_match(value: bytes) -> None:
    result = match_line(
        b'{"mode":"exact","expected":[{"tool":"f"}],"actual":[{"name":"f","arguments":{"a":' + value + b"}}]}"
    )
    if result.error is not None:
        raise result.error


@pytest.mark.parametrize(
    ("read", "around"),
    [(in_messages, 2), (in_an_agent_response, 2), (in_a_chat, 3), (in_a_run_input, 1), (in_an_event, 1),
     (in_a_line_to_match, 4)],
)  # fmt: skip
def test_every_reader_has_the_same_limit_and_the_same_error(read: Callable[[bytes], None], around: int) -> None:
    read(arrays(MAX_DEPTH - around))
    for depth in (MAX_DEPTH - around + 1, MAX_WRITTEN_DEPTH, 900, 5000, 100_000):
        with pytest.raises(SeatrialError) as caught:
            read(arrays(depth))
        assert (caught.value.code, caught.value.message) == ("too_deep", TOO_DEEP)


def test_an_event_that_is_too_deep_is_kept_as_text_with_one_note() -> None:
    for depth in (MAX_DEPTH, 900, 5000, 100_000):
        data = b'{"type":"CUSTOM","name":"n","value":' + arrays(depth) + b"}"
        _, notes = read_event(data)
        assert [(note.code, note.message) for note in notes] == [("event_unreadable", TOO_DEEP)]


def test_arguments_that_are_too_deep_are_kept_as_text() -> None:
    assert parse_arguments(arrays(MAX_DEPTH).decode())[1] is False
    for depth in (MAX_DEPTH + 1, 900, 5000, 100_000):
        text = arrays(depth).decode()
        value, not_json = parse_arguments(text)
        assert not_json
        assert detect_unparsed(value) == (TOO_DEEP, text)


def test_what_is_read_can_be_written_into_something_larger_and_read_again() -> None:
    value = nested(MAX_DEPTH)
    for _ in range(MAX_WRITTEN_DEPTH - MAX_DEPTH):
        value = {"in": value}
    assert wire.decode(wire.encode(value)) == value


@pytest.mark.parametrize("depth", [MAX_WRITTEN_DEPTH + 1, 900, 5000])
def test_what_is_too_deep_is_not_written(depth: int) -> None:
    for write in (wire.encode, lambda value: encode_event(CustomEvent(name="n", value=value))):
        with pytest.raises(SeatrialError) as caught:
            write(nested(depth))
        assert caught.value.message == "the JSON is nested more than 250 levels deep"
    with pytest.raises(SeatrialError):
        encode_events([CustomEvent(name="n", value=nested(depth))])
    assert key(nested(depth), b"a") != key(nested(depth), b"b")


def test_nothing_depends_on_the_stack_of_a_thread() -> None:
    """With a small stack, where the interpreter's own limit would come too late."""
    found: list[str] = []

    def read() -> None:
        for data in (arrays(1_000_000), b'{"a":' * 1_000_000, msgspec.json.encode(nested(900))):
            try:
                wire.decode(data, repairs=[])
            except SeatrialError as error:
                found.append(error.code)

    former = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(former)
    assert found == ["too_deep"] * 3


@pytest.mark.parametrize("unit", [b"1,", b"{},", b'"[[[",', b'{"a":[]},'])
def test_no_call_takes_all_of_a_large_document_at_once(unit: bytes) -> None:
    # No other thread runs during a call; and one that took all of it would copy it.
    data = b"[" + unit * (4_000_000 // len(unit)) + b"1]"
    tracemalloc.start()
    try:
        assert not is_too_deep(data)
        assert tracemalloc.get_traced_memory()[1] < len(data) / 2
    finally:
        tracemalloc.stop()
