"""The kind `replay`: keys and checks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from seatrial._support.target import is_target
from seatrial.agents.checks import filled
from seatrial.agents.config import CASE_KEYS, AgentCheck, AgentConfig, AgentStart
from seatrial.formats import FORMATS
from seatrial.problems import meant, quoted

if TYPE_CHECKING:
    from seatrial.agents.replay.agent import ReplayAgent


class ReplayConfig(AgentConfig):
    """Runs that were recorded before, for grading without running."""

    kind: ClassVar[str] = "replay"
    started_by: ClassVar[str | None] = "path"
    is_waited_for: ClassVar[bool] = False
    case_hints: ClassVar[Mapping[str, str]] = {"timeout_s": "in a replay, no agent is waited for"}

    path: str | None = None
    """A `.jsonl` file of records with the `id` of their case; a `.json` file that maps ids of cases to files; or a
    directory of files that are called by the id of their case. Several records of a case are its trials, in order."""
    experiment: str | None = None
    """An experiment in the store, instead of a file."""
    agent: str | None = None
    """Which agent's runs of that experiment; needed when it had several."""
    format: str | None = None
    """What the records are; found out from their content when absent."""

    def build(self, start: AgentStart) -> ReplayAgent:
        from seatrial.agents.replay.agent import ReplayAgent

        return ReplayAgent(self, directory=start.directory, stored=start.stored_runs, trials=start.trials)

    def taken_keys(self, import_from: Path | None) -> frozenset[str]:
        # It has what its agent was given, but none is waited for.
        return frozenset(CASE_KEYS) - {"timeout_s"}

    def imports_code(self) -> bool:
        return self.format is not None and is_target(self.format)

    def without_proxy(self) -> str | None:
        return "a replay of files" if self.experiment is None else None

    def check_presence(self, agent: ReplayAgent) -> None:
        agent.check_presence()

    def check(self, check: AgentCheck) -> None:
        problems = check.problems
        if (self.path is None) == (self.experiment is None):
            problems.add((), "a replay needs either `path` or `experiment`")
        elif self.path is not None:
            path = filled(self.path, check.variables)
            if check.needed and path is not None and not os.path.exists(check.directory / path):
                problems.add(("path",), f"there is no file or directory {quoted(self.path)}")
            if self.agent is not None:
                problems.add(("agent",), "`agent` chooses among the runs of an `experiment`, and here is a `path`")
        for key in ("timeout_s", "run_timeout_s"):
            if getattr(self, key) is not None:
                problems.add((key,), f"`{key}` does nothing in a replay: no agent is waited for", "leave it out")
        if self.format is not None and self.experiment is not None:
            problems.add(("format",), "`format` is for the records of a `path`, and here is an `experiment`")
        elif self.format is not None:
            name = filled(self.format, check.variables)
            # A class of the suite's author is imported when the agent is made.
            if name is not None and not is_target(name) and name not in FORMATS:
                problems.add(("format",), f"there is no format {quoted(self.format)}", meant(self.format, FORMATS))
