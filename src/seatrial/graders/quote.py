"""Foreign values in reasons: readable, escaped, and never longer than a line."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.trajectory.prose import shown

MAX_LISTED = 5


def quoted(value: Any) -> str:
    """A value as JSON, cut where it is long; `missing` for none."""
    if value is UNSET:
        return "missing"
    try:
        return shown(wire.encode(value[:200] if isinstance(value, str) else value).decode())
    except (SeatrialError, TypeError, ValueError):
        return type(value).__name__


def listed(texts: list[str]) -> str:
    """The first few of these texts, and how many more there are."""
    more = f" and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""
    return "; ".join(texts[:MAX_LISTED]) + more
