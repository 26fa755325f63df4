"""Where an experiment runs: in this process, or on workers elsewhere. Open to extensions.

The experiment itself stays in the process that was asked for it: what runs next, the limits of agents, the budget, the
stop. An executor gets an `Assignment` and opens `Workers`, which run its trials.

Executors are registered with `@executor("name")`, or offered by an entry point in the group `seatrial.executors`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import ClassVar, Protocol, TypeVar

import msgspec

from seatrial._support.registry import Registry, where
from seatrial.driver.clock import Clock
from seatrial.engine.budget import Spent
from seatrial.engine.limit import AttemptGate
from seatrial.engine.stop import Stop
from seatrial.engine.trial import Trial
from seatrial.runs import Experiment, RunKey
from seatrial.store import Store
from seatrial.suites import Secrets, Suite
from seatrial.transcript import Note


class RunEnd(msgspec.Struct):
    """What an experiment has to know of a run that has ended; the run itself is in the store."""

    key: RunKey
    outcome: str
    spent: Spent | None = None
    """None when no budget limits anything."""
    before: str | None = None
    """Its outcome so far, where the run had ended and was graded again, because something came afterwards."""


class AgentNotes(msgspec.Struct):
    """What an agent said that belongs to no run."""

    agent: str
    notes: list[Note]


class WorkersEnd(msgspec.Struct):
    """What is known when all is done."""

    elsewhere: int = 0
    """Runs that another process recorded first: its results count."""
    left_running: dict[str, int] = {}
    """By agent, how many of its runs ignored their cancellation."""
    replaced: list[tuple[RunEnd, RunEnd | None]] = []
    """Runs that had ended and were lost with their worker before they were stored: what was reported of them, and
    how they ended when they were run again; None when a stop came before that."""


class Assignment(msgspec.Struct, kw_only=True):
    """What there is to run, and what is open for it in this process."""

    experiment: Experiment
    suite: Suite
    agents: Collection[str]
    """Those that have anything left to do: no other is started."""
    store: Store
    variables: Mapping[str, str]
    secrets: Secrets
    stop: Stop
    clock: Clock
    warn: Callable[[str], None] = lambda message: None
    """Shows the user a warning that ends nothing."""
    abandon: list[Callable[[], None]] = []
    """Called when the process is about to end, perhaps in another thread: each saves what can be saved without waiting
    for anything."""


class Workers(Protocol):
    """Runs trials, several at once."""

    @property
    def batches(self) -> Collection[str]:
        """The agents that take all their trials at once."""

    async def run(self, trial: Trial, gate: AttemptGate) -> RunEnd:
        """Run a trial, grade and store it; `gate` lets its attempts begin.

        Raises `StopRequestedError` when a stop comes while no attempt is running, and `SeatrialError` when the store
        fails.
        """

    def run_batch(self, agent: str, trials: Iterator[Trial]) -> AsyncGenerator[RunEnd | AgentNotes, None]:
        """The same for all trials of an agent that takes them at once; they come as they end."""

    async def finish(self) -> WorkersEnd:
        """Wait until all that has ended is stored."""


class Executor(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where trials run. Its fields are its options."""

    workers: int | None = None
    """How many workers there are, where that can be chosen."""

    needs_shared_store: ClassVar[bool] = False
    """Whether its workers open the store themselves, so that it must be one that several machines can open."""

    @abstractmethod
    def open(self, work: Assignment) -> AbstractAsyncContextManager[Workers]:
        """Workers, for as long as the block lasts. Raises `SeatrialError` when there cannot be any."""


def _accept(name: str, value: object) -> type[Executor]:
    del name
    if not isinstance(value, type) or not issubclass(value, Executor):
        raise TypeError(f"`{where(value)}` is not a subclass of `seatrial.engine.Executor`")
    if value.open is Executor.open:
        raise TypeError(f"`{where(value)}` has no method `open`")
    return value


EXECUTORS: Registry[type[Executor]] = Registry(
    "executor",
    "seatrial.executors",
    {"local": "seatrial.engine.local:LocalExecutor", "ray": "seatrial.engine.ray_executor:RayExecutor"},
    _accept,
)
"""Every executor that `seatrial run --executor` can name."""

E = TypeVar("E", bound=type[Executor])


def executor(name: str) -> Callable[[E], E]:
    """Register an executor under a name: `@executor("slurm")`."""
    return EXECUTORS.register(name)
