"""Graders of the world's state: what the agent's calls left there, and what they did on the way.

They go by what was executed and recorded, never by what the agent says. Evidence names calls (`/world/calls/7`) and
fields (`/world/state/order/o-1/status`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta

from seatrial._support.patterns import Pattern
from seatrial.errors import SeatrialError
from seatrial.graders.grader import (
    Check,
    Finding,
    Grader,
    Subject,
    Surroundings,
    WorldNames,
    errored,
    listed,
    passed_if,
    quoted,
)
from seatrial.ledger.changes import LedgerChange
from seatrial.ledger.conditions import Fit, compile_fit, compile_where
from seatrial.ledger.expressions import NoValueError, RowScope, field_of
from seatrial.ledger.ledger import Ledger
from seatrial.ledger.predicates import Looking, Predicate, compile_predicate, holds, refuse_calls
from seatrial.ledger.record import WorldCall, WorldRecord
from seatrial.ledger.rows import Row
from seatrial.ledger.transaction import Refusal
from seatrial.runs.removed import RUN_AGAIN, is_world_redacted
from seatrial.trajectory.values import key
from seatrial.transcript.note import pointer

NEEDS = frozenset({"world"})
Entity = Annotated[str, Meta(pattern="^[^/]+/.+$")]
EntityType = Annotated[str, Meta(min_length=1)]
StateFind = Callable[[WorldRecord], Finding]


def state_check(find: StateFind, *, of_way: bool = False, names: WorldNames | None = None) -> Check:
    """A check of the state; errored for a run that had no world. With `of_way`, it looks at all that the agent did, and
    not only at what is there at the end."""

    def judge(subject: Subject, surroundings: Surroundings) -> Finding:
        run = subject.run
        world = run.world
        if world is None:
            return errored("the run has no world: its agent was given none", code="no_world")
        if is_world_redacted(run):
            return errored(f"a secret was removed from what the calls did: {RUN_AGAIN}", code="secret_removed")
        try:
            found = find(world)
        except (NoValueError, Refusal) as error:
            return errored(f"the check cannot be worked out: {error}")
        earlier = sum(attempt.observed_calls for attempt in run.earlier_attempts)
        if of_way and earlier and found.outcome != "failed":
            # Each attempt has a world of its own, and only that of the last one is in the record.
            return errored(
                f"{earlier} calls of earlier attempts are not in the record of the world", code="calls_unknown"
            )
        return found

    return Check(judge, needs=NEEDS, names=WorldNames() if names is None else names)


class EntityField(Grader):
    """Whether fields of an entity are as they should be at the end."""

    kind: ClassVar[str] = "entity_field"

    entity: Entity
    """`type/id`: `order/o-1`."""
    field: str | None = None
    """A field, for `equals` or `matches`; of an object in it, the path: `address.city`."""
    equals: Any = UNSET
    """A value, or a matcher: `{$gte: 5}`."""
    matches: str | None = None
    """A pattern of Python's `re` that must be found in the text of the field."""
    fields: dict[str, Any] = msgspec.field(default_factory=dict)
    """Several fields, each with a value or a matcher; the score is the share that fits."""

    def prepare(self) -> Check:
        entity_type, _, row_id = self.entity.partition("/")
        wanted = self._wanted()

        def find(world: WorldRecord) -> Finding:
            ledger = world.last
            row = ledger.row(entity_type, row_id)
            if row is None:
                return passed_if(False, f"{entity_type} {row_id} is not there", score=0.0, evidence=[_row(self.entity)])
            scope = _scope(world, ledger).at(entity_type, row)
            wrong = []
            for path, (fit, told) in wanted.items():
                value = field_of(scope, path)
                if not fit(value, scope):
                    wrong.append((path, f"{entity_type} {row_id}: {path} is {quoted(value)}, expected {told}"))
            fitting = len(wanted) - len(wrong)
            if not wrong:
                told = f"{fitting} of {len(wanted)} fields of {entity_type} {row_id} are as expected"
                return passed_if(True, told, score=1.0)
            evidence = [_row(self.entity, path) for path, _ in wrong]
            return passed_if(False, *(told for _, told in wrong), score=fitting / len(wanted), evidence=evidence)

        refuse_calls({"equals": self.equals, **self.fields})
        return state_check(find, names=WorldNames(frozenset({entity_type})))

    def _wanted(self) -> dict[str, tuple[Fit, str]]:
        wanted = {path: (compile_fit(value, ("fields", path)), quoted(value)) for path, value in self.fields.items()}
        given = [key for key in ("equals", "matches") if getattr(self, key) not in (UNSET, None)]
        if self.equals is None:
            given.append("equals")
        if (self.field is None) != (not given) or len(given) > 1:
            raise SeatrialError("invalid_config", "`field` goes with one of `equals` and `matches`")
        if self.field is not None and self.matches is not None:
            pattern = Pattern(self.matches)
            wanted[self.field] = (
                lambda value, scope: isinstance(value, str) and pattern.search(value) is not None,
                f"a match of {quoted(self.matches)}",
            )
        elif self.field is not None:
            wanted[self.field] = (compile_fit(self.equals, ("equals",)), quoted(self.equals))
        if not wanted:
            hint = "give it `field` and `equals`, or `fields`"
            raise SeatrialError("invalid_config", "the `entity_field` grader checks nothing", hint=hint)
        return wanted


