"""`seatrial run suite.yaml`: every agent on every case, graded, kept, reported."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Collection
from contextlib import redirect_stdout

import msgspec

from seatrial.cli.commands.report import add_report_options, notes_line, show_report, written_files
from seatrial.cli.exits import REASONS, exit_of, signal_exit
from seatrial.cli.location import add_store_option, opened_store, store_location
from seatrial.cli.signals import StopSignals, add_grace_option, grace_of
from seatrial.engine import (
    EXECUTORS,
    Executor,
    ExperimentTally,
    Stop,
    cases_that,
    create_experiment,
    launch,
    resumable,
    total_runs,
)
from seatrial.errors import SeatrialError
from seatrial.reports import stored_report
from seatrial.reports.progress import RunProgress
from seatrial.runs import Experiment
from seatrial.store import Store, shown
from seatrial.suites import Grading, Secrets, Suite, chosen_cases, load_suite, read_cases, stored_suite


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", metavar="SUITE", help="the suite file")
    parser.add_argument("--name", help="the name of the experiment in reports (default: the suite's name)")
    parser.add_argument("--trials", type=int, metavar="N", help="how often each case is run, instead of the suite's")
    parser.add_argument("--concurrency", type=int, metavar="N", help="runs at once, instead of the suite's")
    parser.add_argument("--agent", action="append", metavar="NAME", help="only this agent; may be repeated")
    parser.add_argument("--case", action="append", metavar="GLOB", help="only cases whose id matches; may be repeated")
    parser.add_argument("--tag", action="append", metavar="TAG", help="only cases with this tag; may be repeated")
    parser.add_argument("--resume", metavar="EXPERIMENT", help="continue it: run only what is missing")
    parser.add_argument(
        "--only",
        choices=("failed", "errored"),
        help="a new experiment with the cases that failed or errored in an earlier one (--of), with as many trials of "
        "each as it had, unless --trials says otherwise",
    )
    parser.add_argument("--of", metavar="EXPERIMENT", help="the earlier experiment for --only (default: latest)")
    add_grading_options(parser)
    add_executor_options(parser)
    add_store_option(parser)
    add_report_options(parser)
    parser.add_argument("--json", action="store_true", help="the whole report as JSON on standard output, and no table")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    add_grace_option(parser)
    parser.epilog = (
        "After Ctrl-C or SIGTERM, running cases finish, and the command says how to resume;\n"
        "a second one stops at once.\n"
        "An EXPERIMENT is `latest`, an id or the beginning of one, or a name.\n"
        "exit codes: 0 all passed, 1 any failed, 2 usage or an unusable suite,\n"
        "3 something could not be run or judged, 130 stopped by Ctrl-C, 143 by SIGTERM."
    )


def add_executor_options(parser: argparse.ArgumentParser) -> None:
    """Where the runs take place."""
    parser.add_argument(
        "--executor",
        metavar="NAME",
        default="local",
        help="where the runs take place: `local` (default), in this process; `ray`, on a Ray cluster; or one that an "
        "installed package offers",
    )
    parser.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help="the Ray cluster, as host:port or `auto` (default: one that is started here, for this command)",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="worker processes (default: one for each processor)")


def executor_of(args: argparse.Namespace) -> Executor:
    """The executor that the options ask for. Raises `SeatrialError` when it cannot be used."""
    kind = EXECUTORS.find(args.executor, code="usage")
    options = {} if args.workers is None else {"workers": args.workers}
    if args.workers is not None and not 1 <= args.workers <= 10_000:
        raise SeatrialError("usage", f"--workers is a number from 1 to 10,000, got {args.workers}")
    if args.executor == "local" and args.workers is not None:
        raise SeatrialError("usage", "--workers is for other executors: `local` has this process only", hint=_RAY)
    if args.executor == "ray":
        from seatrial.engine.ray_executor import check_installed

        check_installed()
        if args.ray_address is not None:
            options["address"] = args.ray_address
    elif args.ray_address is not None:
        raise SeatrialError("usage", f"--ray-address is not for the executor `{args.executor}`", hint=_RAY)
    if kind.needs_shared_store and not store_location(args).startswith(("postgresql", "postgres")):
        raise SeatrialError(
            "usage",
            f"the workers of `{args.executor}` cannot share the store {_shown(store_location(args))}",
            hint="keep the store in PostgreSQL: --store postgresql://user@host/database",
        )
    return kind(**options)


_RAY = "use --executor ray"


def add_grading_options(parser: argparse.ArgumentParser) -> None:
    """Which graders are asked."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--skip-judges",
        action="store_true",
        help="call no model: a case with a required judge is then errored, not passed",
    )
    chosen.add_argument(
        "--no-grade", action="store_true", help="run no graders: runs are kept, and can be graded later"
    )


