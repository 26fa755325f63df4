"""Runs of the run service, in as few words as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.events.run_input import ResumeEntry
from seatrial.events.types import Interrupt
from seatrial.store import Admission, Ending
from strategies import records

NOW = records.CREATED_AT
STARTED = b'{"type":"RUN_STARTED"}'
FINISHED = b'{"type":"RUN_FINISHED"}'


def admission(run_id: str = "run-1", thread_id: str = "thread-1", **fields: Any) -> Admission:
    """A request for a run of the agent `crew` to the server `server-1`."""
    given: dict[str, Any] = {
        "agent": "crew",
        "server_id": "server-1",
        "created_at": NOW,
        "input": b'{"runId":"%s"}' % run_id.encode(errors="replace"),
        "first_event": STARTED,
        "request": b'{"agent":"crew"}',
    }
    return Admission(run_id=run_id, thread_id=thread_id, **{**given, **fields})


def ending(run_id: str = "run-1", first: int = 1, events: Sequence[bytes] = (FINISHED,), **fields: Any) -> Ending:
    """The end of a run that said something."""
    run = records.run(run_id, run_id=run_id, experiment_id="", outcome=None)
    given: dict[str, Any] = {"run": run, "status": "completed", "ended_at": NOW + 1000}
    return Ending(events=list(events), first=first, **{**given, **fields})


def interrupted(run_id: str = "run-1", first: int = 1, *ids: str, **fields: Any) -> Ending:
    """The end of a run that asks something."""
    interrupts = [Interrupt(id, "confirmation") for id in ids or ("ask-1",)]
    return ending(run_id, first, status="input_required", **{"interrupts": interrupts, **fields})


def answers(*ids: str, payload: Any = True) -> list[ResumeEntry]:
    """An answer to each of these interrupts."""
    return [ResumeEntry(id, "resolved", payload) for id in ids]
