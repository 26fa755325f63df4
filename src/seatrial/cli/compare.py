"""`seatrial compare A B`: two experiments, or two agents, paired by case."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from seatrial.cli.exits import FAILED, PASSED
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.terminal import printable, wants_colour
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.reports import Comparison, Source
    from seatrial.store import Store


def configure(parser: argparse.ArgumentParser) -> None:
    which = "an experiment: its id, the beginning of it, its name, or `latest`; with :AGENT, only that agent of it"
    parser.add_argument("a", metavar="A", help=f"what was before: {which}")
    parser.add_argument("b", metavar="B", help="what is now: the same")
    add_store_option(parser)
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CONDITION",
        help="exit with 1 on any `regression` of a case, or on `drop=0.02`: a pass rate lower by more than two points",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the comparisons as a JSON array")
    form.add_argument("--markdown", action="store_true", help="Markdown, for a CI step summary")
    parser.epilog = (
        "Without an agent, agents of the same name are compared; where each side has only one, those two.\n"
        "exit codes: 0 compared, and --fail-on does not object; 1 it does; 3 nothing could be compared."
    )


def run(args: argparse.Namespace) -> int:
    from seatrial import wire
    from seatrial.reports import comparison_markdown, comparison_terminal, gate_of, objections

    gate = gate_of(args.fail_on)
    comparisons = _comparisons(args)
    if args.json:
        sys.stdout.buffer.write(wire.encode(comparisons) + b"\n")
    else:
        colour = wants_colour(sys.stdout)
        written = [
            comparison_markdown(found) if args.markdown else comparison_terminal(found, colour=colour)
            for found in comparisons
        ]
        sys.stdout.write("\n".join(written))
    code = PASSED
    for found in comparisons:
        for sentence in objections(gate, found):
            print(f"seatrial: {printable(found.b.agent)}: {sentence}", file=sys.stderr)
            code = FAILED
    return code


def _comparisons(args: argparse.Namespace) -> list[Comparison]:
    from seatrial.reports import agent_pairs, compare

    with opened_store(args) as store:
        a, agents_a = _side(store, args.a)
        b, agents_b = _side(store, args.b)
        return [
            compare(a, b, agent_a, agent_b, lambda run_id: store.run(run_id).steps)
            for agent_a, agent_b in agent_pairs(agents_a, agents_b)
        ]


def _side(store: Store, ref: str) -> tuple[Source, list[str]]:
    """An experiment and those of its agents that are meant."""
    from seatrial.reports import stored

    try:
        experiment, agent = store.resolve_experiment(ref), ""
    except SeatrialError as error:
        name, _, agent = ref.rpartition(":")
        if error.code != "not_found" or not name:
            raise
        experiment = store.resolve_experiment(name)
    agents = [agent] if agent else [counts.agent for counts in store.agent_counts(experiment.experiment_id)]
    return stored(store, experiment), agents
