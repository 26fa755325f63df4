"""Agents for tests of executors: what they did is in this module, for workers in the same process."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextvars import ContextVar
from typing import Any

from seatrial.agents import AgentStart, Emit, Reply, RunRequest
from seatrial.agents.config import AgentConfig
from seatrial.agents.python.returned import read_returned
from seatrial.events import types as t
from seatrial.runs import Fault

asked: Counter[str] = Counter()
"""How often each case was asked for."""
active: Counter[str] = Counter()
most_active: Counter[str] = Counter()
refusals: Counter[str] = Counter()
"""How often an agent is still to refuse."""
hold = asyncio.Event()
"""What cases that begin with `held` wait for."""
link: ContextVar[Any] = ContextVar("link")
"""The way to the worker that runs the current task."""


async def deadly(case_id: str) -> str:
    """An agent that ends its worker, or keeps it from doing anything, where the id of the case says so."""
    asked[case_id] += 1
    if case_id.startswith("ends"):
        link.get().cut.set()
        await asyncio.sleep(3600)
    if case_id.startswith("keeps"):
        link.get().keep()
        await asyncio.sleep(3600)
    return "ok"


def deadly_check(subject: Any) -> bool:
    """A grader that ends the worker."""
    if subject.case.id == "graded":
        link.get().loop.call_soon_threadsafe(link.get().cut.set)
        while True:  # until it is interrupted, when the worker ends
            time.sleep(0.01)
    return True


def forget() -> None:
    """Begin anew."""
    global hold
    hold = asyncio.Event()
    for counter in (asked, active, most_active, refusals):
        counter.clear()


class CrewConfig(AgentConfig):
    """An agent that does what the id of a case says."""

    pause_s: float = 0.0

    def build(self, start: AgentStart) -> CrewAgent:
        return CrewAgent(start.name, self.pause_s)


class CrewAgent:
    uses_world = False

    def __init__(self, name: str, pause_s: float) -> None:
        self._name = name
        self._pause_s = pause_s

    async def __aenter__(self) -> CrewAgent:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        pass

    async def run(self, request: RunRequest, emit: Emit) -> Reply:
        asked[request.case.id] += 1
        for name in (self._name, "all"):
            active[name] += 1
            most_active[name] = max(most_active[name], active[name])
        try:
            if request.case.id.startswith("held-call") and asked[request.case.id] == 1:
                await emit(t.RunStarted(thread_id="t", run_id="r"))
                await emit(t.ToolCallStart(tool_call_id="1", tool_call_name="delete_all"))
                await emit(t.ToolCallEnd(tool_call_id="1"))
            if request.case.id.startswith("held"):
                await hold.wait()
            await asyncio.sleep(self._pause_s)
            return self._reply(request.case.id)
        finally:
            for name in (self._name, "all"):
                active[name] -= 1

    def _reply(self, case_id: str) -> Reply:
        if refusals[self._name] > 0:
            refusals[self._name] -= 1
            fault = Fault("rate_limited", "too much", http_status=429, retry_after_s=0.05)
            return Reply(fault=fault, http_status=429)
        if case_id.startswith("broken"):
            return Reply(fault=Fault("auth_failed", "no"))
        return read_returned("no" if case_id.startswith("wrong") else "ok")
