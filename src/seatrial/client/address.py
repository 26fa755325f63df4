"""Where a service is, and whether a key may be sent there."""

from __future__ import annotations

import ipaddress
from urllib.parse import quote

import yarl

from seatrial.errors import SeatrialError

DEFAULT_URL = "http://127.0.0.1:8765"
"""Where `seatrial serve` listens by default."""


def service_address(url: str, *, keyed: bool, allow_plain_http: bool) -> yarl.URL:
    """The address of a service. One that a key would reach unprotected is refused."""
    try:
        address = yarl.URL(url)
    except ValueError:
        address = yarl.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise SeatrialError(
            "invalid_config",
            "the address of the service must be an http or https URL",
            hint=f"such as {DEFAULT_URL}",
        )
    if address.user is not None or address.password is not None:
        raise SeatrialError("invalid_config", "there are credentials in the service's URL; a key is given apart")
    if address.query_string or address.fragment:
        raise SeatrialError("invalid_config", "the service's URL must end with its path")
    if keyed and address.scheme == "http" and not allow_plain_http and not _is_loopback(address.host):
        raise SeatrialError(
            "invalid_config",
            f"the key would be sent to {address.host} over plain http, where anyone on the way can read it",
            hint="use https, or allow it with `allow_plain_http` (`--allow-http`)",
        )
    return address


def bearer(key: str) -> str:
    """The header that shows a key. The error for one that cannot be shown does not show it either."""
    key = key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise SeatrialError("invalid_config", "the key of the service cannot stand in a header")
    return f"Bearer {key}"


def path_segment(text: str, name: str) -> str:
    """An id as a part of a path."""
    # Dots alone would be read as a step up the path, by us or by something on the way.
    if not 0 < len(text) <= 256 or text in (".", ".."):
        raise SeatrialError("invalid_request", f"the {name} must have from 1 to 256 characters, and not be dots alone")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise SeatrialError("invalid_request", f"the {name} is not text that can be sent") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() == "localhost"
