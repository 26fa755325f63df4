"""`seatrial list`: the experiments of a store, the newest first."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from seatrial.cli.exits import COULD_NOT_RUN, PASSED
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.selection import MAX_LIMIT, add_page_options, filter_terms
from seatrial.cli.terminal import one_line, paint, printable
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.reports.summary import Summary
    from seatrial.store import ExperimentSummary, Store
    from seatrial.store.filter import FilterTerm

_DROPPABLE = ("cases", "agents", "id", "runs")


def configure(parser: argparse.ArgumentParser) -> None:
    add_store_option(parser)
    add_page_options(parser, "experiments")
    parser.add_argument(
        "--filter", metavar="FILTER", help="only experiments with a run that matches; see `seatrial show --help`"
    )
    parser.add_argument("--json", action="store_true", help="the experiments as a JSON array, with figures by agent")
    parser.epilog = (
        "A pass rate is of the runs that passed or failed; `left out` are the others, and why.\n"
        "exit codes: 0 all was read; 2 usage, or no such store; 3 it or an experiment could not be read (the others\n"
        "are shown)."
    )


def run(args: argparse.Namespace) -> int:
    from seatrial._support import wire

    code = PASSED
    found: list[tuple[ExperimentSummary, Summary | None]] = []
    with opened_store(args, read_only=True) as store:
        # One more, to know whether there are more.
        listed = _listed(store, filter_terms(args.filter), args.first + args.limit + 1)[args.first :]
        more = len(listed) > args.limit
        for experiment in listed[: args.limit]:
            try:
                found.append((experiment, _summary(store, experiment.experiment_id)))
            except SeatrialError as error:
                if error.code != "damaged":
                    raise
                print(f"seatrial: {printable(f'{experiment.name}: {error}')} [damaged]", file=sys.stderr)
                found.append((experiment, None))
                code = COULD_NOT_RUN
    if args.json:
        sys.stdout.buffer.write(wire.encode([_data(*entry) for entry in found]) + b"\n")
        return code
    if not found:
        print("There are no more experiments." if args.first else "There are no experiments in this store.")
    else:
        _show(found)
    if more:
        print(f"… there are more: --from {args.first + args.limit}")
    return code


def _listed(store: Store, terms: tuple[FilterTerm, ...], limit: int) -> list[ExperimentSummary]:
    """The newest experiments that have a run like that."""
    if not terms:
        return store.experiments(limit)
    from seatrial.store import RunFilter

    where = RunFilter(terms=terms)
    found: list[ExperimentSummary] = []
    for experiment in store.experiments(MAX_LIMIT):
        if len(found) == limit:
            break
        if store.count_runs(experiment.experiment_id, where, limit=1):
            found.append(experiment)
    return found


def _summary(store: Store, experiment_id: str) -> Summary:
    from seatrial.reports.summary import summary_of

    return summary_of(store.totals(experiment_id, flaky=0), store.errored_with_failure(experiment_id))


def _show(found: list[tuple[ExperimentSummary, Summary | None]]) -> None:
    from seatrial.reports import figures
    from seatrial.reports.layout import table, terminal_width

    head = ["name", "id", "when", "agents", "pass rate", "left out", "runs", "cases", "status"]
    rows = []
    for experiment, summary in found:
        when = datetime.fromtimestamp(experiment.created_at / 1000, UTC).strftime("%Y-%m-%d %H:%M")
        status = (
            experiment.status if experiment.stop_reason is None else f"{experiment.status}: {experiment.stop_reason}"
        )
        named = [one_line(experiment.name, 40), experiment.experiment_id, when]
        if summary is None:
            rows.append([*named, "?", "?", "?", "?", f"{experiment.cases:,}", "damaged"])
            continue
        graded = summary.passed + summary.failed
        rows.append(
            [
                *named,
                one_line(", ".join(agent.agent for agent in summary.agents), 30) or "–",
                figures.percent(summary.passed / graded if graded else None),
                _left_out(summary) or "–",
                f"{summary.runs:,}",
                f"{experiment.cases:,}",
                one_line(status, 30),
            ]
        )
    lines = table(head, rows, left=4, width=terminal_width(), droppable=_DROPPABLE)
    print(paint(lines[0], "bold", sys.stdout), *lines[1:], sep="\n")


def _left_out(summary: Summary) -> str:
    """`2 agent_timeout, 1 skipped`."""
    why: dict[str, int] = {}
    for agent in summary.agents:
        for reason, count in agent.left_out.items():
            why[reason] = why.get(reason, 0) + count
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(why.items(), key=lambda item: -item[1]))


def _data(experiment: ExperimentSummary, summary: Summary | None) -> dict[str, Any]:
    import msgspec

    return {**msgspec.structs.asdict(experiment), "summary": summary}
