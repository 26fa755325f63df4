"""Setting an experiment up: its record in the store, and who may run it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import chain
from secrets import token_hex

import msgspec

from seatrial._support.garbage import rare_collections
from seatrial._support.threads import Threads
from seatrial._version import __version__
from seatrial.agents.replay.config import ReplayConfig
from seatrial.driver.clock import Clock, SystemClock
from seatrial.engine.executor import EXECUTORS, Executor
from seatrial.engine.experiment import ExperimentRunner, ExperimentTally, Observer
from seatrial.engine.stop import Stop
from seatrial.errors import SeatrialError
from seatrial.runs import Case, Experiment, RunKey
from seatrial.store import RunFilter, Store, StoredOutcome
from seatrial.suites import CaseSource, Secrets, Suite, read_cases, stored_form, stored_suite, suite_hash

CHECK_HOLD_S = 15.0
"""How often it is looked whether the experiment is still ours to run: a connection to the database may break."""


def create_experiment(
    store: Store,
    suite: Suite,
    *,
    name: str | None = None,
    selected: Mapping[str, Collection[str]] | None = None,
    variables: Mapping[str, str],
    clock: Clock | None = None,
    experiment_id: str | None = None,
    cases: Iterable[Case] | None = None,
) -> Experiment:
    """Store a new experiment with its cases; with `selected`, only those cases for each agent.

    `cases` are those of the suite unless given.
    """
    clock = SystemClock() if clock is None else clock
    name = name or suite.name
    _check_replays(store, suite, name, variables)
    cases = read_cases(suite, variables=variables) if cases is None else cases
    if selected is not None:
        wanted = frozenset().union(*selected.values()) if selected else frozenset()
        cases = (case for case in cases if case.id in wanted)
    remaining = iter(cases)
    first = next(remaining, None)
    if first is None:
        raise SeatrialError("invalid_config", "there are no cases to run", hint="look at --case, --tag and --only")
    now = clock.now_ms()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now / 1000))
    experiment = Experiment(
        experiment_id=experiment_id or f"{stamp}-{token_hex(3)}",
        name=name,
        suite=stored_form(_without_cases(suite)),
        suite_hash=_identity(suite, variables),
        created_at=now,
        version=__version__,
        selected=None if selected is None else {agent: sorted(set(chosen)) for agent, chosen in selected.items()},
    )
    store.create_experiment(experiment, chain([first], remaining))
    return experiment


def _check_replays(store: Store, suite: Suite, name: str, variables: Mapping[str, str]) -> None:
    """Raise `SeatrialError` when an agent replays an experiment that the store does not have."""
    for agent, config in suite.agents.items():
        if not isinstance(config, ReplayConfig) or config.experiment is None:
            continue
        reference = config.resolved(variables).experiment
        if reference in ("latest", name):
            raise SeatrialError(
                "invalid_config",
                f"the agent `{agent}` replays the experiment `{config.experiment}`, which would be the new one itself",
                hint="name the earlier one by its id, or give the new one another name (--name)",
            )
        try:
            store.resolve_experiment(str(reference))
        except SeatrialError as error:
            if error.code not in ("not_found", "ambiguous"):
                raise
            message = f"the agent `{agent}` replays the experiment `{config.experiment}`"
            raise SeatrialError("invalid_config", f"{message}: {error.message}", hint=error.hint) from None


def resumable(store: Store, reference: str, suite: Suite, variables: Mapping[str, str]) -> tuple[Experiment, Suite]:
    """The experiment to resume, and the suite with the agents and the trials that it was started with.

    It must be of this very suite, but for its budget and how much of it runs at once.
    """
    experiment = store.resolve_experiment(reference)
    started_with = stored_suite(experiment.suite)
    agents = {name: config for name, config in suite.agents.items() if name in started_with.agents}
    suite = msgspec.structs.replace(suite, agents=agents, trials=started_with.trials)
    same_agents = stored_form(Suite(agents=agents)) == stored_form(Suite(agents=started_with.agents))
    if experiment.suite_hash != _identity(suite, variables) or not same_agents:
        raise SeatrialError(
            "conflict",
            f"the suite has changed since {experiment.experiment_id} was started",
            hint="its runs would not be comparable; start a new experiment",
        )
    return experiment, suite


def cases_that(store: Store, experiment_id: str, outcome: StoredOutcome) -> dict[str, set[str]]:
    """For each agent, the cases of which a run came out so."""
    found: dict[str, set[str]] = {}
    where = RunFilter(outcomes=frozenset({outcome}))
    after: RunKey | None = None
    while page := store.runs(experiment_id, where, after=after):
        for row in page:
            found.setdefault(row.key.agent, set()).add(row.key.case_id)
        after = page[-1].key
    return found


def total_runs(store: Store, experiment: Experiment) -> int:
    """How many runs an experiment has in all."""
    return experiment.planned_runs(store.case_count(experiment.experiment_id))


def _without_cases(suite: Suite) -> Suite:
    """A suite that says which files its cases are from. The cases themselves are stored one by one."""
    return msgspec.structs.replace(suite, cases=[entry for entry in suite.cases if isinstance(entry, CaseSource)])


def _identity(suite: Suite, variables: Mapping[str, str]) -> str:
    """What makes results comparable: all but which agents ran, how often, and how many at once."""
    plain = Suite()
    measured = msgspec.structs.replace(
        suite, agents=plain.agents, trials=plain.trials, budget=plain.budget, concurrency=plain.concurrency
    )
    return suite_hash(measured, variables=variables)


async def launch(
    experiment: Experiment,
    suite: Suite,
    store: Store,
    *,
    variables: Mapping[str, str],
    secrets: Secrets | None = None,
    observer: Observer | None = None,
    stop: Stop | None = None,
    clock: Clock | None = None,
    executor: Executor | None = None,
) -> ExperimentTally:
    """Run an experiment, or what is missing of it; `secrets` are those of the suite unless given.

    It runs in this process, unless there is another `executor`.
    """
    if experiment.status == "finished":
        done = len(store.done_keys(experiment.experiment_id))
        if done == total_runs(store, experiment):
            # Nothing is started for it, and nothing is read but this.
            if observer is not None:
                observer.resumed(done)
            return ExperimentTally(done, Counter())
    stop = Stop() if stop is None else stop
    async with AsyncExitStack() as stack:
        stack.enter_context(rare_collections())
        await stack.enter_async_context(_held(store, experiment.experiment_id, stop))
        runner = ExperimentRunner(
            experiment,
            suite,
            EXECUTORS["local"]() if executor is None else executor,
            store,
            variables=variables,
            secrets=secrets,
            selected=experiment.selected,
            observer=observer,
            stop=stop,
            clock=clock,
        )
        return await runner.run()


@asynccontextmanager
async def _held(store: Store, experiment_id: str, stop: Stop) -> AsyncIterator[None]:
    """Let no other process run the experiment; should one take it over, we stop."""
    # Not the threads of the event loop: functions of agents use those, and may never give them back.
    threads = Threads()
    hold = await threads.call(partial(store.hold_experiment, experiment_id))

    async def watch() -> None:
        while True:
            await asyncio.sleep(CHECK_HOLD_S)
            try:
                await threads.call(hold.check)
            except SeatrialError as error:
                stop.request(error.message)
                return

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait({watching})
        await threads.call(hold.close)
        threads.close()
