"""Content addresses and compression."""

from __future__ import annotations

import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import SeatrialError
from seatrial.store.documents import PACK_FROM, Document, Packer, address, digest, packed, unpack


@given(st.binary(max_size=200), st.integers(0, 200))
def test_what_is_packed_comes_back(part: bytes, times: int) -> None:
    document = packed(part * times)
    assert unpack(document.packed, document.data) == part * times


def test_only_what_shrinks_is_compressed() -> None:
    small = Document(data=b"a" * (PACK_FROM - 1))
    assert packed(small.data) == small
    large = packed(b"a" * PACK_FROM)
    assert large.packed == 2
    assert len(large.data) < 100
    noise = random.Random(1).randbytes(PACK_FROM)
    assert packed(noise) == Document(data=noise)


@given(st.lists(st.tuples(st.binary(max_size=200), st.integers(0, 200)), max_size=8))
def test_what_is_packed_together_comes_back_each_by_itself(parts: list[tuple[bytes, int]]) -> None:
    packer = Packer()
    for _ in range(2):  # it is used again and again
        whole = [part * times for part, times in parts]
        documents = [Document(data=data) for data in whole]
        packer.add(documents)
        packer.pack()
        for data, document in zip(whole, documents, strict=True):
            assert unpack(document.packed, document.data) == data
            assert len(document.data) <= len(data)


def test_what_cannot_be_packed_by_one_call_is_packed_by_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.store.documents._TOGETHER", False)
    packer = Packer()
    documents = [Document(data=letter * PACK_FROM) for letter in (b"a", b"b")]
    packer.add(documents)
    packer.pack()
    assert [(d.packed, unpack(d.packed, d.data)) for d in documents] == [(2, b"a" * PACK_FROM), (2, b"b" * PACK_FROM)]


def test_what_earlier_versions_packed_is_read() -> None:
    assert unpack(1, zlib.compress(b"a" * PACK_FROM)) == b"a" * PACK_FROM


def test_what_no_version_packed_is_refused() -> None:
    with pytest.raises(SeatrialError, match="packed in an unknown way: 3"):
        unpack(3, b"a")


def test_an_address_is_the_sha_256_of_the_bytes() -> None:
    assert address(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest(address(b"abc")).hex() == address(b"abc")
