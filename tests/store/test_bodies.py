"""Content addresses and compression."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from seatrial.store.bodies import PACK_FROM, address, digest, pack, unpack


@given(st.binary(max_size=200), st.integers(0, 200))
def test_what_is_packed_comes_back(part: bytes, times: int) -> None:
    assert unpack(*pack(part * times)) == part * times


def test_only_what_shrinks_is_compressed() -> None:
    assert pack(b"a" * (PACK_FROM - 1)) == (0, b"a" * (PACK_FROM - 1))
    packed, data = pack(b"a" * PACK_FROM)
    assert packed == 1
    assert len(data) < 100
    noise = random.Random(1).randbytes(PACK_FROM)
    assert pack(noise) == (0, noise)


def test_an_address_is_the_sha_256_of_the_bytes() -> None:
    assert address(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest(address(b"abc")).hex() == address(b"abc")