def grading_of(args: argparse.Namespace) -> Grading:
    """Which graders the options want to be asked."""
    return "none" if args.no_grade else "without_judges" if args.skip_judges else "all"


def run(args: argparse.Namespace) -> int:
    executor = executor_of(args)
    if args.resume is None:
        # Before the store, which is not made for a suite that cannot be run.
        whole = _loaded(args, args.agent)
        suite = _changed(args, whole)
        with opened_store(args, create=True) as store:
            return _run(args, suite, whole, store, executor)
    for option in ("agent", "case", "tag", "only", "of", "trials", "name"):
        if getattr(args, option) is not None:
            raise SeatrialError("usage", f"--resume runs what is missing: --{option} cannot be used with it")
    with opened_store(args) as store:
        started_with = stored_suite(store.resolve_experiment(args.resume).suite)
        whole = _loaded(args, started_with.agents)
        return _run(args, _changed(args, whole), whole, store, executor)


def _loaded(args: argparse.Namespace, agents: Collection[str] | None) -> Suite:
    # What functions of the suite print is no part of the report.
    with redirect_stdout(sys.stderr):
        return load_suite(args.suite, grading=grading_of(args), agents_used=agents, startable=True)


def _run(args: argparse.Namespace, suite: Suite, whole: Suite, store: Store, executor: Executor) -> int:
    # Those of agents that are not run, too: all runs have the same environment.
    secrets = whole.secrets(os.environ)
    with redirect_stdout(sys.stderr):
        experiment, suite = _experiment(args, suite, whole, store)
        stop = Stop()

        def last_words(number: signal.Signals) -> None:
            abandon = stop.abandon  # once: the event loop may still end by itself, and takes it away then
            if abandon is not None:
                abandon(REASONS[number])
            store.close()  # also when it was abandoned before: it may not be written yet
            print(advice, file=sys.stderr)

        advice = f"continue with\n  {_resume_command(args, experiment)}"
        with StopSignals(grace_s=grace_of(args), last_words=last_words, advice=advice) as signals:
            try:
                tally = signals.run(_launched(args, experiment, suite, store, executor, secrets, stop, signals))
            except (SeatrialError, KeyboardInterrupt) as error:
                if isinstance(error, SeatrialError) and error.code == "conflict":
                    raise  # another process runs it
                print(advice, file=sys.stderr)
                raise
    report = stored_report(store, experiment.experiment_id, checked=args.resume is not None)
    show_report(args, report)
    stream = sys.stderr if args.json else sys.stdout
    if tally.stop_reason is not None:
        made = "" if report.progress is None else f" after {report.progress}"
        print(f"stopped{made}: {tally.stop_reason}; continue with\n  {_resume_command(args, experiment)}", file=stream)
    if not (args.json or args.quiet):
        print(f"look at it: {_look(store, args, experiment)}", file=stream)
    # Last, because a file that cannot be written must not hide the results.
    for form, path in written_files(args, store, report):
        print(f"{form}: {path}", file=stream)
    if (line := notes_line(args, report, _shown(store_location(args)))) is not None:
        print(line, file=stream)
    if tally.stop_reason is not None and signals.received is not None:
        return signal_exit(signals.received)
    summary = report.summary
    unjudged = 0 if args.no_grade else summary.other
    complete = tally.stop_reason is None and report.lost is None
    return exit_of(failed=summary.failed, errored=summary.errored, unjudged=unjudged, complete=complete)


def _changed(args: argparse.Namespace, suite: Suite) -> Suite:
    """The suite as the options want it."""
    for option, value in (("--trials", args.trials), ("--concurrency", args.concurrency)):
        if value is not None and not 1 <= value <= 10_000:
            raise SeatrialError("usage", f"{option} is a number from 1 to 10,000, got {value}")
    suite = msgspec.structs.replace(suite)
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


