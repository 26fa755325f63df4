"""JSON from outside never raises anything but our one error."""

from __future__ import annotations

import contextlib
import re
from threading import Event, Thread

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seatrial._support import wire
from seatrial._support.wire import _SLICE, Repair
from seatrial.errors import SeatrialError


class Point(msgspec.Struct):
    x: int
    y: list[int] = []


def test_typed_decode_names_the_place_of_a_wrong_type() -> None:
    with pytest.raises(SeatrialError) as caught:
        wire.decode(b'{"x": 1, "y": [1, "2"]}', msgspec.json.Decoder(Point))
    assert caught.value.code == "invalid_document"
    assert caught.value.pointer == "/y/1"


@pytest.mark.parametrize("data", [b"", b"{", b"nul", b"NaN", b"[1,]", b"\x00", b'{"a":1}}'])
def test_what_is_not_json_is_one_clear_error(data: bytes) -> None:
    nothing: list[Repair] = []
    for repairs in (None, nothing):
        with pytest.raises(SeatrialError) as caught:
            wire.decode(data, repairs=repairs)
        assert caught.value.code == "not_json"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.data())
def test_json_that_ends_too_early_is_said_to_be_cut_off_wherever_that_is(value: object, draw: st.DataObject) -> None:
    whole = wire.encode([value])
    cut = whole[: draw.draw(st.integers(1, len(whole) - 1))]
    for repairs in (None, list[Repair]()):
        with pytest.raises(SeatrialError) as caught:
            wire.decode(cut, repairs=repairs)
        assert caught.value.code == "not_json"
        assert caught.value.message.startswith("the JSON is cut off at byte ")


@pytest.mark.parametrize("data", [b'{"a" 1}', b'{"a": 1}}', b'{"a": 1.}', b"nope", b"{'a': 1}", b'{"a": 1,}'])
def test_json_that_is_wrong_is_not_said_to_be_cut_off(data: bytes) -> None:
    with pytest.raises(SeatrialError, match="the input is not valid JSON: "):
        wire.decode(data)


def test_nothing_is_said_to_be_nothing() -> None:
    with pytest.raises(SeatrialError, match="the input is empty"):
        wire.decode(b" \n")


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    for data in (b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000):
        with pytest.raises(SeatrialError) as caught:
            wire.decode(data, repairs=[])
        assert caught.value.code == "too_deep"


@pytest.mark.parametrize(
    ("data", "value", "repairs"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}, ["bom_removed"]),
        (b'"a\xff"', "a\ufffd", ["invalid_utf8_replaced"]),
        (rb'"\ud83d"', "\ufffd", ["lone_surrogate_replaced"]),
        (rb'"\ude00\ud83d\ude00"', "\ufffd\U0001f600", ["lone_surrogate_replaced"]),
        (rb'"\\ud83d \ud83d"', "\\ud83d \ufffd", ["lone_surrogate_replaced"]),
    ],
)
def test_repairs_are_made_and_told(data: bytes, value: object, repairs: list[Repair]) -> None:
    told: list[Repair] = []
    assert wire.decode(data, repairs=told) == value
    assert told == repairs


@given(st.binary(max_size=30), st.integers(-12, 12))
def test_bytes_are_repaired_alike_wherever_they_are_cut(data: bytes, shift: int) -> None:
    data = b"a" * (_SLICE - 15 + shift) + data + "é€😀".encode()
    assert wire.repaired_text(data) == data.decode("utf-8", "replace")


def test_while_much_is_repaired_other_threads_go_on() -> None:
    done = Event()
    turns = 0

    def repair() -> None:
        wire.decode(b'"' + b"\xff" * (100 * _SLICE) + b'"', repairs=[])
        done.set()

    thread = Thread(target=repair)
    thread.start()
    while not done.wait(0.001):
        turns += 1
    thread.join()
    assert turns > 5


def test_without_a_place_to_tell_repairs_nothing_is_repaired() -> None:
    with pytest.raises(SeatrialError):
        wire.decode(b'"a\xff"')


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_our_error(data: bytes) -> None:
    with contextlib.suppress(SeatrialError):
        wire.decode(data, repairs=[])


@given(st.recursive(st.none() | st.booleans() | st.text(st.characters(), max_size=20), lambda inner: st.lists(inner)))
def test_encoding_never_fails_on_lone_surrogates(value: object) -> None:
    decoded = wire.decode(wire.encode(value))
    assert decoded == wire.without_surrogates(value)


ONE_BY_ONE = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


@given(
    st.lists(st.sampled_from(["\\", "\\ud800", "\\udc00", "\\uDBFF", "u", "d8", "0", '\\"', "\\n", "\\u0041", "\\ud"]))
)
@example(["\\"] * 5001 + ["ud800"])
@example(["\\n", "\\u0041"] * 3000 + ["\\ud800"])
def test_escapes_taken_many_at_once_are_repaired_as_those_taken_one_by_one(pieces: list[str]) -> None:
    data = "".join(pieces).encode()
    repaired = ONE_BY_ONE.sub(lambda found: found[0] if found[1] is None else rb"\ufffd", data)
    assert wire._mend(data, []) == repaired
