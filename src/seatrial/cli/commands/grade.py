"""`seatrial grade EXPERIMENT`: grade stored runs again, without running them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, redirect_stdout

import msgspec

from seatrial._support import wire
from seatrial.cli.exits import REASONS, exit_of, signal_exit
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.signals import StopSignals, add_grace_option, grace_of
from seatrial.cli.terminal import Progress, printable
from seatrial.engine import Regrading, Stop, grading_plan, regrade, surroundings
from seatrial.errors import SeatrialError
from seatrial.graders import Grader, GraderConfig, build_graders
from seatrial.graders.prepared import prepare_all
from seatrial.reports.figures import plural
from seatrial.runs import Case, Experiment, Run
from seatrial.store import Store
from seatrial.suites import Grading, Suite, load_suite, read_cases, stored_suite


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help="`latest`, an id or the beginning of one, or a name")
    parser.add_argument("--suite", metavar="FILE", help="grade by this suite (default: as it was run)")
    parser.add_argument(
        "--skip-judges",
        action="store_true",
        help="call no model: a case with a required judge is then errored, not passed",
    )
    add_store_option(parser)
    parser.add_argument(
        "--json", action="store_true", help="print {experiment, outcomes, changed, computed, reused, stop_reason}"
    )
    add_grace_option(parser)
    parser.epilog = (
        "Verdicts are known by their content (run, grader, configuration): only what changed is computed.\n"
        "With --suite, what its cases expect counts too; cases that it does not have are graded as stored.\n"
        "exit codes: 0 all passed, 1 any failed, 2 usage or an unusable suite, 3 something could not be graded,\n"
        "130 stopped by Ctrl-C, 143 by SIGTERM: what was graded is stored, and the same command grades the rest."
    )


def run(args: argparse.Namespace) -> int:
    with opened_store(args) as store:
        experiment = store.resolve_experiment(args.experiment)
        cases: Iterable[Case] = ()
        grading: Grading = "without_judges" if args.skip_judges else "all"
        if args.suite is None:
            suite = stored_suite(experiment.suite)
            if grading == "all" and suite.judge is None:
                # Runs of a case that cannot be read any more are errored, and all others graded.
                _refuse_judges(suite, store.cases(experiment.experiment_id, damaged=[]))
        else:
            # No agent is started. What graders print when they are imported is no part of the result.
            with redirect_stdout(sys.stderr):
                suite = load_suite(args.suite, grading=grading, agents_used=(), startable=True)
            _refuse_changed_agents(suite, stored_suite(experiment.suite))
            cases = read_cases(suite, variables=os.environ, grading=grading)
        suite.grading = grading
        # What functions of the suite print is no part of the result.
        advice = "the same command grades the rest"
        stops = StopSignals(grace_s=grace_of(args), last_words=lambda number: store.close(), advice=advice)
        with redirect_stdout(sys.stderr), stops as signals:
            done = signals.run(_graded(experiment, suite, cases, store, signals))
    if args.json:
        shown = {"experiment": experiment.experiment_id, **msgspec.to_builtins(done)}
        sys.stdout.buffer.write(wire.encode(shown) + b"\n")
    else:
        summary = ", ".join(f"{count} {word}" for word, count in sorted(done.outcomes.items()))
        print(f"{experiment.experiment_id}: {summary}")
        changed, computed = plural(done.changed, "run"), plural(done.computed, "verdict")
        print(f"{changed} changed; {computed} computed, {done.reused:,} known already")
        if done.damaged:
            print(f"{plural(len(done.damaged), 'run')} cannot be read any more, the first is {done.damaged[0]}")
        if done.lost:
            named = f", the first is {printable(done.lost_runs[0])}" if done.lost_runs else ""
            print(f"{plural(done.lost, 'run')} of the finished experiment cannot be found any more{named}")
    if done.stop_reason is not None:
        print(f"stopped: {done.stop_reason}; the same command grades the rest", file=sys.stderr)
        if signals.received is not None:
            return signal_exit(signals.received)
    outcomes = done.outcomes
    unjudged = outcomes["skipped"] + len(done.damaged)
    if experiment.status != "finished":
        summary = experiment.stop_reason or "the process ended"
        print(f"seatrial: not all runs were made: {summary}; `seatrial run --resume` makes the rest", file=sys.stderr)
        unjudged += 1
    return exit_of(failed=outcomes["failed"], errored=outcomes["errored"], unjudged=unjudged)


def _refuse_changed_agents(suite: Suite, as_run: Suite) -> None:
    """Raise `SeatrialError` when the suite says something else of an agent that decided what became of its runs."""
    for name, config in suite.agents.items():
        before = as_run.agents.get(name)
        if before is None:
            continue
        changed = [
            (f"agents.{name}.tool_access", before.tool_access, config.tool_access),
            (f"faults of {name}", as_run.fault_rules(name), suite.fault_rules(name)),
        ]
        for what, was, now in changed:
            if was != now:
                raise SeatrialError(
                    "invalid_config",
                    f"the suite has other {what} than when the runs were made, which decided how they were recorded",
                    hint="run the suite again; grading alone cannot take that into account",
                )


def _refuse_judges(suite: Suite, cases: Iterable[Case]) -> None:
    """Raise `SeatrialError` when a stored suite that names no model has graders which ask one."""
    everywhere: Iterable[Sequence[GraderConfig | Grader]] = (suite.graders, *(case.graders for case in cases))
    for graders in everywhere:
        for grader in prepare_all(build_graders(graders, suite.directory)):
            if grader.check.asks_model:
                raise SeatrialError(
                    "invalid_config",
                    f"the grader {grader.name!r} asks a model, and the suite names none",
                    hint="grade by a suite that names one under `judge` (--suite), or leave judges out (--skip-judges)",
                )


async def _graded(
    experiment: Experiment, suite: Suite, cases: Iterable[Case], store: Store, signals: StopSignals
) -> Regrading:
    stop = Stop()
    signals.attach(lambda number: stop.request(REASONS[number]))
    plan = grading_plan(suite)
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
                stop=stop,
            )
