"""What the configurations of all kinds of agents have in common. Every text may name variables, as `${NAME}`.

A kind of agent is a subclass of `AgentConfig`: the keys that a suite has for it, what is checked before anything runs,
what `doctor` asks, and how the agent is made. `agents/registry.py` has the list of kinds.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

import msgspec
from msgspec import Meta

from seatrial._support.environment import resolve
from seatrial._support.registry import where
from seatrial._support.target import TARGET
from seatrial.problems import Problems
from seatrial.runs import FAULT_CLASSES, MOVABLE, Blame, Case
from seatrial.trajectory.completeness import ToolAccess

if TYPE_CHECKING:
    from seatrial.agents.agent import Agent, BatchAgent
    from seatrial.agents.replay.agent import RunArchive

TimeoutSeconds = Annotated[float, Meta(gt=0, le=86_400)]
# `$` alone would let a newline at the end pass; `\Z` is not known to the readers of our JSON Schema.
HeaderName = Annotated[str, Meta(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$(?!\n)", description="the name of a header")]
Target = Annotated[str, Meta(pattern=TARGET, description="`package.module:function`")]
FaultName = Annotated[str, Meta(extra_json_schema={"enum": list(MOVABLE)})]
Bytes = Annotated[int, Meta(ge=1024, le=2**32)]
EndpointRule: TypeAlias = Literal["local", "public"]

MAX_RESPONSE_BYTES = 64 * 1024 * 1024

CASE_KEYS = ("input", "messages", "files", "timeout_s", "workspace")
"""The keys of a case that are there for agents."""
NETWORK_FAULTS = frozenset(
    {
        *("agent_5xx", "agent_4xx", "auth_failed", "rate_limited", "agent_unavailable", "agent_redirected"),
        *("agent_unreachable", "connection_lost", "answer_cut_off"),
    }
)
"""The classes of fault that agents behind HTTP can have, and others cannot."""


class Retry(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How often, and how patiently, a run is tried again after an infrastructure fault. Every attempt is kept."""

    attempts: Annotated[int, Meta(ge=1, le=100)] = 3
    """Tries in all; 1 means never again."""
    first_wait_s: Annotated[float, Meta(ge=0, le=3600)] = 0.5
    """Seconds before the second try; doubled before each further one. An agent that asks for longer gets it."""
    longest_wait_s: Annotated[float, Meta(ge=0, le=3600)] = 30.0
    """Where the doubling ends."""


class AgentCheck(msgspec.Struct, frozen=True):
    """What an agent's configuration is checked with."""

    directory: Path
    """What relative paths are relative to: where the suite file is."""
    variables: Mapping[str, str]
    """The values of variables that the configuration may name."""
    problems: Problems
    """Takes what is wrong, each with its path in the configuration."""
    run_python: bool = False
    """Whether code of the suite's author may be imported."""
    import_errors: bool = False
    """Whether exceptions that it names may be."""
    needed: bool = True
    """Whether it is used this time: if not, what it needs of this machine (files, modules) need not be there."""


class AgentStart(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is made with, besides its configuration."""

    name: str
    directory: Path
    """What relative paths are relative to: where the suite file is."""
    connect_s: float = 10.0
    """How long connecting may take, where the configuration does not say."""
    read_s: float | None = None
    """How long an answer may take, where the configuration does not say."""
    stored_runs: RunArchive | None = None
    """Finds runs of earlier experiments, for replays."""
    trials: int | None = None
    """How often each case is run; None when that is not known."""


class Probe(msgspec.Struct, omit_defaults=True):
    """What `doctor` found out about an agent."""

    ok: bool
    message: str
    """One sentence, for people."""
    reaches_proxy: bool | None = None
    """Whether it reaches the tool proxy from where it is; None when it does not tell."""


class _AgentMeta(msgspec.StructMeta, ABCMeta):
    """Structs with an abstract method."""


class AgentConfig(msgspec.Struct, metaclass=_AgentMeta, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The keys that agents of every kind have. A kind is a subclass with its own keys and a `build`."""

    kind: ClassVar[str]
    """What suites call it: the name it is registered under, else `package.module:Class`."""
    own_faults: ClassVar[frozenset[str]] = frozenset(FAULT_CLASSES)
    """The classes of fault that agents of this kind can have, of those that not all can."""
    connects: ClassVar[bool] = False
    """Whether the suite's `timeouts.connect_s` counts for it."""
    is_waited_for: ClassVar[bool] = True
    """Whether the suite's other timeouts do."""
    started_by: ClassVar[str | None] = None
    """The key that says what is started on this machine, where there is one."""
    case_hints: ClassVar[Mapping[str, str]] = {}
    """How it can be made to take a key of a case that it does not take now."""

    concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    """How many runs of this agent may be active at once; the suite's `concurrency` when absent."""
    timeout_s: TimeoutSeconds | None = None
    """How long one attempt may go without an answer; the suite's `timeouts.read_s` when absent."""
    run_timeout_s: TimeoutSeconds | None = None
    """The deadline of a run with all its attempts; the suite's `timeouts.run_s` when absent."""
    retry: Retry | None = None
    """What happens after an infrastructure error; the suite's `retry` when absent."""
    tool_access: ToolAccess = "own"
    """Which tools it has: `none` (so an answer without a list of calls means that there were none), `world` (only those
    of the world, which are observed), or `own` (any: what it called is known from what it returns, and from what went
    through the tool proxy)."""
    faults: dict[FaultName, Blame] = {}
    """Whose fault a class of fault is, for this agent; counts before the suite's `faults`."""

    def __init_subclass__(cls) -> None:
        if "kind" not in vars(cls):
            cls.kind = where(cls)

    @abstractmethod
    def build(self, start: AgentStart) -> Agent | BatchAgent:
        """The agent, of a configuration whose variables are filled in. Raises `SeatrialError` when it cannot be used.

        What it needs is imported here and not before: a suite of functions needs no HTTP.
        """

    def check(self, check: AgentCheck) -> None:
        """Add what is wrong with it beyond the types of its keys, before anything runs."""

    def resolved(self, variables: Mapping[str, str]) -> Self:
        """A copy in which every variable is filled in, for starting an agent with."""
        return resolve(self, variables)

    def check_presence(self, agent: Any) -> None:
        """Raise `SeatrialError` when the agent that was made could not be started, as far as that is known before."""

    async def probe(self, agent: Any, proxy_url: str) -> Probe:
        """What `doctor` says of the agent, which was started. Asks it nothing that costs anything."""
        return Probe(True, "can be started")

    def taken_keys(self, import_from: Path | None) -> frozenset[str]:
        """Which of `CASE_KEYS` it takes. Code may be imported from `import_from`, if there is one."""
        return frozenset(CASE_KEYS) - {"workspace"}

    def imports_code(self) -> bool:
        """Whether making the agent imports code that the suite names."""
        return False

    def check_case(self, case: Case, problems: Problems) -> None:
        """Add what a case lacks that this agent cannot be asked without."""

    def without_proxy(self) -> str | None:
        """What sort of agent it is, when it cannot be told where the tool proxy is."""
        return None

    def read_timeout_s(self, start: AgentStart) -> float | None:
        """How long one attempt may go without an answer."""
        return start.read_s if self.timeout_s is None else self.timeout_s
