"""How a server is set up: where it listens, whom it lets in, how much it takes."""

from __future__ import annotations

import ipaddress
from typing import Literal, TypeAlias

import msgspec

from seatrial.errors import SeatrialError

LogFormat: TypeAlias = Literal["text", "json"]

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class ServerSettings(msgspec.Struct, kw_only=True, frozen=True):
    """Everything about a server but its store and its agents."""

    host: str = "127.0.0.1"
    port: int = 8765
    """0: any that is free."""
    drain_s: float = 30.0
    """How long running runs may take to finish once a stop was requested."""
    keepalive_s: float = 10.0
    """After how long without an event a stream says that it is alive."""
    send_timeout_s: float = 30.0
    """How long a subscriber may take nothing of what there is for it; then it is cut off, and may come back."""
    push_idle_s: float = 900.0
    """How long a pushed run may go without an event; then it is ended."""
    retention_days: float | None = None
    """For how long the events of runs that ended are kept; None: for ever."""
    allow_hosts: frozenset[str] = frozenset()
    """Names, besides those of this machine, that requests may call the server by; `*`: any."""
    allow_origins: frozenset[str] = frozenset()
    """Origins of web pages, besides the server's own, that may use it; `*`: any."""
    max_body_bytes: int = 8 * 1024 * 1024
    rate: float = 100.0
    """Requests per second for each key, or for each address where no key is needed; 0: as many as come."""
    session_s: float = 12 * 3600.0
    """How long a browser stays signed in."""
    log_format: LogFormat = "text"

    @property
    def burst(self) -> float:
        """How many requests may come at once: subscribers come back together when a server has restarted."""
        return max(self.rate * 10, 1.0)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    def check(self) -> None:
        """Raise `SeatrialError` for a setting that cannot be used."""
        for right, wrong in (
            (0 <= self.port <= 65535, "the port is a number from 0 to 65535"),
            (bool(self.host), "the host must not be empty"),
            (self.drain_s >= 0, "the time to drain must not be negative"),
            (0.05 <= self.keepalive_s <= 3600, "keepalives come every 0.05 to 3600 seconds"),
            (self.send_timeout_s > 0, "subscribers need some time to take what is sent"),
            (self.push_idle_s > 0, "pushed runs need some time between events"),
            (self.retention_days is None or self.retention_days > 0, "events are kept for more than 0 days"),
            (self.max_body_bytes >= 1024, "bodies of at least 1024 bytes must be taken"),
            (1 <= self.session_s <= 31_536_000, "a session lasts 1 second to a year"),
            (self.rate >= 0, "the rate must not be negative"),
        ):
            if not right:
                raise SeatrialError("usage", wrong)
        for origin in self.allow_origins:
            scheme, _, rest = origin.partition("://")
            if origin != "*" and (scheme not in ("http", "https") or not rest or "/" in rest):
                raise SeatrialError(
                    "usage",
                    f"{origin!r} is not an origin",
                    hint="an origin is scheme, host and port without a path, as in https://app.example.com",
                )
        for host in self.allow_hosts:
            if not host or "/" in host:
                raise SeatrialError("usage", f"{host!r} is not the name of a host", hint="no scheme and no path")


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine, and nothing that others can reach."""
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
