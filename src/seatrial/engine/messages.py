"""What an experiment and its workers elsewhere say to each other: plain data, as JSON.

A worker is started with a `Job`, gets orders and gives reports. No message has a secret in it: a worker takes the
values of variables, and the password of the store, from its own environment.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from seatrial.engine.executor import AgentNotes, RunEnd, WorkersEnd
from seatrial.runs import Attempt, Case, Fault, RunKey
from seatrial.suites import Grading


class Job(msgspec.Struct, kw_only=True):
    """What a worker is started with."""

    experiment_id: str
    version: str
    """Of Seatrial: a worker of another version may judge differently."""
    suite: msgspec.Raw
    """As it is stored: variables are in it as `${NAME}`."""
    file: str | None
    """The suite's file; what it names is looked for beside it."""
    directory: str
    """Where the command was started; the worker goes there, if there is such a directory."""
    grading: Grading
    agents: list[str]
    """Those that have anything to do."""
    secrets: list[str]
    """Names of further variables whose values are kept out of what is recorded."""
    store: str
    """Where the store is, without passwords."""


# Orders to a worker.


class Begin(msgspec.Struct, tag="begin"):
    """Run this trial; its first attempt may begin at once."""

    run_id: str
    key: RunKey
    case: Case
    interrupted: list[Attempt] = []
    fault: Fault | None = None
    """With which it ends, without being run: see `Trial.fault`."""
    alone: bool = False
    """Whether it may be what ends workers: the worker has no other run, and says when the agent is done with it."""


class BeginBatch(msgspec.Struct, tag="batch"):
    """Run all these trials of an agent that takes them at once."""

    agent: str
    runs: list[tuple[str, RunKey]]
    """The ids and keys of the runs; the worker has the cases from the store."""


class Admit(msgspec.Struct, tag="admit"):
    """The next attempt of this run may begin, or it may be graded."""

    run_id: str


class Pause(msgspec.Struct, tag="pause"):
    """An agent asked another worker not to be called for so long."""

    agent: str
    seconds: float


class StopWork(msgspec.Struct, tag="stop"):
    """Begin no further attempt."""

    reason: str


class Close(msgspec.Struct, tag="close"):
    """There is nothing more to do. With `now`, what is running is cancelled."""

    now: bool = False


WorkerOrder: TypeAlias = Begin | BeginBatch | Admit | Pause | StopWork | Close

# Reports of a worker.


class Ready(msgspec.Struct, tag="ready"):
    """The worker takes trials now."""

    batches: list[str]
    """The agents that take all their trials at once."""


class Left(msgspec.Struct, tag="left"):
    """No attempt of this run is active any more, or waits to be."""

    run_id: str
    refused: bool = False
    """Whether the agent said that it is too much."""
    retry_after_s: float | None = None


class Waiting(msgspec.Struct, tag="waiting"):
    """The run waits until its next attempt may begin."""

    run_id: str


class Answered(msgspec.Struct, tag="answered"):
    """The agent is done with a run that is alone; the run waits to be let on, and is graded then."""

    run_id: str


class RunEnded(msgspec.Struct, tag="ended"):
    """The run has ended. One of a batch is stored, any other is on its way to the store."""

    run_id: str
    end: RunEnd


class Stored(msgspec.Struct, tag="stored"):
    """The run is stored."""

    run_id: str


class Dropped(msgspec.Struct, tag="dropped"):
    """The run was given up because of a stop."""

    run_id: str


class BatchEnded(msgspec.Struct, tag="batch_ended"):
    """The batch of an agent has ended."""

    agent: str
    dropped: bool = False
    """Whether a stop left some of its runs without an end."""


class Noted(msgspec.Struct, tag="noted"):
    """An agent said something that belongs to no run."""

    said: AgentNotes


class Broken(msgspec.Struct, tag="broken"):
    """The worker cannot continue, and another one could not either."""

    code: str
    message: str
    hint: str | None = None


class Closed(msgspec.Struct, tag="closed"):
    """The worker has ended."""

    end: WorkersEnd


WorkerReport: TypeAlias = (
    Ready | Left | Waiting | Answered | RunEnded | Stored | Dropped | BatchEnded | Noted | Broken | Closed
)

ORDERS = msgspec.json.Decoder(list[WorkerOrder])
REPORTS = msgspec.json.Decoder(list[WorkerReport])
JOB = msgspec.json.Decoder(Job)
