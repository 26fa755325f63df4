"""How much a client may ask for."""

from __future__ import annotations

import asyncio

import pytest
from litestar.types import ReceiveMessage

from seatrial.errors import SeatrialError
from seatrial.server.listener import MAX_HEAD_BYTES
from seatrial.server.middleware import MAX_HEADERS, check_head, read_body
from seatrial.server.problems import RefusedError
from seatrial.server.rates import Rates


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def takes(rates: Rates, who: str) -> bool:
    try:
        rates.take(who)
    except RefusedError as refused:
        return refused.status != 429
    return True


def test_a_burst_passes_and_then_the_rate_holds() -> None:
    clock = Clock()
    rates = Rates(2.0, 5.0, clock)
    assert [takes(rates, "a") for _ in range(7)] == [True] * 5 + [False] * 2
    clock.now += 1.0
    assert [takes(rates, "a") for _ in range(3)] == [True, True, False]


def test_a_refusal_says_when_to_come_back() -> None:
    clock = Clock()
    rates = Rates(0.1, 1.0, clock)
    rates.take("a")
    with pytest.raises(RefusedError) as caught:
        rates.take("a")
    assert caught.value.headers == {"retry-after": "10"}
    clock.now += 10.0
    rates.take("a")


def test_one_client_does_not_use_up_what_another_may() -> None:
    rates = Rates(1.0, 1.0, Clock())
    assert takes(rates, "a")
    assert not takes(rates, "a")
    assert takes(rates, "b")


def test_no_rate_is_no_limit() -> None:
    rates = Rates(0.0, 1.0, Clock())
    assert all(takes(rates, "a") for _ in range(1000))


def test_the_addresses_that_are_remembered_are_bounded() -> None:
    clock = Clock()
    rates = Rates(1.0, 1.0, clock)
    for number in range(10_000):
        rates.take(f"@{number}")
    assert not takes(rates, "@9999")
    rates.take("@one more")
    assert takes(rates, "@0")


def test_a_head_within_the_limits_passes() -> None:
    check_head([(b"x", b"y" * 100)] * MAX_HEADERS, 10)


@pytest.mark.parametrize(
    ("headers", "target"),
    [([(b"x", b"y")] * (MAX_HEADERS + 1), 10), ([(b"x", b"y" * MAX_HEAD_BYTES)], 10), ([], MAX_HEAD_BYTES + 1)],
)
def test_a_head_that_is_too_large_is_refused(headers: list[tuple[bytes, bytes]], target: int) -> None:
    with pytest.raises(RefusedError) as caught:
        check_head(headers, target)
    assert caught.value.status == 431


class Arriving:
    """A body that comes in pieces."""

    def __init__(self, *pieces: bytes, cut: bool = False) -> None:
        self.pieces = list(pieces)
        self.cut = cut
        self.read = 0

    async def __call__(self) -> ReceiveMessage:
        if not self.pieces:
            return {"type": "http.disconnect"}
        piece = self.pieces.pop(0)
        self.read += len(piece)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces) or self.cut}


def test_a_body_is_put_together() -> None:
    assert asyncio.run(read_body(Arriving(b"ab", b"", b"c"), None, 3)) == b"abc"


def test_a_body_is_refused_as_soon_as_it_is_too_large_whatever_its_declared_length() -> None:
    arriving = Arriving(b"x" * 60, b"x" * 60, b"x" * 60)
    with pytest.raises(SeatrialError) as caught:
        asyncio.run(read_body(arriving, 10, 100))
    assert caught.value.code == "too_large"
    assert arriving.read == 120


def test_a_body_that_is_declared_too_large_is_not_read() -> None:
    arriving = Arriving(b"x")
    with pytest.raises(SeatrialError) as caught:
        asyncio.run(read_body(arriving, 101, 100))
    assert caught.value.code == "too_large"
    assert arriving.read == 0


def test_a_connection_that_ends_in_its_body_is_an_invalid_request() -> None:
    with pytest.raises(SeatrialError) as caught:
        asyncio.run(read_body(Arriving(b"x", cut=True), None, 100))
    assert caught.value.code == "invalid_request"


def test_a_body_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> ReceiveMessage:
        await asyncio.sleep(3600)
        raise AssertionError

    monkeypatch.setattr("seatrial.server.middleware.BODY_TIMEOUT_S", 0.01)
    with pytest.raises(RefusedError) as caught:
        asyncio.run(read_body(never, None, 100))
    assert caught.value.status == 408