def _experiment(args: argparse.Namespace, suite: Suite, whole: Suite, store: Store) -> tuple[Experiment, Suite]:
    if args.resume is not None:
        return resumable(store, args.resume, suite, os.environ)
    selected: dict[str, Collection[str]] | None = None
    if args.of is not None and args.only is None:
        raise SeatrialError("usage", "--of names the experiment for --only, and cannot be used without it")
    if args.only is not None:
        earlier = store.resolve_experiment(args.of or "latest")
        found = cases_that(store, earlier.experiment_id, args.only)
        selected = {name: cases for name, cases in found.items() if name in suite.agents}
        if not selected:
            by = f" by {', '.join(suite.agents)}" if found else ""
            message = f"no run of {earlier.experiment_id}{by} {args.only}: there is nothing to run"
            raise SeatrialError("not_found", message)
        if args.trials is None:
            # As often as before, or the two could not be compared: one trial may pass where one of five had failed.
            suite = msgspec.structs.replace(suite, trials=stored_suite(earlier.suite).trials)
    if args.case or args.tag:
        cases = read_cases(whole, variables=os.environ)
        ids = chosen_cases(cases, args.case or None, args.tag or None, options=("--case", "--tag"))
        before = dict.fromkeys(suite.agents, ids) if selected is None else selected
        selected = {name: ids.intersection(cases) for name, cases in before.items()}
    # The cases are checked against all agents: one that is left out now may be the one that takes a key.
    cases = read_cases(whole, variables=os.environ, grading=suite.grading)
    experiment = create_experiment(store, suite, name=args.name, selected=selected, variables=os.environ, cases=cases)
    return experiment, suite


async def _launched(
    args: argparse.Namespace,
    experiment: Experiment,
    suite: Suite,
    store: Store,
    executor: Executor,
    secrets: Secrets,
    stop: Stop,
    signals: StopSignals,
) -> ExperimentTally:
    def asked(number: signal.Signals) -> None:
        stop.request(REASONS[number])
        grace = f"{grace_of(args)[number]:g} s"
        again = "press Ctrl-C again" if number == signal.SIGINT else f"send {number.name} again"
        print(f"\nwaiting up to {grace} for running cases; {again} to stop now", file=sys.stderr)

    signals.attach(asked)
    with RunProgress(experiment, total_runs(store, experiment), quiet=args.quiet) as observer:
        showing = asyncio.create_task(observer.keep_showing())
        try:
            return await launch(
                experiment,
                suite,
                store,
                variables=os.environ,
                secrets=secrets,
                observer=observer,
                stop=stop,
                executor=executor,
            )
        finally:
            showing.cancel()


def _resume_command(args: argparse.Namespace, experiment: Experiment) -> str:
    words = ["seatrial", "run", args.suite, "--resume", experiment.experiment_id]
    if args.concurrency is not None:
        words += ["--concurrency", str(args.concurrency)]
    if args.executor != "local":
        words += ["--executor", args.executor]
    if args.ray_address is not None:
        words += ["--ray-address", args.ray_address]
    if args.workers is not None:
        words += ["--workers", str(args.workers)]
    words += ["--skip-judges"] if args.skip_judges else ["--no-grade"] if args.no_grade else []
    return shlex.join([*words, "--store", _shown(store_location(args))])


def _look(store: Store, args: argparse.Namespace, experiment: Experiment) -> str:
    """The page of the experiment where a server shows it, else the command that does."""
    address = store.served_at()
    if address is not None:
        return f"{address}/experiments/{experiment.experiment_id}"
    named = store.resolve_experiment(experiment.name).experiment_id == experiment.experiment_id
    words = ["seatrial", "open", experiment.name if named and experiment.name else experiment.experiment_id]
    if args.store is not None:
        words += ["--store", _shown(args.store)]
    return shlex.join(words)


def _shown(store: str) -> str:
    """Where the store is, as it may stand in a log."""
    if "://" not in store:
        return store
    from sqlalchemy import make_url

    return shown(make_url(store))
