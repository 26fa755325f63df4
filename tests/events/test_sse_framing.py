"""Server-sent events: the same frames however the bytes are cut, and no frame without bound."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import cuts
from strategies.growth import growth

from seatrial.errors import SeatrialError
from seatrial.events import SseFrame, SseParser, encode_sse, encode_sse_comment

lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=12)


def parse(*chunks: bytes, limit: int | None = None) -> list[SseFrame]:
    parser = SseParser() if limit is None else SseParser(limit)
    frames = [frame for chunk in chunks for frame in parser.feed(chunk)]
    return frames + parser.close()


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Lines of every kind with every line end, in any order."""
    field = st.sampled_from(["data: ", "data:", "id: ", "event:", "retry: ", ":", "data", ""])
    written = [draw(field) + draw(lines) for _ in range(draw(st.integers(0, 8)))]
    ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\r\r"])
    return (draw(st.sampled_from(["", "\ufeff"])) + "".join([line + draw(ends) for line in written])).encode()


@given(st.data())
def test_frames_do_not_depend_on_how_the_bytes_are_cut(data: st.DataObject) -> None:
    stream = data.draw(streams())
    whole = parse(stream)
    assert parse(*data.draw(cuts(stream))) == whole
    assert parse(*[stream[at : at + 1] for at in range(len(stream))]) == whole


@given(st.lists(st.tuples(st.lists(lines, min_size=1, max_size=3), st.none() | lines, st.none() | lines), max_size=4))
def test_what_is_encoded_is_parsed(frames: list[tuple[list[str], str | None, str | None]]) -> None:
    data = [("\n".join(text).encode(), event, frame_id) for text, event, frame_id in frames]
    stream = b"".join([encode_sse(text, event=event, id=frame_id) for text, event, frame_id in data])
    assert b"\r" not in stream
    assert parse(stream) == [SseFrame(text, event, frame_id) for text, event, frame_id in data]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_of_the_standard_is_understood(end: str) -> None:
    text = end.join(["\ufeff: hello", "id: r:1", "event: x", "retry: 50", "data: a", "data:b", "", "data: c", "", ""])
    assert parse(text.encode()) == [SseFrame(b"a\nb", "x", "r:1", 50), SseFrame(b"c")]


def test_a_cr_and_an_lf_in_two_chunks_are_one_line_end() -> None:
    assert parse(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [SseFrame(b"a\nb")]


def test_comments_unknown_fields_and_blank_lines_make_no_frame() -> None:
    assert parse(b": keepalive\n\n\n\nfoo: bar\n\nid: 7\n\n") == []


def test_a_field_without_a_colon_is_an_empty_one() -> None:
    assert parse(b"data\n\n") == [SseFrame(b"")]


def test_ids_with_nul_and_bad_retries_are_ignored() -> None:
    assert parse(b"id: a\0b\nretry: 1x\nretry: " + b"9" * 30 + b"\ndata: x\n\n") == [SseFrame(b"x")]


def test_the_last_frame_may_lack_its_blank_line() -> None:
    assert parse(b"id: r:1\ndata: {}") == [SseFrame(b"{}", id="r:1")]


def test_an_id_that_the_end_of_the_stream_cuts_is_not_taken() -> None:
    assert parse(b"data: {}\nid: run:12") == [SseFrame(b"{}")]


@given(st.data())
def test_a_stream_that_is_cut_gives_the_frames_before_the_cut(data: st.DataObject) -> None:
    frames = [b'{"n":%d}' % n for n in range(4)]
    stream = b"".join(map(encode_sse, frames))
    parser = SseParser()
    got = parser.feed(stream[: data.draw(st.integers(0, len(stream)))])
    assert [frame.data for frame in got] == frames[: len(got)]


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_a_frame_over_the_limit_is_refused_however_it_is_cut(cut: int) -> None:
    fits = b"data: " + b"x" * 94
    assert len(parse(fits + b"\n\n", limit=100)) == 1
    for stream in (fits + b"x\n\n", fits + b"\ndata: y\n\n", b"data: " + b"x" * 400, b":" + b"c" * 101 + b"\n"):
        with pytest.raises(SeatrialError) as caught:
            parse(*[stream[at : at + cut] for at in range(0, len(stream), cut)], limit=100)
        assert caught.value.code == "too_large"


def test_the_limit_is_ten_mebibytes() -> None:
    with pytest.raises(SeatrialError):
        SseParser().feed(b"data: " + b"x" * (10 * 1024 * 1024))


def test_many_comments_do_not_add_up_to_the_limit() -> None:
    assert parse(b": 0123456789\n" * 100 + b"data: x\n\n", limit=50) == [SseFrame(b"x")]


def test_bytes_fed_one_by_one_cost_linear_time() -> None:
    def feeding(size: int) -> Callable[[], None]:
        stream = b"data: " + b"x" * size + b"\n\n"

        def feed_all() -> None:
            parser = SseParser()
            for at in range(len(stream)):
                parser.feed(stream[at : at + 1])

        return feed_all

    # Quadratic cost would be a hundred times as much.
    assert growth(feeding, 20_000, 200_000, below=40) < 40


def test_a_comment_is_never_anything_else() -> None:
    assert encode_sse_comment("keep\nalive") == b": keep\n: alive\n\n"
    assert parse(encode_sse_comment("data: x\n\ndata: y")) == []


@pytest.mark.parametrize("field", ["a\nb", "a\rb", "a\0b"])
def test_a_field_of_several_lines_is_refused(field: str) -> None:
    with pytest.raises(SeatrialError):
        encode_sse(b"{}", id=field)
    with pytest.raises(SeatrialError):
        encode_sse(b"{}", event=field)


def test_a_retry_counts_also_when_it_stands_alone() -> None:
    parser = SseParser()
    assert parser.retry is None
    assert parser.feed(b"retry: 2000\n\ndata: x\n\nretry: soon\n\n") == [SseFrame(b"x")]
    assert parser.retry == 2000
