"""`seatrial keys`."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli import main
from seatrial.store import open_store

SECRET = re.compile(r"st_[0-9a-f]{12}_[A-Za-z0-9_-]{43}")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "keys.db")


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["keys", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_secret_is_shown_once_and_alone_on_standard_output(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "add", "ci", "--scope", "run", "--store", store]) == 0
    shown = capsys.readouterr()
    assert SECRET.fullmatch(shown.out.strip())
    assert "cannot be shown again" in shown.err
    assert main(["keys", "list", "--store", store]) == 0
    listed = capsys.readouterr().out
    assert shown.out.strip() not in listed
    assert listed.split() == [shown.out.split("_")[1], "run", "valid", "ci"]


def test_a_key_reads_unless_it_is_said_otherwise(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "add", "x", "--store", store)["key"]["scopes"] == ["read"]
    made = told(capsys, "add", "x", "--scope", "admin", "--scope", "read", "--store", store)
    assert made["key"]["scopes"] == ["read", "admin"]


def test_the_secret_that_is_shown_opens(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, "add", "x", "--store", store)
    with open_store(store) as opened:
        found = opened.keyring.find(made["secret"])
    assert found is not None
    assert found.key_id == made["key"]["keyId"]


def test_a_revoked_key_stays_listed_as_revoked(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    key_id = told(capsys, "add", "x", "--store", store)["key"]["keyId"]
    assert "revokedAt" in told(capsys, "revoke", key_id, "--store", store)["key"]
    (listed,) = told(capsys, "list", "--store", store)["keys"]
    assert listed["keyId"] == key_id
    assert "revokedAt" in listed
    assert main(["keys", "list", "--store", store]) == 0
    assert "revoked" in capsys.readouterr().out


@pytest.mark.parametrize(("span", "days"), [("30d", 30), ("48h", 2), ("2w", 14), ("1440m", 1)])
def test_a_key_expires_when_it_was_told_to(
    store: str, capsys: pytest.CaptureFixture[str], span: str, days: int
) -> None:
    key = told(capsys, "add", "x", "--expires", span, "--store", store)["key"]
    made, expires = (datetime.fromisoformat(key[name]) for name in ("createdAt", "expiresAt"))
    assert expires - made == timedelta(days=days)
    assert main(["keys", "list", "--store", store]) == 0
    assert "valid until" in capsys.readouterr().out


@pytest.mark.parametrize("span", ["", "30", "d", "0d", "-1d", "1y", "1.5d", "99999999d"])
def test_a_span_that_is_none_is_a_usage_error(store: str, capsys: pytest.CaptureFixture[str], span: str) -> None:
    assert main(["keys", "add", "x", f"--expires={span}", "--store", store]) == 2
    assert "30d" in capsys.readouterr().err


def test_a_key_that_is_not_there_cannot_be_revoked(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "add", "x", "--store", store)
    assert main(["keys", "revoke", "nothing", "--store", store]) == 2
    assert "[not_found]" in capsys.readouterr().err


def test_a_store_without_keys_is_said_to_be_open(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    open_store(store).close()
    assert main(["keys", "list", "--store", store]) == 0
    assert "open to this machine" in capsys.readouterr().err


def test_a_command_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys"]) == 2
    assert "--help" in capsys.readouterr().err


def test_a_hostile_name_cannot_steer_the_terminal(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "add", "a\x1b[2Jb", "--store", store)
    assert main(["keys", "list", "--store", store]) == 0
    assert "\x1b" not in capsys.readouterr().out
