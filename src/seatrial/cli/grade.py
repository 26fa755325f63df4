"""`seatrial grade EXPERIMENT`: grade stored runs again, without running them."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack, redirect_stdout

import msgspec

from seatrial import wire
from seatrial.cli.exits import exit_of
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.progress import Progress
from seatrial.engine import Regrading, regrade, surroundings
from seatrial.graders import GradingPlan
from seatrial.reports.figures import plural
from seatrial.runs import Case, Experiment, Run
from seatrial.store import Store
from seatrial.suites import Suite, load_suite, read_cases, stored_suite


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help="`latest`, an id or the beginning of one, or a name")
    parser.add_argument("--suite", metavar="FILE", help="grade by this suite (default: as it was run)")
    add_store_option(parser)
    parser.add_argument("--json", action="store_true", help="print {experiment, outcomes, changed, computed, reused}")
    parser.epilog = (
        "Verdicts are known by their content (run, grader, configuration): only what changed is computed.\n"
        "With --suite, what its cases expect counts too; cases that it does not have are graded as stored.\n"
        "exit codes: 0 all passed, 1 any failed, 2 usage or an unusable suite, 3 something could not be graded."
    )


def run(args: argparse.Namespace) -> int:
    with opened_store(args) as store:
        experiment = store.resolve_experiment(args.experiment)
        cases: Iterable[Case] = ()
        if args.suite is None:
            suite = stored_suite(experiment.suite)
        else:
            suite = load_suite(args.suite)
            cases = read_cases(suite, variables=os.environ)
        # What functions of the suite print is no part of the result.
        with redirect_stdout(sys.stderr):
            done = asyncio.run(_graded(experiment, suite, cases, store))
    if args.json:
        shown = {"experiment": experiment.experiment_id, **msgspec.to_builtins(done)}
        sys.stdout.buffer.write(wire.encode(shown) + b"\n")
    else:
        told = ", ".join(f"{count} {word}" for word, count in sorted(done.outcomes.items()))
        print(f"{experiment.experiment_id}: {told}")
        changed, computed = plural(done.changed, "run"), plural(done.computed, "verdict")
        print(f"{changed} changed; {computed} computed, {done.reused:,} known already")
        if done.damaged:
            print(f"{plural(len(done.damaged), 'run')} cannot be read any more, the first is {done.damaged[0]}")
    return exit_of(failed=done.outcomes["failed"], errored=done.outcomes["errored"])


async def _graded(experiment: Experiment, suite: Suite, cases: Iterable[Case], store: Store) -> Regrading:
    plan = GradingPlan(suite.graders, threshold=suite.threshold)
    with Progress("runs graded") as progress:

        def finished(run: Run) -> None:
            del run
            progress.advance()

        async with AsyncExitStack() as stack:
            around = await surroundings(suite, os.environ, stack)
            return await regrade(
                store,
                experiment.experiment_id,
                plan,
                around,
                finished,
                cases=cases,
                secrets=suite.secrets(os.environ),
                concurrency=suite.concurrency,
            )
