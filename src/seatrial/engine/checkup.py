"""Whether the agents of a suite are there, before anything is run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AsyncExitStack

import msgspec

from seatrial.agents import build_agent
from seatrial.agents.cli import CliAgent
from seatrial.agents.cli_batch import CliBatchAgent
from seatrial.agents.config import AgentConfig
from seatrial.agents.http import HttpAgent
from seatrial.agents.stream import StreamAgent
from seatrial.errors import SeatrialError
from seatrial.suites import Suite, resolve_agent
from seatrial.world.proxy import ToolProxy


class Checkup(msgspec.Struct, omit_defaults=True):
    """How one agent is."""

    agent: str
    kind: str
    ok: bool
    message: str
    reaches_proxy: bool | None = None
    """For an agent behind HTTP: whether it reaches the tool proxy from where it is; None when it does not tell."""


async def check_agents(suite: Suite, variables: Mapping[str, str]) -> list[Checkup]:
    """Start each agent as a run would, and see whether somebody is there where it is reached over the network."""
    async with ToolProxy() as proxy:
        return [await _check(name, config, suite, proxy, variables) for name, config in suite.agents.items()]


async def _check(
    name: str, config: AgentConfig, suite: Suite, proxy: ToolProxy, variables: Mapping[str, str]
) -> Checkup:
    checkup = Checkup(name, str(config.__struct_config__.tag), True, "can be started")
    secrets = suite.secrets(variables)
    try:
        agent = build_agent(
            name,
            resolve_agent(config, variables),
            directory=suite.directory,
            connect_s=suite.timeouts.connect_s,
            read_s=suite.timeouts.read_s,
            stored_runs=lambda *_: None,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(agent)
            if isinstance(agent, HttpAgent):
                await _probe(agent, checkup, proxy.url)
            elif isinstance(agent, StreamAgent):
                await _knock(agent, checkup)
            elif isinstance(agent, CliAgent | CliBatchAgent):
                agent.program.check_presence()
    except SeatrialError as error:
        checkup.ok, checkup.message = False, str(error)
    checkup.message = secrets.redact(checkup.message)
    return checkup


async def _probe(agent: HttpAgent, checkup: Checkup, proxy_url: str) -> None:
    there = await agent.ping()
    checkup.ok, checkup.message = there.ok, f"{there.message} ({there.latency_ms:.0f} ms)"
    if there.ok:
        outbound = await agent.check_connectivity(proxy_url)
        if outbound.fault is None:
            checkup.reaches_proxy = outbound.ok
            checkup.message += f"; {outbound.message}"
        else:
            # Agents that make no use of the proxy need not know this question.
            checkup.message += f"; it does not tell whether it reaches the tool proxy: {outbound.message}"


async def _knock(agent: StreamAgent, checkup: Checkup) -> None:
    begun = time.monotonic()
    fault = await agent.reach()
    if fault is None:
        checkup.message = f"somebody listens at {agent.address} ({(time.monotonic() - begun) * 1000:.0f} ms)"
    else:
        detail = f" ({fault.detail})" if fault.detail else ""
        checkup.ok, checkup.message = False, f"{agent.address}: {fault.message}{detail}"
