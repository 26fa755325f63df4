"""A world that runs can be opened in: checked once, shared by all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.graders.grader import WorldNames
from seatrial.ledger.ledger import Ledger, State, read_state
from seatrial.ledger.schema import LedgerSchema
from seatrial.problems import Problems, path_of
from seatrial.runs import Case
from seatrial.trajectory.config import nearest
from seatrial.world.declared import effects, ledger_read, stub
from seatrial.world.definition import ToolSpec, World
from seatrial.world.tool import KnownNames, ToolHandler, WorldTool, compile_check, compile_schema, handled_by
from seatrial.world.user_handler import Contexts, user_handler

MAX_STARTS = 32
"""States of cases that are kept at hand."""
UserHandler = Callable[[Contexts], ToolHandler]


class StartState(msgspec.Struct, frozen=True, eq=False):
    """What the runs of a case begin with. They share it."""

    ledger: Ledger
    text: str
    """The entities as JSON, for their records."""


class CompiledWorld(msgspec.Struct, frozen=True, eq=False):
    """A world, ready for sessions."""

    definition: World
    tools: Mapping[str, WorldTool]
    user_handlers: Mapping[str, UserHandler]
    """Of the tools that a function answers: each session needs its own."""
    schema: LedgerSchema
    starts: dict[str, StartState] = {}
    """By case id; those that were used last."""

    def id_field(self, entity_type: str) -> str:
        """Under which name answers have the id of such entities."""
        return self.schema.id_field(entity_type)

    def start(self, case_state: Any = None, case_flags: Iterable[str] = ()) -> StartState:
        """The state that a case begins with: what it gives is laid over the world's. Raises `SeatrialError`."""
        state = merged(
            read_state(self.definition.initial_state, ("initial_state",)),
            read_state(case_state or {}, ("initial_state",), removes=True),
        )
        ledger = Ledger.of(state, {*self.definition.flags, *case_flags})
        if found := self.schema.violations_of(ledger):
            first = found[0]
            more = f", and {len(found) - 1} more like it" if len(found) > 1 else ""
            raise SeatrialError("invalid_config", f"{first.message}{more}", pointer=f"/initial_state{first.pointer}")
        for flag in sorted(ledger.flags):
            if not self.schema.takes_flag(flag):
                raise SeatrialError("invalid_config", f"there is no flag {flag!r}", pointer="/flags")
        return StartState(ledger, wire.encode(state).decode())

    def unknown(self, names: WorldNames) -> Iterator[tuple[str, str | None]]:
        """What a grader names that this world does not have, each with the nearest name."""
        types = [entity.type for entity in self.schema.entities]
        for name in sorted(names.types):
            if types and not any(fnmatchcase(known, name) for known in types):
                yield f"there is no entity type {name!r}", nearest(name, types)
        for flag in sorted(names.flags):
            if not self.schema.takes_flag(flag):
                yield f"there is no flag {flag!r}", nearest(flag, self.schema.flags.values)
        for tool in sorted(names.tools):
            if not any(fnmatchcase(known, tool) for known in self.tools):
                yield f"there is no tool {tool!r}", nearest(tool, self.tools)

    def start_of(self, case: Case) -> StartState:
        """The state that the runs of a case begin with; made once for those that follow each other."""
        known = self.starts.get(case.id)
        if known is None:
            known = self.start(case.world.get("initial_state"), case.world.get("flags", ()))
            while len(self.starts) >= MAX_STARTS:
                del self.starts[next(iter(self.starts))]
            self.starts[case.id] = known
        return known


def merged(world: State, case: Mapping[str, Any]) -> State:
    """The rows of a case over those of its world: field by field, and a row that is null removes the world's."""
    state = {entity_type: dict(rows) for entity_type, rows in world.items()}
    for entity_type, rows in case.items():
        into = state.setdefault(entity_type, {})
        for row_id, fields in rows.items():
            if fields is None:
                into.pop(row_id, None)
            else:
                into[row_id] = {**into.get(row_id, {}), **fields}
    return state


def compile_world(
    world: World, problems: Problems, directory: Path | None = None, *, imports: bool = True
) -> CompiledWorld | None:
    """A world that can be opened; None, with every problem told, when it cannot. Without `imports`, no function is
    imported, and no session can be opened."""
    before = problems.count
    schema = world.ledger_schema or LedgerSchema()
    types = [entity.type for entity in schema.entities]
    around = KnownNames(types or None, schema.takes_flag)
    tools: dict[str, WorldTool] = {}
    user_handlers: dict[str, UserHandler] = {}
    for index, spec in enumerate(world.tools):
        at = ("tools", index)
        if spec.name in tools:
            problems.add((*at, "name"), f"there are two tools {spec.name!r}", "tools of a world have different names")
            continue
        try:
            tool, of_user = _compiled(spec, around, directory, imports=imports)
        except SeatrialError as error:
            problems.add((*at, *path_of(error.pointer)), error.message, error.hint)
            continue
        tools[spec.name] = tool
        if of_user is not None:
            user_handlers[spec.name] = of_user
    _check_references(schema, types, problems)
    compiled = CompiledWorld(world, tools, user_handlers, schema)
    if problems.count == before:
        try:
            compiled.start()
        except SeatrialError as error:
            problems.add(path_of(error.pointer), error.message, error.hint)
    return compiled if problems.count == before else None


def _compiled(
    spec: ToolSpec, around: KnownNames, directory: Path | None, *, imports: bool
) -> tuple[WorldTool, UserHandler | None]:
    handled = handled_by(spec)
    arguments = compile_schema(spec.input_schema, ("input_schema",))
    result = None if spec.output_schema is None else compile_schema(spec.output_schema, ("output_schema",))
    checks = [compile_check(given, around, ("preconditions", index)) for index, given in enumerate(spec.preconditions)]
    of_user: UserHandler | None = None
    if spec.ledger_read is not None:
        handler = ledger_read(spec.ledger_read, around, ("ledger_read",))
    elif handled == "effects":
        handler = effects(spec, around, ())
    elif handled == "stub":
        handler = stub(spec.stub, ())
    else:
        of_user, handler = user_handler(spec, directory, ()) if imports else None, _of_session
    return WorldTool(spec, handled, arguments, result, checks, handler), of_user


async def _of_session(call: Any) -> Any:
    raise AssertionError("a session has handlers of its own for functions")


def _check_references(schema: LedgerSchema, types: list[str], problems: Problems) -> None:
    for number, entity in enumerate(schema.entities):
        for index, field in enumerate(entity.fields):
            for name in (field.ref, field.items.ref if field.items else None):
                if name is not None and name not in types:
                    at = ("ledger_schema", "entities", number, "fields", index)
                    problems.add(at, f"{entity.type}: {field.name!r} refers to {name!r}, which is no entity type")
