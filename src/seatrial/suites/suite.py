"""A suite: agents, the cases they are put to, and the graders that judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeAlias

import msgspec
from msgspec import Meta

from seatrial._support.target import NamedFunction, named_function
from seatrial.agents.config import AgentConfig, FaultName, Retry, TimeoutSeconds
from seatrial.agents.python.config import PythonConfig
from seatrial.errors import SeatrialError
from seatrial.graders.grader import Grader
from seatrial.graders.python import GraderFunction, Python
from seatrial.graders.registry import GraderConfig, grader_config
from seatrial.models.config import ModelConfig
from seatrial.models.registry import JudgeModel
from seatrial.problems import Problems
from seatrial.runs import Blame, Case, FaultRules
from seatrial.suites.secrets import Secrets, secrets_of
from seatrial.world.definition import World

if TYPE_CHECKING:
    from seatrial.world.compiled import CompiledWorld

Grading: TypeAlias = Literal["all", "without_judges", "none"]
"""Which graders are asked."""


class Timeouts(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How long things may take, where an agent does not say otherwise."""

    connect_s: TimeoutSeconds = 10.0
    """Until there is a connection."""
    read_s: TimeoutSeconds | None = None
    """Until the answer of one attempt; when absent, as long as the run may take."""
    run_s: TimeoutSeconds = 300.0
    """A whole run, with all its attempts and the waits between them."""


