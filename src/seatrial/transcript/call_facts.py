"""What a record says of a call beside the messages: when it ran, how it ended, who ran it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from seatrial.transcript.failure import CallStatus

ExecutedBy = Literal["agent", "provider", "user"]
"""`provider`: a tool that the model's provider runs itself (web search, MCP). `user`: a simulated user's own tool."""


class CallFacts(msgspec.Struct, omit_defaults=True, gc=False):
    """What a record says of a call beyond the transcript's fields.

    Times are kept as given: ISO 8601 text, or milliseconds since the epoch.
    """

    started_at: str | int | float | None = None
    ended_at: str | int | float | None = None
    duration_ms: float | None = None
    status: CallStatus | None = None
    error: str | None = None
    executed_by: ExecutedBy = "agent"
    actor: str | None = None
    """Which agent made the call, where there are several."""
    parent: str | None = None
    """Id of the call inside which it was made."""


class PlacedFacts(msgspec.Struct, omit_defaults=True, gc=False):
    """Facts of one call. They go by its place: other calls may have its id, of other turns and of others than the
    agent."""

    message: int
    """Index of the message that makes the call; or of a result, whose status and error are those of its call."""
    facts: CallFacts
    call: int = 0
    """Which of the calls of that message it is."""


def facts_of_done(facts: Iterable[PlacedFacts], given: Iterable[int]) -> list[PlacedFacts]:
    """The facts of the messages that were done, by their places among those alone."""
    left_out = sorted({*given})
    kept = [placed for placed in facts if placed.message not in left_out]
    if not left_out:
        return kept
    return [
        PlacedFacts(placed.message - sum(index < placed.message for index in left_out), placed.facts, placed.call)
        for placed in kept
    ]
