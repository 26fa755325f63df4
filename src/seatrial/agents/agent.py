"""The one protocol behind which every kind of agent stands."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import msgspec

from seatrial.events.run_input import RunAgentInput
from seatrial.formats.reading import Reading
from seatrial.ledger.record import WorldRecord
from seatrial.runs import Case, Fault
from seatrial.runs.workspace import WorkspaceDiff
from seatrial.trajectory.observed import ObservedCalls
from seatrial.transcript import Note
from seatrial.world.grant import Emit as Emit
from seatrial.world.grant import RunGrant

EVENT_WORK = 100
"""How many bytes of any other answer take as much work to read as one event does."""


class RunWorkspace(msgspec.Struct, kw_only=True):
    """Where an agent works: a copy for this attempt alone."""

    folder: Path
    home: Path
    """An empty directory to be its home."""
    environment: dict[str, str]
    """All that a program in it gets of our environment."""


class RunRequest(msgspec.Struct, kw_only=True):
    """What an agent is asked to do, once."""

    run_id: str
    experiment_id: str | None = None
    """None when the run service asks."""
    case: Case
    trial: int
    """Which repeat of the case it is, from 1; the run service asks once."""
    attempt: int
    """From 1."""
    timeout_s: float | None
    """What is left of the run's deadline; the agent kind's own timeouts are shorter or equal."""
    suite_file: Path | None = None
    run_input: RunAgentInput | None = None
    """What was asked of the run service, with the whole conversation; None when the case is all there is."""
    grant: RunGrant | None = None
    """The run's access to the tool proxy, for agents that use it."""
    workspace: RunWorkspace | None = None
    """Where it works, if its case has a workspace and it is of a kind that takes one."""
    observed: ObservedCalls = msgspec.field(default_factory=ObservedCalls)
    """Where the agent's calls of the tool proxy are written: they count however the agent ends."""


class Reply(msgspec.Struct, kw_only=True):
    """What came back."""

    body: bytes | None = None
    """What the agent sent, verbatim; kept also when it could not be read."""
    cut: bool = False
    """Whether `body` is only the beginning of what the agent sent."""
    reading: Reading | None = None
    fault: Fault | None = None
    """Set when the run has no usable answer; `reading` may still hold what could be read."""
    http_status: int | None = None
    trace_file: bytes | Note | None = None
    """What the file holds that `reading.trace_ref` names, or why it was not read; for `trajectory.extract`."""
    replayed: bool = False
    """Whether it was recorded earlier, so that the time it took to come back is not the agent's."""
    streamed: bool = False
    """Whether the agent's own events went through `emit`; if not, the recorder makes events of the transcript."""
    notes: list[Note] = []
    """What is to be said of the attempt, whether it has a reading or not: what it left behind."""
    metadata: dict[str, Any] = {}
    """What the metadata of the run gets, however it ends: where the agent's own records of it are found."""
    diff: WorkspaceDiff | None = None
    """What it changed in its workspace; not for agents to say."""
    world: WorldRecord | None = None
    """What its calls did to the world; not for agents to say."""
    doubts: list[Note] = []
    """Why the calls of the run are not all known, whatever this reply says, and whichever attempt is its last."""

    @property
    def size(self) -> int:
        """How many bytes there are to be read and looked through, for `off_loop`."""
        body = 0 if self.body is None else len(self.body)
        events = 0 if self.reading is None else EVENT_WORK * len(self.reading.events or ())
        return max(body, events) + (len(self.trace_file) if isinstance(self.trace_file, bytes) else 0)


class AnsweredAgain(msgspec.Struct):
    """A second answer to a request of a batch, or one that may be. The first counts, and this one is in no record."""

    note: Note


class EndedBadly(msgspec.Struct):
    """What became of the program of a batch after it had answered a request: the answer is that of a program which
    exited non-zero, died or hung (verdicts.md 3)."""

    fault: Fault


class Agent(Protocol):
    """One agent under test. Entered once for an experiment, asked many times, concurrently."""

    @property
    def uses_world(self) -> bool:
        """Whether its runs get access to the tool proxy."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    async def run(self, request: RunRequest, emit: Emit) -> Reply:
        """Ask once. Never raises for anything the agent or the network does: that is a `Fault` in the reply."""
        ...


@runtime_checkable
class BatchAgent(Protocol):
    """An agent that takes all its cases at once (one process for a whole batch)."""

    notes: list[Note]
    """What it said that belongs to no run."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    def run_batch(
        self, requests: Iterable[RunRequest]
    ) -> AsyncGenerator[tuple[RunRequest, Reply | AnsweredAgain | EndedBadly], None]:
        """Ask all; replies come as they are ready, exactly one for each request. Close it to stop asking.

        Of a request that was answered more than once, or may have been, that is said after its reply, once; and in the
        end, of every request that was answered, that the agent ended badly.
        """
        ...
