"""The tools that an agent under test may call through the proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec


class ToolAnswer(msgspec.Struct):
    """What the proxy answers a call with."""

    status: int
    """HTTP status."""
    body: dict[str, Any]
    recorded: bool = False
    """Whether the run's events have it already."""
    replayed: bool = False
    """Whether it is the answer to an earlier request, made again for a client that asked twice: not another call."""


class ToolWorld(Protocol):
    """Whatever answers the tool calls of runs."""

    def schema(self) -> list[dict[str, Any]]:
        """The tools as they are described to agents: `name`, `description`, `inputSchema`."""
        ...

    async def call(self, run_id: str, name: str, arguments: dict[str, Any], headers: Mapping[str, str]) -> ToolAnswer:
        """Answer one call of a run. The arguments are as sent; the headers carry actor and idempotency key."""
        ...


class NoTools:
    """A world without tools: every call is answered with 404."""

    def schema(self) -> list[dict[str, Any]]:
        return []

    async def call(self, run_id: str, name: str, arguments: dict[str, Any], headers: Mapping[str, str]) -> ToolAnswer:
        return refusal(404, "tool_not_found", f"there is no tool {name[:128]!r}")


def refusal(status: int, error_class: str, message: str) -> ToolAnswer:
    """An answer that is an HTTP error, in the shape that clients of the contract read (dispatch.md 5.3)."""
    return ToolAnswer(status, {"detail": {"error_class": error_class, "message": message}})
