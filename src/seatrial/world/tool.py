"""A tool of a world, ready to be called: its schemas, its preconditions, and what answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial._support.json_schema import Schema
from seatrial.errors import SeatrialError
from seatrial.ledger.conditions import compile_where
from seatrial.ledger.expressions import CallScope, RowScope, compile_tree
from seatrial.ledger.predicates import Predicate, compile_predicate
from seatrial.ledger.transaction import LedgerTransaction, Refusal
from seatrial.trajectory.config import Path, nearest, refuse
from seatrial.world.definition import HANDLERS, Handled, Precondition, ToolSpec

AGENT = "agent"
"""Whom a tool is visible to that is visible to every agent."""


class OngoingCall(CallScope):
    """One call while it is answered. What it reads and writes is its own transaction."""

    def __init__(
        self,
        transaction: LedgerTransaction,
        arguments: dict[str, Any],
        number: int,
        now: str,
        actor: str | None,
        ids: Callable[[str], str],
        id_fields: Callable[[str], str],
    ) -> None:
        self.transaction = transaction
        self._arguments = arguments
        self._number = number
        self._now = now
        self._actor = actor
        self._next_id = ids
        self._id_field = id_fields
        self._new_ids: dict[tuple[str, int], str] = {}

    @property
    def arguments(self) -> dict[str, Any]:
        return self._arguments

    @property
    def view(self) -> LedgerTransaction:
        return self.transaction

    @property
    def response(self) -> Any:
        return None

    @property
    def now(self) -> str:
        return self._now

    @property
    def number(self) -> int:
        return self._number

    @property
    def actor(self) -> str | None:
        return self._actor

    @property
    def made(self) -> list[str]:
        """The ids that it made."""
        return list(self._new_ids.values())

    def new_id(self, prefix: str, k: int = 1) -> str:
        made = self._new_ids.get((prefix, k))
        if made is None:
            made = self._new_ids[prefix, k] = self._next_id(prefix)
        return made

    def id_field(self, entity_type: str) -> str:
        return self._id_field(entity_type)

    def scope(self) -> RowScope:
        """Where its expressions are worked out."""
        return RowScope(self)


ToolHandler: TypeAlias = Callable[[OngoingCall], Awaitable[Any]]
"""Answers a call. Raises `Refusal` for a no of the world; whatever else it raises is a fault of the world's author."""


class KnownNames(msgspec.Struct, frozen=True):
    """What is known of the world when its tools are compiled."""

    types: Collection[str] | None
    """The entity types; None when there is no schema, and any is right."""
    takes_flag: Callable[[str], bool]

    def check_type(self, name: str, at: Path) -> None:
        """Refuse an entity type that there is not."""
        if self.types is not None and name not in self.types:
            refuse(f"there is no entity type {name!r}", at, nearest(name, self.types))


class ToolCheck(msgspec.Struct, frozen=True):
    """A precondition."""

    holds: Callable[[OngoingCall], bool]
    error: dict[str, Any]


class WorldTool(msgspec.Struct, frozen=True, eq=False):
    """A tool that can be called."""

    spec: ToolSpec
    handled: Handled
    arguments: Schema
    result: Schema | None
    checks: list[ToolCheck]
    handler: ToolHandler

    @property
    def name(self) -> str:
        """Unique in its world."""
        return self.spec.name

    @property
    def writes(self) -> bool:
        """Whether it may change the state."""
        return self.handled in ("effects", "python")

    def visible_to(self, actor: str | None) -> bool:
        """Whether an agent, or the sub-agent of this label, has this tool."""
        return any(seen == AGENT or (actor is not None and fnmatchcase(actor, seen)) for seen in self.spec.visible_to)

    def wrong_arguments(self, arguments: dict[str, Any]) -> str | None:
        """Why the arguments are refused, with the places; None when they are right."""
        try:
            found = self.arguments.problems(arguments, len(wire.encode(arguments)))
        except SeatrialError as error:
            return error.message
        return "; ".join(found) or None

    def refused_by(self, call: OngoingCall) -> dict[str, Any] | None:
        """The error of the first precondition that does not hold."""
        return next((check.error for check in self.checks if not check.holds(call)), None)

    def described(self) -> dict[str, Any]:
        """The tool as agents are told of it."""
        told: dict[str, Any] = {"name": self.name, "inputSchema": self.spec.input_schema}
        if self.spec.description is not None:
            told["description"] = self.spec.description
        if self.spec.output_schema is not None:
            told["outputSchema"] = self.spec.output_schema
        return told


