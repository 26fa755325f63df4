"""What is wrong with the agents of a suite: what their kinds check, and what is the same for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from seatrial._support.environment import references, texts, unset
from seatrial._support.target import is_target
from seatrial.agents import AGENTS, AgentCheck, AgentConfig, AgentStart, build_agent
from seatrial.agents.registry import KIND, NamedAgent, agent_class, kind_of, named_agent
from seatrial.errors import SeatrialError
from seatrial.problems import KeyPath, Problems, meant, quoted
from seatrial.runs import FAULT_CLASSES, MOVABLE
from seatrial.suites.secrets import secrets_of
from seatrial.suites.shape import choose, fit

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def read_agent(
    plain: object, path: KeyPath, problems: Problems, directory: Path, *, imports: bool = False
) -> AgentConfig | None:
    """The agent of a suite file, or None with problems told.

    A class of the suite's author is imported only with `imports`, and its keys are checked then.
    """
    if not isinstance(plain, dict):
        return None  # told with the mapping it is in
    kind = plain.get(KIND)
    own = {key: value for key, value in plain.items() if key != KIND}
    try:
        if isinstance(kind, str) and is_target(kind):
            if imports and fit(own, agent_class(kind, directory), path, problems) is None:
                return None
            return named_agent(plain)
        if choose(plain, KIND, dict.fromkeys(AGENTS, KIND), path, problems) is None:
            return None
        return fit(own, agent_class(str(kind)), path, problems)
    except SeatrialError as error:
        problems.add((*path, KIND), error.message, error.hint)
    except msgspec.ValidationError:
        fit({key: own[key] for key in own if key in AgentConfig.__struct_fields__}, NamedAgent, path, problems)
    except (TypeError, NameError) as error:
        problems.add((*path, KIND), f"`{kind}` cannot be read from a suite: {error}")
    return None


def check_agent(
    name: str,
    config: AgentConfig,
    directory: Path,
    variables: Mapping[str, str],
    problems: Problems,
    *,
    run_python: bool = False,
    import_errors: bool = False,
    needed: bool = True,
    startable: bool = False,
) -> None:
    """Tell everything that is wrong with one agent; with `run_python`, also whether its target can be imported, and
    with it or `import_errors` whether the exceptions can that it names. An agent that is not `needed` this time may
    lack what it needs of this machine; of one that is, `startable` tells whether it could be started."""
    before = problems.count
    startable = startable and needed
    if not _NAME.fullmatch(name):
        problems.add((), f"{quoted(name)} cannot be an agent's name", "use letters, digits, `.`, `_` and `-`")
    check_faults(config.faults, {name: config}, problems.within(("faults",)))
    if config.tool_access == "world" and (kind := config.without_proxy()) is not None:
        problems.add(
            ("tool_access",),
            f"`tool_access: world` is not supported for {kind}: it is not told where the tool proxy is",
            "leave it out, or write `none` if the agent has no tools",
        )
    config.check(AgentCheck(directory, variables, problems, run_python, import_errors or startable, needed))
    if startable and problems.count == before:
        _check_start(name, config, directory, variables, problems)


def _check_start(
    name: str, config: AgentConfig, directory: Path, variables: Mapping[str, str], problems: Problems
) -> None:
    """Tell when an agent cannot be started, as far as that is known without running it."""
    try:
        filled = config.resolved(variables)
    except SeatrialError:
        return  # a variable is missing, which `check_variables` has told
    key = config.started_by
    path: KeyPath = () if key is None or getattr(config, key, None) is None else (key,)
    start = AgentStart(name=name, directory=directory, stored_runs=lambda *_: None)
    try:
        filled.check_presence(build_agent(filled, start))
    except SeatrialError as error:
        # Names of programs and files may be made of variables.
        problems.add(path, secrets_of(config, variables).redact(error.message), error.hint)


def check_faults(faults: Mapping[str, str], agents: Mapping[str, AgentConfig], problems: Problems) -> None:
    """Tell every class of fault that does not exist, that is not the suite's to decide, or that no agent can have."""
    for name in faults:
        if name not in FAULT_CLASSES:
            problems.add((name,), f"unknown class of fault {quoted(name)}", meant(name, MOVABLE))
        elif FAULT_CLASSES[name].retired:
            problems.add((name,), f"no fault has the class `{name}` any more", FAULT_CLASSES[name].meaning)
        elif name not in MOVABLE:
            problems.add((name,), f"`{name}` cannot be moved: it is never the agent's doing")
        elif agents and not any(_may_have(config, name) for config in agents.values()):
            idle = ", ".join(f"`{agent}` (kind {kind_of(config)})" for agent, config in agents.items())
            problems.add((name,), f"`{name}` does nothing here: no fault of {idle} has this class")


def _may_have(config: AgentConfig, fault: str) -> bool:
    special = frozenset().union(*(kind.own_faults for kind in AGENTS.built_in().values() if kind.is_waited_for))
    return fault in config.own_faults or fault not in special


def check_timeouts(timeouts: Iterable[str], agents: Mapping[str, AgentConfig], problems: Problems) -> None:
    """Tell every limit of a suite that no agent of it goes by."""
    if agents and "connect_s" in timeouts and not any(config.connects for config in agents.values()):
        problems.add(("connect_s",), "`connect_s` does nothing here: no agent of the suite is connected to")
    for key in ("read_s", "run_s"):
        if agents and key in timeouts and not any(config.is_waited_for for config in agents.values()):
            problems.add((key,), f"`{key}` does nothing here: all agents are replays, and none is waited for")


def check_variables(config: object, variables: Mapping[str, str], problems: Problems, *, needed: bool = True) -> None:
    """Tell every `${` that names no variable, or, where it is `needed`, one that is not set. The configuration may be
    wrong otherwise."""
    for path, text in texts(config):
        try:
            named = references(text)
        except SeatrialError as error:
            problems.add(path, error.message, error.hint)
            continue
        for reference in dict.fromkeys(named):
            if needed and reference.default is None and not variables.get(reference.name):
                missing = unset(reference.name)
                problems.add(path, missing.message, missing.hint)
