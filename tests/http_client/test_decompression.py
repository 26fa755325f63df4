"""Compressed bodies."""

from __future__ import annotations

import gzip

import pytest

from seatrial.http_client.decompression import MAX_MEMBERS, decompressor_for
from seatrial.http_client.transport_error import TransportError


def decompressed(data: bytes) -> bytes:
    decompressor = decompressor_for("gzip", "the agent")
    assert decompressor is not None
    decompressor.feed(data)
    whole = b""
    while piece := decompressor.next_piece():
        whole += piece
    decompressor.finish()
    return whole


def test_gzip_members_in_a_row_are_one_body() -> None:
    assert decompressed(gzip.compress(b"one, ") + gzip.compress(b"two")) == b"one, two"


def test_members_without_end_are_refused() -> None:
    with pytest.raises(TransportError) as caught:
        decompressed(gzip.compress(b"") * (MAX_MEMBERS + 1))
    assert caught.value.kind == "malformed"
