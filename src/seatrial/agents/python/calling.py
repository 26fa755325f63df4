"""How an agent function is called: it gets what its parameters are named after.

| parameter | what it gets |
| --- | --- |
| `instruction` | the prompt of the case |
| `input` | what the case has for the agent besides |
| `messages` | the conversation before the prompt, OpenAI style |
| `files` | the paths of the case's files |
| `case_id`, `run_id`, `trial`, `attempt` | which run this is; trials and attempts are counted from 1 |
| `task_input`, `proxy_url`, `run_token` | the same as an agent behind HTTP is told (dispatch.md 16) |
| `tools` | the tools of the suite's `world`: `await tools.get_order(id="o-1")`, in a plain function without `await` |
| `thread_id` | the conversation that the run belongs to; the run's id when it is a conversation of its own |
| `resume` | the answers to the interrupts that the run before it ended with, as AG-UI has them; or None |
| `workspace` | the path of the folder to work in, the copy of the case's `workspace`; None when it has none |
| `run_input` | all that was asked of the run service, an AG-UI `RunAgentInput`; None in an experiment |

A first parameter of any other name gets the prompt. What the case expects, and how it is graded, no agent gets.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from seatrial.agents.agent import RunRequest
from seatrial.agents.dispatch import task_input
from seatrial.errors import SeatrialError
from seatrial.events.patch import copy_json
from seatrial.world.agent_tools import SyncTools, Tools
from seatrial.world.grant import RunGrant

# An agent may change what it is given, and the case is there for the next trial: so it gets copies.
_OF_REQUEST: dict[str, Callable[[RunRequest], Any]] = {
    "instruction": lambda request: request.case.instruction,
    "input": lambda request: copy_json(request.case.input),
    "messages": lambda request: copy_json(request.case.messages),
    "case_id": lambda request: request.case.id,
    "run_id": lambda request: request.run_id,
    "trial": lambda request: request.trial,
    "attempt": lambda request: request.attempt,
    "task_input": lambda request: copy_json(task_input(request)),
    "thread_id": lambda request: request.run_id if request.run_input is None else request.run_input.thread_id,
    "resume": lambda request: None if (given := _run_input(request)) is None else given.get("resume"),
    "run_input": lambda request: _run_input(request),
    "workspace": lambda request: None if request.workspace is None else str(request.workspace.folder),
}
_OF_GRANT: dict[str, Callable[[RunGrant], str]] = {
    "proxy_url": lambda grant: grant.url,
    "run_token": lambda grant: grant.token,
}
TOOLS = "tools"
PARAMETERS = (*_OF_REQUEST, "files", *_OF_GRANT, TOOLS)
"""Every name that a parameter may have."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Calling:
    """The arguments that one function takes."""

    def __init__(self, function: Callable[..., Any], directory: Path) -> None:
        """Look at the function's parameters. Raises `SeatrialError` when one of them cannot be filled."""
        self._directory = directory.resolve()
        self._takes_prompt = False
        self._names: list[str] = []
        parameters = list(_signature(function).parameters.values())
        for index, parameter in enumerate(parameters):
            if parameter.kind in _VARIADIC:
                continue
            if index == 0 and parameter.kind in _POSITIONAL and parameter.name not in PARAMETERS:
                self._takes_prompt = True
            elif parameter.name in PARAMETERS and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
                self._names.append(parameter.name)
            elif parameter.default is inspect.Parameter.empty:
                raise _unfillable(parameter.name)
        self.is_async = is_async(function)
        """Whether it runs in the loop, and not in a thread."""
        self.needs_grant = any(name in _OF_GRANT or name == TOOLS for name in self._names)
        """Whether the function wants to reach the tool proxy."""
        named = {"input", "messages", "files", "workspace"}.intersection(self._names)
        self.case_keys = frozenset(named | {"input", "messages"} if "task_input" in self._names else named)
        """What it takes of a case besides the prompt."""

    def arguments(self, request: RunRequest, grant: RunGrant | None) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Positional and named arguments for one run."""
        named: dict[str, Any] = {}
        for name in self._names:
            if name in _OF_REQUEST:
                named[name] = _OF_REQUEST[name](request)
            elif name == "files":
                named[name] = [str(self._directory / file) for file in request.case.files]
            elif name == TOOLS:
                access = None if grant is None else grant.access
                named[name] = None if access is None else (Tools if self.is_async else SyncTools)(access)
            else:
                named[name] = None if grant is None else _OF_GRANT[name](grant)
        return (request.case.instruction,) if self._takes_prompt else (), named


def _run_input(request: RunRequest) -> dict[str, Any] | None:
    # Which copies, too.
    plain: dict[str, Any] | None = None if request.run_input is None else msgspec.to_builtins(request.run_input)
    return plain


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    if not callable(function):
        raise SeatrialError("invalid_config", f"the target is a {type(function).__name__}, and not a function")
    try:
        return inspect.signature(function)
    except ValueError as error:
        raise SeatrialError("invalid_config", f"the target's parameters cannot be inspected: {error}") from None


def _unfillable(name: str) -> SeatrialError:
    near = get_close_matches(name, PARAMETERS, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"one of {', '.join(f'`{known}`' for known in PARAMETERS)}"
    return SeatrialError(
        "invalid_config", f"the target has a parameter `{name}`, which nothing can be given for", hint=hint
    )


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it only starts something that the loop carries on."""
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    return any(
        is_kind(candidate)
        for is_kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        for candidate in (function, called)
    )
