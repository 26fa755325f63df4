"""The beginning of something long, to show with a fault."""

from __future__ import annotations

MAX_DETAIL = 500
"""Characters of a body that are shown (dispatch.md 14)."""


def excerpt(body: bytes) -> str | None:
    """The beginning of a body, for people; None when there is nothing in it."""
    return body[: MAX_DETAIL * 4].decode("utf-8", "replace")[:MAX_DETAIL] or None
