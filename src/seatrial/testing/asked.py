"""What a test asks for: an agent in one form or another, and a case."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

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

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

Given: TypeAlias = str | Callable[..., Any] | AgentConfig
"""An agent: a function, `module:function`, or a configuration; with a suite, its name there."""

GivenGrader: TypeAlias = Mapping[str, Any] | Grader | Callable[..., Any]
"""A grader: as a suite file has it, a value (`seatrial.contains(...)`), or a function."""

AGENT = "agent"
"""The name of an agent that a test gives itself."""


class SuiteCase(msgspec.Struct, frozen=True):
    """A case of a suite file, with the suite whose graders judge it: what `suite_cases` gives to tests."""

    case: Case
    suite: Path
    """The suite file."""

    @property
    def id(self) -> str:
        """The case's id."""
        return self.case.id

    @property
    def instruction(self) -> str:
        """What the agent is asked."""
        return self.case.instruction

    @property
    def tags(self) -> list[str]:
        """The case's tags."""
        return self.case.tags


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
    graders: Sequence[GivenGrader],
    fields: Mapping[str, Any],
    tool_access: ToolAccess | None = None,
    judge: JudgeModel | None = None,
) -> Asked:
    """An agent and a case that a test wrote out; `fields` are further keys of a case given by its instruction."""
    if isinstance(case, str):
        try:
            case = msgspec.convert({"id": "case", "instruction": case, **fields}, Case)
        except msgspec.ValidationError as error:
            raise SeatrialError("invalid_config", f"not a case: {error}") from None
    elif fields:
        raise SeatrialError("invalid_config", f"a whole case was given, so `{next(iter(fields))}` belongs in it")
    config, named = _config(file, agent, case, tool_access)
    suite = Suite(
        name=test,
        agents={AGENT: config},
        cases=[case],
        graders=[dict(grader) if isinstance(grader, Mapping) else grader for grader in graders],
        judge=judge,
        functions=named,
        file=file,
        # Without graders it is the test that judges.
        grading="all" if graders or case.graders else "none",
    )
    # Graders that are functions were given names there.
    [case] = [each for each in suite.cases if isinstance(each, Case)]
    if problems := validate_suite(suite, grading=suite.grading, import_graders=True):
        raise InvalidSuiteError(problems)
    return Asked(suite, AGENT, case)


def asked_of_suite(
    test: str, file: Path, path: Path, agent: Given, case: str | Case, tool_access: ToolAccess | None = None
) -> Asked:
    """A case that a suite file has, by its id or itself, and an agent: a name in that suite, or one that the test has
    itself. `file` is the test's."""
    used = [agent] if isinstance(agent, str) else []
    suite = load_suite(path, import_agents=True, import_graders=True, agents_used=used)
    suite.name = test
    wanted = case.id if isinstance(case, Case) else case
    found = next((known for known in read_cases(suite) if known.id == wanted), None)
    if found is None:
        raise SeatrialError("invalid_config", f"{path.name} has no case {wanted!r}")
    if isinstance(agent, str):
        if agent not in suite.agents:
            raise SeatrialError(
                "invalid_config", f"{path.name} has no agent {agent!r}", hint=f"one of {', '.join(suite.agents)}"
            )
        if tool_access is not None:
            raise SeatrialError("invalid_config", f"`tool_access` of {agent!r} belongs in {path.name}")
        return Asked(suite, agent, found)
    config, named = _config(file, agent, found, tool_access)
    suite = msgspec.structs.replace(suite, agents={AGENT: config}, functions=[*suite.functions, *named])
    return Asked(suite, AGENT, found)


def suite_cases(path: str | Path, *, tags: Collection[str] = (), cases: Collection[str] = ("*",)) -> list[ParameterSet]:
    """The cases of a suite file as parameters of a test: `@pytest.mark.parametrize("case", suite_cases(FILE))`.

    A relative path is relative to the file that asks. Only cases with one of `tags`, and whose id fits one of the globs
    in `cases`; it is an error when there are none, since pytest would skip a test without parameters.
    """
    import pytest

    for option, chosen in (("tags", tags), ("cases", cases)):
        if isinstance(chosen, str):
            raise SeatrialError("usage", f"`{option}` is a list of names, and not one text", hint=f"[{chosen!r}]")
    asking = sys._getframe(1).f_globals.get("__file__")
    whole = Path(asking or "").resolve().parent / path
    suite = load_suite(whole, agents_used=[])
    found = [
        case
        for case in read_cases(suite)
        if any(fnmatchcase(case.id, glob) for glob in cases) and (not tags or any(tag in case.tags for tag in tags))
    ]
    if not found:
        chosen_by = [f"`tags` {sorted(tags)}"] * bool(tags) + [f"`cases` {sorted(cases)}"] * (tuple(cases) != ("*",))
        raise SeatrialError("usage", f"{whole.name} has no case for {' and '.join(chosen_by) or 'a test to run'}")
    return [pytest.param(SuiteCase(case, whole), id=case.id) for case in found]


def _config(
    file: Path, agent: Given, case: Case, tool_access: ToolAccess | None
) -> tuple[AgentConfig, list[NamedFunction]]:
    """The configuration of an agent that a test gives itself, and the function it calls, if it is one."""
    if tool_access not in (None, *get_args(ToolAccess)):
        known = ", ".join(get_args(ToolAccess))
        raise SeatrialError("invalid_config", f"`tool_access` is one of {known}, got {tool_access!r}")
    if isinstance(agent, str):
        return PythonConfig(target=agent, tool_access=tool_access or "own"), []
    if isinstance(agent, msgspec.Struct):
        if tool_access is not None:
            raise SeatrialError("invalid_config", "`tool_access` belongs in the agent's configuration")
        return agent, []
    given: Any = agent
    if not callable(given):
        hint = "a function, `module:function`, or what `seatrial.http`, `cli` or `stream` give"
        raise SeatrialError("invalid_config", f"`agent` is a {type(given).__name__}, and not an agent", hint=hint)
    for key in CASE_KEYS:
        if getattr(case, key) and key not in Calling(agent, file.parent).case_keys:
            hint = f"give it a parameter `{key}`"
            raise SeatrialError("invalid_config", f"the function does not take `{key}` of the case", hint=hint)
    named = named_function(agent)
    return PythonConfig(target=named.target, tool_access=tool_access or "own"), [named]