class EntityAbsent(Grader):
    """Whether an entity is not there at the end."""

    kind: ClassVar[str] = "entity_absent"

    entity: Entity
    """`type/id`."""

    def prepare(self) -> Check:
        entity_type, _, row_id = self.entity.partition("/")

        def find(world: WorldRecord) -> Finding:
            there = world.last.row(entity_type, row_id) is not None
            told = f"{entity_type} {row_id} is {'there' if there else 'not there'}"
            return passed_if(not there, told, evidence=[_row(self.entity)] if there else [])

        return state_check(find, names=WorldNames(frozenset({entity_type})))


class EntityCount(Grader):
    """How many entities of a type there are at the end."""

    kind: ClassVar[str] = "entity_count"

    type: EntityType
    count: Any = UNSET
    """A number, or a matcher: `{$lte: 1}`."""
    where: dict[str, Any] = msgspec.field(default_factory=dict)
    """Only those that fit: a value or a matcher for each field."""

    def prepare(self) -> Check:
        if self.count is UNSET:
            raise SeatrialError("invalid_config", "the `entity_count` grader needs a `count`")
        wanted, where = compile_fit(self.count, ("count",)), compile_where(self.where, ("where",))

        def find(world: WorldRecord) -> Finding:
            ledger = world.last
            scope = _scope(world, ledger)
            fitting = [row.id for row in ledger.rows(self.type) if where(scope.at(self.type, row))]
            told = f"{len(fitting)} of {_number(ledger, self.type)} {self.type} rows fit, expected {quoted(self.count)}"
            evidence = [_row(f"{self.type}/{row_id}") for row_id in fitting[:5]]
            return passed_if(wanted(len(fitting), scope), told, evidence=evidence)

        refuse_calls([self.count, self.where])
        return state_check(find, names=WorldNames(frozenset({self.type})))


class FlagSet(Grader):
    """Whether a flag of the world is set at the end."""

    kind: ClassVar[str] = "flag_set"

    flag: Annotated[str, Meta(min_length=1)]
    clear: bool = False
    """Whether it has to be clear instead."""

    def prepare(self) -> Check:
        def find(world: WorldRecord) -> Finding:
            is_set = self.flag in world.last.flags
            return passed_if(is_set != self.clear, f"the flag {self.flag} is {'set' if is_set else 'not set'}")

        return state_check(find, names=WorldNames(flags=frozenset({self.flag})))


