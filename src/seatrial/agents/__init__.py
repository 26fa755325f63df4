"""The ways to reach an agent, behind one protocol: `http`, `cli`, `python`, `stream`, `replay`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.agents.config import AgentConfig, CliConfig, HttpConfig, PythonConfig, ReplayConfig, StreamConfig

if TYPE_CHECKING:
    from seatrial.agents.agent import Agent, BatchAgent
    from seatrial.agents.replay import StoredRuns

__all__ = ["build_agent"]


def build_agent(
    name: str,
    config: AgentConfig,
    *,
    directory: Path,
    connect_s: float = 10.0,
    read_s: float | None = None,
    stored_runs: StoredRuns | None = None,
) -> Agent | BatchAgent:
    """The agent of a configuration whose variables are filled in. Raises `SeatrialError` when it cannot be used.

    `directory` is what relative paths are relative to. `connect_s` and `read_s` count where the configuration has no
    timeouts of its own.
    """
    # Each kind is loaded when there is an agent of it: a suite of functions needs no HTTP.
    timeout_s = read_s if config.timeout_s is None else config.timeout_s
    match config:
        case HttpConfig():
            from seatrial.agents.http import HttpAgent

            return HttpAgent(name, config, connect_s=config.connect_timeout_s or connect_s, read_s=timeout_s)
        case StreamConfig():
            from seatrial.agents.stream import StreamAgent

            return StreamAgent(config, connect_s=config.connect_timeout_s or connect_s, read_s=timeout_s)
        case CliConfig(batch=False):
            from seatrial.agents.cli import CliAgent

            return CliAgent(config, directory=directory, timeout_s=timeout_s)
        case CliConfig():
            from seatrial.agents.cli_batch import CliBatchAgent

            return CliBatchAgent(config, directory=directory, timeout_s=timeout_s)
        case PythonConfig():
            from seatrial.agents.python import PythonAgent

            return PythonAgent(config, directory=directory, timeout_s=timeout_s)
        case ReplayConfig():
            from seatrial.agents.replay import ReplayAgent

            return ReplayAgent(config, directory=directory, stored=stored_runs)
