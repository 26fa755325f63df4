"""A run's token lives as long as the run, and is nowhere to be read."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from seatrial.world.grant import Grants, LiveRun


async def nothing(event: object) -> None:
    pass


def test_a_token_finds_its_run() -> None:
    grants = Grants()
    grant = grants.open("run-1", "http://proxy", nothing)
    found = grants.find(grant.token)
    assert isinstance(found, LiveRun)
    assert found.run_id == "run-1"


def test_a_token_is_dead_when_its_run_closes() -> None:
    grants = Grants()
    grant = grants.open("run-1", "http://proxy", nothing)
    asyncio.run(grants.close("run-1"))
    assert grants.find(grant.token) == "run_token_expired"


def test_a_run_that_is_opened_again_has_one_token() -> None:
    grants = Grants()
    first, second = (grants.open("run-1", "http://proxy", nothing) for _ in range(2))
    assert grants.find(first.token) == "run_token_expired"
    assert isinstance(grants.find(second.token), LiveRun)
    assert first.jti != second.jti


def test_closing_a_run_that_is_not_open_changes_nothing() -> None:
    asyncio.run(Grants().close("run-1"))


@given(st.text())
def test_nothing_else_is_a_token(text: str) -> None:
    grants = Grants()
    grants.open("run-1", "http://proxy", nothing)
    assert grants.find(text) == "run_token_invalid"


def test_tokens_have_256_bits_and_differ() -> None:
    grants = Grants()
    tokens = {grants.open(f"run-{number}", "http://proxy", nothing).token for number in range(100)}
    assert len(tokens) == 100
    assert all(len(bytes.fromhex(token)) == 32 for token in tokens)


def bits(token: str) -> int:
    return int(token, 16)


def test_one_token_tells_nothing_of_another() -> None:
    """Neither of the next one of the same run, nor of the one that another process made at the same point."""
    grants = Grants()
    tokens = [grants.open("run-1", "http://proxy", nothing).token for _ in range(200)]
    others = [Grants().open("run-1", "http://proxy", nothing).token for _ in range(200)]
    for made in (tokens, others):
        differing = [(bits(a) ^ bits(b)).bit_count() for a, b in pairwise(made)]
        # Of 256 bits, half, give or take eight standard deviations: less than that, and there is something to go by.
        assert all(64 < count < 192 for count in differing)
        assert 120 < sum(differing) / len(differing) < 136
        for place in range(256):
            assert 20 < sum(bits(token) >> place & 1 for token in made) < 180, f"bit {place} is always the same"


def test_what_may_be_logged_of_a_token_tells_nothing_of_it() -> None:
    grants = Grants()
    for _ in range(200):
        grant = grants.open("run-1", "http://proxy", nothing)
        secret, told = bytes.fromhex(grant.token), bytes.fromhex(grant.jti)
        assert all(told[at : at + 4] not in secret for at in range(len(told) - 3))


def test_a_grant_does_not_show_its_token() -> None:
    grant = Grants().open("run-1", "http://proxy", nothing)
    assert grant.token not in repr(grant)
    assert grant.token not in f"{grant}"
    assert grant.jti not in grant.token


def test_the_server_keeps_a_hash_of_the_token_only() -> None:
    grants = Grants()
    grant = grants.open("run-1", "http://proxy", nothing)
    found = grants.find(grant.token)
    assert isinstance(found, LiveRun)
    assert grant.token not in repr(found)


def test_old_dead_tokens_are_forgotten() -> None:
    grants = Grants()
    first = grants.open("run-0", "http://proxy", nothing)

    async def play() -> None:
        for number in range(10_001):
            grants.open(f"run-{number}", "http://proxy", nothing)
            await grants.close(f"run-{number}")

    asyncio.run(play())
    assert grants.find(first.token) == "run_token_invalid"
