"""Keys and scopes, hosts and origins."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from seatrial.errors import SeatrialError
from seatrial.runs.served import Scope
from seatrial.server.access import Keys, check_host, check_origin, check_scope
from seatrial.server.settings import ServerSettings
from seatrial.store import Store, open_store

NOW = time.time_ns() // 1_000_000
SETTINGS = ServerSettings()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "keys.db") as opened:
        yield opened


def refusal(keys: Keys, authorization: str | None) -> str | None:
    """The code that a request is refused with, or None."""
    try:
        asyncio.run(keys.key_of(authorization))
    except SeatrialError as error:
        return error.code
    return None


def test_without_any_key_a_server_of_this_machine_is_open(store: Store) -> None:
    assert refusal(Keys(store, may_be_open=True), None) is None
    assert refusal(Keys(store, may_be_open=True), "Bearer whatever") is None


def test_a_server_that_others_reach_is_never_open(store: Store) -> None:
    assert refusal(Keys(store, may_be_open=False), None) == "unauthorized"


def test_with_a_key_in_the_store_every_request_needs_one(store: Store) -> None:
    key, secret = store.keyring.add("ci", ["read"], now=NOW)
    keys = Keys(store, may_be_open=True)
    for wrong in (None, "", "Bearer", "Bearer ", f"Basic {secret}", "Bearer st_nothing", f"Bearer {secret}x", "\xff"):
        assert refusal(keys, wrong) == "unauthorized", wrong
    assert asyncio.run(keys.key_of(f"Bearer {secret}")) == key
    assert asyncio.run(keys.key_of(f"bearer  {secret} ")) == key


def test_a_server_does_not_open_again_when_its_last_key_is_revoked(store: Store) -> None:
    key, _ = store.keyring.add("ci", ["read"], now=NOW)
    store.keyring.revoke(key.key_id, NOW)
    assert refusal(Keys(store, may_be_open=True), None) == "unauthorized"


def test_a_key_that_expired_or_was_revoked_is_refused(store: Store) -> None:
    _, expired = store.keyring.add("old", ["read"], now=NOW - 10, expires_at=NOW - 1)
    revoked, secret = store.keyring.add("lost", ["read"], now=NOW)
    store.keyring.revoke(revoked.key_id, NOW)
    keys = Keys(store, may_be_open=True)
    assert refusal(keys, f"Bearer {expired}") == "unauthorized"
    assert refusal(keys, f"Bearer {secret}") == "unauthorized"


def test_a_revoked_key_is_refused_once_it_is_looked_up_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("seatrial.server.access.time.monotonic", lambda: now)
    key, secret = store.keyring.add("ci", ["read"], now=NOW)
    keys = Keys(store, may_be_open=True, ttl_s=5.0)
    assert refusal(keys, f"Bearer {secret}") is None
    assert keys.remembered(f"Bearer {secret}") == key
    store.keyring.revoke(key.key_id, NOW)
    assert keys.remembered(f"Bearer {secret}") == key
    now += 6
    assert keys.remembered(f"Bearer {secret}") is None
    assert refusal(keys, f"Bearer {secret}") == "unauthorized"


def test_a_known_key_is_not_looked_up_for_every_request(store: Store) -> None:
    _, secret = store.keyring.add("ci", ["read"], now=NOW)
    keys = Keys(store, may_be_open=False)
    assert refusal(keys, f"Bearer {secret}") is None
    store.close()
    assert refusal(keys, f"Bearer {secret}") is None


def test_the_end_of_a_key_cuts_the_connections_that_it_opened(store: Store) -> None:
    lost, _ = store.keyring.add("lost", ["read"], now=NOW)
    kept, _ = store.keyring.add("kept", ["read"], now=NOW)
    keys = Keys(store, may_be_open=True, ttl_s=0.0)
    cut: list[str] = []
    with (
        keys.holding(lost, lambda: cut.append("lost")),
        keys.holding(lost, lambda: cut.append("lost too")),
        keys.holding(kept, lambda: cut.append("kept")),
    ):
        asyncio.run(keys.sweep())
        assert cut == []
        store.keyring.revoke(lost.key_id, NOW)
        asyncio.run(keys.sweep())
        assert cut == ["lost", "lost too"]
    asyncio.run(keys.sweep())
    assert cut == ["lost", "lost too"]


def test_the_first_key_cuts_the_connections_of_those_without_one(store: Store) -> None:
    keys = Keys(store, may_be_open=True, ttl_s=0.0)
    cut: list[str] = []
    with keys.holding(None, lambda: cut.append("anonymous")):
        asyncio.run(keys.sweep())
        assert cut == []
        store.keyring.add("ci", ["read"], now=NOW)
        asyncio.run(keys.sweep())
        assert cut == ["anonymous"]


@pytest.mark.parametrize(
    ("has", "needed", "allowed"),
    [
        ("read", "read", True),
        ("read", "run", False),
        ("run", "read", True),
        ("run", "run", True),
        ("run", "admin", False),
        ("admin", "run", True),
        ("admin", "admin", True),
    ],
)
def test_each_scope_allows_what_those_below_it_do(store: Store, has: Scope, needed: Scope, allowed: bool) -> None:
    key, _ = store.keyring.add("ci", [has], now=NOW)
    if allowed:
        check_scope(key, needed)
    else:
        with pytest.raises(SeatrialError, match=needed):
            check_scope(key, needed)


def test_where_no_key_is_needed_everything_is_allowed() -> None:
    check_scope(None, "admin")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8765", "LOCALHOST:1", "127.0.0.1:8765", "[::1]:8765", "192.168.1.5", "localhost."]
)
def test_names_of_this_machine_and_addresses_are_known(host: str) -> None:
    check_host(host, SETTINGS)


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "[x]"]
)
def test_any_other_name_is_refused(host: str | None) -> None:
    with pytest.raises(SeatrialError) as caught:
        check_host(host, SETTINGS)
    assert caught.value.code == "forbidden"


def test_a_name_that_was_allowed_is_known() -> None:
    settings = msgspec.structs.replace(SETTINGS, allow_hosts=frozenset({"runs.example.com"}))
    check_host("Runs.Example.com:443", settings)
    with pytest.raises(SeatrialError):
        check_host("example.com", settings)
    check_host("anything", msgspec.structs.replace(SETTINGS, allow_hosts=frozenset({"*"})))


def test_a_request_without_an_origin_comes_from_no_page() -> None:
    assert check_origin(None, "localhost", SETTINGS) is None


@pytest.mark.parametrize("origin", ["http://localhost:8765", "https://localhost:8765", "http://LOCALHOST:8765"])
def test_a_page_of_the_server_itself_may_use_it(origin: str) -> None:
    assert check_origin(origin, "localhost:8765", SETTINGS) is None


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "http://localhost", "https://evil.example", "null", "", "file://localhost:8765"]
)
def test_a_page_of_another_origin_may_not(origin: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        check_origin(origin, "localhost:8765", SETTINGS)
    assert caught.value.code == "forbidden"


def test_an_origin_that_was_allowed_is_told_to_the_browser() -> None:
    settings = msgspec.structs.replace(SETTINGS, allow_origins=frozenset({"https://app.example.com"}))
    assert check_origin("https://app.example.com", "localhost", settings) == "https://app.example.com"
    with pytest.raises(SeatrialError):
        check_origin("https://app.example.com.evil.example", "localhost", settings)
