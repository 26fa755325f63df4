"""What is wrong with an agent's configuration beyond its types: variables, secrets, addresses, commands, paths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from seatrial.agents.config import (
    AgentConfig,
    CliConfig,
    Command,
    HttpConfig,
    PythonConfig,
    ReplayConfig,
    StreamConfig,
    SubAgent,
)
from seatrial.agents.exception import exception_class
from seatrial.agents.placeholders import ONE_CASE, PLACEHOLDERS, used
from seatrial.errors import SeatrialError
from seatrial.formats import FORMATS
from seatrial.models.config import ModelConfig
from seatrial.runs import FAULT_CLASSES, MOVABLE
from seatrial.suites.environment import arguments_of, fill, names_secret, parts, references, texts, unset
from seatrial.suites.problem import KeyPath, Problems, meant, quoted
from seatrial.target import is_target, load_target

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_INPUT_PLACEHOLDER = {"prompt_file": "PROMPT_FILE", "arg": "PROMPT"}


def check_agent(
    name: str,
    config: AgentConfig,
    directory: Path,
    variables: Mapping[str, str],
    problems: Problems,
    *,
    run_python: bool = False,
    import_errors: bool = False,
) -> None:
    """Tell everything that is wrong with one agent; with `run_python`, also whether its target can be imported, and
    with it or `import_errors` whether the exceptions can that it names."""
    if not _NAME.fullmatch(name):
        problems.add((), f"{quoted(name)} cannot be an agent's name", "use letters, digits, `.`, `_` and `-`")
    check_faults(config.faults, {name: config}, problems.within(("faults",)))
    if config.tool_access == "world" and (kind := _without_proxy(config)) is not None:
        problems.add(
            ("tool_access",),
            f"`tool_access: world` is not supported for {kind}: it is not told where the tool proxy is",
            "leave it out, or write `none` if the agent has no tools",
        )
    if isinstance(config, HttpConfig):
        public = config.endpoint_rule == "public"
        _check_url(config.endpoint_url, ("endpoint_url",), variables, problems, only_https=public)
        if config.proxy_url is not None:
            _check_url(config.proxy_url, ("proxy_url",), variables, problems)
        _check_secret(config.auth_credential_value, ("auth_credential_value",), problems)
        _check_one_line(
            config.auth_header_name, config.auth_credential_value or "", ("auth_credential_value",), variables, problems
        )
        _check_headers(config.headers, variables, problems)
        _check_idle_http(config, problems)
    elif isinstance(config, StreamConfig):
        public = config.endpoint_rule == "public"
        _check_url(config.url, ("url",), variables, problems, only_https=public)
        _check_headers(config.headers, variables, problems)
        if config.resume_method != "get" and not config.resume:
            problems.add(("resume_method",), "`resume_method` does nothing without `resume: true`")
    elif isinstance(config, CliConfig):
        _check_cli(config, directory, variables, problems)
    elif isinstance(config, ReplayConfig):
        _check_replay(config, directory, variables, problems)
    elif isinstance(config, PythonConfig):
        _check_python(config, directory, problems, run_python=run_python, import_errors=import_errors)


def _check_python(
    config: PythonConfig, directory: Path, problems: Problems, *, run_python: bool, import_errors: bool
) -> None:
    if run_python:
        try:
            load_target(config.target, directory)
        except SeatrialError as error:
            problems.add(("target",), error.message, error.hint)
    for index, name in enumerate(config.infrastructure_errors if run_python or import_errors else ()):
        try:
            exception_class(name, directory)
        except SeatrialError as error:
            problems.add(("infrastructure_errors", index), error.message, error.hint)


def _without_proxy(config: AgentConfig) -> str | None:
    """What kind of agent this is, when it cannot reach the tool proxy."""
    if isinstance(config, StreamConfig):
        return "an agent of kind stream"
    if isinstance(config, CliConfig) and config.batch:
        return "a program that takes all cases at once (`batch: true`)"
    if isinstance(config, ReplayConfig) and config.experiment is None:
        return "a replay of files"
    return None


_KINDS_OF_FAULT = {
    **dict.fromkeys(("agent_exception", "infrastructure_error"), (PythonConfig,)),
    **dict.fromkeys(("agent_exit", "agent_signal", "agent_output_missing", "agent_not_started"), (CliConfig,)),
    **dict.fromkeys(
        (
            *("agent_5xx", "agent_4xx", "auth_failed", "rate_limited", "agent_unavailable", "agent_redirected"),
            *("agent_unreachable", "connection_lost", "answer_cut_off"),
        ),
        (HttpConfig, StreamConfig),
    ),
}
"""Which agents can have a fault of a class, where not all can. A replay may have any that was recorded."""


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
            idle = ", ".join(f"`{agent}` (kind {config.__struct_config__.tag})" for agent, config in agents.items())
            problems.add((name,), f"`{name}` does nothing here: no fault of {idle} has this class")


def _may_have(config: AgentConfig, fault: str) -> bool:
    return isinstance(config, (ReplayConfig, *_KINDS_OF_FAULT.get(fault, (type(config),))))


def check_timeouts(timeouts: Iterable[str], agents: Mapping[str, AgentConfig], problems: Problems) -> None:
    """Tell every limit of a suite that no agent of it goes by."""
    connecting = {name: config for name, config in agents.items() if isinstance(config, HttpConfig | StreamConfig)}
    if agents and "connect_s" in timeouts and not connecting:
        problems.add(("connect_s",), "`connect_s` does nothing here: no agent of the suite is connected to")
    for key in ("read_s", "run_s"):
        if agents and key in timeouts and all(isinstance(config, ReplayConfig) for config in agents.values()):
            problems.add((key,), f"`{key}` does nothing here: all agents are replays, and none is waited for")


def check_judge(config: ModelConfig, variables: Mapping[str, str], problems: Problems) -> None:
    """Tell everything that is wrong with the judge's model."""
    if (config.input_usd_per_mtok is None) != (config.output_usd_per_mtok is None):
        problems.add(
            (), "a price needs both `input_usd_per_mtok` and `output_usd_per_mtok`", "write 0 for what is free"
        )
    _check_url(config.base_url, ("base_url",), variables, problems)
    _check_secret(config.api_key, ("api_key",), problems)


