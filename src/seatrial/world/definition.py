"""What a suite writes under `world`: the tools that agents may call, the state behind them, and its limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta

from seatrial._support.target import TARGET
from seatrial.ledger.schema import LedgerSchema

WorldToolName: TypeAlias = Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_-]{0,127}$(?!\n)")]
Handled: TypeAlias = Literal["ledger_read", "effects", "stub", "python"]
"""What answers a tool, by the key that says so."""
HANDLERS: tuple[Handled, ...] = ("ledger_read", "effects", "stub", "python")


class OrderBy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"direction": "dir"}):
    """By which field a list is in order."""

    field: str
    direction: Literal["asc", "desc"] = "asc"


class LedgerRead(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tool that reads entities, and changes nothing."""

    op: Literal["get", "list"]
    entity_type: str
    id: Any = UNSET
    """Of the entity to `get`: an expression."""
    where: Any = {}
    """Conditions on the entities to `list`."""
    order_by: list[OrderBy] = []
    limit: Any = None
    """How many to list at most: an expression."""
    project: dict[str, str] | None = None
    """What the answer calls which field; all fields under their own names when absent."""
    wrap: str | None = None
    """The key under which the list stands in the answer; the list itself is the answer when absent."""
    not_found: Any = UNSET
    """The answer when there is no such entity."""


class Precondition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What must hold before a tool does anything: an entity that is there and fits, or a predicate."""

    entity_type: str | None = None
    id_from: Any = UNSET
    """Its id: an expression."""
    where: Any = {}
    contains: dict[str, Any] | None = None
    """`{param, field}`: the list in the field has what was sent."""
    require: Literal["match"] = "match"
    predicate: Any = UNSET
    """In place of an entity."""
    error: dict[str, Any] = {}
    """What the agent is told: `code` and `message`."""


class Effect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One operation on the state."""

    op: Literal["add", "update", "remove", "set_flag", "clear_flag", "list_append", "list_remove", "map_set"]
    entity_type: str | None = None
    id: Any = UNSET
    fields: dict[str, Any] = {}
    """Of `add` and `update`: expressions by field."""
    upsert: bool = False
    """Whether `add` takes an entity that is there for one to update."""
    when: Any = UNSET
    """A predicate: otherwise nothing is done."""
    flag: str | None = None
    field: str | None = None
    """Of `list_append`, `list_remove` and `map_set`: the list or the object."""
    member: Any = UNSET
    """Of `map_set`: the key in the object."""
    value: Any = UNSET
    delta: Any = UNSET
    """Of `map_set`, in place of `value`: what is added to the number that is there."""


class StubAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer that is always the same."""

    response: Any
    args: dict[str, Any] | None = None
    """Only for calls with these arguments, among others."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One tool, with exactly one of `ledger_read`, `effects`, `stub` and `python`."""

    name: WorldToolName
    description: str | None = None
    input_schema: dict[str, Any]
    """JSON Schema of the arguments. Calls that break it are answered with an error and do nothing."""
    output_schema: dict[str, Any] | None = None
    """JSON Schema of the answer; one that breaks it makes the run errored. An answer with `error` is always right."""
    visible_to: tuple[str, ...] = ("agent",)
    """`agent`, or globs of the labels of sub-agents."""
    preconditions: list[Precondition] = []
    """What must hold, in order; the first that does not is the answer."""
    ledger_read: LedgerRead | None = None
    effects: list[Effect] | None = None
    answer: Any = UNSET
    """Of a tool with `effects`: what it answers after them."""
    stub: Any = UNSET
    """An answer, or a list of answers by arguments."""
    python: Annotated[str, Meta(pattern=TARGET)] | None = None
    """`module:function` that gets the arguments by name, and `world` if it asks for it."""
    refusals: list[str] = []
    """Exceptions of that function which mean no: `ValueError`. Any other makes the run errored."""


class WorldClock(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The time of the world. It passes by calls, never by itself."""

    start: str = "2026-01-01T00:00:00Z"
    per_call_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 1000


class WorldLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one run may use up."""

    max_calls: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    max_answer_bytes: Annotated[int, Meta(ge=1, le=64 * 1024 * 1024)] = 4 * 1024 * 1024
    queue_wait_s: Annotated[float, Meta(gt=0, le=300)] = 30.0
    """How long a call waits for those before it."""
    queue_length: Annotated[int, Meta(ge=1, le=10_000)] = 64
    handler_timeout_s: Annotated[float, Meta(gt=0, le=600)] = 30.0


class World(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the agents of a suite act on."""

    name: str = ""
    description: str = ""
    tools: Annotated[list[ToolSpec], Meta(max_length=1000)] = []
    ledger_schema: LedgerSchema | None = None
    """What the state may hold; anything when absent."""
    initial_state: dict[str, Any] = {}
    """Entities by type and id: `{order: {o-1: {status: open}}}`."""
    flags: list[str] = []
    """Those that are set at the beginning."""
    clock: WorldClock = WorldClock()
    seed: int = 0
    """What everything random begins with."""
    policy: str | None = None
    """The rules that the agent is given."""
    limits: WorldLimits = WorldLimits()
