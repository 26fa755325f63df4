"""What a test asks for: an agent in one form or another, and a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, get_args

import msgspec

from seatrial._support.target import NamedFunction, named_function
from seatrial.agents.config import CASE_KEYS
from seatrial.agents.python.calling import Calling
from seatrial.errors import SeatrialError
from seatrial.graders import Grader
from seatrial.models.registry import JudgeModel
from seatrial.runs import Case
from seatrial.suites import AgentConfig, InvalidSuiteError, PythonConfig, Suite, load_suite, read_cases, validate_suite
from seatrial.trajectory.completeness import ToolAccess

Given: TypeAlias = str | Callable[..., Any] | AgentConfig
"""An agent: a function, `module:function`, or a configuration; with a suite, its name there."""

AGENT = "agent"
"""How an agent is called that a test gives without a suite."""


class Asked(msgspec.Struct, frozen=True):
    """One agent and one case, as a suite that the engine can run."""

    suite: Suite
    agent: str
    case: Case


def asked(
    test: str,
    file: Path,
    agent: Given,
    case: str | Case,
    graders: Sequence[Mapping[str, Any] | Grader],
    fields: Mapping[str, Any],
    tool_access: ToolAccess | None = None,
    judge: JudgeModel | None = None,
) -> Asked:
    """An agent and a case that a test wrote out; `fields` are further keys of a case given by its instruction."""
    if tool_access not in (None, *get_args(ToolAccess)):
        known = ", ".join(get_args(ToolAccess))
        raise SeatrialError("invalid_config", f"`tool_access` is one of {known}, got {tool_access!r}")
    if isinstance(case, str):
        try:
            case = msgspec.convert({"id": "case", "instruction": case, **fields}, Case)
        except msgspec.ValidationError as error:
            raise SeatrialError("invalid_config", f"not a case: {error}") from None
    elif fields:
        raise SeatrialError("invalid_config", f"a whole case was given, so `{next(iter(fields))}` belongs in it")
    named: list[NamedFunction] = []
    config: AgentConfig
    if isinstance(agent, str):
        config = PythonConfig(target=agent, tool_access=tool_access or "own")
    elif isinstance(agent, msgspec.Struct):
        if tool_access is not None:
            raise SeatrialError("invalid_config", "`tool_access` belongs in the agent's configuration")
        config = agent
    else:
        named.append(named_function(agent))
        config = PythonConfig(target=named[0].target, tool_access=tool_access or "own")
        for key in CASE_KEYS:
            if getattr(case, key) and key not in Calling(agent, file.parent).case_keys:
                hint = f"give it a parameter `{key}`"
                raise SeatrialError("invalid_config", f"the function does not take `{key}` of the case", hint=hint)
    suite = Suite(
        name=test,
        agents={AGENT: config},
        cases=[case],
        graders=[grader if isinstance(grader, Grader) else dict(grader) for grader in graders],
        judge=judge,
        functions=named,
        file=file,
        # Without graders it is the test that judges.
        grading="all" if graders or case.graders else "none",
    )
    if problems := validate_suite(suite, grading=suite.grading, import_graders=True):
        raise InvalidSuiteError(problems)
    return Asked(suite, AGENT, case)


def asked_of_suite(test: str, path: Path, agent: Given, case: str | Case) -> Asked:
    """An agent and a case that a suite file has, both by name."""
    used = [agent] if isinstance(agent, str) else None
    suite = load_suite(path, import_agents=True, import_graders=True, agents_used=used)
    suite.name = test
    if not isinstance(agent, str) or agent not in suite.agents:
        raise SeatrialError(
            "invalid_config", f"{path.name} has no agent {agent!r}", hint=f"one of {', '.join(suite.agents)}"
        )
    found = next((known for known in read_cases(suite) if known.id == case), None)
    if found is None:
        raise SeatrialError("invalid_config", f"{path.name} has no case {case!r}")
    return Asked(suite, agent, found)