def check_variables(config: object, variables: Mapping[str, str], problems: Problems) -> None:
    """Tell every `${` that names no variable, or one that is not set. The configuration may be wrong otherwise."""
    for path, text in texts(config):
        try:
            named = references(text)
        except SeatrialError as error:
            problems.add(path, error.message, error.hint)
            continue
        for reference in dict.fromkeys(named):
            if reference.default is None and not variables.get(reference.name):
                missing = unset(reference.name)
                problems.add(path, missing.message, missing.hint)


def _filled(text: str, variables: Mapping[str, str]) -> str | None:
    # None: a variable is missing, which `check_variables` has told.
    try:
        return fill(text, variables)
    except SeatrialError:
        return None


def _check_secret(text: str | None, path: KeyPath, problems: Problems) -> None:
    try:
        literal = text is not None and not references(text)
    except SeatrialError:
        return
    if literal:
        problems.add(
            path,
            f"`{path[-1]}` holds a secret, and a suite is stored and shown",
            "write `${NAME}` and set the variable; `${NAME:-text}` if it is not a secret",
        )


def _check_headers(headers: Mapping[str, str], variables: Mapping[str, str], problems: Problems) -> None:
    for name, text in headers.items():
        if names_secret(name):
            _check_secret(text, ("headers", name), problems)
        _check_one_line(name, text, ("headers", name), variables, problems)


def _check_one_line(name: str, text: str, path: KeyPath, variables: Mapping[str, str], problems: Problems) -> None:
    if re.search(r"[\r\n\0]", _filled(text, variables) or ""):
        hint = "a file that a variable was set from may end with a newline" if references(text) else None
        problems.add(path, f"the header `{name}` would have more than one line", hint)


def _check_url(
    text: str, path: KeyPath, variables: Mapping[str, str], problems: Problems, *, only_https: bool = False
) -> None:
    filled = _filled(text, variables)
    if filled is None:
        return
    # The value may be a secret, so that it is not shown.
    when = " when its variables are filled in" if filled != text else ""
    url = _url(filled)
    if url is None:
        problems.add(path, f"`{path[-1]}` must be an http or https URL{when}")
        return
    if only_https and url.scheme != "https":
        problems.add(path, f"`{path[-1]}` must be an https URL{when}", "`endpoint_rule: public` asks for it")
    written = _url(text)
    if written is not None and written.password:
        _check_secret(written.password, path, problems)


def _url(text: str) -> SplitResult | None:
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and url.hostname and (url.port or 0) >= 0
    except ValueError:
        return None
    return url if usable and not re.search(r"\s", text) else None


