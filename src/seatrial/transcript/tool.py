"""Tools: what an agent can call, what a host must know of each, what a call gives back, and the registry of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import msgspec

from seatrial.transcript.messages import TextBlock, ToolResultBlock


class ToolResult(msgspec.Struct, omit_defaults=True):
    """The outcome of one tool call, before it becomes a message."""

    content: list[ToolResultBlock]
    """What the model sees."""
    is_error: bool = False
    details: Any = None
    """Structured payload for the host; never sent to a model."""
    terminate: bool = False
    """Whether the tool votes to end the run."""
    narration: str | None = None
    """One sentence on what the tool did."""

    @classmethod
    def text(cls, text: str) -> ToolResult:
        """A result of one text block."""
        return cls([TextBlock(text)])

    @classmethod
    def terminal(cls, text: str) -> ToolResult:
        """A result that votes to end the run."""
        return cls([TextBlock(text)], terminate=True)

    @classmethod
    def error(cls, text: str) -> ToolResult:
        """A result that reports a failure."""
        return cls([TextBlock(text)], is_error=True)

    @classmethod
    def argument_validation_error(cls, tool: str, text: str) -> ToolResult:
        """A failure that the model can fix by calling again with other arguments."""
        details = {"kind": "tool_argument_validation", "recoverable": True, "display_hidden": True, "tool": tool}
        return cls([TextBlock(text)], is_error=True, details=details)

    def with_narration(self, narration: str) -> ToolResult:
        """The same result with this narration, trimmed; a blank one changes nothing."""
        narration = narration.strip()
        return msgspec.structs.replace(self, narration=narration) if narration else self


class ExecutionMode(StrEnum):
    """How the calls of one turn are carried out."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


class CancelSignal(Protocol):
    """What a long-running tool looks at between its steps."""

    @property
    def cancelled(self) -> bool:
        """Whether the run wants to end."""


ToolUpdateSink: TypeAlias = Callable[[ToolResult], None]
"""Takes the partial results of a tool that reports progress; never blocks and never fails. `list.append` is one."""


class ToolHistoryPolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a tool says about its results in a history that must be shortened."""

    dedup_arg: str | None = None
    """Argument whose value tells which earlier results a newer one replaces."""
    summary_arg: str | None = None
    """Argument that a one-line summary of a call shows."""
    compactable_result: bool = False
    """Whether old results can be fetched again and may be cleared."""
    pins_active_plan: bool = False
    """Whether the latest result is the plan the agent works by."""


class ToolIdentityPolicy(msgspec.Struct, frozen=True):
    """How to tell that two calls of a tool do the same to the same thing."""

    operation_arg: str | None = None
    """Argument that names the operation, where one tool has several."""
    target: str | Callable[[Any], str | None] | None = None
    """Argument that names what is operated on, or a function of the arguments."""
    args_key: Callable[[Any], str | None] | None = None
    """A key for the arguments as a whole."""


class AgentTool(ABC):
    """A tool. A subclass names and describes itself, gives its schema, and executes."""

    requires_exclusive_sandbox: bool = False
    """Whether no other call may run beside this one."""
    max_result_chars: int | None = None
    """Size at which an old result is shortened; None for the host's default."""
    history_policy: ToolHistoryPolicy = ToolHistoryPolicy()
    identity_policy: ToolIdentityPolicy = ToolIdentityPolicy()
    aborts_siblings_on_error: bool = False
    """Whether an error of this tool cancels the other calls of its turn."""
    counts_toward_tool_call_limit: bool = True
    parallel_safe_per_turn: bool = False
    """Whether any number of calls in one turn is fine."""
    counts_toward_termination_vote: bool = True

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that a model calls it by."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What a model reads to decide when to call it."""

    @abstractmethod
    def parameters_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""

    def prepare_arguments(self, arguments: Any) -> Any:
        """Mend arguments before they are checked. May be called twice, so it must be idempotent."""
        return arguments

    def validate(self, arguments: Any) -> str | None:
        """What is wrong with the arguments, in words for the model; None when nothing is."""
        return None

    @abstractmethod
    async def execute(self, call_id: str, arguments: Any, signal: CancelSignal, update: ToolUpdateSink) -> ToolResult:
        """Carry out one call. A failure that the model should see is a result with `is_error`."""


class ToolRegistry:
    """Tools by name, in the order in which their names were first registered."""

    def __init__(self, tools: Iterable[AgentTool] = ()) -> None:
        self._tools: dict[str, AgentTool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: AgentTool) -> None:
        """Add a tool; one of the same name is replaced and its place kept."""
        self._tools[tool.name] = tool

    def with_tool(self, tool: AgentTool) -> ToolRegistry:
        """A registry with this tool as well."""
        return ToolRegistry([*self, tool])

    def get(self, name: str) -> AgentTool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def names(self) -> list[str]:
        """The names in order."""
        return list(self._tools)

    def __iter__(self) -> Iterator[AgentTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def is_empty(self) -> bool:
        """Whether no tool is registered."""
        return not self._tools

    def history_policy(self, name: str) -> ToolHistoryPolicy:
        """The history policy of that tool; the default for a name that is not registered."""
        tool = self._tools.get(name)
        return ToolHistoryPolicy() if tool is None else tool.history_policy

    def identity_policy(self, name: str) -> ToolIdentityPolicy:
        """The identity policy of that tool; the default for a name that is not registered."""
        tool = self._tools.get(name)
        return ToolIdentityPolicy() if tool is None else tool.identity_policy

    def identity_policies(self) -> dict[str, ToolIdentityPolicy]:
        """The identity policy of every tool."""
        return {name: tool.identity_policy for name, tool in self._tools.items()}
