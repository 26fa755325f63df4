"""A comparison as one HTML file that needs nothing else: like the page of a report, and as safe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from seatrial._support.printable import one_line
from seatrial.reports import figures
from seatrial.reports.compare import CaseChange, Comparison, Side
from seatrial.reports.compare_text import (
    CHANGES,
    call_cautions,
    cautions,
    change_cells,
    comparison_remarks,
    diff_lines,
    sides_table,
    tag_remarks,
    tag_sentences,
    tag_table,
    why_moved,
)
from seatrial.reports.figures import left_out_sentence
from seatrial.reports.html import page_style, page_templates, pass_rate_bar
from seatrial.reports.report import ERRORED_NOTE
from seatrial.reports.sentences import comparison_sentence, interval_text
from seatrial.reports.statistics.paired import PairedDifference

MAX_LISTED = 200
"""Cases of a list."""
MAX_WHY = 600
LEAST_REACH = 0.1
"""What the drawn differences reach to at least, so that nothing small looks large."""


class _Difference(msgspec.Struct):
    """A difference with its interval: places in a drawing of which 50 is zero, and the same in words."""

    label: str
    at: str
    low: str
    high: str


def comparison_html(comparisons: Sequence[Comparison], incomparable: Sequence[str] = ()) -> Iterator[str]:
    """The page in pieces, for at least one pair of agents; and why other pairs could not be compared."""
    page: Any = page_templates().get_template("compare.html").module
    first = comparisons[0]
    yield page.start(f"{first.a.name} → {first.b.name}", *page_style())
    yield page.header(first.a.name, first.b.name, [_facts("a", first.a), _facts("b", first.b)])
    yield page.incomparable(incomparable)
    anchor = "regressions"
    for number, comparison in enumerate(comparisons, 1):
        yield from _agent(comparison, number, page, anchor)
        anchor = "" if comparison.regressions else anchor
    yield page.end(ERRORED_NOTE)


def _facts(letter: str, side: Side) -> str:
    suite = f", suite {side.suite}" if side.suite else ""
    return f"{letter}: {side.name}, {side.experiment_id}{suite}"


def _agent(comparison: Comparison, number: int, page: Any, anchor: str) -> Iterator[str]:
    a, b = comparison.a.agent, comparison.b.agent
    headlines = [(_kind(found), sentence) for found, sentence in tag_sentences(comparison)]
    headlines.append((_kind(comparison), comparison_sentence(comparison).text))
    yield page.verdict(number, b if a == b else f"{a} → {b}", headlines, list(cautions(comparison)))
    titles, rows = sides_table(comparison)
    rate = titles.index("pass rate")
    others = [at for at in range(3, len(titles)) if at != rate]
    summaries = [comparison.a.summary, comparison.b.summary]
    # The names of agent and experiment are above.
    yield page.sides(
        ["", titles[rate], *(titles[at] for at in others)],
        [
            (
                row[0],
                pass_rate_bar(summary.pass_rate, summary.interval, left_out_sentence(summary)),
                row[rate],
                [row[at] for at in others],
            )
            for row, summary in zip(rows, summaries, strict=True)
        ],
        list(comparison_remarks(comparison)),
    )
    yield from _tags(comparison, number, page)
    for title, count, changes, place in (
        ("Regressions", comparison.worse, comparison.regressions, anchor),
        ("Improvements", comparison.better, comparison.improvements, ""),
    ):
        if changes:
            yield page.changes(
                place,
                f"{title} ({count:,})",
                [*CHANGES, "why"],
                [_change(change) for change in changes[:MAX_LISTED]],
                f"{count - MAX_LISTED:,}" if count > MAX_LISTED else "",
            )
    if (worst := comparison.worst) is not None:
        kinds = {"-": "gone", "+": "new", "~": "changed"}
        lines = [(kinds.get(line[:1], ""), line) for line in diff_lines(worst)]
        yield page.calls(worst.case_id, list(call_cautions(worst)), lines)
    yield page.section_end()


def _tags(comparison: Comparison, number: int, page: Any) -> Iterator[str]:
    titles, rows = tag_table(comparison)
    if not rows and not comparison.unread:
        return
    ends = [abs(end) for found in comparison.by_tag for end in (found.interval.low, found.interval.high)]
    reach = max([LEAST_REACH, *ends])
    drawn: list[tuple[str, _Difference | None]] = [(_kind(found), _drawn(found, reach)) for found in comparison.by_tag]
    drawn += [("", None) for _ in comparison.incomparable_tags]
    # What changed is what a narrow screen must show, beside the name.
    change = titles.index("difference")
    others = [change, *(at for at in range(1, len(titles)) if at != change)]
    yield page.tags(
        number,
        [titles[0], "", *(titles[at] for at in others)],
        [(row[0], kind, bar, [row[at] for at in others]) for row, (kind, bar) in zip(rows, drawn, strict=True)],
        tag_remarks(comparison),
    )


def _kind(found: PairedDifference) -> str:
    return "worse" if found.is_worse else "better" if found.is_better else ""


def _drawn(found: PairedDifference, reach: float) -> _Difference:
    at, low, high = (
        f"{50 + 50 * value / reach:.2f}" for value in (found.difference, found.interval.low, found.interval.high)
    )
    return _Difference(f"{figures.points(found.difference)} points, interval {interval_text(found)}", at, low, high)


def _change(change: CaseChange) -> tuple[str, list[str], str]:
    name, *cells = change_cells(change)
    return name, cells, one_line(why_moved(change) or "", MAX_WHY)
