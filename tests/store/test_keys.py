"""Keys of the run service, on both stores."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from strategies.served import NOW

from seatrial.errors import SeatrialError
from seatrial.store import Store
from seatrial.store.schema import api_keys
from seatrial.store.served import moment


def test_a_key_is_found_by_its_secret(store: Store) -> None:
    assert not store.keyring.exists()
    key, secret = store.keyring.add("ci", ["run", "read"], now=NOW, expires_at=NOW + 1000)
    assert secret.startswith(f"st_{key.key_id}_")
    assert (key.name, key.scopes, key.revoked_at) == ("ci", ["read", "run"], None)
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).total_seconds() == 1
    assert store.keyring.find(secret) == key
    assert store.keyring.all() == [key]
    assert store.keyring.exists()


def test_the_secret_is_not_in_the_store(store: Store) -> None:
    _, secret = store.keyring.add("ci", ["admin"], now=NOW)
    with store._dialect.reading.connect() as connection:
        row = connection.execute(sa.select(api_keys)).one()
    assert secret.split("_", 2)[2] not in repr(row)


def test_a_revoked_key_is_found_and_says_so(store: Store) -> None:
    key, secret = store.keyring.add("ci", ["read"], now=NOW)
    revoked = store.keyring.revoke(key.key_id, NOW + 5)
    assert revoked.revoked_at is not None
    assert store.keyring.revoke(key.key_id, NOW + 99) == revoked, "the first time counts"
    assert store.keyring.find(secret) == revoked
    assert store.keyring.exists(), "or a store would be open to all when its last key is revoked"
    with pytest.raises(SeatrialError) as caught:
        store.keyring.revoke("nope", NOW)
    assert caught.value.code == "not_found"


def test_no_other_text_is_a_key(store: Store) -> None:
    key, secret = store.keyring.add("ci", ["read"], now=NOW)
    other = f"st_{key.key_id}_" + "A" * 43
    for text in (
        "",
        secret[:-1],
        secret + "x",
        secret.upper(),
        other,
        f"st_{key.key_id}_",
        "st_\ud800_",
        "\0",
        secret + "\n",
    ):
        assert store.keyring.find(text) is None


def test_keys_are_listed_the_oldest_first(store: Store) -> None:
    names = ["one", "two", "\N{SNOWMAN}" * 300]
    for number, name in enumerate(names):
        store.keyring.add(name, ["read"], now=NOW + number)
    listed = store.keyring.all()
    assert [key.name for key in listed] == names


@pytest.mark.parametrize(("name", "scopes"), [("", ["read"]), ("a\0", ["read"]), ("a", []), ("a", ["write"])])
def test_a_key_without_a_name_or_with_strange_scopes_is_refused(store: Store, name: str, scopes: list[str]) -> None:
    with pytest.raises(SeatrialError):
        store.keyring.add(name, scopes, now=NOW)  # type: ignore[arg-type]  # what a caller may get wrong
    assert not store.keyring.exists()


def test_a_session_gives_its_key_until_it_or_the_key_ends(store: Store) -> None:
    key, _ = store.keyring.add("ci", ["read"], now=NOW)
    short, _ = store.keyring.add("short", ["read"], now=NOW, expires_at=NOW + 5)
    first = store.keyring.open_session(key, now=NOW, expires_at=NOW + 10)
    second = store.keyring.open_session(short, now=NOW, expires_at=NOW + 10)
    for token, expected, until in ((first, key, NOW + 10), (second, short, NOW + 5)):
        found = store.keyring.session_key(token)
        assert found is not None
        assert (found.key_id, found.expires_at) == (expected.key_id, moment(until))
    assert len(store.keyring.session_keys()) == 2
    assert store.keyring.session_key("") is None
    store.keyring.end_session(first)
    assert store.keyring.session_key(first) is None
    store.keyring.revoke(short.key_id, NOW + 1)
    found = store.keyring.session_key(second)
    assert found is not None
    assert found.revoked_at is not None


def test_sessions_that_have_expired_are_removed_when_another_begins(store: Store) -> None:
    key, _ = store.keyring.add("ci", ["read"], now=NOW)
    store.keyring.open_session(key, now=NOW, expires_at=NOW + 10)
    later = store.keyring.open_session(key, now=NOW + 10, expires_at=NOW + 20)
    assert len(store.keyring.session_keys()) == 1
    assert store.keyring.session_key(later) is not None
