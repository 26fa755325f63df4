"""Keys of the run service, on both stores."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from strategies.served import NOW

from seatrial.errors import SeatrialError
from seatrial.store import Store
from seatrial.store.schema import api_keys


def test_a_key_is_found_by_its_secret(store: Store) -> None:
    assert not store.has_keys()
    key, secret = store.add_key("ci", ["run", "read"], now=NOW, expires_at=NOW + 1000)
    assert secret.startswith(f"st_{key.key_id}_")
    assert (key.name, key.scopes, key.revoked_at) == ("ci", ["read", "run"], None)
    assert key.expires_at is not None
    assert (key.expires_at - key.created_at).total_seconds() == 1
    assert store.find_key(secret) == key
    assert store.keys() == [key]
    assert store.has_keys()


def test_the_secret_is_not_in_the_store(store: Store) -> None:
    _, secret = store.add_key("ci", ["admin"], now=NOW)
    with store._dialect.reading.connect() as connection:
        row = connection.execute(sa.select(api_keys)).one()
    assert secret.rpartition("_")[2] not in repr(row)


def test_a_revoked_key_is_found_and_says_so(store: Store) -> None:
    key, secret = store.add_key("ci", ["read"], now=NOW)
    revoked = store.revoke_key(key.key_id, NOW + 5)
    assert revoked.revoked_at is not None
    assert store.revoke_key(key.key_id, NOW + 99) == revoked, "the first time counts"
    assert store.find_key(secret) == revoked
    assert store.has_keys(), "or a store would be open to all when its last key is revoked"
    with pytest.raises(SeatrialError) as caught:
        store.revoke_key("nope", NOW)
    assert caught.value.code == "not_found"


def test_no_other_text_is_a_key(store: Store) -> None:
    key, secret = store.add_key("ci", ["read"], now=NOW)
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
        assert store.find_key(text) is None


def test_keys_are_listed_the_oldest_first(store: Store) -> None:
    names = ["one", "two", "\N{SNOWMAN}" * 300]
    for number, name in enumerate(names):
        store.add_key(name, ["read"], now=NOW + number)
    listed = store.keys()
    assert [key.name for key in listed] == names


@pytest.mark.parametrize(("name", "scopes"), [("", ["read"]), ("a\0", ["read"]), ("a", []), ("a", ["write"])])
def test_a_key_without_a_name_or_with_strange_scopes_is_refused(store: Store, name: str, scopes: list[str]) -> None:
    with pytest.raises(SeatrialError):
        store.add_key(name, scopes, now=NOW)  # type: ignore[arg-type]  # what a caller may get wrong
    assert not store.has_keys()
