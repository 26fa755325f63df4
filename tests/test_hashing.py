from __future__ import annotations

from hashlib import blake2b, sha256

import pytest

from seatrial.hashing import LONG, PIECE, feed


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 4 * PIECE, 8031, LONG - 1, LONG, LONG + 1])
def test_bytes_of_any_length_hash_to_what_they_hash_to_at_once(size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    for make in (sha256, blake2b):
        hash_ = make()
        feed(hash_, data)
        assert hash_.digest() == make(data).digest()
