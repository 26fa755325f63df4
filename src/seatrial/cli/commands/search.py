"""`seatrial search TEXT`: runs whose messages or calls contain some words."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any

from seatrial.cli.exits import COULD_NOT_RUN, PASSED
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.selection import LIMIT, add_filter_options, count, run_filter
from seatrial.cli.terminal import one_line, paint, printable
from seatrial.errors import SeatrialError
from seatrial.runs import RunKey

if TYPE_CHECKING:
    from seatrial.store import Hit, RunSummary, Store

_TONES = {"failed": "red", "errored": "yellow", "damaged": "yellow", "passed": "green"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text",
        metavar="TEXT",
        help='words that must all occur; "words in quotes" follow each other, refun* is any word that begins so',
    )
    add_store_option(parser)
    parser.add_argument("--experiment", metavar="EXPERIMENT", help="only runs of this experiment")
    add_filter_options(parser)
    parser.add_argument("--limit", type=count, default=LIMIT, metavar="N", help=f"runs to show (default: {LIMIT})")
    parser.add_argument("--json", action="store_true", help="the hits as a JSON array")
    parser.epilog = (
        "The newest runs come first. Of a run, the first place where the text occurs is shown.\n"
        "exit codes: 0 searched, whatever was found; 2 usage, or no such store or experiment; 3 the store, or a run\n"
        "that was found, could not be read."
    )


def run(args: argparse.Namespace) -> int:
    from seatrial._support import wire
    from seatrial.store.search import phrases

    if not phrases(args.text):
        raise SeatrialError("usage", "there is no word to search for", hint="a word has letters or digits")
    with opened_store(args, read_only=True) as store:
        experiment = None if args.experiment is None else store.resolve_experiment(args.experiment)
        where = run_filter(store, experiment, args)
        wanted = None if experiment is None else experiment.experiment_id
        found = store.search(args.text, experiment_id=wanted, where=where, limit=args.limit + 1)
        hits = [(hit, _summary(store, hit)) for hit in found[: args.limit]]
    damaged = sum(summary is None for _, summary in hits)
    if args.json:
        sys.stdout.buffer.write(wire.encode([_data(*entry) for entry in hits]) + b"\n")
    else:
        for entry in hits:
            _show(*entry)
        if not hits:
            print("Nothing was found.")
        elif len(found) > args.limit:
            print(f"… there are more: --limit {args.limit * 5}")
    return COULD_NOT_RUN if damaged else PASSED


def _summary(store: Store, hit: Hit) -> RunSummary | None:
    """What came of the run; None, and it is said, when its record is damaged."""
    try:
        return store.run_record(hit.run_id).summary
    except SeatrialError as error:
        if error.code != "damaged":
            raise
        print(f"seatrial: {printable(str(error))} [damaged]", file=sys.stderr)
        return None


def _show(hit: Hit, summary: RunSummary | None) -> None:
    from seatrial.reports.layout import prose, terminal_width

    outcome = "damaged" if summary is None else summary.outcome
    key = hit.key
    if isinstance(key, RunKey):
        named = [hit.experiment_id or "", key.case_id, key.agent, *([f"trial {key.trial}"] if key.trial > 1 else [])]
    else:
        named = [f"thread {key.thread_id}", key.agent]
    where = "  ".join(one_line(name, 60) for name in named)
    print(f"{paint(outcome, _TONES.get(outcome, 'dim'), sys.stdout)}  {where}  {one_line(hit.run_id, 60)}")
    place = printable(hit.pointer) or "/"
    for number, line in enumerate(prose(hit.snippet, terminal_width(), "    ", f"    {place}: ")):
        print(_marked(line, hit, len(f"    {place}: ") if number == 0 else 0))


def _marked(line: str, hit: Hit, skipped: int) -> str:
    """The line with what was searched for in bold."""
    head, rest = line[:skipped], line[skipped:]
    words = sorted({re.escape(hit.snippet[start:end]) for start, end in hit.marks}, key=len, reverse=True)
    return head + re.sub("|".join(words), lambda found: paint(found[0], "bold", sys.stdout), rest) if words else line


def _data(hit: Hit, summary: RunSummary | None) -> dict[str, Any]:
    import msgspec

    return {**msgspec.structs.asdict(hit), "summary": summary, "damaged": summary is None}
