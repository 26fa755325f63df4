"""What a service says when it refuses, as an error of ours. Its text is not to be trusted: all of it is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial._support import wire
from seatrial._support.retry_after import retry_after_s
from seatrial.errors import ERROR_CODES, SeatrialError

MAX_REFUSAL_BYTES = 64 * 1024
"""As much of an answer as is looked at."""
MAX_TEXT = 500
MAX_DETAILS = 16
MAX_NAME = 64

_STANDARD = frozenset({"type", "title", "status", "instance", "code", "detail", "hint", "pointer"})


class AttemptError(Exception):
    """One attempt to ask the service that came to nothing."""

    def __init__(self, error: SeatrialError, *, may_pass: bool, wait_s: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        """What is raised when there is no further attempt."""
        self.may_pass = may_pass
        """Whether it is worth another attempt."""
        self.wait_s = wait_s
        """How long the service asks to wait."""


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> AttemptError:
    """An answer that is not 2xx."""
    wait_s = retry_after_s(headers.get("Retry-After"))
    may_pass = status in (408, 429) or status >= 500
    if 300 <= status < 400:
        message = f"the service answered {status}, and redirects are not followed: name the final address"
        return AttemptError(SeatrialError("service_failed", message), may_pass=False)
    return AttemptError(_error(status, body), may_pass=may_pass, wait_s=wait_s)


def _error(status: int, body: bytes) -> SeatrialError:
    try:
        problem = wire.decode(body, repairs=[])
    except SeatrialError:
        problem = None
    if type(problem) is not dict or type(problem.get("code")) is not str:
        # Something on the way answered, a proxy perhaps, and not the service.
        code = {401: "unauthorized", 403: "forbidden", 429: "rate_limited"}.get(status, "service_failed")
        return SeatrialError(code, f"the service answered {status}", hint=_excerpt(body))
    code = problem["code"] if problem["code"] in ERROR_CODES else "service_failed"
    said = _text(problem, "detail") or _text(problem, "title") or "no reason given"
    message = said if code == problem["code"] else f"the service answered {status} {problem['code'][:MAX_NAME]}: {said}"
    return SeatrialError(
        code,
        message,
        pointer=_text(problem, "pointer"),
        hint=_text(problem, "hint"),
        details=dict(list(_details(problem))[:MAX_DETAILS]),
    )


def _text(problem: dict[str, Any], name: str) -> str | None:
    value = problem.get(name)
    return value[:MAX_TEXT] if type(value) is str and value else None


def _details(problem: dict[str, Any]) -> list[tuple[str, str | int | None]]:
    return [
        (name, value[:MAX_TEXT] if type(value) is str else value)
        for name, value in problem.items()
        if name not in _STANDARD
        and len(name) <= MAX_NAME
        and (value is None or type(value) is str or (type(value) is int and abs(value) < 2**63))
    ]


def _excerpt(body: bytes) -> str | None:
    text = " ".join(body[: MAX_TEXT * 4].decode("utf-8", "replace").split())
    return f"it said: {text[:200]}" if text else None
