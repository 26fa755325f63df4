"""The request that hands a case to a customer-hosted agent (dispatch.md 3)."""

from __future__ import annotations

from typing import Any

from seatrial.agents.agent import RunRequest
from seatrial.agents.http.config import SubAgent
from seatrial.agents.http.template import header_text
from seatrial.world.grant import RunGrant

PING: dict[str, Any] = {"ping": True}
"""Asks an agent whether it is there; the match on its side is strict."""


def task_input(request: RunRequest) -> dict[str, Any]:
    """What the agent is told of the case. World, expectations and graders are not among it."""
    case = request.case
    told: dict[str, Any] = {
        "user_instruction": case.instruction,
        "latest_user_prompt": case.instruction,
        "input": case.input,
    }
    if case.messages:
        told["messages"] = case.messages
    return told


def envelope(
    request: RunRequest, grant: RunGrant, proxy_url: str, agent_id: str | int, sub_agents: list[str | SubAgent]
) -> dict[str, Any]:
    """The body of a dispatch."""
    body: dict[str, Any] = {
        "task_id": request.case.id,
        "run_id": request.run_id,
        "agent_id": agent_id,
        "odyssey_proxy_url": proxy_url,
        "run_token_jti": grant.jti,
        "tools_schema": [],
        "input": task_input(request),
    }
    if sub_agents:
        labels = [entry.actor_id if isinstance(entry, SubAgent) else entry for entry in sub_agents]
        body["sub_agents"] = [{"actor_id": str(label)} for label in labels]
    return body


def run_headers(request: RunRequest, grant: RunGrant, proxy_url: str) -> dict[str, str]:
    """The headers of a dispatch beside those that are configured."""
    return {
        "Content-Type": "application/json",
        "X-Pipelines-Run-Token": grant.token,
        "X-Pipelines-Odyssey-Proxy-Url": proxy_url,
        "X-Pipelines-Run-Id": header_text(request.run_id),
        "X-Pipelines-Task-Id": header_text(request.case.id),
        "X-Pipelines-Run-Token-Jti": grant.jti,
    }
