"""What is wrong with a case in its suite: keys that nothing acts on, messages that cannot be read, and cases that
nothing judges.

A key acts when at least one agent of the suite takes it, or one grader of the case goes by it: so one file of cases
serves agents of several kinds. Everything under `world` waits for the world to be built.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from seatrial._support.path_pattern import PathPatterns
from seatrial.agents.config import CASE_KEYS, AgentConfig
from seatrial.agents.registry import kind_of
from seatrial.errors import SeatrialError
from seatrial.formats.chat.calls import TOOL_RESULT_UNPAIRED
from seatrial.formats.chat.hidden_calls import KEY_DROPPED
from seatrial.formats.chat.text_calls import CALLS_IN_TEXT
from seatrial.graders.grader import FOR_GRADERS
from seatrial.problems import KeyPath, Problems, path_of
from seatrial.runs import Case, WorkspaceSource
from seatrial.runs.workspace import workspace_of
from seatrial.suites.graders import Imports, SoundGrader, check_graders
from seatrial.suites.shape import fit
from seatrial.suites.suite import Grading
from seatrial.suites.world_seed import WorldSeed
from seatrial.workspaces import workspace_problem
from seatrial.world.definition import World

if TYPE_CHECKING:
    from seatrial.world.compiled import CompiledWorld

_NOT_BUILT = "is not supported yet: nothing would act on it"
BUILT = frozenset({"initial_state", "flags"})
"""What of a case's seed acts on its world."""
_READABLE = frozenset({TOOL_RESULT_UNPAIRED, KEY_DROPPED, CALLS_IN_TEXT})
"""What is serious in an agent's record, and fine in a message that its author gives to agents: a conversation may begin
between a call and its result, and have keys and texts of the author's own."""


