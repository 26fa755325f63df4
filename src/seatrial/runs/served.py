"""Runs of the run service: what is known of one beside its record, and the thread that it belongs to."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from seatrial.events.types import Interrupt, RunStatus

Scope = Literal["read", "run", "admin"]
"""What a key allows: `read` runs and streams, `run` them too, `admin` everything."""


class ServedRun(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A run that the service was asked for."""

    run_id: str
    thread_id: str
    agent: str
    status: RunStatus
    """`input_required`: it ended with open interrupts, and nobody has answered them yet."""
    created_at: datetime
    ended_at: datetime | None = None
    pushed: bool = False
    """Whether the agent posts its events itself. No server drives such a run, so it outlives all of them."""
    server_id: str | None = None
    """The server that drives it."""
    idempotency_key: str | None = None
    cancel_requested: bool = False
    interrupts: list[Interrupt] = []
    """Those that it ended with."""
    error_code: str | None = None
    error_message: str | None = None
    """Why it failed."""


class RunHead(msgspec.Struct, frozen=True):
    """What a stream needs to know of a run, of the service or of an experiment."""

    run_id: str
    thread_id: str
    status: RunStatus
    first: int
    """The lowest sequence that is kept; equal to `following` when none is."""
    following: int
    """The sequence that the next event will have."""
    closed: bool
    """Whether no event will ever follow: the run has its terminal event, an interrupt included."""


class ApiKey(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A key, without its secret, which nobody keeps."""

    key_id: str
    name: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
