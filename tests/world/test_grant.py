"""A run's token lives as long as the run, and is nowhere to be read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial.world.grant import Grants, LiveRun


def nothing(event: object) -> None:
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
    grants.close("run-1")
    assert grants.find(grant.token) == "run_token_expired"


def test_a_run_that_is_opened_again_has_one_token() -> None:
    grants = Grants()
    first, second = (grants.open("run-1", "http://proxy", nothing) for _ in range(2))
    assert grants.find(first.token) == "run_token_expired"
    assert isinstance(grants.find(second.token), LiveRun)
    assert first.jti != second.jti


def test_closing_a_run_that_is_not_open_changes_nothing() -> None:
    Grants().close("run-1")


@given(st.text())
def test_nothing_else_is_a_token(text: str) -> None:
    grants = Grants()
    grants.open("run-1", "http://proxy", nothing)
    assert grants.find(text) == "run_token_invalid"


def test_tokens_have_256_bits_and_differ() -> None:
    grants = Grants()
    tokens = {grants.open(f"run-{number}", "http://proxy", nothing).token for number in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 44 for token in tokens)


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


def test_a_token_that_comes_back_is_taken_out() -> None:
    grant = Grants().open("run-1", "http://proxy", nothing)
    assert grant.redact(f"token={grant.token}!".encode()) == b"token=[run token]!"
    data = b"nothing of the kind"
    assert grant.redact(data) is data


def test_old_dead_tokens_are_forgotten() -> None:
    grants = Grants()
    first = grants.open("run-0", "http://proxy", nothing)
    for number in range(10_001):
        grants.open(f"run-{number}", "http://proxy", nothing)
        grants.close(f"run-{number}")
    assert grants.find(first.token) == "run_token_invalid"
