"""How an agent is reached: one struct for each kind. Every text may name variables, as `${NAME}`."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from seatrial.runs import MOVABLE, Blame
from seatrial.target import TARGET
from seatrial.trajectory.completeness import ToolAccess

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
# `$` alone would let a newline at the end pass; `\Z` is not known to the readers of our JSON Schema.
HeaderName = Annotated[str, Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$(?!\n)", description="the name of a header")]
Target = Annotated[str, Meta(pattern=TARGET, description="`package.module:function`")]
_EXCEPTION = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$(?!\n)"
ExceptionName = Annotated[str, Meta(pattern=_EXCEPTION, description="an exception with its module: `openai.APIError`")]
FaultName = Annotated[str, Meta(extra_json_schema={"enum": list(MOVABLE)})]
Command: TypeAlias = str | list[str]
Bytes = Annotated[int, Meta(ge=1024, le=2**32)]
EndpointRule: TypeAlias = Literal["local", "public"]

MAX_RESPONSE_BYTES = 64 * 1024 * 1024


class Retry(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How often, and how patiently, a run is tried again after an infrastructure fault. Every attempt is kept."""

    attempts: Annotated[int, Meta(ge=1, le=100)] = 3
    """Tries in all; 1 means never again."""
    first_wait_s: Annotated[float, Meta(ge=0, le=3600)] = 0.5
    """Seconds before the second try; doubled before each further one. An agent that asks for longer gets it."""
    longest_wait_s: Annotated[float, Meta(ge=0, le=3600)] = 30.0
    """Where the doubling ends."""


class SubAgent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of several agents that work together behind one address."""

    actor_id: str
    """Its label."""
    tools: list[str] = []
    """The tools it owns. Not supported yet: a suite that has it is refused."""
    talks_to: list[str] = []
    """The labels it hands over to. Not supported yet: a suite that has it is refused."""


class AgentFields(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The keys that agents of every kind have."""

    concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    """How many runs of this agent may be active at once; the suite's `concurrency` when absent."""
    timeout_s: Seconds | None = None
    """How long one attempt may go without an answer; the suite's `timeouts.read_s` when absent."""
    run_timeout_s: Seconds | None = None
    """The deadline of a run with all its attempts; the suite's `timeouts.run_s` when absent."""
    retry: Retry | None = None
    """What happens after an infrastructure error; the suite's `retry` when absent."""
    tool_access: ToolAccess = "own"
    """Which tools it has: `none` (so an answer without a list of calls means that there were none), `world` (only those
    of the world, which are observed), or `own` (any: what it called is known from what it returns, and from what went
    through the tool proxy)."""
    faults: dict[FaultName, Blame] = {}
    """Whose fault a class of fault is, for this agent; counts before the suite's `faults`."""


class HttpConfig(AgentFields, tag_field="kind", tag="http"):
    """An agent behind HTTP that takes the dispatch envelope and answers with an agent response."""

    endpoint_url: str
    """Where the envelope is posted to."""
    auth_header_name: HeaderName = "Authorization"
    """The header that carries the credential."""
    auth_credential_value: str | None = None
    """The header's whole value, with `Bearer ` if that is wanted. Names a variable: `Bearer ${TOKEN}`."""
    headers: dict[HeaderName, str] = {}
    """Further headers. One whose name suggests a secret (`X-Api-Key`) must name a variable too."""
    connect_timeout_s: Seconds | None = None
    """How long connecting may take; the suite's `timeouts.connect_s` when absent."""
    response_mode: Literal["thin", "rich"] = "thin"
    """What the agent promises: `thin` a final response, `rich` its messages too."""
    strictness: Literal["soft", "strict"] = "soft"
    """What a broken promise is: `soft` a note, `strict` a failed run."""
    endpoint_rule: EndpointRule = "local"
    """Which addresses are allowed: `local` any, `public` only https, and nothing private or on this machine."""
    max_response_bytes: Bytes = MAX_RESPONSE_BYTES
    """The largest answer that is taken, unpacked; a larger one is cut off, and the run fails."""
    proxy_url: str | None = None
    """Where the agent finds the tool proxy, when that is not the address the proxy listens on."""
    agent_id: str | int | None = None
    """What the envelope says as `agent_id`; the agent's name when absent."""
    sub_agents: list[str | SubAgent] = []
    """The agents behind this one: labels, or mappings with `actor_id`."""


class CliConfig(AgentFields, tag_field="kind", tag="cli"):
    """A program that is started for each case, or once for all."""

    command: Command
    """The program and its arguments, as a list, or as text that is split as a shell would, but no shell runs."""
    cwd: str | None = None
    """The directory it starts in; the suite file's when absent."""
    env: dict[str, str] = {}
    """Variables it gets besides ours. One whose name suggests a secret (`API_KEY`) must be written `${NAME}`."""
    input: Literal["prompt_file", "stdin", "arg"] | None = None
    """How it gets the instruction; when absent, by the placeholder that `command` has, else on standard input."""
    batch: bool = False
    """Whether one process takes all cases, as JSON lines."""
    healthcheck: Command | None = None
    """A command that must end with 0 before the first case is run."""
    max_response_bytes: Bytes = MAX_RESPONSE_BYTES
    """The largest answer that is taken, in a batch the largest line; more ends the program."""


class PythonConfig(AgentFields, tag_field="kind", tag="python"):
    """A function in Python, sync or async."""

    target: Target
    """`package.module:function`, importable from the suite file's directory."""
    infrastructure_errors: list[ExceptionName] = []
    """Exceptions that are not the agent's doing: `openai.APIConnectionError`. Their subclasses, and exceptions raised
    from them, count too. They are imported before anything runs: one that does not exist is an error."""


class StreamConfig(AgentFields, tag_field="kind", tag="stream"):
    """An agent that takes an AG-UI `RunAgentInput` and answers with a stream of events."""

    url: str
    """Where the input is posted to."""
    headers: dict[HeaderName, str] = {}
    """Headers of the request. One whose name suggests a secret (`Authorization`) must name a variable."""
    connect_timeout_s: Seconds | None = None
    """How long connecting may take; the suite's `timeouts.connect_s` when absent."""
    format: Literal["agui", "native"] = "agui"
    """What the stream carries: bare AG-UI events, or native envelopes."""
    resume: bool = False
    """Whether a stream that broke is taken up again at its cursor: the id of its last event, as `Last-Event-ID`."""
    resume_method: Literal["get", "post"] = "get"
    """How it is taken up: `get` without a body, `post` with the input once more."""
    endpoint_rule: EndpointRule = "local"
    """Which addresses are allowed: `local` any, `public` only https, and nothing private or on this machine."""
    max_response_bytes: Bytes = MAX_RESPONSE_BYTES
    """The largest stream that is taken, unpacked; a larger one is cut off, and the run fails."""


class ReplayConfig(AgentFields, tag_field="kind", tag="replay"):
    """Runs that were recorded before, for grading without running."""

    path: str | None = None
    """A `.jsonl` file of records with the `id` of their case; a `.json` file that maps ids of cases to files; or a
    directory of files that are called by the id of their case."""
    experiment: str | None = None
    """An experiment in the store, instead of a file."""
    agent: str | None = None
    """Which agent's runs of that experiment; needed when it had several."""
    format: str | None = None
    """What the records are; found out from their content when absent."""


AgentConfig: TypeAlias = HttpConfig | CliConfig | PythonConfig | StreamConfig | ReplayConfig


def argv(command: Command) -> list[str]:
    """The arguments of a command. Raises `ValueError` for text whose quotes do not close."""
    return shlex.split(command) if isinstance(command, str) else list(command)