class Budget(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an experiment may use up. It stops cleanly when that is reached, and can be resumed."""

    cost_usd: Annotated[float, Meta(gt=0)] | None = None
    """Money that agents and judges report, in US dollars. A run that does not say what it cost is not counted as free:
    there is a warning, and a note in the report, that the budget cannot count it."""
    tokens: Annotated[int, Meta(gt=0)] | None = None
    """Tokens that agents and judges report, input and output; the same for a run that does not say how many."""
    wall_time_s: Annotated[float, Meta(gt=0)] | None = None
    """Seconds from the start of this execution."""


class CaseSource(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename={"source": "from"}
):
    """Cases that are written elsewhere."""

    source: str
    """A `.jsonl` or `.csv` file, or `package.module:function` that yields cases."""
    format: Literal["jsonl", "csv", "python"] | None = None
    """What `from` names, where its ending does not tell."""
    arguments: dict[str, Any] = {}
    """Keyword arguments for the function."""


class SuiteKeys(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a suite has but its cases."""

    name: str = ""
    """How reports call it; the file's name when absent."""
    description: str = ""
    """What it is for."""
    agents: dict[str, dict[str, Any]] = {}
    """What is under test, by name: each with its `kind`."""
    graders: list[GraderConfig] = []
    """What judges every run."""
    threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The weighted score that a case needs, besides its required graders passing."""
    trials: Annotated[int, Meta(ge=1, le=10_000)] = 1
    """How often each agent runs each case."""
    concurrency: Annotated[int, Meta(ge=1, le=10_000)] = 16
    """How many runs may be active at once."""
    timeouts: Timeouts = Timeouts()
    """How long things may take."""
    retry: Retry = Retry()
    """What happens after an infrastructure fault."""
    faults: dict[FaultName, Blame] = {}
    """Whose fault a class of fault is, where it is not what the table says: `agent_timeout: infrastructure`."""
    budget: Budget = Budget()
    """What the experiment may use up."""
    judge: ModelConfig | None = None
    """The model that `judge` graders ask."""
    world: World | None = None
    """What agents act on while they are tested: tools, and the state behind them."""


class SuiteFile(SuiteKeys):
    """The keys of a suite file."""

    include: str | list[str] = []
    """Other files of the same shape, whose agents, cases and graders come first."""
    cases: list[dict[str, Any]] = []
    """The tasks: each a case, or a mapping with `from` that names where cases are."""


class Suite(SuiteKeys):
    """A suite, whole: read from a file by `load_suite`, or built here and checked by `validate_suite`.

    Built in Python, its agents and graders may be functions: closures, lambdas and objects that can be called, too.
    """

    cases: list[Case | CaseSource] = []
    agents: dict[str, AgentConfig] = {}  # type: ignore[assignment]
    """What is under test, by name."""
    # Wider than in a file: whoever builds a suite in Python has graders and models themselves.
    graders: Sequence[GraderConfig | Grader] = []  # type: ignore[assignment]
    """What judges every run: configurations, or graders themselves."""
    judge: JudgeModel | None = None  # type: ignore[assignment]
    """The model that `judge` graders ask: a configuration, or a model itself."""
    file: Path | None = None
    """The file it was read from."""
    grading: Grading = "all"
    """How it is graded this time; not a part of what is stored."""
    functions: list[NamedFunction] = []
    """The functions among its agents and graders, as they were given."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            agents: Mapping[str, AgentConfig | Callable[..., Any]] = ...,
            cases: Sequence[Case | CaseSource] = ...,
            graders: Sequence[GraderConfig | Grader | Callable[..., Any]] = ...,
            name: str = ...,
            description: str = ...,
            threshold: float | None = ...,
            trials: int = ...,
            concurrency: int = ...,
            timeouts: Timeouts = ...,
            retry: Retry = ...,
            faults: dict[str, Blame] = ...,
            budget: Budget = ...,
            judge: JudgeModel | None = ...,
            world: World | dict[str, Any] | None = ...,
            file: Path | None = ...,
            grading: Grading = ...,
            functions: list[NamedFunction] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        named: list[NamedFunction] = []
        agents: Mapping[str, Any] = self.agents
        if not isinstance(agents, Mapping):
            _refuse("agents", agents, 'a mapping of names: `agents={"mine": answer}`')
        for argument, hint in (("cases", "`cases=[seatrial.Case(id, instruction)]`"), ("graders", "`graders=[...]`")):
            given = getattr(self, argument)
            if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
                _refuse(argument, given, f"a list: {hint}")
        for name, agent in agents.items():
            if not isinstance(agent, AgentConfig):
                found = _named(agent, f"agents[{name!r}]")
                named.append(found)
                self.agents = {**self.agents, name: PythonConfig(target=found.target)}
        world: Any = self.world
        if isinstance(world, dict):
            self.world = _world(world)
        self.graders = [_grader(each, f"graders[{index}]", named) for index, each in enumerate(self.graders)]
        self.cases = [_plain_case(case, f"cases[{index}]", named) for index, case in enumerate(self.cases)]
        if named:
            self.functions = [*self.functions, *named]

    @property
    def directory(self) -> Path:
        """What relative paths in it are relative to."""
        return Path() if self.file is None else self.file.parent

    def compiled_world(self, *, imports: bool = True) -> CompiledWorld | None:
        """The world, ready for runs, with the functions of its tools imported, or only checked; None when there is
        none."""
        if self.world is None:
            return None
        from seatrial.world.compiled import compile_world

        problems = Problems()
        compiled = compile_world(self.world, problems.within(("world",)), self.directory, imports=imports)
        if compiled is None:
            raise problems.error()
        return compiled

    def fault_rules(self, agent: str) -> FaultRules:
        """Whose fault a fault of this agent is: its own `faults` count before the suite's."""
        return FaultRules({**self.faults, **self.agents[agent].faults})

    def secrets(self, variables: Mapping[str, str]) -> Secrets:
        """The values that its agents and its judge take from the environment."""
        return secrets_of([self.agents, self.judge], variables)


def _world(given: dict[str, Any]) -> World:
    try:
        return msgspec.convert(given, World)
    except msgspec.ValidationError as error:
        raise SeatrialError("invalid_config", f"`world`: {error}") from None


def _refuse(argument: str, given: Any, hint: str) -> NoReturn:
    raise SeatrialError("invalid_config", f"`{argument}` is a {type(given).__name__}", hint=hint)


def _named(function: Any, argument: str) -> NamedFunction:
    if not callable(function):
        raise SeatrialError(
            "invalid_config",
            f"`{argument}` is a {type(function).__name__}, and not a function",
            hint="a function, or what `seatrial.http`, `cli` or `stream` give",
        )
    return named_function(function)


def _grader(grader: Any, argument: str, named: list[NamedFunction]) -> GraderConfig | Grader:
    if isinstance(grader, dict | Grader):
        return grader
    if isinstance(grader, type):
        hint = f"make one: `{grader.__name__}(...)`"
        raise SeatrialError("invalid_config", f"`{argument}` is the class {grader.__name__}", hint=hint)
    found = _named(grader, argument)
    named.append(found)
    options = grader.options if isinstance(grader, GraderFunction) else {}
    return Python(**{"name": found.target.rpartition(":")[2], **options, "target": found.target})


def _plain_case(case: Any, argument: str, named: list[NamedFunction]) -> Case | CaseSource:
    if isinstance(case, CaseSource):
        return case
    if not isinstance(case, Case):
        hint = "write `seatrial.Case(id, instruction)`"
        raise SeatrialError("invalid_config", f"`{argument}` is a {type(case).__name__}, and not a case", hint=hint)
    if all(isinstance(each, dict) for each in case.graders):
        return case
    graders = []
    for index, each in enumerate(case.graders):
        grader = _grader(each, f"{argument}.graders[{index}]", named)
        graders.append(grader_config(grader) if isinstance(grader, Grader) else grader)
    return msgspec.structs.replace(case, graders=graders)
