"""A run service on a real store, and what is to be true of every log that it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from seatrial.agents.agent import Agent
from seatrial.agents.python.agent import PythonAgent
from seatrial.agents.python.config import PythonConfig
from seatrial.api import CreateRun, RunInput
from seatrial.events import Event, EventReader, expand, verify
from seatrial.events.types import RunError, RunFinished, RunStarted
from seatrial.runs import ServedRun
from seatrial.server.service import RunService
from seatrial.store import Store


class Followers:
    """Takes what is published, as feeds do, and holds it against the store: only what is committed may come."""

    def __init__(self, store: Store) -> None:
        self.published: dict[str, list[bytes]] = {}
        self.over: list[str] = []
        self.woken: list[str] = []
        self._store = store

    def publish(self, run_id: str, first: int, events: Sequence[bytes]) -> None:
        known = self.published.setdefault(run_id, [])
        if len(known) < first:  # RUN_STARTED, or what another server has appended
            known += [data for _, data in self._store.events(run_id, after=len(known) - 1, limit=first - len(known))]
        assert len(known) == first, "something comes twice, or is not where it is said to be"
        known += events
        stored = [data for _, data in self._store.events(run_id, after=first - 1, limit=len(events))]
        assert stored == list(events), "published before it was committed"

    def ended(self, run_id: str) -> None:
        assert self._store.run_head(run_id).closed
        self.over.append(run_id)

    def wake(self, run_id: str) -> None:
        self.woken.append(run_id)


@asynccontextmanager
async def running(
    store: Store, functions: Mapping[str, Callable[..., Any]] | None = None, **settings: Any
) -> AsyncIterator[RunService]:
    """A service whose agents are these functions."""
    agents = {name: agent(function) for name, function in (functions or {}).items()}
    settings = {"sweep_every_s": 0.05, "grace_s": 0.5, "drain_s": 5.0, **settings}
    async with RunService(store, settings.pop("feeds", Followers(store)), agents, **settings) as service:
        yield service


def agent(function: Callable[..., Any]) -> Agent:
    """A function as an agent."""
    return PythonAgent(PythonConfig(target="tests:agent"), directory=Path(), timeout_s=None, function=function)


async def ask(service: RunService, text: str | None = "Hello.", agent: str = "agent", **fields: Any) -> ServedRun:
    """A new run, to which the user says this."""
    messages = [] if text is None else [{"role": "user", "content": text}]
    given = fields.pop("input", None) or RunInput(messages=messages)
    return (await service.create(CreateRun(agent=agent, input=given, **fields))).run


async def ended(service: RunService, run_id: str, timeout_s: float = 60.0) -> ServedRun:
    """The run, once it has ended."""
    return await until(service, run_id, lambda run: run.ended_at is not None, timeout_s)


async def until(
    service: RunService, run_id: str, is_so: Callable[[ServedRun], bool], timeout_s: float = 60.0
) -> ServedRun:
    """The run, once something is true of it."""
    async with asyncio.timeout(timeout_s):
        while not is_so(run := await service.run(run_id)):
            await asyncio.sleep(0.005)
    return run


def log_of(store: Store, run_id: str) -> list[Event]:
    """The stored events of a run, each at its place."""
    stored = store.events(run_id, limit=100_000)
    assert [sequence for sequence, _ in stored] == list(range(len(stored)))
    reader = EventReader()
    return [reader.read(data) for _, data in stored]


def whole_log(store: Store, run_id: str) -> list[Event]:
    """The log of a run that has ended: legal, with one beginning and one end."""
    events = log_of(store, run_id)
    expanded, violation = expand(events)
    assert violation is None
    assert verify(expanded) is None
    assert isinstance(events[0], RunStarted)
    assert [event for event in events if isinstance(event, RunFinished | RunError)] == [events[-1]]
    return events


def types_of(events: list[Event]) -> list[str]:
    """The types of events between the first and the last."""
    return [str(event.__struct_config__.tag) for event in events]
