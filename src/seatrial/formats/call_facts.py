"""What a source says of a tool call that the transcript has no place for: when it ran, how it ended, who ran it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from seatrial.transcript.failure import FAILURE_KEYS, CallStatus, find_failure, is_under_way, read_status

ExecutedBy = Literal["agent", "provider", "user"]
"""`provider`: a tool that the model's provider runs itself (web search, MCP). `user`: a simulated user's own tool."""

_STARTED = ("started_at", "startedAt", "start_time", "startTime", "timestamp")
_ENDED = ("ended_at", "endedAt", "end_time", "endTime")
_DURATION = ("duration_ms", "durationMs")
FACT_KEYS = frozenset({*_STARTED, *_ENDED, *_DURATION, *FAILURE_KEYS})


class CallFacts(msgspec.Struct, omit_defaults=True, gc=False):
    """Times are kept as given: ISO 8601 text, or milliseconds since the epoch."""

    started_at: str | int | float | None = None
    ended_at: str | int | float | None = None
    duration_ms: float | None = None
    status: CallStatus | None = None
    error: str | None = None
    executed_by: ExecutedBy = "agent"


def read_call_facts(value: dict[str, Any]) -> CallFacts | None:
    """The facts among the keys of a call, by the names that people give them; None when there are none."""
    if FACT_KEYS.isdisjoint(value):
        return None
    duration = _first(value, _DURATION)
    failure = find_failure(value)
    if failure is not None and failure.status == "unknown" and is_under_way(value.get("status")):
        failure = None  # as it was when the call was made; its result says more
    facts = CallFacts(
        started_at=_first(value, _STARTED, text=True),
        ended_at=_first(value, _ENDED, text=True),
        duration_ms=duration if duration is None or duration >= 0 else None,
        status=read_status(value.get("status")) if failure is None else failure.status,
        error=None if failure is None else failure.error,
    )
    return None if facts == _NOTHING else facts


def _first(value: dict[str, Any], names: tuple[str, ...], *, text: bool = False) -> Any:
    for name in names:
        found = value.get(name)
        if type(found) is int or (type(found) is float and found - found == 0) or (text and type(found) is str):
            return found
    return None


_NOTHING = CallFacts()