class Effects(Grader):
    """How often the agent's calls did something to the state, whether or not it was undone."""

    kind: ClassVar[str] = "effects"

    op: Literal["add", "update", "remove", "set_flag", "clear_flag"] | None = None
    type: str | None = None
    """Of the entity."""
    where: dict[str, Any] = msgspec.field(default_factory=dict)
    """Only entities that fit: those that were removed as they were before, all others as they are after the call."""
    tool: str | None = None
    """Only by calls of this tool; a glob."""
    actor: str | None = None
    """Only by calls of this sub-agent; a glob."""
    exactly: Annotated[int, Meta(ge=0)] | None = None
    min: Annotated[int, Meta(ge=0)] | None = None
    max: Annotated[int, Meta(ge=0)] | None = None
    unique_by: str | None = None
    """A field that no two of them may have the same value of: nothing is refunded twice."""

    def prepare(self) -> Check:
        bounds = {name: getattr(self, name) for name in ("exactly", "min", "max") if getattr(self, name) is not None}
        if not bounds and self.unique_by is None:
            hint = "give it `exactly`, `min`, `max` or `unique_by`"
            raise SeatrialError("invalid_config", "the `effects` grader checks nothing", hint=hint)
        if "exactly" in bounds and len(bounds) > 1:
            raise SeatrialError("invalid_config", "`exactly` goes with neither `min` nor `max`")
        where = compile_where(self.where, ("where",))

        def find(world: WorldRecord) -> Finding:
            found = []
            for call, change, row, ledger in _changes(world):
                scope = _scope(world, ledger)
                inside = scope if row is None or change.type is None else scope.at(change.type, row)
                if self._is_meant(call, change) and (not self.where or (row is not None and where(inside))):
                    found.append((call, change, inside))
            number = len(found)
            told = f"{number} {self._told} in {len(world.calls)} calls"
            evidence = [_call(call) for call, _, _ in found[:5]]
            twice = self._repeated(found)
            if twice is not None:
                return passed_if(False, f"{told}; {twice}", evidence=evidence)
            right = (
                number == self.exactly
                if self.exactly is not None
                else (self.min or 0) <= number <= (number if self.max is None else self.max)
            )
            expected = ", ".join(f"{name} {value}" for name, value in bounds.items())
            return passed_if(right, f"{told}, expected {expected}" if bounds else told, evidence=evidence)

        refuse_calls(self.where)
        names = WorldNames(
            frozenset({self.type} if self.type is not None else ()),
            tools=frozenset({self.tool} if self.tool is not None else ()),
        )
        return state_check(find, of_way=True, names=names)

    @property
    def _told(self) -> str:
        return " ".join(part for part in (self.op, self.type, "effects") if part)

    def _is_meant(self, call: WorldCall, change: LedgerChange) -> bool:
        return (
            (self.op is None or change.op == self.op)
            and (self.type is None or change.type == self.type)
            and (self.tool is None or fnmatchcase(call.tool, self.tool))
            and (self.actor is None or (call.actor is not None and fnmatchcase(call.actor, self.actor)))
        )

    def _repeated(self, found: list[tuple[WorldCall, LedgerChange, RowScope]]) -> str | None:
        if self.unique_by is None:
            return None
        seen: dict[bytes, WorldCall] = {}
        for call, change, inside in found:
            value = UNSET if inside.row is None else field_of(inside, self.unique_by)
            if value is UNSET:
                raise NoValueError(f"{change.place} has no field {self.unique_by!r}, which `unique_by` compares")
            same = key(value, b"value")
            if (earlier := seen.get(same)) is not None:
                calls = f"call {call.call}" if earlier is call else f"calls {earlier.call} and {call.call}"
                return f"{calls} did it twice for the same {self.unique_by}, {quoted(value)}"
            seen[same] = call
        return None


class SideEffects(Grader):
    """Whether the agent's calls changed nothing but what is allowed."""

    kind: ClassVar[str] = "side_effects"

    allow: list[Annotated[str, Meta(min_length=1)]]
    """Globs of what may change: `order/o-1.status`, `refund/*`, the name of a flag. Empty: nothing."""

    def prepare(self) -> Check:
        def find(world: WorldRecord) -> Finding:
            every, outside = 0, []
            fields = _known_fields(world) if any("." in glob for glob in self.allow) else {}
            for call in world.calls:
                for change in call.changes:
                    every += 1
                    if (place := self._outside(change, fields)) is not None:
                        outside.append((call, place))
            if not outside:
                return passed_if(True, f"{every} of {every} changes are allowed", score=1.0)
            places = listed([f"{place} (call {call.call}, {call.tool})" for call, place in outside])
            told = f"{len(outside)} of {every} changes are not allowed: {places}"
            evidence = [_call(call) for call, _ in outside[:5]]
            return passed_if(False, told, score=1 - len(outside) / every, evidence=evidence)

        types = {glob.partition("/")[0] for glob in self.allow if "/" in glob}
        return state_check(find, of_way=True, names=WorldNames(frozenset(types)))

    def _outside(self, change: LedgerChange, fields: Mapping[str, set[str]]) -> str | None:
        """The first place of a change that no glob covers. One that ends with the name of a field covers that field of
        updates, and nothing else, whatever ids an agent chooses."""
        whole, known = change.place, fields.get(change.type or "", set())
        of_fields: list[tuple[str, str]] = []
        for glob in self.allow:
            place, _, field = glob.rpartition(".")
            if place and field in known:
                of_fields.append((place, field))
            elif fnmatchcase(whole, glob):
                return None
        if change.op != "update":
            return whole
        allowed = {field for place, field in of_fields if fnmatchcase(whole, place)}
        return next((f"{whole}.{name}" for name in change.fields if name not in allowed), None)


