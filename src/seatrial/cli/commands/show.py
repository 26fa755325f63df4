"""`seatrial show`: an experiment, a case of it, or one run with its transcript."""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from seatrial.cli.exits import COULD_NOT_RUN, PASSED
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.selection import (
    LIMIT,
    Selected,
    add_filter_options,
    count,
    find,
    run_filter,
    runs_of_case,
    selected_runs,
)
from seatrial.cli.terminal import one_line, paint, printable, wants_colour
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.reports.run_text import TranscriptPage
    from seatrial.runs import Case, Experiment
    from seatrial.store import RunRecord, RunSummary, Store

MESSAGES: Final = 40
NOTES: Final = 100
MAX_BODY: Final = 4 << 20
"""Bytes of an agent's answer that are read to find out which message a note is about."""
MAX_STEPS: Final = 2_000
"""Calls of a run that are read where its messages do not have them."""
KINDS: Final = 5

_TONES = {"failed": "red", "errored": "yellow", "passed": "green"}
_DROPPABLE = ("steps", "score", "took", "run")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="EXPERIMENT | EXPERIMENT:CASE | RUN_ID",
        nargs="?",
        default="latest",
        help="an experiment (its id, the beginning of it, its name, or `latest`), a case of it, or a run "
        "(default: latest)",
    )
    add_store_option(parser)
    add_filter_options(parser)
    parser.add_argument("--trial", type=count, metavar="N", help="of a case and an agent, this trial")
    parser.add_argument(
        "--limit", type=count, default=LIMIT, metavar="N", help=f"runs of an experiment to show (default: {LIMIT})"
    )
    parser.add_argument(
        "--from",
        dest="first",
        type=count,
        default=0,
        metavar="N",
        help="begin with message N of a run, or leave out the first N runs of an experiment (default: 0)",
    )
    parser.add_argument(
        "--messages", type=count, default=MESSAGES, metavar="N", help=f"messages to show (default: {MESSAGES})"
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.epilog = (
        "An experiment: its runs, failures first. A case: its runs by all agents. A run: its transcript, verdicts and\n"
        "notes; → is a call, ← its result, ✗ one that failed. A case and an agent that have one run show that run.\n"
        "exit codes: 0 shown, whatever it says; 2 usage, or no such store, experiment, case or run; 3 it could not be\n"
        "read."
    )


def run(args: argparse.Namespace) -> int:
    with opened_store(args, read_only=True) as store:
        found = find(store, args.what)
        if found.run_id is not None:
            return _run(store, found.run_id, args)
        experiment = found.experiment
        assert experiment is not None  # noqa: S101 - only runs of the service have none
        if found.case_id is None and len(args.case) == 1 and (args.agent or args.trial is not None):
            store.case(experiment.experiment_id, args.case[0])
            found = Selected(experiment, args.case[0])
        if found.case_id is None:
            return _experiment(store, experiment, args)
        agent = args.agent[0] if len(args.agent) == 1 else None
        runs = runs_of_case(store, found, agent, args.trial)
        if len(runs) == 1 and (agent or found.agent or args.trial is not None):
            return _run(store, runs[0].run_id, args)
        return _case(store, found, runs, args)


def _experiment(store: Store, experiment: Experiment, args: argparse.Namespace) -> int:
    from seatrial._support import wire

    where = run_filter(store, experiment, args)
    found = [*islice(selected_runs(store, experiment, where), args.first, args.first + args.limit + 1)]
    runs, more = found[: args.limit], len(found) > args.limit
    if args.json:
        shown = {"experiment": experiment, "runs": runs, "from": args.first, "more": more}
        sys.stdout.buffer.write(wire.encode(shown) + b"\n")
        return PASSED
    _title(store, experiment)
    if where == type(where)():
        _kinds(store, experiment)
    print()
    if runs:
        _runs(runs)
        name = one_line(experiment.name, 60)
        print(
            paint(
                f"one run: `seatrial show {name}:{one_line(runs[0].case_id, 60)}:{one_line(runs[0].agent, 40)}`",
                "dim",
                sys.stdout,
            )
        )
    else:
        print("There are no such runs." if args.first == 0 else "There are no more runs.")
    if more:
        print(f"… there are more: --from {args.first + args.limit}")
    return PASSED


def _title(store: Store, experiment: Experiment) -> None:
    from seatrial.reports import figures
    from seatrial.reports.figures import left_out_sentences
    from seatrial.reports.layout import prose, terminal_width
    from seatrial.reports.summary import summary_of

    experiment_id = experiment.experiment_id
    summary = summary_of(store.totals(experiment_id, flaky=0), store.errored_with_failure(experiment_id))
    width = terminal_width()
    print(f"{paint(one_line(experiment.name, 60), 'bold', sys.stdout)}  {one_line(experiment_id, 60)}")
    counts = [
        f"{number:,} {word}"
        for word, number in (
            ("failed", summary.failed),
            ("errored", summary.errored),
            ("passed", summary.passed),
            ("others", summary.other),
        )
        if number
    ]
    runs, cases = figures.plural(summary.runs, "run"), figures.plural(summary.cases, "case")
    print(*prose(f"{', '.join(counts) or 'no runs'} of {runs}, {cases}, {experiment.status}", width), sep="\n")
    for agent in summary.agents:
        rate = f"{figures.percent(agent.pass_rate)} passed, 95% interval {figures.percent_range(agent.interval)}"
        print(*prose(f"{one_line(agent.agent, 50)}: {rate}", width, "  ", "  "), sep="\n")
    for agent_name, sentence in left_out_sentences(summary.agents):
        print(*prose(f"{one_line(agent_name, 50)}: {sentence}", width, "    ", "  "), sep="\n")
    if experiment.stop_reason:
        print(*prose(f"stopped: {one_line(experiment.stop_reason, 400)}", width), sep="\n")


def _kinds(store: Store, experiment: Experiment) -> None:
    """In which ways runs fail, those of all agents together."""
    counts: dict[str, int] = {}
    for found in store.signatures(experiment.experiment_id, limit=1000):
        counts[found.signature] = counts.get(found.signature, 0) + found.runs
    if len(counts) == sum(counts.values()):
        return  # each run in its own way: the list says as much
    print(f"\n{paint('why runs did not pass', 'bold', sys.stdout)}")
    most = sorted(counts.items(), key=lambda item: -item[1])
    for signature, number in most[:KINDS]:
        print(f"  {number:>6,}  {one_line(signature, 90)}")
    if len(most) > KINDS:
        print(f"  … and {len(most) - KINDS:,} more kinds")


def _runs(runs: list[RunSummary], *, with_case: bool = True) -> None:
    from seatrial.reports import figures
    from seatrial.reports.layout import table, terminal_width

    trials = any(run.trial > 1 for run in runs)
    head = ["outcome", *(["case"] if with_case else []), "agent", *(["trial"] if trials else [])]
    left = len(head) + 1
    head += ["why", "steps", "score", "took", "run"]
    rows = [
        [
            run.outcome,
            *([one_line(run.case_id, 40)] if with_case else []),
            one_line(run.agent, 24),
            *([str(run.trial)] if trials else []),
            one_line(run.error_class or run.signature or "", 44),
            "?" if run.steps is None else f"{'' if run.calls == 'complete' else '≥'}{run.steps}",
            figures.decimal(run.score),
            figures.duration(run.duration_ms),
            run.run_id,
        ]
        for run in runs
    ]
    lines = table(head, rows, left=left, width=terminal_width(), droppable=_DROPPABLE)
    for line in lines:
        word = line.split(" ", 1)[0]
        tone = _TONES.get(word)
        print(line.replace(word, paint(word, tone, sys.stdout), 1) if tone else line)


def _case(store: Store, found: Selected, runs: list[RunSummary], args: argparse.Namespace) -> int:
    from seatrial._support import wire
    from seatrial.reports.layout import folded, prose, terminal_width
    from seatrial.reports.run_text import first_reason

    assert found.experiment is not None and found.case_id is not None  # noqa: S101, PT018 - the caller looked
    code = PASSED
    case: Case | None = None
    try:
        case = store.case(found.experiment.experiment_id, found.case_id)
    except SeatrialError as error:
        code = _damaged(error)
    shown = runs[args.first : args.first + args.limit]
    if args.json:
        more = len(runs) > args.first + args.limit
        data = {"experiment_id": found.experiment.experiment_id, "case": case, "runs": shown, "more": more}
        sys.stdout.buffer.write(wire.encode(data) + b"\n")
        return code
    width = terminal_width()
    print(f"{paint(one_line(found.case_id, 80), 'bold', sys.stdout)}  {one_line(found.experiment.name, 60)}")
    if case is not None:
        print(*folded(case.instruction, width, "  "), sep="\n")
        if case.tags:
            print(*prose(f"tags: {', '.join(case.tags)}", width, "  "), sep="\n")
    print()
    if not shown:
        print("There are no such runs.")
        return code
    _runs(shown, with_case=False)
    for summary in shown:
        if summary.outcome == "passed":
            continue
        try:
            reason = first_reason(store.run_record(summary.run_id))
        except SeatrialError as error:
            code = _damaged(error)
            continue
        word = paint(summary.outcome, _TONES.get(summary.outcome, "dim"), sys.stdout)
        print(f"\n{word}  {one_line(summary.run_id, 60)}")
        print(*prose(one_line(reason or summary.status, 1000), width, "  "), sep="\n")
    if len(runs) > args.first + args.limit:
        print(f"… and {len(runs) - args.first - args.limit:,} more: --from {args.first + args.limit}")
    return code


def _damaged(error: SeatrialError) -> int:
    if error.code != "damaged":
        raise error
    print(f"seatrial: {printable(str(error))} [damaged]", file=sys.stderr)
    return COULD_NOT_RUN


def _run(store: Store, run_id: str, args: argparse.Namespace) -> int:
    from seatrial._support import wire
    from seatrial.reports.layout import terminal_width
    from seatrial.reports.run_text import run_text

    page = _page(store, run_id, args.first, args.messages)
    if args.json:
        sys.stdout.buffer.write(wire.encode(_data(page)) + b"\n")
    else:
        sys.stdout.write(run_text(page, colour=wants_colour(sys.stdout), width=terminal_width()))
    return PASSED


def _page(store: Store, run_id: str, first: int, count: int) -> TranscriptPage:
    """So many messages of a run, and what else is shown of it; never the whole run."""
    from seatrial.reports.run_text import TranscriptPage
    from seatrial.reports.stored import messages_sent
    from seatrial.reports.stored_findings import stored_findings
    from seatrial.runs import RunKey
    from seatrial.store import RunNotes
    from seatrial.transcript import UserMessage

    record = store.run_record(run_id)
    try:
        items = store.items(run_id, first, count)
    except SeatrialError as error:
        raise SeatrialError("damaged", f"the messages of run {run_id} cannot be read: {error.message}") from None
    notes = store.run_notes([run_id], limit=NOTES).get(run_id) or RunNotes(None, [], {})
    _restore_patch(store, record)
    attempts = [attempt for exchange in record.exchanges for attempt in exchange.attempts]
    page = TranscriptPage(
        run_id=run_id,
        record=record,
        items=items,
        notes=notes,
        first=first,
        sent=messages_sent(store, notes.notes, attempts[-1], MAX_BODY) if attempts else None,
    )
    known = record.completeness
    # Calls that went through the tool proxy, or that a trace has, are in no message.
    elsewhere = known is not None and not {"observed", "trace"}.isdisjoint([known.source, *known.sources])
    if elsewhere and max(record.messages, record.summary.steps or 0) <= MAX_STEPS:
        page.steps = [step for step in store.run(run_id).steps if step.source in ("observed", "trace")]
    case = None
    if record.experiment_id is not None and isinstance(record.key, RunKey):
        page.experiment = store.resolve_experiment(record.experiment_id)
        case = store.case(record.experiment_id, record.key.case_id)
        if first == 0 and not any(isinstance(item.message, UserMessage) for item in items):
            page.case = case
    codes = {code for code, _ in notes.counts}
    page.findings = stored_findings(store, record, page.experiment, case, codes=codes)
    return page


def _restore_patch(store: Store, record: RunRecord) -> None:
    """Give a record the whole of its patch, which is kept beside it where it is long."""
    for long in record.long_texts:
        if record.diff is not None and long.pointer == "/diff/patch":
            record.diff.patch = store.text(long.address)
            record.long_texts.remove(long)
            return


def _data(page: TranscriptPage) -> dict[str, Any]:
    following = page.items[-1].index + 1 if page.items else page.first
    return {
        "run": page.record,
        "sentence": page.findings.sentence.text if page.findings is not None else "",
        "findings": page.findings.findings if page.findings is not None else [],
        "messages": page.items,
        "from": page.first,
        "next": following if following < page.record.messages and page.items else None,
        "notes": page.notes.notes,
        "note_counts": [
            {"code": code, "weight": weight, "count": count} for (code, weight), count in page.notes.counts.items()
        ],
        "steps": page.steps,
    }
