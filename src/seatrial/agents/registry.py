"""The kinds of agents, open to others, and agents from configurations.

A kind of Seatrial's is a folder here with its configuration, its checks and its agent, and a line in this module.
Others are registered with `@agent_kind("name")`, offered by an entry point in the group `seatrial.agents`, or called by
where they are: `package.module:Class`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isabstract
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import msgspec

from seatrial._support import wire
from seatrial._support.registry import Registry, where
from seatrial._support.target import is_target, load_target
from seatrial.agents.config import CASE_KEYS, AgentConfig, AgentStart, Probe
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.agents.agent import Agent, BatchAgent

A = TypeVar("A", bound=type[AgentConfig])

KIND = "kind"


def _accept(name: str, value: object) -> type[AgentConfig]:
    if not isinstance(value, type) or not issubclass(value, AgentConfig):
        raise TypeError(f"`{where(value)}` is not a subclass of `seatrial.agents.AgentConfig`")
    if isabstract(value):
        raise TypeError(f"`{where(value)}` has no method `build`")
    if value.kind not in (name, where(value)):
        raise TypeError(f"its `kind` is {value.kind!r}")
    value.kind = name
    return value


AGENTS: Registry[type[AgentConfig]] = Registry(
    "kind of agent",
    "seatrial.agents",
    {
        "http": "seatrial.agents.http.config:HttpConfig",
        "cli": "seatrial.agents.cli.config:CliConfig",
        "python": "seatrial.agents.python.config:PythonConfig",
        "stream": "seatrial.agents.stream.config:StreamConfig",
        "replay": "seatrial.agents.replay.config:ReplayConfig",
    },
    _accept,
)
"""Every kind of agent that a suite can name, in the order in which they are listed to people."""


def agent_kind(name: str) -> Callable[[A], A]:
    """Register the configuration of a kind of agent under a name: `@agent_kind("websocket")`."""
    return AGENTS.register(name)


def agent_class(kind: str, directory: Path | None = None) -> type[AgentConfig]:
    """The class of a kind: a name, or `package.module:Class`, which is looked for in `directory` first.

    Raises `SeatrialError("invalid_config")`.
    """
    if not is_target(kind):
        AGENTS.check_name(kind)
        return AGENTS.find(kind)
    found = load_target(kind, directory)
    try:
        accepted = _accept(getattr(found, KIND, kind), found)
    except TypeError as error:
        raise SeatrialError("invalid_config", f"the kind of agent {kind!r} cannot be used: {error}") from error
    AGENTS.check_kind(accepted)
    return accepted


def build_agent(config: AgentConfig, start: AgentStart) -> Agent | BatchAgent:
    """The agent of a configuration whose variables are filled in. Raises `SeatrialError` when it cannot be used."""
    try:
        return config.build(start)
    except SeatrialError:
        raise
    except Exception as error:
        if AGENTS.is_built_in(kind_of(config)):
            raise
        told = f"the agent {start.name!r} of kind `{kind_of(config)}` cannot be made: {type(error).__name__}: {error}"
        raise SeatrialError("invalid_config", told) from error


def kind_of(config: AgentConfig) -> str:
    """What a suite calls the kind of an agent."""
    return str(config.written[KIND]) if isinstance(config, NamedAgent) else config.kind


def agent_plain(config: AgentConfig) -> dict[str, Any]:
    """An agent as a suite file has it."""
    if isinstance(config, NamedAgent):
        return dict(config.written)
    AGENTS.check_kind(type(config))
    return {KIND: config.kind, **msgspec.to_builtins(config)}


def stored_agent(plain: Mapping[str, Any]) -> AgentConfig:
    """An agent of a stored suite. No code of the suite's author is imported for it."""
    kind = str(plain.get(KIND))
    if is_target(kind) or kind not in AGENTS:
        return named_agent(plain)
    return msgspec.convert({key: value for key, value in plain.items() if key != KIND}, AGENTS[kind])


def named_agent(plain: Mapping[str, Any]) -> NamedAgent:
    """An agent whose class is left alone for now. Raises `msgspec.ValidationError` for wrong keys of all agents."""
    common = {key: value for key, value in plain.items() if key in AgentConfig.__struct_encode_fields__}
    named = msgspec.convert(common, NamedAgent)
    named.written = dict(plain)
    return named


class NamedAgent(AgentConfig):
    """An agent of a class that is not imported before the agent is made, or that is not installed any more."""

    connects: ClassVar[bool] = True

    written: dict[str, Any] = msgspec.field(default_factory=dict)
    """All its keys, as the suite has them."""
    variables: dict[str, str] | None = None
    """What is to be filled in."""
    config: AgentConfig | None = None
    """The configuration itself, once the agent is made."""

    def build(self, start: AgentStart) -> Agent | BatchAgent:
        config = self._read(start.directory)
        self.config = config if self.variables is None else config.resolved(self.variables)
        return self.config.build(start)

    def resolved(self, variables: Mapping[str, str]) -> Self:
        return msgspec.structs.replace(self, variables=dict(variables))

    async def probe(self, agent: Any, proxy_url: str) -> Probe:
        if self.config is None:
            raise RuntimeError("the agent was not made")
        return await self.config.probe(agent, proxy_url)

    def taken_keys(self, import_from: Path | None) -> frozenset[str]:
        if import_from is None:
            return frozenset(CASE_KEYS)
        try:
            return self._read(import_from).taken_keys(import_from)
        except SeatrialError:
            return frozenset(CASE_KEYS)  # told where it is started

    def _read(self, directory: Path) -> AgentConfig:
        kind = agent_class(str(self.written[KIND]), directory)
        try:
            return msgspec.convert({key: value for key, value in self.written.items() if key != KIND}, kind)
        except msgspec.ValidationError as error:
            told = wire.invalid_document(error)
            message = f"the agent of kind `{self.written[KIND]}`: {told.message}"
            raise SeatrialError("invalid_config", message, pointer=told.pointer) from None
