"""A comparison in words, for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from seatrial._support.printable import coloured, one_line, printable
from seatrial.reports import figures
from seatrial.reports.compare import CaseChange, Comparison, Side, TrajectoryDiff
from seatrial.reports.detail import difference_text, step_text
from seatrial.reports.layout import NO_TERMINAL, prose
from seatrial.reports.left_out import left_out_columns, left_out_sentence
from seatrial.reports.markdown import code, fenced, markdown_table
from seatrial.reports.notes import remarks
from seatrial.reports.paired import PairedDifference, Test
from seatrial.reports.table import table
from seatrial.trajectory.comparison import Aligned

MAX_LISTED = 20
MAX_DIFF_LINES = 60
CONTEXT = 3
"""Equal calls that are shown before and after a difference."""
MAX_NAMED = 5

_DROPPABLE = ("cost", "judges", "median", "of all runs", "95% interval", "runs")
_CHANGES = ["case", "passed in a", "passed in b", "score a", "score b"]


def comparison_terminal(comparison: Comparison, *, colour: bool = False, width: int = NO_TERMINAL) -> str:
    """The comparison for a terminal; ends with a newline."""
    return "".join(f"{line}\n" for line in _terminal(comparison, colour, width))


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison for a CI step summary."""
    return "".join(_markdown(comparison))


_TESTS: dict[Test, str] = {"mcnemar": "McNemar", "sign_flip": "sign-flip test"}


def verdict_sentence(comparison: PairedDifference) -> str:
    """What the figures come to: a difference only where the test says so, and then the interval is without zero."""
    word = "better" if comparison.difference > 0 else "worse"
    head = f"b is {word}" if comparison.is_better or comparison.is_worse else "no clear difference"
    interval = f"{figures.points(comparison.interval.low)} to {figures.points(comparison.interval.high)}"
    return (
        f"{head}: {figures.points(comparison.difference)} points "
        f"(95% interval {interval}; {_TESTS[comparison.test]} {figures.p_value(comparison.p_value)})"
    )


def diff_lines(found: TrajectoryDiff) -> list[str]:
    """The calls of both runs as a diff: `-` only in a, `+` only in b, `~` with other arguments."""
    lines: list[tuple[str, str]] = []
    at_a = at_b = 0
    for pair in [*found.diff.aligned, Aligned(len(found.steps_a), len(found.steps_b), [])]:
        lines += [("-", step_text(step)) for step in found.steps_a[at_a : pair.a]]
        lines += [("+", step_text(step)) for step in found.steps_b[at_b : pair.b]]
        if pair.a < len(found.steps_a):
            lines.append(("~" if pair.differences else " ", step_text(found.steps_b[pair.b])))
            # `expected` is what a has, `actual` what b has.
            lines += [("~", f"    {difference_text(difference)} as in a") for difference in pair.differences]
        at_a, at_b = pair.a + 1, pair.b + 1
    lines = list(_collapsed(lines))
    more = len(lines) - MAX_DIFF_LINES
    shown = [f"{mark} {printable(text)}".replace("\n", "\\n") for mark, text in lines[:MAX_DIFF_LINES]]
    return [*shown, f"  … and {more:,} more lines"] if more > 0 else shown


