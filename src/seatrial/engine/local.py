"""The executor `local`: all runs in this process, as many at once as the limits allow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from seatrial.agents import AgentStart, build_agent
from seatrial.agents.agent import Agent, BatchAgent
from seatrial.engine.executor import Assignment, Executor
from seatrial.engine.worker import Worker
from seatrial.errors import SeatrialError
from seatrial.graders import GradingPlan, Surroundings
from seatrial.runs import Run, RunKey
from seatrial.store import RunFilter, Store
from seatrial.suites import Suite, resolve
from seatrial.workspaces import Workspaces

if TYPE_CHECKING:
    from seatrial.world.proxy import ToolProxy


class LocalExecutor(Executor):
    """Runs trials in this process."""

    @asynccontextmanager
    async def open(self, work: Assignment) -> AsyncIterator[Worker]:
        async with opened_worker(work) as worker:
            yield worker


@asynccontextmanager
async def opened_worker(
    work: Assignment, agents: Mapping[str, Agent | BatchAgent] | None = None, *, confirms: bool = False, seed: int = 0
) -> AsyncIterator[Worker]:
    """A worker with everything that it uses: agents, judge, tool proxy. `agents` are the suite's unless given."""
    async with AsyncExitStack() as stack:
        suite = work.suite
        agents = built_agents(suite, work.store, work.variables) if agents is None else agents
        around = await surroundings(suite, work.variables, stack)
        proxy = await opened_proxy(agents.values(), stack)
        workspaces = await stack.enter_async_context(Workspaces(suite.directory))
        for name in work.agents:
            await stack.enter_async_context(agents[name])
        worker = Worker(
            work, agents, grading_plan(suite), around, proxy=proxy, workspaces=workspaces, confirms=confirms, seed=seed
        )
        stack.push_async_callback(worker.close)
        yield worker


def built_agents(suite: Suite, store: Store, variables: Mapping[str, str]) -> dict[str, Agent | BatchAgent]:
    """The agents of a suite by name, not entered yet."""
    return {
        name: build_agent(
            config.resolved(variables),
            AgentStart(
                name=name,
                directory=suite.directory,
                connect_s=suite.timeouts.connect_s,
                read_s=suite.timeouts.read_s,
                stored_runs=StoredRuns(store),
                trials=suite.trials,
            ),
        )
        for name, config in suite.agents.items()
    }


async def opened_proxy(agents: Iterable[Agent | BatchAgent], stack: AsyncExitStack) -> ToolProxy | None:
    """The tool proxy, open for as long as the stack is; None when no agent uses it."""
    if not any(not isinstance(agent, BatchAgent) and agent.uses_world for agent in agents):
        return None
    from seatrial.world.proxy import ToolProxy  # brings an HTTP server with it

    return await stack.enter_async_context(ToolProxy())


def grading_plan(suite: Suite) -> GradingPlan:
    """The graders of a suite, compiled; those of its cases when they are met."""
    return GradingPlan(
        suite.graders, threshold=suite.threshold, directory=suite.directory, grades=suite.grading != "none"
    )


async def surroundings(suite: Suite, variables: Mapping[str, str], stack: AsyncExitStack) -> Surroundings:
    """What graders may use: the suite's directory and its judge, open for as long as the stack is."""
    model = None
    if suite.judge is not None and suite.grading == "all":
        from seatrial.models import open_model

        model = await stack.enter_async_context(open_model(resolve(suite.judge, variables), suite.directory))
    return Surroundings(directory=suite.directory, model=model, skips_judges=suite.grading != "all")


class StoredRuns:
    """Finds runs of earlier experiments, for replays."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ids: dict[tuple[str, str | None], dict[tuple[str, int], str]] = {}

    def __call__(self, experiment: str, agent: str | None, case_id: str, trial: int) -> Run | None:
        known = self._ids.get((experiment, agent))
        if known is None:
            known = self._ids[experiment, agent] = dict(self._runs_of(experiment, agent))
        run_id = known.get((case_id, trial))
        return None if run_id is None else self._store.run(run_id)

    def _runs_of(self, reference: str, agent: str | None) -> Iterator[tuple[tuple[str, int], str]]:
        experiment = self._store.resolve_experiment(reference)
        where = RunFilter(agents=frozenset() if agent is None else frozenset({agent}))
        after: RunKey | None = None
        while page := self._store.runs(experiment.experiment_id, where, after=after):
            for row in page:
                if agent is None and row.key.agent != page[0].key.agent:
                    raise SeatrialError(
                        "invalid_config", f"experiment {reference!r} has several agents", hint="name one with `agent`"
                    )
                yield (row.key.case_id, row.key.trial), row.run_id
            after = page[-1].key
