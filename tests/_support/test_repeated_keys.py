"""A key twice in one object of a JSON text."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial._support import wire
from seatrial._support.repeated_keys import may_repeat_keys, repeated_keys
from seatrial.errors import SeatrialError

JSON = st.recursive(
    st.none() | st.integers() | st.text('a:"\\', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a:b", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("data", "repeated"),
    [
        (b'{"a":1,"b":2}', []),
        (b'{"a":1,"b":2,"a":3,"a":4}', ["a"]),
        (b'[{"x":[{"b":1,"b":2}],"y":0,"y":1}]', ["b", "y"]),
        (b'{"a":1,"\\u0061":2}', ["a"]),
        (b'{"a":{"a":1}}', []),
        ('{"a":1,"a":2}', ["a"]),
        (b'\xef\xbb\xbf{"a":1,"a":2}', ["a"]),
        (b'{"a":"\xff","a":2}', ["a"]),
        (b'{"a":"\\ud800","a":2}', ["a"]),
        (b'{"n":' + b"1" * 5000 + b',"a":1,"a":2}', ["a"]),
        (b"{", None),
        (b"word", None),
        (b"[" * 5000 + b"]" * 5000, None),
    ],
)
def test_keys_that_occur_twice_are_found_in_all_that_is_read_as_json(
    data: bytes | str, repeated: list[str] | None
) -> None:
    assert repeated_keys(data) == repeated


@given(JSON)
def test_a_text_in_which_every_key_occurs_once_repeats_none(value: object) -> None:
    assert repeated_keys(json.dumps(value)) == []


@given(JSON)
def test_the_cheap_question_never_misses_a_key_that_occurs_twice(value: object) -> None:
    text = f'[{json.dumps(value)}, {{"k": {json.dumps(value)}, "k": 1}}]'
    assert may_repeat_keys(text, json.loads(text))
    assert may_repeat_keys(text.encode(), json.loads(text))


@pytest.mark.parametrize("decoder", [None, msgspec.json.Decoder(dict[str, int])])
def test_what_tells_us_what_to_do_may_not_have_a_key_twice(
    decoder: msgspec.json.Decoder[dict[str, int]] | None,
) -> None:
    assert wire.decode_unambiguous(b'{"a":1,"b":2}', decoder) == {"a": 1, "b": 2}
    with pytest.raises(SeatrialError, match="the key 'a' occurs twice in one object") as caught:
        wire.decode_unambiguous(b'{"a":1,"a":2}', decoder)
    assert caught.value.code == "invalid_document"
