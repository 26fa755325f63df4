"""`seatrial compare A B`: two experiments, or two agents, paired by case."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.cli.exits import exit_of
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.terminal import printable, wants_colour
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.reports import Comparison, ReportSource
    from seatrial.runs import Run
    from seatrial.store import Store


def configure(parser: argparse.ArgumentParser) -> None:
    which = "an experiment: its id, the beginning of it, its name, or `latest`; with :AGENT, only that agent of it"
    parser.add_argument("a", metavar="A", help=f"the earlier one, {which}")
    parser.add_argument("b", metavar="B", help="the later one, named in the same way")
    add_store_option(parser)
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CONDITION",
        help="exit with 1 when it is met: `regression`, any case passes less often; `significantly-worse`, b is worse "
        "beyond doubt; `drop=0.02` or `drop=2points`, a pass rate lower by more than two points; "
        "`tag:NAME:CONDITION`, any of these of the cases with a tag, `tag:*:CONDITION` of any tag; may be repeated",
    )
    parser.add_argument(
        "--group-by", choices=("tag",), help="`tag`: show all tags, and not only those that dropped most"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write it to a file, too: one self-contained page")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the comparisons as a JSON array")
    form.add_argument("--markdown", action="store_true", help="Markdown, for a CI step summary")
    parser.epilog = (
        "Without an agent, agents of the same name are compared; where each side has only one, those two.\n"
        "exit codes: 0 compared, and no --fail-on condition is met; 1 one is; 2 usage, an experiment with itself, or\n"
        "no such store, experiment or tag; 3 some agent could not be compared, or with --fail-on, a condition cannot\n"
        "be answered: A could judge a case that B could not, or not in every trial, one of them was stopped before\n"
        "all was run, or there are too few cases for any test. Cases that B was not asked to run (`run --case`) are\n"
        "named, and in no condition."
    )


def run(args: argparse.Namespace) -> int:
    from seatrial._support import wire
    from seatrial.reports import (
        check_tags,
        comparison_html,
        comparison_markdown,
        comparison_terminal,
        gate_of,
        objections,
        terminal_width,
        undecided,
        unselected_sentence,
        write_pieces,
    )

    gate = gate_of(args.fail_on)
    comparisons, incomparable, left_out = _comparisons(args)
    check_tags(gate, comparisons)
    if args.json:
        sys.stdout.buffer.write(wire.encode(comparisons) + b"\n")
    else:
        colour, width = wants_colour(sys.stdout), terminal_width()
        more = {} if args.group_by is None else {"tags": sys.maxsize}
        written = [
            comparison_markdown(found)
            if args.markdown
            else comparison_terminal(found, colour=colour, width=width, **more)
            for found in comparisons
        ]
        sys.stdout.write("\n".join(written))
    if args.html is not None:
        write_pieces(args.html, comparison_html(comparisons, [str(error) for error in incomparable]))
    objected = unknown = 0
    for found in comparisons:
        agent = printable(found.b.agent)
        for sentence in objections(gate, found):
            print(f"seatrial: {agent}: {printable(sentence)}", file=sys.stderr)
            objected += 1
        for sentence in undecided(gate, found):
            print(f"seatrial: {agent}: {printable(sentence)}", file=sys.stderr)
            unknown += 1
        if args.fail_on and found.unselected:
            print(
                f"seatrial: {agent}: the condition is about what b ran: {printable(unselected_sentence(found))}",
                file=sys.stderr,
            )
    for error in incomparable:
        print(f"seatrial: {printable(str(error))}", file=sys.stderr)
    if args.fail_on:
        unknown += left_out
    return exit_of(failed=objected, errored=len(incomparable) + unknown)


def _comparisons(args: argparse.Namespace) -> tuple[list[Comparison], list[SeatrialError], int]:
    """Every pair of agents that can be compared, why others cannot, and how many agents of a are not in b.

    Raises when there is no pair that can be compared.
    """
    from seatrial.reports import agent_pairs, compare, refuse_itself

    found: list[Comparison] = []
    incomparable: list[SeatrialError] = []
    with opened_store(args, read_only=True) as store:
        a, agents_a, all_of_a = _side(store, args.a)
        b, agents_b, all_of_b = _side(store, args.b)
        pairs = agent_pairs(agents_a, agents_b)
        refuse_itself(a.experiment, b.experiment, pairs)
        for agent_a, agent_b in pairs:
            try:
                found.append(compare(a, b, agent_a, agent_b, lambda run_id: _run(store, run_id)))
            except SeatrialError as error:
                if error.code != "empty_input":
                    raise
                incomparable.append(error)
    if not found:
        raise incomparable[0]
    left_out = 0
    if all_of_a and all_of_b:
        paired = {name for pair in pairs for name in pair}
        for source, agents in ((a, agents_a), (b, agents_b)):
            for agent in sorted(set(agents) - paired):
                left_out += source is a
                message = f"{agent}: not compared, since only {source.experiment.name!r} has runs of it"
                print(f"seatrial: {printable(message)}", file=sys.stderr)
    return found, incomparable, left_out


def _run(store: Store, run_id: str) -> Run | None:
    run = store.run(run_id)
    if run.fault is not None and run.fault.error_class == "record_damaged":
        print(f"seatrial: no calls are compared: {printable(run.fault.message)}", file=sys.stderr)
        return None
    return run


def _side(store: Store, ref: str) -> tuple[ReportSource, list[str], bool]:
    """An experiment, those of its agents that are meant, and whether that is all of them."""
    from seatrial.reports import named_agents, stored

    found = named_agents(store, ref)
    return stored(store, found.experiment), found.agents, found.all_agents
