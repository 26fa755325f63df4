"""The refund desk: a world of two entity types and four tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import msgspec
import yaml

from seatrial.events.types import CustomEvent, Event
from seatrial.problems import Problems
from seatrial.world.compiled import CompiledWorld, compile_world
from seatrial.world.definition import World
from seatrial.world.session import WorldSession
from seatrial.world.tools import ToolAnswer

P = ParamSpec("P")
REFUND_DESK = (Path(__file__).parent / "refund_desk.yaml").read_text(encoding="utf-8")


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine, in an event loop of its own."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def world_of(given: str | dict[str, Any], directory: Path | None = None, **more: Any) -> CompiledWorld:
    """A world from YAML or plain values; it must be right."""
    plain = yaml.safe_load(given) if isinstance(given, str) else given
    problems = Problems()
    compiled = compile_world(msgspec.convert({**plain, **more}, World), problems, directory)
    assert [str(problem) for problem in problems.found] == []
    assert compiled is not None
    return compiled


def problems_of(given: dict[str, Any]) -> list[str]:
    """What is wrong with a world."""
    problems = Problems()
    compile_world(msgspec.convert(given, World), problems)
    return [f"{each.pointer}: {each.message}" + (f" ({each.hint})" if each.hint else "") for each in problems.found]


class Caller:
    """An agent in a session, and the events that it leaves."""

    def __init__(self, world: CompiledWorld | str, *, trial: int = 1, state: Any = None) -> None:
        compiled = world_of(world) if isinstance(world, str) else world
        self.events: list[CustomEvent] = []
        self.session = WorldSession(compiled, compiled.start(state), case_id="case", trial=trial, emit=self._take)

    async def _take(self, event: Event) -> None:
        assert isinstance(event, CustomEvent)
        self.events.append(event)

    async def __call__(self, tool: str, *, key: str | None = None, actor: str | None = None, **arguments: Any) -> Any:
        """The answer, as a client of the contract has it: the response, or the class of the error."""
        answer = await self.asked(tool, key=key, actor=actor, **arguments)
        return (
            answer.body["response"] if answer.status == 200 else (answer.status, answer.body["detail"]["error_class"])
        )

    async def asked(
        self, tool: str, *, key: str | None = None, actor: str | None = None, **arguments: Any
    ) -> ToolAnswer:
        return await self.session.call(tool, arguments, gateway="test", actor=actor, idempotency_key=key)

    @property
    def answered(self) -> list[dict[str, Any]]:
        return [event.value for event in self.events if event.name == "tool.answered"]
