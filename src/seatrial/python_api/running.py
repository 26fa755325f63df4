"""Running a suite from Python."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from seatrial._support.environment import STORE_VARIABLE
from seatrial._support.garbage import rare_collections
from seatrial.engine import create_experiment, launch, resumable, total_runs
from seatrial.errors import SeatrialError
from seatrial.python_api.result import Result
from seatrial.reports.progress import RunProgress
from seatrial.runs import Experiment
from seatrial.store import Store, open_store
from seatrial.suites import Grading, InvalidSuiteError, Suite, chosen_cases, read_cases, validate_suite

DEFAULT_STORE = "seatrial.db"


def run(
    suite: Suite,
    *,
    trials: int | None = None,
    agents: Collection[str] | None = None,
    cases: Collection[str] | None = None,
    tags: Collection[str] | None = None,
    concurrency: int | None = None,
    name: str | None = None,
    store: str | Path | None = None,
    resume: str | None = None,
    grading: Grading = "all",
    progress: bool | None = None,
) -> Result:
    """Run every agent of a suite on every case, grade the runs, and keep them.

    `trials`, `concurrency`: instead of the suite's. `agents`, `cases` (ids or globs), `tags`: only these. `store`: a
    file, a URL, or `memory:` for results that need not be kept; the default is that of the command line,
    `$SEATRIAL_STORE` or `seatrial.db`. `resume`: the experiment to continue. `grading`: `without_judges` asks no model,
    `none` grades nothing. `progress`: whether to show it on standard error; by default where that is a terminal, or
    once a run has taken some seconds.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise SeatrialError(
            "usage", "`run` cannot be used where an event loop is running", hint="`await seatrial.run_async(...)`"
        )
    return asyncio.run(
        run_async(
            suite,
            trials=trials,
            agents=agents,
            cases=cases,
            tags=tags,
            concurrency=concurrency,
            name=name,
            store=store,
            resume=resume,
            grading=grading,
            progress=progress,
        )
    )


async def run_async(
    suite: Suite,
    *,
    trials: int | None = None,
    agents: Collection[str] | None = None,
    cases: Collection[str] | None = None,
    tags: Collection[str] | None = None,
    concurrency: int | None = None,
    name: str | None = None,
    store: str | Path | None = None,
    resume: str | None = None,
    grading: Grading = "all",
    progress: bool | None = None,
) -> Result:
    """The same as `run`, for notebooks and async programs."""
    given: Any = suite
    if not isinstance(given, Suite):
        hint = "`seatrial.Suite(agents=..., cases=...)`, or `seatrial.load_suite(FILE)`"
        raise SeatrialError("invalid_config", f"`suite` is a {type(given).__name__}, and not a `Suite`", hint=hint)
    for option, value in (("trials", trials), ("concurrency", concurrency)):
        if value is not None and not (isinstance(value, int) and 1 <= value <= 10_000):
            raise SeatrialError("usage", f"`{option}` is a number from 1 to 10,000, got {value!r}")
    for option, chosen in (("agents", agents), ("cases", cases), ("tags", tags)):
        if isinstance(chosen, str):
            raise SeatrialError("usage", f"`{option}` is a list of names, and not one text", hint=f"[{chosen!r}]")
        if resume is not None and chosen is not None:
            raise SeatrialError("usage", f"`{option}` cannot be given with `resume`: it runs all that is missing")
    # Checking many cases makes many objects, hardly any of them garbage.
    with rare_collections():
        variables = os.environ
        if problems := validate_suite(suite, variables=variables, grading=grading, run_python=True):
            raise InvalidSuiteError(problems)
        whole, suite = suite, _chosen(suite, trials, agents, concurrency, grading)
        opened = open_store(store or os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)
        try:
            if resume is not None:
                experiment, suite = resumable(opened, resume, suite, variables)
            else:
                selected = _selected(whole, suite, cases, tags, variables)
                experiment = create_experiment(
                    opened, suite, name=name or suite.name or "suite", selected=selected, variables=variables
                )
            await _launched(experiment, suite, opened, progress)
            return Result(opened, opened.resolve_experiment(experiment.experiment_id))
        except BaseException:
            opened.close()
            raise


async def _launched(experiment: Experiment, suite: Suite, store: Store, progress: bool | None) -> None:
    with RunProgress(experiment, total_runs(store, experiment), quiet=progress is False) as observer:
        showing = asyncio.create_task(observer.keep_showing())
        try:
            await launch(experiment, suite, store, variables=os.environ, observer=observer)
        finally:
            showing.cancel()


def _chosen(
    suite: Suite, trials: int | None, agents: Collection[str] | None, concurrency: int | None, grading: Grading
) -> Suite:
    if agents is not None and (unknown := [name for name in agents if name not in suite.agents]):
        known = ", ".join(suite.agents)
        raise SeatrialError("usage", f"`agents`: the suite has no agent {unknown[0]!r}", hint=f"one of {known}")
    return msgspec.structs.replace(
        suite,
        trials=suite.trials if trials is None else trials,
        concurrency=suite.concurrency if concurrency is None else concurrency,
        agents={name: config for name, config in suite.agents.items() if agents is None or name in agents},
        grading=grading,
    )


def _selected(
    whole: Suite,
    suite: Suite,
    cases: Collection[str] | None,
    tags: Collection[str] | None,
    variables: Mapping[str, str],
) -> dict[str, Collection[str]] | None:
    """Ids of the cases that each agent runs; None for all."""
    if cases is None and tags is None:
        return None
    ids = chosen_cases(read_cases(whole, variables=variables), cases, tags)
    return dict.fromkeys(suite.agents, ids)
