"""Bodies of requests to the run service and of its answers, for the server, its client and the OpenAPI document.

Names are camelCase on the wire, times are UTC in ISO 8601.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from seatrial.errors import SeatrialError
from seatrial.events.run_input import Context, ResumeEntry, Tool
from seatrial.events.types import OpaqueId, Sequence
from seatrial.runs.served import ServedRun
from seatrial.transcript import Note

ChosenId = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^(?!\.{1,2}$)[A-Za-z0-9._:~-]+$(?!\n)")]
"""An id that a client makes up. It has to be one segment of a path, and to survive as one."""
IdempotencyKey = Annotated[str, Meta(min_length=1, max_length=256)]


class RunInput(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """What a run starts from, in AG-UI's terms."""

    messages: list[dict[str, Any]] = []
    """AG-UI messages. Those that the thread has already, by their ids, are not repeated."""
    state: Any = UNSET
    tools: list[Tool] = []
    context: list[Context] = []
    forwarded_props: Any = UNSET


class CreateRun(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Ask for a run."""

    agent: OpaqueId
    """The name of an agent that the server has; with `push`, any name."""
    input: RunInput = msgspec.field(default_factory=RunInput)
    thread_id: ChosenId | None = None
    """The conversation that it belongs to; a new one when absent."""
    run_id: ChosenId | None = None
    """The id it is to have; made up when absent."""
    idempotency_key: IdempotencyKey | None = None
    """Asking again with the same key gives the same run."""
    push: bool = False
    """Whether nobody drives the run, because the agent posts its events itself."""
    resume: list[ResumeEntry] | None = None
    """Answers to every open interrupt of the thread."""


class RunPage(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Runs, the newest first."""

    runs: list[ServedRun]
    next: str | None = None
    """Given as `?before=`, it gives the next page; absent on the last one."""


class Thread(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A conversation: its runs, the oldest first, and what they add up to."""

    thread_id: str
    runs: list[ServedRun]
    messages: list[dict[str, Any]]
    state: Any = UNSET
    active_run_id: str | None = None


class EventPage(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Events of a run by their sequence."""

    run_id: str
    thread_id: str
    events: list[msgspec.Raw]
    """Envelopes."""
    next: Sequence | None = None
    """Given as `?after=`, it gives the next page; absent when this is the end so far."""
    closed: bool = False
    """Whether the run has ended, and these are the last."""


class PushEvents(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Events that an agent pushes: all of them are stored, or none."""

    events: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=1000)]
    """Bare events. One with an `eventId` that the run has already is not stored again."""
    first: Sequence | UnsetType = UNSET
    """The sequence that the first one is to have; refused when another one was there before it."""


class PushResult(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """Where pushed events are."""

    sequences: list[int | None]
    """One for each event; null for one that was dropped, and a note says why."""
    head: int
    """The last sequence that the run has."""
    notes: list[Note] = []


class Problem(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """An error, as RFC 9457 wants it; further members depend on the code."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    """One of docs/errors.md: what a program matches on."""
    detail: str
    hint: str | None = None
    pointer: str | None = None


def check_chosen_id(text: str, pointer: str) -> None:
    """Raises `SeatrialError` for an id that no client may choose."""
    try:
        msgspec.convert(text, ChosenId)
    except msgspec.ValidationError:
        raise SeatrialError(
            "invalid_request",
            f"{text[:80]!r} cannot be an id",
            pointer=pointer,
            hint="1 to 256 letters, digits, and . _ : ~ -",
        ) from None
