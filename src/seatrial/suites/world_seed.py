"""The world that a case starts from, by the axis names of dispatch.md 10 and 11. Never sent to the agent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta


class FailureRule(msgspec.Struct):
    """A failure to inject. Its further keys are the world's business."""

    trigger: str
    """The tool whose calls it is for, or `*`."""


class WorldSeed(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What `world` of a case may hold."""

    behavior_instructions: str | None = None
    """Rules that the simulated backend follows."""
    initial_state: dict[str, dict[str, Any]] = {}
    """Entities by type and id: `{orders: {o-1: {status: open}}}`."""
    flags: list[str] = []
    """Those that are set at the beginning, besides the world's."""
    failure_rules: list[FailureRule] = []
    """Failures to inject; each has a `trigger`."""
    turn_mode: Literal["single_shot", "model_as_user"] = "single_shot"
    """One instruction, or a conversation with a simulated user."""
    max_turns: Annotated[int, Meta(ge=1, le=50)] = 10
    """Where a conversation ends at the latest."""
    memory_mode: Literal["replay", "stateful"] = "replay"
    """Whether the agent is sent what was said before, or remembers it."""
    simulator_mode: Literal["persona", "scripted"] = "persona"
    """Whether the user is played by a model or reads out `scripted_user_turns`."""
    user_simulator_persona: str | None = None
    """Who the simulated user is."""
    scripted_user_turns: list[str] = []
    """What a scripted user says, turn by turn."""
    tracked_constraints: list[Any] = []
    """Facts that the whole conversation is checked for."""
    termination_keyword: str | None = None
    """Text in an agent's reply that ends the conversation."""
    user_goal: str | None = None
    """What the simulated user wants to reach."""
    scenario_ref: str | int | None = None
    """The coding scenario that the case is made from."""
    workspace_seed: Any = None
    """Where the files of a coding case come from."""
    setup_command: str | None = None
    """What prepares them."""
    eval: Any = None
    """How a coding case is evaluated."""
    expected_tool_sequence: Any = None
    """The tool calls that the author of the case expects."""
    xfail: Any = None
    """Whether the case is known to fail."""
    scorers: list[Any] = []
    """The scorers of a coding case."""
