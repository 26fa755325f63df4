"""The ways to reach an agent, behind one protocol: `http`, `cli`, `python`, `stream`, `replay`, and others that are
registered (`agents/registry.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach
from seatrial.agents.config import AgentCheck, AgentConfig, AgentStart, Probe
from seatrial.agents.registry import AGENTS, agent_kind, build_agent

if TYPE_CHECKING:
    from seatrial.agents.agent import Agent, BatchAgent, Emit, Reply, RunRequest

__all__ = [
    "AGENTS",
    "Agent",
    "AgentCheck",
    "AgentConfig",
    "AgentStart",
    "BatchAgent",
    "Emit",
    "Probe",
    "Reply",
    "RunRequest",
    "agent_kind",
    "build_agent",
]

__getattr__ = attach(__name__, {"agent": ("Agent", "BatchAgent", "Emit", "Reply", "RunRequest")})