def _collapsed(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The lines without those in the middle of many that are equal."""
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end][0] == " ":
            end += 1
        before, after = (CONTEXT if at else 0), (CONTEXT if end < len(lines) else 0)
        if end - at > before + after + 1:
            yield from lines[at : at + before]
            yield " ", f"… {end - at - before - after:,} equal calls …"
            yield from lines[end - after : end]
        else:
            yield from lines[at:end]
        if end < len(lines):
            yield lines[end]
        at = end + 1


def _terminal(comparison: Comparison, colour: bool, width: int) -> Iterator[str]:
    head, rows = _sides(comparison)
    yield from table(head, rows, left=3, width=width, droppable=_DROPPABLE)
    yield ""
    tone = "green" if comparison.is_better else "red" if comparison.is_worse else "bold"
    for line in prose(verdict_sentence(comparison), width):
        yield coloured(line, tone) if colour else line
    for remark in _remarks(comparison):
        yield from prose(remark, width, "  ", "")
    for title, count, changes in (
        ("regressions", comparison.worse, comparison.regressions),
        ("improvements", comparison.better, comparison.improvements),
    ):
        if changes:
            yield ""
            heading = f"{title} ({count:,})"
            yield coloured(heading, "bold") if colour else heading
            yield from table(_CHANGES, _changes(changes), indent="  ", width=width, droppable=["score a", "score b"])
            if count > MAX_LISTED:
                yield f"  … and {count - MAX_LISTED:,} more"
    if comparison.worst is not None:
        yield ""
        yield from prose(
            f"calls of the worst regression, {one_line(comparison.worst.case_id, 80)}, from a to b:", width
        )
        for caution in _cautions(comparison.worst):
            yield from prose(caution, width, "  ")
        yield from painted_diff(diff_lines(comparison.worst), colour, width)


def painted_diff(lines: Iterable[str], colour: bool, width: int) -> Iterator[str]:
    """The lines of a diff, folded, in the colours of their marks."""
    tones = {"-": "red", "+": "green", "~": "yellow"}
    for line in lines:
        mark, body = line[:1], line[2:]
        lead = " " * (len(body) - len(body.lstrip()))
        # Where a line is folded, what follows stands deeper.
        for part in prose(body, width, f"      {lead}", f"  {mark} {lead}"):
            yield coloured(part, tones[mark]) if colour and mark in tones else part


def _markdown(comparison: Comparison) -> Iterator[str]:
    yield f"## {code(_label(comparison.a))} against {code(_label(comparison.b))}\n\n"
    yield f"**{verdict_sentence(comparison)}**\n\n"
    yield from markdown_table(*_sides(comparison), left=3)
    yield "".join(f"\n{remark}\n" for remark in _remarks(comparison))
    for title, count, changes in (
        ("Regressions", comparison.worse, comparison.regressions),
        ("Improvements", comparison.better, comparison.improvements),
    ):
        if changes:
            yield f"\n### {title} ({count:,})\n\n"
            yield from markdown_table(_CHANGES, _changes(changes))
            if count > MAX_LISTED:
                yield f"\n… and {count - MAX_LISTED:,} more.\n"
    if comparison.worst is not None:
        yield f"\n### Calls of the worst regression\n\n{code(comparison.worst.case_id)}, from a to b:\n\n"
        yield "".join(f"{caution}\n\n" for caution in _cautions(comparison.worst))
        yield fenced("\n".join(diff_lines(comparison.worst)), "diff")


def _label(side: Side) -> str:
    return f"{side.agent} in {side.name}"


def _sides(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    beside, left_out = left_out_columns([comparison.a.summary, comparison.b.summary])
    head = ["", "agent", "experiment", "runs", "passed", "failed", "errored", "pass rate", *beside]
    head += ["95% interval", "median", "cost"]
    judged = any(side.summary.judges is not None for side in (comparison.a, comparison.b))
    head += ["judges"] if judged else []
    rows = []
    for letter, side, cells in (("a", comparison.a, left_out[0]), ("b", comparison.b, left_out[1])):
        summary = side.summary
        rows.append(
            [
                letter,
                side.agent,
                f"{side.name} {side.experiment_id}",
                f"{summary.runs:,}",
                f"{summary.passed:,}",
                f"{summary.failed:,}",
                f"{summary.errored:,}",
                figures.percent(summary.pass_rate),
                *cells,
                figures.percent_range(summary.interval),
                figures.duration(summary.duration_p50_ms),
                figures.cost(summary),
                *([figures.judges(summary.judges)] if judged else []),
            ]
        )
    return head, rows


def _remarks(comparison: Comparison) -> Iterator[str]:
    yield (
        f"{figures.plural(comparison.paired, 'case')} with graded runs on both sides: "
        f"{comparison.better:,} became better, {comparison.worse:,} worse. Averaged over them, "
        f"{figures.percent(comparison.rate_a)} became {figures.percent(comparison.rate_b)}."
    )
    for letter, side in (("a", comparison.a), ("b", comparison.b)):
        if side.unfinished is not None:
            yield f"{letter} {printable(side.unfinished)}."
    if comparison.unpaired:
        yield (
            f"{figures.plural(comparison.unpaired, 'case')} left out: only one side has a graded run "
            f"({_named(comparison.unpaired_cases, comparison.unpaired)}). Errored runs are not counted."
        )
    if comparison.unselected:
        yield f"{unselected_sentence(comparison)}."
    if comparison.lost:
        yield (
            f"{figures.plural(comparison.lost, 'case')} could be judged in a, and not in b, or not in every trial that "
            "was planned: whether b became worse there is not known."
        )
    for letter, side in (("a", comparison.a), ("b", comparison.b)):
        if (sentence := left_out_sentence(side.summary)) is not None:
            yield f"{letter}: {sentence}"
    if comparison.a.suite_hash != comparison.b.suite_hash:
        yield "The suites are not the same; cases are paired by their ids alone."
    for letter, side in (("a", comparison.a), ("b", comparison.b)):
        if remark := remarks(side.summary):
            yield f"{letter}: {remark}"
        last = side.summary.trials[-1] if side.summary.trials else None
        if last is not None and last.k > 1:
            yield (
                f"{letter}: pass@{last.k} {figures.percent(last.pass_at_k)}, pass^{last.k} "
                f"{figures.percent(last.pass_hat_k)}, {figures.plural(side.summary.flaky, 'flaky case')}."
            )


def unselected_sentence(comparison: Comparison) -> str:
    """Which cases nobody compared, because b was told to run others."""
    cases = comparison.unselected
    were = "was" if len(cases) == 1 else "were"
    return f"{figures.plural(len(cases), 'case')} of a {were} not selected in b: {_named(cases, len(cases))}"


def _named(cases: Sequence[str], count: int) -> str:
    shown = ", ".join(one_line(case_id, 80) for case_id in cases[:MAX_NAMED])
    return f"{shown}, and {count - MAX_NAMED:,} more" if count > MAX_NAMED else shown


def _cautions(found: TrajectoryDiff) -> Iterator[str]:
    for letter, level in (("a", found.calls_a), ("b", found.calls_b)):
        if level != "complete":
            yield f"The calls of the run in {letter} are not all known: it may have made others."


def _changes(changes: Sequence[CaseChange]) -> list[list[str]]:
    return [
        [
            change.case_id,
            f"{change.passed_a} of {change.graded_a}",
            f"{change.passed_b} of {change.graded_b}",
            figures.decimal(change.score_a),
            figures.decimal(change.score_b),
        ]
        for change in changes[:MAX_LISTED]
    ]
