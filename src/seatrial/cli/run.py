"""`seatrial run suite.yaml`: every agent on every case, graded, kept, reported."""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import os
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Collection

from seatrial.cli.exits import exit_of
from seatrial.cli.location import add_store_option, opened_store, store_location
from seatrial.cli.report import add_report_options, report_targets
from seatrial.cli.watch import Watcher
from seatrial.engine import Stop, Tally, cases_that, create_experiment, launch, resumable
from seatrial.errors import SeatrialError
from seatrial.reports import terminal_summary, write_reports
from seatrial.runs import Experiment
from seatrial.store import Store
from seatrial.suites import Suite, load_suite, read_cases


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", metavar="SUITE", help="the suite file")
    parser.add_argument("--name", help="how reports call the experiment (default: the suite's name)")
    parser.add_argument("--trials", type=int, metavar="N", help="how often each case is run, instead of the suite's")
    parser.add_argument("--concurrency", type=int, metavar="N", help="runs at once, instead of the suite's")
    parser.add_argument("--agent", action="append", metavar="NAME", help="only this agent; may be repeated")
    parser.add_argument("--case", action="append", metavar="GLOB", help="only cases whose id fits; may be repeated")
    parser.add_argument("--resume", metavar="EXPERIMENT", help="go on with it: run only what is missing")
    parser.add_argument(
        "--only",
        choices=("failed", "errored"),
        help="a new experiment of the cases that came out so in an earlier one (--of)",
    )
    parser.add_argument(
        "--of", metavar="EXPERIMENT", default="latest", help="the earlier experiment for --only (default: latest)"
    )
    add_store_option(parser)
    add_report_options(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.epilog = (
        "Ctrl-C finishes what is running, and says how to resume; a second one stops at once.\n"
        "An EXPERIMENT is `latest`, an id or the beginning of one, or a name.\n"
        "exit codes: 0 all passed, 1 any failed, 2 usage or an unusable suite, 3 something could not be run."
    )


def run(args: argparse.Namespace) -> int:
    suite = _suite(args)
    with opened_store(args, create=True) as store:
        experiment = _experiment(args, suite, store)
        tally = asyncio.run(_carried_out(args, experiment, suite, store))
        targets = report_targets(args)
        report = write_reports(store, experiment.experiment_id, targets)
        sys.stdout.write(terminal_summary(report, colour=sys.stdout.isatty()))
        for form, path in targets.items():
            print(f"{form}: {path}")
        if tally.stop_reason is not None:
            print(f"stopped: {tally.stop_reason}; go on with\n  {_resume_command(args, experiment)}")
        outcomes: Counter[str] = Counter()
        for counts in store.agent_counts(experiment.experiment_id):
            outcomes.update(counts.outcomes)
        return exit_of(outcomes, complete=tally.stop_reason is None)


def _suite(args: argparse.Namespace) -> Suite:
    suite = load_suite(args.suite)
    for option, value in (("--trials", args.trials), ("--concurrency", args.concurrency)):
        if value is not None and not 1 <= value <= 10_000:
            raise SeatrialError("usage", f"{option} is a number from 1 to 10,000, got {value}")
    if args.trials is not None:
        suite.trials = args.trials
    if args.concurrency is not None:
        suite.concurrency = args.concurrency
    if args.agent:
        for name in args.agent:
            if name not in suite.agents:
                raise SeatrialError(
                    "usage", f"the suite has no agent {name!r}", hint=f"one of {', '.join(suite.agents)}"
                )
        suite.agents = {name: config for name, config in suite.agents.items() if name in args.agent}
    return suite


def _experiment(args: argparse.Namespace, suite: Suite, store: Store) -> Experiment:
    if args.resume is not None:
        if args.only or args.case:
            raise SeatrialError("usage", "--resume runs what is missing: --only and --case have no use there")
        return resumable(store, args.resume, suite, os.environ)
    selected: dict[str, Collection[str]] | None = None
    if args.only is not None:
        earlier = store.resolve_experiment(args.of)
        found = cases_that(store, earlier.experiment_id, args.only)
        selected = {name: cases for name, cases in found.items() if name in suite.agents}
        if not selected:
            raise SeatrialError("not_found", f"no run of {earlier.experiment_id} {args.only}: there is nothing to run")
    if args.case:
        ids = {
            case.id
            for case in read_cases(suite, variables=os.environ)
            if any(fnmatch.fnmatchcase(case.id, glob) for glob in args.case)
        }
        before = dict.fromkeys(suite.agents, ids) if selected is None else selected
        selected = {name: ids.intersection(cases) for name, cases in before.items()}
    return create_experiment(store, suite, name=args.name, selected=selected, variables=os.environ)


async def _carried_out(args: argparse.Namespace, experiment: Experiment, suite: Suite, store: Store) -> Tally:
    stop = Stop()
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        stop.request("interrupted")
        print("\nfinishing what is running; once more to stop at once", file=sys.stderr)
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, interrupted)
    selection = experiment.suite.get("selected")
    total = suite.trials * (
        sum(len(cases) for cases in selection.values())
        if selection is not None
        else len(suite.agents) * sum(1 for _ in store.cases(experiment.experiment_id))
    )
    with Watcher(experiment, total, quiet=args.quiet) as observer:
        return await launch(experiment, suite, store, variables=os.environ, observer=observer, stop=stop)


def _resume_command(args: argparse.Namespace, experiment: Experiment) -> str:
    words = ["seatrial", "run", args.suite, "--resume", experiment.experiment_id]
    for option in ("trials", "concurrency"):
        if (value := getattr(args, option)) is not None:
            words += [f"--{option}", str(value)]
    for name in args.agent or ():
        words += ["--agent", name]
    return shlex.join([*words, "--store", store_location(args)])
