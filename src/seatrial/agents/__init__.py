"""The ways to reach an agent, behind one protocol: `http`, `cli`, `python`, `stream`, `replay`, and others that are
registered (`agents/registry.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.agents.agent import Agent as Agent
    from seatrial.agents.agent import BatchAgent as BatchAgent
    from seatrial.agents.agent import Emit as Emit
    from seatrial.agents.agent import Reply as Reply
    from seatrial.agents.agent import RunRequest as RunRequest
    from seatrial.agents.config import AgentCheck as AgentCheck
    from seatrial.agents.config import AgentConfig as AgentConfig
    from seatrial.agents.config import AgentStart as AgentStart
    from seatrial.agents.config import Probe as Probe
    from seatrial.agents.registry import AGENTS as AGENTS
    from seatrial.agents.registry import agent_kind as agent_kind
    from seatrial.agents.registry import build_agent as build_agent

__getattr__, __all__ = attach(
    __name__,
    {
        "agent": "Agent BatchAgent Emit Reply RunRequest",
        "config": "AgentCheck AgentConfig AgentStart Probe",
        "registry": "AGENTS agent_kind build_agent",
    },
)
