"""Settings of a server."""

from __future__ import annotations

import msgspec
import pytest

from seatrial.errors import SeatrialError
from seatrial.server.settings import ServerSettings, is_loopback


def test_the_defaults_can_be_used_and_are_for_this_machine_alone() -> None:
    settings = ServerSettings()
    settings.check()
    assert settings.loopback
    assert not settings.allow_origins


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": 65536},
        {"port": -1},
        {"host": ""},
        {"drain_s": -1.0},
        {"keepalive_s": 0.0},
        {"retention_days": 0.0},
        {"max_body_bytes": 0},
        {"rate": -0.5},
        {"drain_s": float("nan")},
        {"rate": float("nan")},
        {"allow_origins": frozenset({"app.example.com"})},
        {"allow_origins": frozenset({"https://app.example.com/path"})},
        {"allow_hosts": frozenset({"https://app.example.com"})},
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(wrong: dict[str, object]) -> None:
    settings = msgspec.structs.replace(ServerSettings(), **wrong)
    with pytest.raises(SeatrialError) as caught:
        settings.check()
    assert caught.value.code == "usage"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"])
def test_only_this_machine_reaches_a_loopback_address(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "localhost.example.com", "example.com", ""])
def test_anything_else_may_be_reached_by_others(host: str) -> None:
    assert not is_loopback(host)