class Invariants(Grader):
    """What must hold in every state on the way: before the first call, and after each one."""

    kind: ClassVar[str] = "invariants"

    always: list[Any] = msgspec.field(default_factory=list)
    """Predicates that hold in every state."""
    never: list[Any] = msgspec.field(default_factory=list)
    """Predicates that hold in none."""
    until: list[list[Any]] = msgspec.field(default_factory=list)
    """Pairs of predicates: the first holds until the second does."""
    sequence: list[Any] = msgspec.field(default_factory=list)
    """Predicates that are reached, in this order."""

    def prepare(self) -> Check:
        always = [compile_predicate(each, ("always", index)) for index, each in enumerate(self.always)]
        never = [compile_predicate(each, ("never", index)) for index, each in enumerate(self.never)]
        until = []
        for index, pair in enumerate(self.until):
            if len(pair) != 2:
                raise SeatrialError("invalid_config", "`until` has pairs of predicates", pointer=f"/until/{index}")
            until.append(tuple(compile_predicate(each, ("until", index)) for each in pair))
        sequence = [compile_predicate(each, ("sequence", index)) for index, each in enumerate(self.sequence)]
        total = len(always) + len(never) + len(until) + bool(sequence)
        if not total:
            hint = "give it `always`, `never`, `until` or `sequence`"
            raise SeatrialError("invalid_config", "the `invariants` grader checks nothing", hint=hint)

        refuse_calls([self.always, self.never, self.until, self.sequence])

        def find(world: WorldRecord) -> Finding:
            versions = list(world.versions())
            ids = world.id_fields
            broken: list[tuple[WorldCall | None, str]] = []
            for name, predicates, wanted in (("always", always, True), ("never", never, False)):
                for index, predicate in enumerate(predicates):
                    call = _first(versions, predicate, not wanted, ids)
                    if call is not _NEVER:
                        broken.append((call, f"{name}[{index}]"))
            for index, (first, second) in enumerate(until):
                for call, ledger in versions:
                    if holds(second, ledger, ids):
                        break
                    if not holds(first, ledger, ids):
                        broken.append((call, f"until[{index}]"))
                        break
            if sequence and (missed := _missed(versions, sequence, ids)) is not None:
                broken.append((None, f"sequence[{missed}]"))
            at_once = [name for call, name in broken if call is None and not name.startswith("sequence")]
            if at_once:
                return errored(f"{listed(at_once)} is broken before any call: the case begins wrong")
            told = [
                f"{name} is not reached" if call is None else f"{name} is broken by call {call.call}, {call.tool}"
                for call, name in broken
            ]
            score = (total - len(broken)) / total
            evidence = [_call(call) for call, _ in broken if call is not None]
            if broken:
                return passed_if(False, *told, score=score, evidence=evidence[:5])
            return passed_if(True, f"{total} of {total} hold in {len(versions)} states", score=1.0)

        names = names_of([self.always, self.never, self.until, self.sequence])
        return state_check(find, of_way=True, names=names)


_NEVER = WorldCall(0, "", "ok")


def _first(
    versions: list[tuple[WorldCall | None, Ledger]], predicate: Predicate, wanted: bool, ids: Mapping[str, str]
) -> WorldCall | None:
    """The call after which a predicate first held, or did not; `_NEVER` when there is none."""
    return next((call for call, ledger in versions if holds(predicate, ledger, ids) is wanted), _NEVER)


def _missed(
    versions: list[tuple[WorldCall | None, Ledger]], sequence: list[Predicate], ids: Mapping[str, str]
) -> int | None:
    """The first predicate that is not reached after those before it."""
    at = 0
    for _, ledger in versions:
        while at < len(sequence) and holds(sequence[at], ledger, ids):
            at += 1
    return at if at < len(sequence) else None


def _changes(world: WorldRecord) -> Iterator[tuple[WorldCall, LedgerChange, Row | None, Ledger]]:
    """Every change with its call, the row that it is about, and the state that this is in."""
    before = world.first
    for call in world.calls:
        if not call.changes:
            continue
        after = before.after(call.changes)
        for change in call.changes:
            of = before if change.op == "remove" else after
            row = None if change.type is None or change.id is None else of.row(change.type, change.id)
            yield call, change, row, of
        before = after


def _known_fields(world: WorldRecord) -> dict[str, set[str]]:
    """The names of all fields that the record has, by entity type."""
    fields: dict[str, set[str]] = {}
    for entity_type, rows in world.first.entities.items():
        fields.setdefault(entity_type, set()).update(*(row.fields for row in rows))
    for call in world.calls:
        for change in call.changes:
            fields.setdefault(change.type or "", set()).update(change.fields)
    return fields


def names_of(predicates: Any) -> WorldNames:
    """The entity types and flags that predicates name."""
    types: set[str] = set()
    flags: set[str] = set()
    waiting = [predicates]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            if isinstance(each.get("entity"), str):
                types.add(each["entity"])
            if isinstance(each.get("flag"), str):
                flags.add(each["flag"])
            waiting += [each[name] for name in ("all", "any", "not") if name in each]
    return WorldNames(frozenset(types), frozenset(flags))


def _scope(world: WorldRecord, ledger: Ledger) -> RowScope:
    return RowScope(Looking(ledger, world.id_fields))


def _number(ledger: Ledger, entity_type: str) -> int:
    return sum(1 for _ in ledger.rows(entity_type))


def _row(entity: str, path: str | None = None) -> str:
    entity_type, _, row_id = entity.partition("/")
    return pointer("world", "state", entity_type, row_id, *([] if path is None else path.split(".")))


def _call(call: WorldCall) -> str:
    return pointer("world", "calls", call.call)
