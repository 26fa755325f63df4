"""What the commands that look at a store are pointed at: experiments, cases and runs by name, and filters of runs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, get_args

import msgspec

from seatrial.cli.terminal import printable
from seatrial.errors import SeatrialError
from seatrial.runs import Experiment, RunKey

if TYPE_CHECKING:
    from seatrial.store import RunFilter, RunSummary, Store, StoredOutcome
    from seatrial.store.filter import FilterTerm

LIMIT: Final = 20
MAX_LIMIT: Final = 100_000
WIDEST: Final = 200
"""Characters of a filter that an error repeats."""
FAILURES_FIRST: Final = ("failed", "errored", "unfinished", "cancelled", "skipped", "ungraded", "passed")
"""The order in which runs are listed."""

RUN_HELP: Final = "a run: its id, or EXPERIMENT:CASE, and behind that :AGENT and :TRIAL where the case has several runs"


class Selected(msgspec.Struct, frozen=True):
    """What a reference means: an experiment, a case of it, some runs of the case, or one run."""

    experiment: Experiment | None = None
    """None for a run."""
    case_id: str | None = None
    agent: str | None = None
    trial: int | None = None
    run_id: str | None = None


def add_page_options(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare `--limit` and `--from`."""
    parser.add_argument("--limit", type=count, default=LIMIT, metavar="N", help=f"{what} to show (default: {LIMIT})")
    parser.add_argument(
        "--from", dest="first", type=count, default=0, metavar="N", help="leave out the first N (default: 0)"
    )


def add_filter_options(parser: argparse.ArgumentParser) -> None:
    """Declare the filters of runs; each may be repeated, and means any of its values."""
    options = [
        ("agent", "NAME", "only runs of this agent"),
        ("case", "ID", "only runs of this case"),
        ("tag", "TAG", "only cases with this tag"),
        ("outcome", "OUTCOME", "only runs that passed, failed, errored, ..."),
        ("error", "CLASS", "only runs with a fault of this class, such as agent_timeout"),
        ("tool", "NAME", "only runs that called this tool"),
    ]
    for name, metavar, meaning in options:
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar=metavar, help=f"{meaning}; may be repeated"
        )
    add_filter_option(parser)


