"""Lines are the same however they are cut into chunks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial.agents.cli.batch import Lines


def cut(chunks: list[bytes], limit: int = 1000) -> list[tuple[int, bytes | None]]:
    lines = Lines(limit)
    return [line for chunk in chunks for line in lines.feed(chunk)] + lines.close()


@given(st.lists(st.binary(max_size=20)), st.lists(st.integers(1, 12)))
def test_chunks_do_not_matter(pieces: list[bytes], sizes: list[int]) -> None:
    data = b"\n".join(pieces)
    chunks, place = [], 0
    for size in [*sizes, len(data)]:
        chunks.append(data[place : place + size])
        place += size
    assert cut([chunk for chunk in chunks if chunk], 8) == cut([data], 8)


@given(st.lists(st.binary(max_size=12).filter(lambda piece: b"\n" not in piece), min_size=1))
def test_a_line_beyond_the_limit_is_none_and_the_others_are_whole(pieces: list[bytes]) -> None:
    expected = [(number, piece if len(piece) <= 8 else None) for number, piece in enumerate(pieces, start=1)]
    assert cut([piece + b"\n" for piece in pieces], 8) == expected


def test_a_last_line_without_its_end_counts() -> None:
    assert cut([b"a\nb"]) == [(1, b"a"), (2, b"b")]
    assert cut([b"a\n"]) == [(1, b"a")]
    assert cut([]) == []
