"""What the tests of one process share: the store, the loop that agents run in, and the experiments of suite files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from seatrial.engine import create_experiment
from seatrial.errors import SeatrialError
from seatrial.runs import Case
from seatrial.store import Store, open_store
from seatrial.suites import (
    AgentConfig,
    InvalidSuiteError,
    PythonConfig,
    Suite,
    load_suite,
    validate_suite,
)
from seatrial.testing.outcome import Outcome
from seatrial.testing.portal import Portal
from seatrial.testing.rig import Rig

PATIENCE_S = 60.0
"""How long a process waits for the experiment that another one is to create."""

Given: TypeAlias = str | Callable[..., Any] | AgentConfig
"""An agent: a function, `module:function`, a configuration; with a suite, its name in that."""


class SuitePlan(msgspec.Struct, frozen=True):
    """The tests of one suite file: which trials they are, and the experiment that they make up together."""

    suite: Suite
    experiment_id: str
    selected: dict[str, list[str]]
    """For each agent, the cases that were not deselected."""
    size: int
    """How many runs that are."""


class Session:
    """Opened when the first test needs it, closed with the last one."""

    def __init__(self, where: str | Path, *, creates: bool = True) -> None:
        """`creates`: this process stores the experiments of suite files, and does not wait for another one to."""
        self._creates = creates
        self._closing = ExitStack()
        self._store: Store = self._closing.enter_context(open_store(where))
        self._portal = Portal()
        self._closing.callback(self._portal.close)
        self._rigs: dict[str, Rig] = {}

    def close(self) -> None:
        """Let go of agents, loop and store."""
        self._closing.close()

    def create(self, plan: SuitePlan) -> None:
        """Store the experiment of a suite file."""
        create_experiment(
            self._store,
            plan.suite,
            selected=plan.selected,
            variables=os.environ,
            experiment_id=plan.experiment_id,
        )

    def run_planned(self, plan: SuitePlan, agent: str, case: Case, trial: int) -> Outcome:
        """Carry out one trial of a suite file."""
        rig = self._rigs.get(plan.experiment_id)
        if rig is None:
            rig = self._rigs[plan.experiment_id] = self._open(plan)
        return Outcome(self._portal.run(rig.run(agent, case, trial)), case)

    def submit(
        self,
        name: str,
        file: Path,
        agent: Given,
        case: str | Case,
        suite: str | Path | None,
        graders: Sequence[Mapping[str, Any]],
        fields: Mapping[str, Any],
    ) -> Callable[[], Outcome]:
        """Prepare a run that a test asks for, as an experiment that is called after the test."""
        if suite is not None:
            if graders or fields:
                raise SeatrialError("usage", "with `suite`, the case and its graders are the suite's")
            return self._of_suite(name, load_suite(file.parent / suite), agent, case)
        chosen = _case(case, fields)
        function = agent if callable(agent) else None
        label = getattr(agent, "__name__", "agent") if function is not None else str(agent)
        if isinstance(agent, str):
            agent = PythonConfig(target=agent)
        elif function is not None:
            # Never looked up: the function is at hand.
            agent = PythonConfig(target="test:function")
        whole = Suite(
            name=name, agents={label: agent}, cases=[chosen], graders=[dict(config) for config in graders], file=file
        )
        if problems := validate_suite(whole):
            raise InvalidSuiteError(problems)
        return self._alone(name, whole, label, chosen, {} if function is None else {label: function})
