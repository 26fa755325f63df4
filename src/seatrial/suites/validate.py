"""Everything that is wrong with a suite, before anything runs. `run` and `doctor` use the same checks.

No code of the suite's author runs here, unless `run_python` asks for it: then targets are imported, and functions that
make cases are called. `startable` imports them, too, and calls none.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import is_value_too_deep
from seatrial.agents import AGENTS, AgentConfig
from seatrial.errors import SeatrialError
from seatrial.graders.grader import Grader
from seatrial.graders.registry import GraderConfig
from seatrial.models.config import HttpModelConfig, ModelConfig
from seatrial.models.registry import JudgeModel
from seatrial.problems import Problems, SuiteProblem
from seatrial.runs import Case
from seatrial.suites.agent_check import (
    check_agent,
    check_faults,
    check_timeouts,
    check_variables,
    read_agent,
)
from seatrial.suites.case_check import CaseCheck, check_models, check_world
from seatrial.suites.cases import case_format, checked_cases
from seatrial.suites.graders import Imports, SoundGrader, check_graders
from seatrial.suites.identity import stored_form
from seatrial.suites.models import check_http_model, check_other_model, other_model, with_our_model
from seatrial.suites.shape import fit
from seatrial.suites.suite import CaseSource, Grading, Suite, SuiteFile, SuiteKeys


def validate_suite(
    suite: Suite,
    *,
    variables: Mapping[str, str] | None = None,
    run_python: bool = False,
    grading: Grading | None = None,
    import_graders: bool = False,
) -> list[SuiteProblem]:
    """The problems of a suite that was built in Python; with `grading`, also where no verdict would come of it."""
    problems = Problems()
    try:
        for named in suite.functions:
            named.check()
        plain = stored_form(suite)
    except (TypeError, RecursionError) as error:
        problems.add((), f"the suite holds something that JSON cannot: {error}")
        return problems.found
    except SeatrialError as error:
        problems.add((), error.message, error.hint)
        return problems.found
    if is_value_too_deep(plain):
        problems.add((), wire.too_deep().message)
    else:
        build_suite(
            plain,
            problems,
            suite.file,
            made=suite.agents,
            graders=suite.graders,
            model=None if isinstance(suite.judge, ModelConfig | dict) else suite.judge,
            variables=variables,
            run_python=run_python,
            grading="none" if suite.grading == "none" else grading,
            import_graders=import_graders,
        )
    return problems.found


def build_suite(
    plain: Mapping[str, Any],
    problems: Problems,
    file: Path | None,
    *,
    made: Mapping[str, AgentConfig] | None = None,
    graders: Sequence[GraderConfig | Grader] | None = None,
    model: JudgeModel | None = None,
    variables: Mapping[str, str] | None = None,
    run_python: bool = False,
    cases_needed: bool = True,
    grading: Grading | None = None,
    import_agents: bool = False,
    import_graders: bool = False,
    agents_used: Collection[str] | None = None,
    startable: bool = False,
) -> Suite | None:
    """A suite of plain values, checked to the last case; None, with problems told, when it cannot be run.

    `made` are the agents of a suite that was built in Python, `graders` and `model` its graders and its judge: they
    need not be plain there.
    """
    before = problems.count
    import_graders = import_graders or (startable and grading != "none")
    variables = os.environ if variables is None else variables
    directory = Path() if file is None else file.parent
    other_judge = other_model(plain.get("judge"))
    plain = with_our_model(plain)
    keys = fit(plain, SuiteFile, (), problems)

    agents = plain.get("agents")
    if not agents:
        problems.add(("agents",), "a suite needs at least one agent", "name one under `agents`")
    known_agents: dict[str, AgentConfig] = {}
    importing = run_python or import_agents

    def is_used(name: str) -> bool:
        return agents_used is None or name in agents_used

    for name, config in agents.items() if isinstance(agents, dict) else ():
        agent = None if made is None else made[name]
        if agent is None or AGENTS.is_built_in(agent.kind):
            agent = read_agent(
                config, ("agents", name), problems, directory, imports=importing or (startable and is_used(name))
            )
        if agent is not None:
            known_agents[name] = agent
    for name, config in agents.items() if isinstance(agents, dict) else ():
        check_variables(config, variables, problems.within(("agents", name)), needed=is_used(name))
    asks_judge = grading in (None, "all")
    check_variables(other_judge or plain.get("judge"), variables, problems.within(("judge",)), needed=asks_judge)
    for name, agent in known_agents.items():
        check_agent(
            name,
            agent,
            directory,
            variables,
            problems.within(("agents", name)),
            run_python=run_python,
            import_errors=import_agents,
            needed=is_used(name),
            startable=startable,
        )
    # Where one agent is wrong, what it would take is not known.
    sound_agents = known_agents if isinstance(agents, dict) and len(known_agents) == len(agents) else {}
    if isinstance(plain.get("faults"), dict):
        check_faults(plain["faults"], sound_agents, problems.within(("faults",)))
    if isinstance(plain.get("timeouts"), dict):
        check_timeouts(plain["timeouts"], sound_agents, problems.within(("timeouts",)))
    judge: JudgeModel | None = other_judge or _converted(plain.get("judge"), ModelConfig)
    if isinstance(judge, ModelConfig):
        check_http_model(judge, variables, problems.within(("judge",)))
    elif other_judge is not None and (model is None or isinstance(model, HttpModelConfig)):
        import_from = directory if run_python or import_graders else None
        check_other_model(other_judge, variables, problems.within(("judge",)), import_from)
    sound: list[SoundGrader] | None = []
    imports = Imports(
        directory, classes=run_python or import_graders, functions=run_python or (startable and grading != "none")
    )
    if isinstance(configs := plain.get("graders"), list):
        sound = check_graders(configs if graders is None else graders, ("graders",), problems, imports)
    if grading == "all" and judge is None and sound is not None:
        check_models(sound, ("graders",), problems)
    world = None
    if keys is not None and keys.world is not None:
        world = check_world(keys.world, sound_agents, problems.within(("world",)), imports)
    if keys is not None and keys.threshold == 0:
        problems.add(("threshold",), "every score reaches a `threshold` of 0", "leave it out, or set a higher one")
    if cases_needed and not plain.get("cases"):
        problems.add(
            ("cases",), "a suite needs at least one case", "write one under `cases`, or name a file with `from`"
        )
    entries = _entries(plain.get("cases"), problems)
    check = CaseCheck(
        sound_agents,
        sound,
        imports,
        threshold=None if keys is None else keys.threshold,
        has_model=plain.get("judge") is not None or other_judge is not None,
        grading=grading,
        import_agents=import_agents or run_python or startable,
        world=world,
    )
    for _ in checked_cases(
        entries.items(),
        directory,
        problems,
        check,
        variables=variables,
        run_python=run_python,
        import_functions=startable,
    ):
        pass
    if judge is not None and sound is not None and problems.count == before:
        asked = check.asks_model or any(each.check.asks_model for each in sound)
        unseen = not run_python and any(
            isinstance(entry, CaseSource) and case_format(entry) == "python" for entry in entries.values()
        )
        if not asked and not unseen and cases_needed:
            hint = "add a grader of the kind `judge`, or leave it out"
            problems.add(("judge",), "`judge` names a model, and no grader asks it", hint)

    if keys is None or problems.count > before:
        return None
    shared = {name: getattr(keys, name) for name in SuiteKeys.__struct_fields__}
    shared["agents"] = known_agents
    if other_judge is not None:
        shared["judge"] = other_judge
    return Suite(**shared, cases=list(entries.values()), file=file, grading=grading or "all")


def _entries(cases: object, problems: Problems) -> dict[int, Case | CaseSource]:
    """The entries that can be read, by their place in the list."""
    entries: dict[int, Case | CaseSource] = {}
    for index, entry in enumerate(cases if isinstance(cases, list) else ()):
        if isinstance(entry, dict):
            kind: type[Case] | type[CaseSource] = CaseSource if "from" in entry else Case
            found = fit(entry, kind, ("cases", index), problems)
            if found is not None:
                entries[index] = found
    return entries


def _converted(value: object, kind: Any) -> Any:
    # What does not fit has been told already, with all the rest.
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
