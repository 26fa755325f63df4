"""Whether the agents of a suite are there, before anything is run."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from seatrial.agents import AgentConfig, AgentStart, build_agent
from seatrial.agents.registry import kind_of
from seatrial.errors import SeatrialError
from seatrial.suites import Suite
from seatrial.world.proxy import ToolProxy


class Checkup(msgspec.Struct, omit_defaults=True):
    """How one agent is."""

    agent: str
    kind: str
    ok: bool
    message: str
    reaches_proxy: bool | None = None
    """Whether it reaches the tool proxy from where it is; None when that is not known."""


async def check_agents(suite: Suite, variables: Mapping[str, str]) -> list[Checkup]:
    """Start each agent as a run would, and see whether somebody is there where it is reached over the network."""
    async with ToolProxy() as proxy:
        return [await _check(name, config, suite, proxy, variables) for name, config in suite.agents.items()]


async def _check(
    name: str, config: AgentConfig, suite: Suite, proxy: ToolProxy, variables: Mapping[str, str]
) -> Checkup:
    checkup = Checkup(name, kind_of(config), True, "")
    secrets = suite.secrets(variables)
    start = AgentStart(
        name=name,
        directory=suite.directory,
        connect_s=suite.timeouts.connect_s,
        read_s=suite.timeouts.read_s,
        stored_runs=lambda *_: None,
    )
    try:
        filled = config.resolved(variables)
        async with build_agent(filled, start) as agent:
            probe = await filled.probe(agent, proxy.url)
            checkup.ok, checkup.message, checkup.reaches_proxy = probe.ok, probe.message, probe.reaches_proxy
    except SeatrialError as error:
        checkup.ok, checkup.message = False, str(error)
    checkup.message = secrets.redact(checkup.message)
    return checkup