def add_filter_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--filter`."""
    parser.add_argument(
        "--filter", metavar="FILTER", help="only runs that match, such as 'tool:refund -outcome:passed cost>$0.10'"
    )


def filter_terms(text: str | None) -> tuple[FilterTerm, ...]:
    """What `--filter` says; an error shows where it goes wrong."""
    from seatrial.store.filter import FilterError, parse_filter

    if text is None:
        return ()
    try:
        return parse_filter(text, time.time_ns() // 1_000_000)
    except FilterError as error:
        lines = f"  {printable(text)}\n  {' ' * error.start}{'^' * max(1, error.end - error.start)}"
        if len(text) > WIDEST or printable(text) != text:
            lines = f"  at character {error.start + 1}"
        raise SeatrialError(error.code, f"{error.message}\n{lines}", hint=error.hint) from None


def count(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_LIMIT * 1000:
        raise argparse.ArgumentTypeError(f"expected a number, 0 or more, got {text[:40]!r}")
    return int(text)


def run_filter(store: Store, experiment: Experiment | None, args: argparse.Namespace) -> RunFilter:
    """The filter that was asked for; `not_found` for a name that the experiment does not have."""
    from seatrial.store import RunFilter

    if experiment is not None:
        _known("agent", args.agent, _agents(store, experiment))
        for case_id in args.case:
            store.case(experiment.experiment_id, case_id)
        if args.tag and not store.has_tag(experiment.experiment_id, args.tag):
            raise SeatrialError("not_found", f"no case has the tag {', '.join(map(repr, args.tag))}")
    return RunFilter(
        outcomes=frozenset(_outcomes(args.outcome)),
        agents=frozenset(args.agent),
        cases=frozenset(args.case),
        tags=frozenset(args.tag),
        error_classes=frozenset(args.error),
        tools=frozenset(args.tool),
        terms=filter_terms(args.filter),
    )


def _outcomes(given: list[str]) -> Iterator[StoredOutcome]:
    from seatrial.store import StoredOutcome

    known: tuple[StoredOutcome, ...] = get_args(StoredOutcome)
    for word in given:
        found = next((outcome for outcome in known if outcome == word), None)
        if found is None:
            raise SeatrialError("usage", f"there is no outcome {word!r}", hint=f"one of {', '.join(known)}")
        yield found


def _agents(store: Store, experiment: Experiment) -> list[str]:
    return [totals.agent for totals in store.totals(experiment.experiment_id, flaky=0).agents]


def _known(what: str, given: list[str], names: list[str]) -> None:
    for name in given:
        if name not in names:
            hint = f"one of {', '.join(names)}" if names else None
            raise SeatrialError("not_found", f"the experiment has no runs of an {what} {name!r}", hint=hint)


def selected_runs(store: Store, experiment: Experiment, where: RunFilter) -> Iterator[RunSummary]:
    """Runs in the order of `FAILURES_FIRST`, those of one outcome in the order of the suite; read as they are asked
    for."""
    for outcome in FAILURES_FIRST:
        if where.outcomes and outcome not in where.outcomes:
            continue
        of_outcome = msgspec.structs.replace(where, outcomes=frozenset({outcome}))
        after: RunKey | None = None
        while page := store.runs(experiment.experiment_id, of_outcome, after=after, limit=500):
            yield from page
            after = page[-1].key


def find(store: Store, reference: str) -> Selected:
    """The run with this id; else the experiment of this name; else `EXPERIMENT:CASE[:AGENT[:TRIAL]]`."""
    if _is_run(store, reference):
        return Selected(run_id=reference)
    try:
        return Selected(store.resolve_experiment(reference))
    except SeatrialError as error:
        if error.code != "not_found":
            raise
    # Names may have colons in them, so every way to divide is tried, the longest name of an experiment first.
    places = [index for index, character in enumerate(reference) if character == ":"]
    unknown: SeatrialError | None = None
    for place in reversed(places):
        try:
            experiment = store.resolve_experiment(reference[:place])
        except SeatrialError as error:
            if error.code != "not_found":
                raise
            continue
        try:
            return _within(store, experiment, reference[place + 1 :])
        except SeatrialError as error:
            if error.code != "not_found":
                raise
            unknown = error
    if unknown is not None:
        raise unknown
    raise SeatrialError(
        "not_found",
        f"there is no run, experiment or case {reference!r} in the store",
        hint="`seatrial list` shows the experiments, `seatrial show EXPERIMENT` its runs",
    )


def find_run(store: Store, reference: str) -> str:
    """The id of the one run that is meant; `ambiguous`, with what there is, when there are several."""
    found = find(store, reference)
    if found.run_id is not None:
        return found.run_id
    if found.experiment is None or found.case_id is None:
        raise SeatrialError("usage", f"{reference!r} is an experiment, not a run", hint=RUN_HELP)
    runs = runs_of_case(store, found)
    if len(runs) == 1:
        return runs[0].run_id
    if not runs:
        raise SeatrialError("not_found", f"there is no such run of the case {found.case_id!r}")
    some = ", ".join(f":{run.agent}:{run.trial} ({run.outcome})" for run in runs[:6])
    raise SeatrialError(
        "ambiguous",
        f"the case {found.case_id!r} has {len(runs)} runs",
        hint=f"say which, by its id or as one of {some}",
    )


def runs_of_case(store: Store, found: Selected, agent: str | None = None, trial: int | None = None) -> list[RunSummary]:
    """The runs of a case, by one agent or all, failures first."""
    from seatrial.store import RunFilter

    assert found.experiment is not None and found.case_id is not None  # noqa: S101, PT018 - the caller looked
    agents = [name for name in (agent, found.agent) if name is not None]
    _known("agent", agents, _agents(store, found.experiment))
    where = RunFilter(cases=frozenset({found.case_id}), agents=frozenset(agents))
    wanted = found.trial if trial is None else trial
    return [run for run in selected_runs(store, found.experiment, where) if wanted is None or run.trial == wanted]


def _is_run(store: Store, reference: str) -> bool:
    try:
        store.run_head(reference)
    except SeatrialError as error:
        if error.code != "not_found":
            raise
        return False
    return True


def _within(store: Store, experiment: Experiment, rest: str) -> Selected:
    """`CASE`, `CASE:AGENT` or `CASE:AGENT:TRIAL` of an experiment."""
    agents = _agents(store, experiment)
    case_id, _, last = rest.rpartition(":")
    choices: list[tuple[str, str | None, int | None]] = [(rest, None, None)]
    if case_id and last in agents:
        choices.append((case_id, last, None))
    if case_id and last.isdecimal() and len(last) < 10:
        inner, _, named = case_id.rpartition(":")
        if inner and named in agents:
            choices.append((inner, named, int(last)))
    error: SeatrialError | None = None
    for name, agent, trial in choices:
        try:
            store.case(experiment.experiment_id, name)
        except SeatrialError as missing:
            if missing.code == "damaged":
                return Selected(experiment, name, agent, trial)  # its runs can be read nevertheless
            error = error or missing
        else:
            return Selected(experiment, name, agent, trial)
    if error is None or error.code != "not_found":
        raise error or SeatrialError("not_found", f"the experiment has no case {rest!r}")
    hint = f"`seatrial show {experiment.experiment_id}` lists its runs; its agents are {', '.join(agents) or 'none'}"
    raise SeatrialError("not_found", f"the experiment {experiment.name!r} has no case {rest!r}", hint=hint)