class CaseCheck:
    """Checks the cases of one suite, one at a time."""

    def __init__(
        self,
        agents: Mapping[str, AgentConfig],
        graders: Sequence[SoundGrader] | None,
        imports: Imports,
        *,
        threshold: float | None = None,
        has_model: bool = True,
        grading: Grading | None = None,
        import_agents: bool = False,
        world: CompiledWorld | None = None,
    ) -> None:
        """`graders` are those of the suite, None when they are wrong: what would need them is not checked then.

        With `grading`, a case without a verdict to come is a problem. With `import_agents`, functions are imported to
        see what they take, where it matters; without, they may take everything.
        """
        self._agents = agents
        self._graders = graders
        self._imports = imports
        self._directory = imports.directory
        self._threshold = threshold
        self._has_model = has_model
        self._grading = grading
        self._import_agents = import_agents
        self._world = world
        self._taken: dict[str, frozenset[str]] = {}
        self._workspaces: dict[str, SeatrialError | None] = {}
        self._told: set[tuple[int, str]] = set()
        self._unjudged_told = False
        self.asks_model = False
        """Whether a grader of one of the cases seen so far asks the model."""

    def check(self, case: Case, source: int, problems: Problems) -> bool:
        """Whether a case is right. Of one source of cases, what is wrong with a key is told once."""
        before = problems.count
        if case.world and fit(case.world, WorldSeed, ("world",), problems) is not None:
            self._check_seed(case, source, problems)
        for index, file in enumerate(case.files):
            if not os.path.exists(self._directory / file):
                problems.add(("files", index), f"there is no file `{file}`")
        for note in case.conversation_notes:
            if note.serious and note.code not in _READABLE:
                message = f"a message of the case `{case.id}` cannot be read: {note.message}"
                hint = "`messages` are in OpenAI style: `{role: user, content: ...}`"
                problems.add(("messages", *path_of(note.pointer)), message, hint)
        if case.workspace is not None:
            self._check_workspace(case, workspace_of(case.workspace), source, problems)
        if case.threshold == 0:
            problems.add(("threshold",), "every score reaches a `threshold` of 0", "leave it out, or set a higher one")
        for key in CASE_KEYS:
            if getattr(case, key):
                self._check_taken(key, case, source, problems)
        for config in self._agents.values():
            config.check_case(case, problems)
        own = self._own_graders(case, problems)
        if own is not None and self._graders is not None:
            self._check_graders([*self._graders, *own], case, source, problems)
        return problems.count == before

    def _check_seed(self, case: Case, source: int, problems: Problems) -> None:
        for key in case.world:
            if key not in BUILT:
                self._tell_once(source, ("world", key), f"`world.{key}` {_NOT_BUILT}", None, problems)
        if not BUILT & case.world.keys():
            return
        if self._world is None:
            hint = "name its tools under `world` of the suite"
            self._tell_once(source, ("world",), "the suite has no world that a case could seed", hint, problems)
            return
        try:
            self._world.start(case.world.get("initial_state"), case.world.get("flags", ()))
        except SeatrialError as error:
            problems.add(("world", *path_of(error.pointer)), error.message, error.hint)

    def _check_workspace(self, case: Case, workspace: WorkspaceSource, source: int, problems: Problems) -> None:
        key = "workspace"
        try:
            PathPatterns(workspace.ignore)
        except SeatrialError as error:
            problems.add((key, "ignore", *path_of(error.pointer)), error.message, error.hint)
        if workspace.setup is not None:
            try:
                argv = shlex.split(workspace.setup) if isinstance(workspace.setup, str) else workspace.setup
            except ValueError as error:
                problems.add((key, "setup"), f"`setup` cannot be split into arguments: {str(error).lower()}")
            else:
                if not argv or not argv[0]:
                    problems.add((key, "setup"), "`setup` names no program")
        if workspace.source.startswith("${"):
            problems.add((key,), "`workspace` names no variables", "write the path, relative to the suite file")
        elif self._grading is not None:
            # To be run. Many cases may have the same one.
            same = repr(workspace)
            if same not in self._workspaces:
                self._workspaces[same] = workspace_problem(workspace, self._directory)
            found = self._workspaces[same]
            if found is not None and (source, same) not in self._told:
                self._told.add((source, same))
                problems.add((key,), f"{found.message} (case `{case.id}`)", found.hint)

    def _own_graders(self, case: Case, problems: Problems) -> list[SoundGrader] | None:
        if not case.graders:
            return []
        own = check_graders(case.graders, ("graders",), problems, self._imports)
        if own is not None:
            self.asks_model = self.asks_model or any(each.check.asks_model for each in own)
            if self._grading == "all" and not self._has_model:
                check_models(own, ("graders",), problems)
        return own

    def _check_taken(self, key: str, case: Case, source: int, problems: Problems) -> None:
        idle = []
        for name, config in self._agents.items():
            if key in self._taken_by(name, config):
                return
            idle.append(f"`{name}` (kind {kind_of(config)})")
        if idle:
            hint = next((each.case_hints[key] for each in self._agents.values() if key in each.case_hints), None)
            acts = "has no effect" if key == "timeout_s" else "reaches no agent"
            message = f"`{key}` of the case `{case.id}` {acts}: it is not taken by {', '.join(idle)}"
            self._tell_once(source, (key,), message, hint, problems)

    def _taken_by(self, name: str, config: AgentConfig) -> frozenset[str]:
        if name not in self._taken:
            self._taken[name] = config.taken_keys(self._directory if self._import_agents else None)
        return self._taken[name]

    def _check_graders(self, graders: list[SoundGrader], case: Case, source: int, problems: Problems) -> None:
        if graders and self._grading != "none":
            reads = frozenset().union(*(each.check.reads for each in graders))
            for key in sorted(FOR_GRADERS - reads):
                if getattr(case, key) not in (None, "completion"):
                    message = f"`{key}` of the case `{case.id}` is read by no grader"
                    self._tell_once(source, (key,), message, "add a grader that uses it, or leave it out", problems)
        if self._grading not in ("all", "without_judges"):
            return
        for each in graders:
            for key in sorted(each.check.needs):
                if key == "world":
                    if self._world is None:
                        message = f"the grader `{each.name}` judges the state of a world, and the suite has none"
                        problems.add((), message, "name its tools under `world` of the suite", not_judged=True)
                    else:
                        for message, hint in self._world.unknown(each.check.names):
                            problems.add((), f"the grader `{each.name}`: {message}", hint)
                elif getattr(case, key) is None:
                    message = f"the grader `{each.name}` has nothing to compare with in the case `{case.id}`"
                    hint = f"give the case `{key}`, or the grader a value of its own"
                    if key == "workspace":
                        message = f"the grader `{each.name}` has nothing to judge in the case `{case.id}`"
                        hint = "give the case a `workspace`"
                    problems.add((), message, hint, not_judged=True)
        threshold = self._threshold if case.threshold is None else case.threshold
        weighs = threshold is not None and any(each.grader.weight for each in graders)
        if not weighs and not any(each.grader.required for each in graders):
            self._tell_unjudged(case, graders, problems)

    def _tell_unjudged(self, case: Case, graders: list[SoundGrader], problems: Problems) -> None:
        if case.graders or not self._unjudged_told:
            # Cases without graders of their own are all alike.
            self._unjudged_told = self._unjudged_told or not case.graders
            why = ": none is required, and there is no threshold that one counts for" if graders else ""
            hint = "add graders to the suite or the case, or run it with --no-grade"
            problems.add((), f"no grader judges the case `{case.id}`{why}", hint, not_judged=True)

    def _tell_once(self, source: int, path: KeyPath, message: str, hint: str | None, problems: Problems) -> None:
        key = (source, ".".join(str(part) for part in path))
        if key not in self._told:
            self._told.add(key)
            problems.add(path, message, hint)


def check_models(graders: Sequence[SoundGrader], path: KeyPath, problems: Problems) -> None:
    """Tell every grader that asks a model, in a suite that names none."""
    for each in graders:
        if each.check.asks_model:
            hint = "name one under `judge` (`model`, `base_url`, `api_key`), or leave judges out with --skip-judges"
            problems.add((*path, each.index), f"the grader `{each.name}` asks a model, and the suite names none", hint)


def check_world(
    world: World, agents: Mapping[str, AgentConfig], problems: Problems, imports: Imports
) -> CompiledWorld | None:
    """A world that can be opened; None, with problems told, when it cannot. Functions are imported where others are."""
    from seatrial.world.compiled import compile_world  # which few suites need

    for name, agent in agents.items():
        if (sort := agent.without_proxy()) is not None:
            message = f"the agent `{name}` cannot call the tools of the world: it is {sort}"
            problems.add((), message, "put it into a suite of its own, without a `world`")
    return compile_world(world, problems, imports.directory, imports=imports.functions)
