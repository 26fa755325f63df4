"""The tools of the world for an agent that is a Python function: its parameter `tools`.

Nothing goes over a socket, and everything goes the way that it does over one: the same pipeline, the same record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Literal, TypeAlias

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.world.trace import actor_label

CallTool: TypeAlias = Callable[[str, dict[str, Any], str | None], Coroutine[Any, Any, Any]]
"""Makes a call of the run: a tool, its arguments, the label of a sub-agent. Gives the response."""

Style = Literal["mcp", "openai", "anthropic"]


class ToolError(Exception):
    """The world refused a call, or a tool answered with an error."""

    def __init__(self, message: str, error: Any = None) -> None:
        super().__init__(message)
        self.error = error
        """What the tool answered."""


class Access(msgspec.Struct, frozen=True):
    """A run's way to its tools."""

    call: CallTool
    described: Callable[[str | None], list[dict[str, Any]]]
    loop: asyncio.AbstractEventLoop
    """Where calls are answered."""


class Tools:
    """Calls tools by name: `await tools.call("get_order", order_id="o-1")`, or `await tools.get_order(...)`."""

    def __init__(self, access: Access, *, actor: str | None = None, raises: bool = False) -> None:
        self._access = access
        self._actor = actor
        self._raises = raises

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """What the tool answers. An error is an answer too, `{"error": ...}`, unless `raising` was asked for."""
        return self._checked(await self._access.call(name, _plain(arguments), self._actor))

    def actor(self, label: str) -> Any:
        """The same tools for a sub-agent: `supervisor/refunds`."""
        if actor_label(label) is None:
            raise SeatrialError("invalid_config", f"{label[:60]!r} cannot be the label of a sub-agent")
        return type(self)(self._access, actor=actor_label(label), raises=self._raises)

    def raising(self) -> Any:
        """The same tools, which raise `ToolError` where a tool answers with an error."""
        return type(self)(self._access, actor=self._actor, raises=True)

    def schema(self, style: Style = "mcp") -> list[dict[str, Any]]:
        """The tool definitions in the form that a model API takes."""
        shapes: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "mcp": lambda tool: tool,
            "openai": lambda tool: {"type": "function", "function": _named(tool, "parameters")},
            "anthropic": lambda tool: _named(tool, "input_schema"),
        }
        if style not in shapes:
            raise SeatrialError("invalid_config", f"unknown style {style!r}", hint=f"one of: {', '.join(shapes)}")
        return [shapes[style](tool) for tool in self._access.described(self._actor)]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(self.call, name)

    def _checked(self, answer: Any) -> Any:
        error = answer.get("error") if isinstance(answer, dict) else None
        if self._raises and error is not None:
            message = error.get("message") if isinstance(error, dict) else error
            raise ToolError(str(message), error)
        return answer


class SyncTools(Tools):
    """The same for a function that is not async: `tools.call("get_order", order_id="o-1")`."""

    def call(self, name: str, /, **arguments: Any) -> Any:
        """What the tool answers."""
        waiting = self._access.call(name, _plain(arguments), self._actor)
        return self._checked(asyncio.run_coroutine_threadsafe(waiting, self._access.loop).result())


def _named(tool: dict[str, Any], schema: str) -> dict[str, Any]:
    told = {"name": tool["name"], schema: tool["inputSchema"]}
    return {**told, "description": tool["description"]} if "description" in tool else told


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as JSON: what is recorded cannot change any more."""
    try:
        plain: dict[str, Any] = wire.decode(wire.encode(arguments))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ToolError(f"the arguments are not JSON: {error}") from None
    return plain
