"""`seatrial doctor SUITE`: everything that is wrong with a suite, and whether its agents can be reached."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import redirect_stdout

from seatrial._support import wire
from seatrial.cli.exits import COULD_NOT_RUN, PASSED, suite_exit
from seatrial.cli.run import add_grading_options, grading_of
from seatrial.cli.terminal import paint, printable
from seatrial.engine.checkup import Checkup, check_agents
from seatrial.reports.figures import plural
from seatrial.suites import CaseSource, InvalidSuiteError, Suite, load_suite, read_cases
from seatrial.suites.cases import case_format


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", metavar="SUITE", help="the suite file")
    parser.add_argument("--deep", action="store_true", help="also import what the suite names in Python, and run it")
    parser.add_argument("--offline", action="store_true", help="do not try to reach the agents")
    add_grading_options(parser)
    parser.add_argument("--json", action="store_true", help="print {ok, problems, cases, agents}")
    parser.epilog = (
        "exit codes: 0 ready to run, 2 the suite has problems, 3 an agent cannot be reached, or nothing would judge\n"
        "a case."
    )


def run(args: argparse.Namespace) -> int:
    try:
        # What functions of the suite print is no part of the findings.
        with redirect_stdout(sys.stderr):
            grading = grading_of(args)
            suite = load_suite(args.suite, run_python=args.deep, grading=grading)
            # Cases that a function makes are counted only when it may run.
            cases = (
                sum(1 for _ in read_cases(suite, grading=grading)) if args.deep or not _has_functions(suite) else None
            )
            checkups = [] if args.offline else asyncio.run(check_agents(suite, os.environ))
    except InvalidSuiteError as error:
        if args.json:
            _write({"ok": False, "problems": error.problems, "cases": None, "agents": []})
        else:
            print(printable(str(error)))
        return suite_exit(error)
    ok = all(checkup.ok for checkup in checkups)
    if args.json:
        _write({"ok": ok, "problems": [], "cases": cases, "agents": checkups})
    else:
        counted = "cases from a function" if cases is None else plural(cases, "case")
        graders = f"{plural(len(suite.graders), 'grader')} for every case"
        print(f"{args.suite}: {counted}, {plural(len(suite.agents), 'agent')}, {graders}")
        for checkup in checkups:
            print(_line(checkup))
    return PASSED if ok else COULD_NOT_RUN


def _line(checkup: Checkup) -> str:
    head = paint("ok", "green", sys.stdout) if checkup.ok else paint("not ready", "red", sys.stdout)
    return f"  {printable(checkup.agent)}: {head}, {printable(checkup.message)}"


def _has_functions(suite: Suite) -> bool:
    return any(isinstance(entry, CaseSource) and case_format(entry) == "python" for entry in suite.cases)


def _write(shown: dict[str, object]) -> None:
    sys.stdout.buffer.write(wire.encode(shown) + b"\n")
