"""What a world recorded of a run: enough to build the state after every call again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from seatrial._support import wire
from seatrial.ledger.changes import LedgerChange
from seatrial.ledger.ledger import Ledger, State

WorldCallStatus = Literal["ok", "refused", "invalid", "injected", "faulted", "replayed"]
"""`ok`: the tool did it; `refused`: the world said no; `invalid`: wrong arguments; `injected`: a rule decided;
`faulted`: the world is broken; `replayed`: it was answered before."""
By = Literal["agent", "user"]


class WorldCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call, as graders of the state need it."""

    call: int
    """Its number in the run, from 1, over all tools."""
    tool: str
    status: WorldCallStatus
    by: By = "agent"
    actor: str | None = None
    changes: list[LedgerChange] = []
    made: list[str] = []
    """The ids that it made up."""


class WorldRecord(msgspec.Struct, omit_defaults=True):
    """The state that a run began with, and what its calls did to it."""

    start: str
    """As JSON: most runs of a case begin with the same, and a store keeps long texts once."""
    flags: list[str] = []
    id_fields: dict[str, str] = {}
    """Under which name the ids of entities go, by type, where that is not `id`."""
    root: str = ""
    """The hash of the state at the end."""
    calls: list[WorldCall] = []

    @property
    def first(self) -> Ledger:
        """The state before any call."""
        return Ledger.of(wire.decode(self.start.encode(), _STATE), self.flags)

    def versions(self) -> Iterator[tuple[WorldCall | None, Ledger]]:
        """The state before any call, and after each that changed it."""
        ledger = self.first
        yield None, ledger
        for call in self.calls:
            if call.changes:
                ledger = ledger.after(call.changes)
                yield call, ledger

    @property
    def last(self) -> Ledger:
        """The state at the end."""
        ledger = self.first
        for call in self.calls:
            ledger = ledger.after(call.changes) if call.changes else ledger
        return ledger

    @property
    def made(self) -> frozenset[str]:
        """The ids that the world made up."""
        return frozenset(made for call in self.calls for made in call.made)


_STATE = msgspec.json.Decoder(State)
