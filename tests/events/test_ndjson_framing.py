"""Newline-delimited JSON: the same lines however the bytes are cut, and no line without bound."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import cuts
from strategies.growth import growth
from strategies.messages import json_values

from seatrial.errors import SeatrialError
from seatrial.events import NdjsonParser, encode_ndjson


def parse(*chunks: bytes, limit: int | None = None) -> list[bytes]:
    parser = NdjsonParser() if limit is None else NdjsonParser(limit)
    lines = [line for chunk in chunks for line in parser.feed(chunk)]
    return lines + parser.close()


@given(st.data())
def test_lines_do_not_depend_on_how_the_bytes_are_cut(data: st.DataObject) -> None:
    stream = data.draw(st.lists(st.sampled_from([b"{}", b"\n", b"\r\n", b" ", b"[1]", b"\xef\xbb\xbf"]), max_size=12))
    joined = b"".join(stream)
    whole = parse(joined)
    assert parse(*data.draw(cuts(joined))) == whole
    assert parse(*[joined[at : at + 1] for at in range(len(joined))]) == whole


@given(st.lists(json_values().map(msgspec.json.encode), max_size=5))
def test_what_is_encoded_is_parsed(values: list[bytes]) -> None:
    assert parse(b"".join(map(encode_ndjson, values))) == values


def test_indented_json_becomes_one_line() -> None:
    assert parse(encode_ndjson(b'{\n  "a": 1\r\n}')) == [b'{   "a": 1  }']


def test_crlf_blank_lines_and_a_byte_order_mark_are_no_content() -> None:
    assert parse(b"\xef\xbb\xbf{}\r\n\r\n\n[1]\r\n") == [b"{}", b"[1]"]


def test_the_last_line_may_lack_its_newline() -> None:
    assert parse(b'{"a":1}\n{"b"') == [b'{"a":1}', b'{"b"']


@given(st.integers(0, 40))
def test_a_stream_that_is_cut_gives_the_lines_before_the_cut(at: int) -> None:
    lines = [b'{"n":%d}' % n for n in range(5)]
    got = NdjsonParser().feed(b"".join(map(encode_ndjson, lines))[:at])
    assert got == lines[: len(got)]


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_a_line_over_the_limit_is_refused_however_it_is_cut(cut: int) -> None:
    assert parse(b"x" * 100 + b"\n", limit=100) == [b"x" * 100]
    for stream in (b"x" * 101 + b"\n", b"{}\n" + b"x" * 101, b"x" * 500):
        with pytest.raises(SeatrialError) as caught:
            parse(*[stream[at : at + cut] for at in range(0, len(stream), cut)], limit=100)
        assert caught.value.code == "too_large"


def test_bytes_fed_one_by_one_cost_linear_time() -> None:
    def feeding(size: int) -> Callable[[], None]:
        def feed_all() -> None:
            parser = NdjsonParser()
            for _ in range(size):
                parser.feed(b"x")
            parser.feed(b"\n")

        return feed_all

    # Quadratic cost would be a hundred times as much.
    assert growth(feeding, 20_000, 200_000, below=40) < 40
