"""Runs that a process began and did not end: what the store has of them is an earlier attempt of the run that takes
their place."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.driver.recording import INTERRUPTED
from seatrial.errors import SeatrialError
from seatrial.events.types import CustomEvent
from seatrial.formats.agui import FORMAT, read_events
from seatrial.formats.reading import Reading
from seatrial.runs import Attempt, Case, Fault
from seatrial.runs.conclusion import MAX_CALLED, UNKNOWN_CALL, called_tools, given_messages
from seatrial.store import Store
from seatrial.trajectory.completeness import ToolAccess

MAX_EVENTS = 10_000
MAX_BYTES = 1 << 24
"""So much is read of a run that was interrupted: what it called after that is unknown."""
_PAGE = 500


def interrupted_attempt(
    store: Store, run_id: str, case: Case, tool_access: ToolAccess, *, number: int = 1, now_ms: int
) -> Attempt:
    """The attempt that a run was when the process that ran it ended; the tools that it called are from its events."""
    fault = Fault("interrupted", "the process that ran it ended before the run did")
    attempt = Attempt(number=number, started_at=now_ms, duration_ms=0.0, fault=fault)
    try:
        events, cut = _stored_events(store, run_id)
        if events:
            reading = read_events(b"\n".join(events), FORMAT)
            # By the clock of the agent, perhaps: what cannot be is not taken.
            times = [event.timestamp for event in reading.events or () if isinstance(event.timestamp, int)]
            if times and 0 <= times[0] <= times[-1] <= now_ms:
                attempt.started_at, attempt.duration_ms = times[0], float(times[-1] - times[0])
            called = _called_before(reading) + called_tools(reading, given_messages(case), tool_access=tool_access)
            attempt.called = _without_repeats([*called, UNKNOWN_CALL] if cut else called)
    except Exception as error:  # noqa: BLE001 (what an agent sent must not end the experiment, whatever it is)
        # A run that was never begun in the store has no events.
        if not isinstance(error, SeatrialError) or error.code != "not_found":
            attempt.called = [UNKNOWN_CALL]
    return attempt


def _stored_events(store: Store, run_id: str) -> tuple[list[bytes], bool]:
    """The first events of a run, and whether there are more."""
    found: list[bytes] = []
    size = 0
    while page := store.events(run_id, after=len(found) - 1, limit=_PAGE):
        for _, event in page:
            if len(found) >= MAX_EVENTS or size + len(event) > MAX_BYTES:
                return found, True
            found.append(event)
            size += len(event)
    return found, False


def _called_before(reading: Reading) -> list[str]:
    """What was called by runs that were interrupted before this one, which took their place."""
    marks = [event for event in reading.events or () if isinstance(event, CustomEvent) and event.name == INTERRUPTED]
    lists = [mark.value.get("called") for mark in marks if isinstance(mark.value, dict)]
    return [name for names in lists if isinstance(names, list) for name in names if isinstance(name, str)]


def _without_repeats(called: Sequence[str]) -> list[str]:
    names = [name for name in dict.fromkeys(called) if name != UNKNOWN_CALL]
    return [*names[:MAX_CALLED], UNKNOWN_CALL] if UNKNOWN_CALL in called else names[:MAX_CALLED]
