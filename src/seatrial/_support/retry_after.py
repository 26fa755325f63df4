"""`Retry-After`: how long a server asks those to wait whom it sends away."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_S = 86_400.0


def retry_after_s(text: str | None) -> float | None:
    """The seconds that a `Retry-After` asks for: a number, or a date; None when it says neither. A day at most."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        seconds = ((date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S) if seconds == seconds else None
