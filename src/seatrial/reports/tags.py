"""Results by tag: what the cases with a tag come to.

A case with several tags counts under each. Of a great many tags, those of the most cases are shown: which ones these
are does not depend on any result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import get_args

import msgspec

from seatrial.reports import figures
from seatrial.reports.figures import left_out_columns, left_out_reasons
from seatrial.reports.rows import ReportSource
from seatrial.reports.statistics.intervals import Interval, normal_quantile, pass_rate_interval
from seatrial.store import CaseTags, StoredOutcome

MAX_TAGS = 100
"""Tags that are looked at."""
MAX_SENTENCES = 5

JUDGED: frozenset[StoredOutcome] = frozenset({"passed", "failed"})
UNJUDGED: frozenset[StoredOutcome] = frozenset(get_args(StoredOutcome)) - JUDGED


class TagSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one agent on the cases with a tag. The rate is of those that passed or failed."""

    tag: str
    agent: str
    cases: int
    """Cases that it has runs of."""
    runs: int
    passed: int
    failed: int
    errored: int
    other: int
    """Skipped, ungraded, cancelled or unfinished."""
    pass_rate: float | None
    rate_of_all: float | None
    """Share of all runs that passed, those that the pass rate leaves out included."""
    left_out: dict[str, int]
    """Runs that are in no rate, by why: a class of fault, or else their outcome."""
    interval: Interval | None
    """Of the pass rate; wide enough that the intervals of all tags and agents hold at once, with 95% confidence."""

    @property
    def graded(self) -> int:
        """Runs that passed or failed."""
        return self.passed + self.failed


class ByTag(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment by tag."""

    rows: list[TagSummary] = []
    """Those of the lowest pass rate first."""
    untagged: int = 0
    """Cases without a tag."""
    unread: int = 0
    """Cases whose tags cannot be read any more."""
    omitted: list[str] = []
    """Tags of fewer cases than the `MAX_TAGS` in `rows`."""


def by_tag(source: ReportSource, agents: Sequence[str]) -> ByTag:
    """What the runs of these agents come to, tag by tag."""
    tags = source.tags()
    if not tags.of and not tags.unread:
        return ByTag()
    chosen, omitted = most_frequent(tags.of.values())
    rows = [row for agent in agents for row in _rows_of(source, agent, tags, chosen)]
    count = sum(row.graded > 0 for row, _ in rows)
    z = normal_quantile(1 - 0.05 / max(count, 1))
    found = [
        msgspec.structs.replace(row, interval=pass_rate_interval(tallies, z)) if row.graded else row
        for row, tallies in rows
    ]
    return ByTag(
        rows=sorted(found, key=_badness),
        untagged=tags.cases - tags.unread - len(tags.of),
        unread=tags.unread,
        omitted=omitted,
    )


def most_frequent(of_cases: Iterable[Sequence[str]]) -> tuple[list[str], list[str]]:
    """The tags that are looked at, from those of each case, and the others."""
    counts = Counter(tag for of_case in of_cases for tag in of_case)
    ordered = sorted(counts, key=lambda tag: (-counts[tag], tag))
    return ordered[:MAX_TAGS], ordered[MAX_TAGS:]


def _badness(row: TagSummary) -> tuple[float, float, str, str]:
    return (2.0 if row.pass_rate is None else row.pass_rate, row.rate_of_all or 0.0, row.tag, row.agent)


def _rows_of(
    source: ReportSource, agent: str, tags: CaseTags, chosen: Collection[str]
) -> list[tuple[TagSummary, Counter[tuple[int, int]]]]:
    """A row for each tag, still without its interval, with how many cases have so many graded runs and passed ones."""
    runs: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    errored: Counter[str] = Counter()
    tallies: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for cell in source.counts.cells(agent):
        for tag in tags.of.get(cell.case_id, ()):
            cases[tag] += 1
            runs[tag] += cell.runs
            passed[tag] += cell.passed
            failed[tag] += cell.failed
            errored[tag] += cell.errored
            if cell.graded:
                tallies[tag][cell.graded, cell.passed] += 1
    left_out: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in source.rows(agent=agent, outcomes=UNJUDGED):
        for tag in tags.of.get(row.case_id, ()):
            left_out[tag][row.left_out or row.outcome] += 1
    return [
        (
            TagSummary(
                tag=tag,
                agent=agent,
                cases=cases[tag],
                runs=runs[tag],
                passed=passed[tag],
                failed=failed[tag],
                errored=errored[tag],
                other=runs[tag] - passed[tag] - failed[tag] - errored[tag],
                pass_rate=passed[tag] / graded if (graded := passed[tag] + failed[tag]) else None,
                rate_of_all=passed[tag] / runs[tag] if runs[tag] else None,
                left_out=dict(sorted(left_out[tag].items(), key=lambda item: (-item[1], item[0]))),
                interval=None,
            ),
            tallies[tag],
        )
        for tag in sorted(cases)
        if tag in chosen
    ]


def tags_table(found: ByTag) -> tuple[list[str], list[list[str]]]:
    """Head and rows; the agent only where there are several."""
    several = len({row.agent for row in found.rows}) > 1
    beside, left_out = left_out_columns(found.rows)
    head = ["tag", *(["agent"] if several else []), "cases", "runs", "passed", "failed", "errored", "pass rate"]
    return [*head, *beside, "interval"], [
        [
            row.tag,
            *([row.agent] if several else []),
            f"{row.cases:,}",
            f"{row.runs:,}",
            f"{row.passed:,}",
            f"{row.failed:,}",
            f"{row.errored:,}",
            figures.percent(row.pass_rate),
            *cells,
            figures.percent_range(row.interval),
        ]
        for row, cells in zip(found.rows, left_out, strict=True)
    ]


def tag_remarks(found: ByTag) -> list[str]:
    """What must be known beside the table: how sure the intervals are, and which runs and cases are not in it."""
    if not found.rows and not found.unread:
        return []
    count = sum(row.interval is not None for row in found.rows)
    remarks = []
    if count:
        together = "The interval holds" if count == 1 else f"The {count:,} intervals hold together,"
        remarks.append(f"{together} with 95% confidence. A case with several tags counts under each.")
    lacking = [row for row in found.rows if row.left_out]
    several = len({row.agent for row in found.rows}) > 1
    for row in lacking[:MAX_SENTENCES]:
        name = f"{row.tag} ({row.agent})" if several else row.tag
        remarks.append(f"{name}: {left_out_reasons(row)}.")
    if len(lacking) > MAX_SENTENCES:
        remarks.append(f"… and {len(lacking) - MAX_SENTENCES:,} more rows leave runs out.")
    if found.untagged:
        remarks.append(f"{figures.plural(found.untagged, 'case')} {_have(found.untagged)} no tag.")
    if found.unread:
        remarks.append(
            f"{figures.plural(found.unread, 'case')} cannot be read any more: what tags they had is unknown."
        )
    if found.omitted:
        remarks.append(omitted_sentence(found.omitted))
    return remarks


def unread_sentence(count: int) -> str:
    """That the tags of so many cases are unknown."""
    return f"{figures.plural(count, 'case')} cannot be read any more: what tags they had is unknown."


def omitted_sentence(tags: Sequence[str]) -> str:
    """That there are more tags than are looked at."""
    return f"{figures.plural(len(tags), 'more tag')} of fewer cases {_are(len(tags))} not shown."


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
