"""`seatrial doctor SUITE`: everything that is wrong with a suite, and whether its agents can be reached."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout

import msgspec

from seatrial._support import wire
from seatrial._support.target import is_target
from seatrial.agents import AgentConfig, AgentStart, build_agent
from seatrial.agents.registry import kind_of
from seatrial.cli.commands.run import add_grading_options, grading_of
from seatrial.cli.exits import COULD_NOT_RUN, PASSED, suite_exit
from seatrial.cli.terminal import paint, printable
from seatrial.errors import SeatrialError
from seatrial.reports.figures import plural
from seatrial.suites import CaseSource, InvalidSuiteError, Suite, load_suite, read_cases
from seatrial.suites.cases import case_format
from seatrial.world.proxy import ToolProxy


class Checkup(msgspec.Struct, omit_defaults=True):
    """How one agent is."""

    agent: str
    kind: str
    ok: bool
    message: str
    reaches_proxy: bool | None = None
    """Whether it reaches the tool proxy from where it is; None when that is not known."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", metavar="SUITE", help="the suite file")
    parser.add_argument("--deep", action="store_true", help="also import what the suite names in Python, and run it")
    parser.add_argument("--offline", action="store_true", help="do not try to reach the agents")
    parser.add_argument(
        "--power",
        nargs="?",
        type=_rate,
        const=0.8,
        metavar="RATE",
        help="also show the smallest drop from this pass rate (default: 0.8) that a comparison would find, by cases "
        "and trials",
    )
    add_grading_options(parser)
    parser.add_argument(
        "--json", action="store_true", help="print {ok, problems, cases, agents}, with --power {power}, too"
    )
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
            # Cases that a function makes are counted only when it may run. The others were checked with the suite, and
            # to check them again would import agents and graders.
            countable = args.deep or not _has_functions(suite)
            tags = [case.tags for case in read_cases(suite, grading=grading, checked=args.deep)] if countable else None
            cases = None if tags is None else len(tags)
            checkups = [] if args.offline else asyncio.run(_check_agents(suite, os.environ, run_python=args.deep))
    except InvalidSuiteError as error:
        if args.json:
            _write({"ok": False, "problems": error.problems, "cases": None, "agents": []})
        else:
            print(printable(str(error)))
        return suite_exit(error)
    ok = all(checkup.ok for checkup in checkups)
    power = None
    if args.power is not None and tags is not None:
        from seatrial.reports.statistics.power import power_table

        power = power_table(tags, suite.trials, args.power)
    if args.json:
        shown = {"ok": ok, "problems": [], "cases": cases, "agents": checkups}
        _write(shown if args.power is None else {**shown, "power": power})
    else:
        counted = "cases from a function" if cases is None else plural(cases, "case")
        graders = f"{plural(len(suite.graders), 'grader')} for every case"
        print(f"{args.suite}: {counted}, {plural(len(suite.agents), 'agent')}, {graders}")
        for checkup in checkups:
            print(_line(checkup))
        if power is not None:
            from seatrial.reports.layout import terminal_width
            from seatrial.reports.statistics.power import power_lines

            print("\n".join(["", *power_lines(power, terminal_width())]))
        elif args.power is not None:
            print("how small a drop can be found is unknown: `--deep` runs the functions that make cases")
    return PASSED if ok else COULD_NOT_RUN


async def _check_agents(suite: Suite, variables: Mapping[str, str], *, run_python: bool) -> list[Checkup]:
    """Start each agent as a run would, and see whether somebody is there where it is reached over the network.

    Without `run_python`, agents that are code of the suite's author are left alone.
    """
    async with ToolProxy() as proxy:
        return [
            await _check(name, config, suite, proxy, variables)
            if run_python or not (config.imports_code() or is_target(kind_of(config)))
            else Checkup(name, kind_of(config), True, "not imported: `--deep` imports it")
            for name, config in suite.agents.items()
        ]


async def _check(
    name: str, config: AgentConfig, suite: Suite, proxy: ToolProxy, variables: Mapping[str, str]
) -> Checkup:
    checkup = Checkup(name, kind_of(config), True, "")
    secrets = suite.secrets(variables)
    start = AgentStart(
        name=name,
        directory=suite.directory,
        connect_s=suite.timeouts.connect_s,
        read_s=suite.timeouts.read_s,
        stored_runs=lambda *_: None,
    )
    try:
        filled = config.resolved(variables)
        async with build_agent(filled, start) as agent:
            probe = await filled.probe(agent, proxy.url)
            checkup.ok, checkup.message, checkup.reaches_proxy = probe.ok, probe.message, probe.reaches_proxy
    except SeatrialError as error:
        checkup.ok, checkup.message = False, str(error)
    checkup.message = secrets.redact(checkup.message)
    return checkup


def _line(checkup: Checkup) -> str:
    head = paint("ok", "green", sys.stdout) if checkup.ok else paint("not ready", "red", sys.stdout)
    return f"  {printable(checkup.agent)}: {head}, {printable(checkup.message)}"


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 < rate <= 1:
        raise argparse.ArgumentTypeError(f"expected a pass rate above 0, up to 1, got {text[:40]!r}")
    return rate


def _has_functions(suite: Suite) -> bool:
    return any(isinstance(entry, CaseSource) and case_format(entry) == "python" for entry in suite.cases)


def _write(shown: dict[str, object]) -> None:
    sys.stdout.buffer.write(wire.encode(shown) + b"\n")
