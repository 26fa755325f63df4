"""Tools that are answered by a function of the world's author."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

from seatrial._support.target import load_target
from seatrial._support.threads import Threads
from seatrial.errors import SeatrialError
from seatrial.ledger.transaction import LedgerTransaction, Refusal
from seatrial.trajectory.config import Path as KeyPlace
from seatrial.trajectory.config import refuse
from seatrial.world.definition import ToolSpec
from seatrial.world.tool import OngoingCall, ToolHandler

WORLD = "world"
"""The parameter that gets the context, if a function has it."""


class LedgerAccess:
    """The state, for a function: what it reads is a copy, what it writes counts when it returns."""

    def __init__(self, transaction: LedgerTransaction) -> None:
        self._transaction = transaction

    def get(self, entity_type: str, entity_id: str) -> dict[str, Any] | None:
        """The fields of an entity; None when it is not there."""
        row = self._transaction.row(entity_type, entity_id)
        return None if row is None else deepcopy(row.fields)

    def list(self, entity_type: str) -> Iterable[tuple[str, dict[str, Any]]]:
        """The entities of a type, each with its id, in the order in which they came to be."""
        return [(row.id, deepcopy(row.fields)) for row in self._transaction.rows(entity_type)]

    def add(self, entity_type: str, entity_id: str, fields: dict[str, Any], *, upsert: bool = False) -> None:
        """Add an entity. One that is there is a refusal, unless `upsert` says to update it."""
        self._transaction.add(entity_type, entity_id, fields, upsert=upsert)

    def update(self, entity_type: str, entity_id: str, **fields: Any) -> None:
        """Set fields of an entity; one that is not there is a refusal."""
        self._transaction.update(entity_type, entity_id, fields)

    def remove(self, entity_type: str, entity_id: str) -> None:
        """Remove an entity; one that is not there is a refusal."""
        self._transaction.remove(entity_type, entity_id)

    @property
    def flags(self) -> frozenset[str]:
        """The flags that are set."""
        return self._transaction.flags

    def set_flag(self, flag: str) -> None:
        """Set a flag."""
        self._transaction.set_flag(flag)

    def clear_flag(self, flag: str) -> None:
        """Clear a flag."""
        self._transaction.clear_flag(flag)


class WorldContext:
    """What a function that answers a tool can ask for, with a parameter `world`.

    All of it is the run's own, and the same each time the run is repeated.
    """

    def __init__(self, call: OngoingCall, random: Random, case_id: str) -> None:
        self._call = call
        self.ledger = LedgerAccess(call.transaction)
        self.random = random
        """Random numbers of this call."""
        self.case_id = case_id

    @property
    def now(self) -> str:
        """The time of the world, RFC 3339."""
        return self._call.now

    @property
    def call(self) -> int:
        """The number of the call in its run, from 1."""
        return self._call.number

    @property
    def actor(self) -> str | None:
        """The label of the sub-agent that calls, if it has one."""
        return self._call.actor

    def new_id(self, prefix: str) -> str:
        """An id that was not there before: `r-1`, `r-2`, ..."""
        made = len([name for name in self._call.made if name.startswith(f"{prefix}-")])
        return self._call.new_id(prefix, made + 1)


Contexts = Callable[[OngoingCall], WorldContext]
"""Gives the context of a call."""


def user_handler(spec: ToolSpec, directory: Path | None, at: KeyPlace) -> Callable[[Contexts], ToolHandler]:
    """The handler of a `python` tool, for one session. The module is imported here."""
    target = spec.python or ""
    try:
        function = load_target(target, directory)
    except SeatrialError as error:
        refuse(error.message, (*at, "python"), error.hint)
    if not callable(function):
        refuse(f"`{target}` is a {type(function).__name__}, and not a function", (*at, "python"))
    takes_world = WORLD in inspect.signature(function).parameters
    refusals = frozenset(spec.refusals)

    def for_session(contexts: Contexts) -> ToolHandler:
        async def handle(call: OngoingCall) -> Any:
            # It may change what it is given, and the arguments are in the record.
            arguments = deepcopy(call.arguments)
            if takes_world:
                arguments[WORLD] = contexts(call)
            try:
                if inspect.iscoroutinefunction(function):
                    return await function(**arguments)
                # Threads of its own, which a function that never returns keeps to itself.
                threads = Threads(f"tool-{spec.name}")
                try:
                    value = await threads.call(lambda: function(**arguments), interrupts=True)
                finally:
                    threads.close()
                return await value if isinstance(value, Awaitable) else value
            except Refusal:
                raise
            except Exception as error:
                if refusals.isdisjoint(each.__name__ for each in type(error).__mro__):
                    raise
                raise Refusal(409, str(error)) from None

        return handle

    return for_session