def _check_cli(config: CliConfig, directory: Path, variables: Mapping[str, str], problems: Problems) -> None:
    for name, text in config.env.items():
        if not name or "=" in name or "\0" in name:
            problems.add(("env", name), f"{quoted(name)} cannot be the name of a variable")
        elif "\0" in text:
            problems.add(("env", name), f"`{name}` has a character that no variable can have")
        elif names_secret(name):
            _check_secret(text, ("env", name), problems)
    _check_directory(config.cwd, directory, variables, problems)
    if config.healthcheck is not None:
        _check_command(config.healthcheck, "healthcheck", problems)
    if config.batch and config.concurrency is not None:
        problems.add(("concurrency",), "`concurrency` does nothing with `batch: true`: one program takes all cases")
    if config.batch and config.timeout_s is not None and config.run_timeout_s is not None:
        problems.add(("run_timeout_s",), "of a batch, either `timeout_s` or `run_timeout_s` counts", "keep one of them")
    found = _check_command(config.command, "command", problems)
    if found is None:
        return
    wanted = _INPUT_PLACEHOLDER.get(config.input or "")
    if wanted is not None and wanted not in found:
        problems.add(("input",), f"`input: {config.input}` needs `{{{wanted}}}` in `command`")
    for name in sorted(found & ONE_CASE if config.batch else ()):
        told = f"`{{{name}}}` is about one case, and a batch has all of them"
        problems.add(("command",), told, "`{PROMPT_FILE}` has a JSON line for each case")


def _check_idle_http(config: HttpConfig, problems: Problems) -> None:
    """Tell keys that nothing acts on."""
    if config.auth_header_name != "Authorization" and config.auth_credential_value is None:
        problems.add(("auth_header_name",), "`auth_header_name` does nothing without `auth_credential_value`")
    if config.strictness == "strict" and config.response_mode == "thin":
        hint = "write `response_mode: rich`, or leave `strictness` out"
        problems.add(
            ("strictness",), "`strictness` does nothing with `response_mode: thin`, which promises no more", hint
        )
    for index, entry in enumerate(config.sub_agents):
        for key in ("tools", "talks_to") if isinstance(entry, SubAgent) else ():
            if getattr(entry, key):
                problems.add(("sub_agents", index, key), f"`{key}` is not supported yet: nothing would act on it")


def _check_command(command: Command, key: str, problems: Problems) -> set[str] | None:
    """The placeholders that a command uses; None when it cannot be split."""
    try:
        arguments = arguments_of(command)
    except SeatrialError as error:
        problems.add((key,), error.message)
        return None
    if not arguments or not arguments[0]:
        problems.add((key,), f"`{key}` names no program")
    found: set[str] = set()
    for index, argument in enumerate(arguments):
        path: KeyPath = (key,) if isinstance(command, str) else (key, index)
        if "\0" in argument:
            problems.add(path, f"`{key}` has a character that no argument can have")
        try:
            plain = "".join(part for part in parts(argument) if isinstance(part, str))
        except SeatrialError as error:
            # Of a list, `check_variables` has told. Text may be right as a whole, and cut into arguments no longer.
            if isinstance(command, str):
                problems.add(path, error.message, error.hint)
            return None
        for name in used(plain):
            if name is None:
                problems.add(path, "there is a brace without a placeholder", "write `{{` or `}}` for the brace itself")
            elif name in PLACEHOLDERS:
                found.add(name)
            else:
                hint = meant(f"{{{name}}}", [f"{{{known}}}" for known in PLACEHOLDERS])
                problems.add(path, f"unknown placeholder `{{{name}}}`", hint)
    return found


def _check_directory(cwd: str | None, directory: Path, variables: Mapping[str, str], problems: Problems) -> None:
    if cwd is not None and (filled := _filled(cwd, variables)) is not None and not os.path.isdir(directory / filled):
        problems.add(("cwd",), f"there is no directory {quoted(cwd)}")


def _check_replay(config: ReplayConfig, directory: Path, variables: Mapping[str, str], problems: Problems) -> None:
    if (config.path is None) == (config.experiment is None):
        problems.add((), "a replay needs either `path` or `experiment`")
    elif config.path is not None:
        filled = _filled(config.path, variables)
        if filled is not None and not os.path.exists(directory / filled):
            problems.add(("path",), f"there is no file or directory {quoted(config.path)}")
        if config.agent is not None:
            problems.add(("agent",), "`agent` chooses among the runs of an `experiment`, and here is a `path`")
    for key in ("timeout_s", "run_timeout_s"):
        if getattr(config, key) is not None:
            problems.add((key,), f"`{key}` does nothing in a replay: no agent is waited for", "leave it out")
    if config.format is not None and config.experiment is not None:
        problems.add(("format",), "`format` is for the records of a `path`, and here is an `experiment`")
    elif config.format is not None:
        name = _filled(config.format, variables)
        # A class of the suite's author is imported when the agent is made.
        if name is not None and not is_target(name) and name not in FORMATS:
            problems.add(("format",), f"there is no format {quoted(config.format)}", meant(config.format, FORMATS))