def handled_by(spec: ToolSpec) -> Handled:
    """The one key that says what answers a tool."""
    given = [key for key in HANDLERS if getattr(spec, key) is not None and getattr(spec, key) is not UNSET]
    if len(given) > 1:
        both = f"{given[0]!r} and {given[1]!r}"
        refuse(f"tool {spec.name!r} has two handlers, {both}: keep one", (given[1],))
    if not given:
        refuse(f"tool {spec.name!r} has nothing that answers it", (), f"give it one of {', '.join(HANDLERS)}")
    [handled] = given
    for key, owner in (("answer", "effects"), ("refusals", "python")):
        value = getattr(spec, key)
        if handled != owner and value is not UNSET and value != []:
            refuse(f"tool {spec.name!r}: {key!r} goes with {owner!r}, not with {handled!r}", (key,))
    return handled


def compile_schema(schema: Any, at: Path) -> Schema:
    """A JSON Schema; an error says where it stands."""
    try:
        return Schema(schema)
    except SeatrialError as error:
        refuse(error.message, at)


def compile_check(given: Precondition, around: KnownNames, at: Path) -> ToolCheck:
    """A precondition, with the error that says that it does not hold."""
    error = {"code": 409, "message": "not possible now", **given.error}
    if given.predicate is not UNSET:
        if given.entity_type is not None:
            refuse("a precondition looks at an entity or has a predicate, not both", at)
        predicate = compile_predicate(given.predicate, (*at, "predicate"), around.types)
        return ToolCheck(lambda call: predicate(call.scope()), error)
    if given.entity_type is None or given.id_from is UNSET:
        refuse("a precondition needs 'entity_type' and 'id_from', or a 'predicate'", at)
    around.check_type(given.entity_type, (*at, "entity_type"))
    return ToolCheck(_entity_check(given, given.entity_type, at), error)


def _entity_check(given: Precondition, entity_type: str, at: Path) -> Callable[[OngoingCall], bool]:
    row_id = compile_tree(given.id_from, (*at, "id_from"))
    where = compile_where(given.where, (*at, "where"))
    contained = None
    if given.contains is not None:
        if given.contains.keys() != {"param", "field"}:
            refuse("'contains' has 'param' and 'field'", (*at, "contains"))
        sent = compile_tree({"param": given.contains["param"]}, (*at, "contains"))
        held = compile_tree({"row": given.contains["field"]}, (*at, "contains"))
        contained = (sent, held)

    def holds(call: OngoingCall) -> bool:
        scope = call.scope()
        found = row_id(scope)
        row = call.transaction.row(entity_type, found) if isinstance(found, str) else None
        if row is None:
            return False
        inside = scope.at(entity_type, row)
        if contained is not None:
            wanted, values = contained[0](inside), contained[1](inside)
            if wanted is UNSET or not isinstance(values, list) or wanted not in values:
                return False
        return where(inside)

    return holds


def compile_when(given: Any, around: KnownNames, at: Path) -> Predicate | None:
    """The predicate of an effect; None when there is none."""
    return None if given is UNSET else compile_predicate(given, at, around.types)


def text_id(value: Any, what: str) -> str:
    """An id that an expression gave. One that the agent sent may be anything."""
    if isinstance(value, str) and value:
        return value
    if type(value) is int:
        return str(value)
    raise Refusal(422, f"{what} is not an id")
