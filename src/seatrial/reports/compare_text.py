"""A comparison in words, for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from seatrial._support.printable import coloured, one_line, printable
from seatrial.reports import figures
from seatrial.reports.compare import CaseChange, Comparison, IncomparableTag, Side, TagDifference, TrajectoryDiff
from seatrial.reports.detail import difference_text, step_text
from seatrial.reports.figures import left_out_columns, left_out_sentence
from seatrial.reports.layout import NO_TERMINAL, prose, table
from seatrial.reports.markdown import code, fenced, markdown_table
from seatrial.reports.notes import remarks
from seatrial.reports.sentences import comparison_sentence, interval_text
from seatrial.reports.statistics.paired import MIN_CHANGED
from seatrial.reports.tags import omitted_sentence, unread_sentence
from seatrial.trajectory.comparison import Aligned

MAX_LISTED = 20
MAX_TAG_ROWS = 10
MAX_WHY = 5
"""Reasons that are shown below a list of cases."""
MAX_REASON = 300
MAX_DIFF_LINES = 60
CONTEXT = 3
"""Equal calls that are shown before and after a difference."""
MAX_NAMED = 5

_DROPPABLE = ("cost", "judges", "median", "of all runs", "95% interval", "runs")
CHANGES = ["case", "passed in a", "passed in b", "score a", "score b"]


def comparison_terminal(
    comparison: Comparison, *, colour: bool = False, width: int = NO_TERMINAL, tags: int = MAX_TAG_ROWS
) -> str:
    """The comparison for a terminal, with so many rows of tags; ends with a newline."""
    return "".join(f"{line}\n" for line in _terminal(comparison, colour, width, tags))


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison for a CI step summary."""
    return "".join(_markdown(comparison))


def tag_sentence(found: TagDifference, count: int) -> str:
    """What the corrected test says of one of so many tags: `worse in tag account: 98.0 → 82.7 % (...)`."""
    word = "worse" if found.is_worse else "better" if found.is_better else "no clear difference"
    after = f"corrected for {count:,} tags" if count > 1 else "one tag"
    return (
        f"{word} in tag {one_line(found.tag, 80)}: {figures.percent_change(found.rate_a, found.rate_b)} "
        f"({figures.points(found.difference)} points, 95% interval {interval_text(found)}; "
        f"{figures.p_value(found.p_value)}, {after})"
    )


def tag_sentences(comparison: Comparison) -> list[tuple[TagDifference, str]]:
    """That of each tag of which the test says that it is worse or better; worse ones first."""
    return [
        (found, tag_sentence(found, len(comparison.by_tag)))
        for found in comparison.by_tag
        if found.is_worse or found.is_better
    ]


def tag_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Head and rows: how much each tag changed, and which could not be compared."""
    lacking = any(found.unpaired for found in comparison.by_tag) or bool(comparison.incomparable_tags)
    head = ["tag", "cases", *(["left out"] if lacking else []), "a", "b", "difference", "interval", "p"]
    rows = [
        [
            found.tag,
            f"{found.paired:,}",
            *([f"{found.unpaired:,}"] if lacking else []),
            figures.percent(found.rate_a),
            figures.percent(found.rate_b),
            figures.points(found.difference),
            interval_text(found),
            figures.p_value(found.p_value).removeprefix("p ").removeprefix("= "),
        ]
        for found in comparison.by_tag
    ]
    return head, rows + [
        [found.tag, "0", f"{found.unpaired:,}", "–", "–", "–", "–", "–"] for found in comparison.incomparable_tags
    ]


def tag_remarks(comparison: Comparison) -> list[str]:
    """What must be known beside the table of tags."""
    count = len(comparison.by_tag)
    remarks = []
    if count > 1:
        remarks.append(
            f"The p-values are corrected for looking at {count:,} tags (Holm; those in which fewer than {MIN_CHANGED} "
            "cases changed are not counted), and the intervals hold together, with 95% confidence. A case with several "
            "tags counts under each."
        )
    few = [found.tag for found in comparison.by_tag if found.paired < MIN_CHANGED]
    if few:
        verb = "has" if len(few) == 1 else "have"
        remarks.append(
            f"{figures.plural(len(few), 'tag')} {verb} fewer than {MIN_CHANGED} cases to compare, too few to say "
            f"anything of: {_named(few, len(few))}."
        )
    every: list[TagDifference | IncomparableTag] = [*comparison.by_tag, *comparison.incomparable_tags]
    lacking = [found for found in every if found.unpaired]
    for found in lacking[:MAX_NAMED]:
        verb = "is" if found.unpaired == 1 else "are"
        head = f"{one_line(found.tag, 80)}: {figures.plural(found.unpaired, 'case')} {verb} left out"
        remarks.append(f"{head}: {why_left_out(found.left_out)}.")
    if len(lacking) > MAX_NAMED:
        remarks.append(f"… and {figures.plural(len(lacking) - MAX_NAMED, 'more tag')} with cases that are left out.")
    if comparison.untagged:
        verb = "has" if comparison.untagged == 1 else "have"
        remarks.append(f"{figures.plural(comparison.untagged, 'case')} {verb} no tag.")
    if comparison.unread:
        remarks.append(unread_sentence(comparison.unread))
    if comparison.omitted_tags:
        remarks.append(omitted_sentence(comparison.omitted_tags))
    return remarks


def why_left_out(counts: Mapping[str, int]) -> str:
    """Why cases are left out, each reason with how many."""
    return ", ".join(f"{printable(why)} ({count:,})" for why, count in counts.items())


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


def _terminal(comparison: Comparison, colour: bool, width: int, tags: int) -> Iterator[str]:
    for found, sentence in tag_sentences(comparison):
        for line in prose(sentence, width, "  ", ""):
            yield coloured(line, "red" if found.is_worse else "green") if colour else line
    for caution in cautions(comparison):
        for line in prose(caution, width, "  ", ""):
            yield coloured(line, "yellow") if colour else line
    if comparison.a.suite != comparison.b.suite or any(
        found.is_worse or found.is_better for found in comparison.by_tag
    ):
        yield ""
    head, rows = sides_table(comparison)
    yield from table(head, rows, left=3, width=width, droppable=_DROPPABLE)
    yield ""
    tone = "green" if comparison.is_better else "red" if comparison.is_worse else "bold"
    for line in prose(comparison_sentence(comparison).text, width):
        yield coloured(line, tone) if colour else line
    for remark in comparison_remarks(comparison):
        yield from prose(remark, width, "  ", "")
    yield from _tags_in_terminal(comparison, colour, width, tags)
    for title, count, changes in (
        ("regressions", comparison.worse, comparison.regressions),
        ("improvements", comparison.better, comparison.improvements),
    ):
        if changes:
            yield ""
            heading = f"{title} ({count:,})"
            yield coloured(heading, "bold") if colour else heading
            yield from table(CHANGES, _changes(changes), indent="  ", width=width, droppable=["score a", "score b"])
            for cases, why in _reasons(changes):
                yield from prose(f"{_named(cases, len(cases))}: {one_line(why, MAX_REASON)}", width, "    ", "  ")
            if count > MAX_LISTED:
                yield f"  … and {count - MAX_LISTED:,} more"
    if comparison.worst is not None:
        yield ""
        yield from prose(
            f"calls of the worst regression, {one_line(comparison.worst.case_id, 80)}, from a to b:", width
        )
        for caution in call_cautions(comparison.worst):
            yield from prose(caution, width, "  ")
        yield from painted_diff(diff_lines(comparison.worst), colour, width)


def _tags_in_terminal(comparison: Comparison, colour: bool, width: int, most: int) -> Iterator[str]:
    head, rows = tag_table(comparison)
    if not rows and not comparison.unread:
        return
    yield ""
    yield coloured("by tag: the largest drop first", "bold") if colour else "by tag: the largest drop first"
    if rows:
        yield from table(head, rows[:most], indent="  ", width=width, droppable=["p"])
    if len(rows) > most:
        yield f"  … and {len(rows) - most:,} more: `--group-by tag` shows them all"
    for remark in tag_remarks(comparison):
        yield from prose(remark, width, "    ", "  ")


def _reasons(changes: Sequence[CaseChange]) -> list[tuple[list[str], str]]:
    """The first reasons of the cases that are listed, each once, with its cases."""
    found: dict[str, list[str]] = {}
    for change in changes[:MAX_LISTED]:
        if (why := why_moved(change)) is not None:
            found.setdefault(why, []).append(change.case_id)
    return [(cases, why) for why, cases in found.items()][:MAX_WHY]


def why_moved(change: CaseChange) -> str | None:
    """Why a case moved, in a sentence or two: what the failed one of the two runs failed by."""
    edited = "the case itself is not the same on both sides" if change.edited else None
    return "; ".join(filter(None, [edited, change.why])) or None


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
    for found, sentence in tag_sentences(comparison):
        yield f"{'❌' if found.is_worse else '✅'} **{code(sentence)}**\n\n"
    for caution in cautions(comparison):
        yield f"⚠️ {code(caution)}\n\n"
    yield f"**{comparison_sentence(comparison).text}**\n\n"
    yield from markdown_table(*sides_table(comparison), left=3)
    yield "".join(f"\n{remark}\n" for remark in comparison_remarks(comparison))
    head, of_tags = tag_table(comparison)
    if of_tags or comparison.unread:
        yield "\n### By tag\n\n"
        yield from markdown_table(head, of_tags) if of_tags else ()
        yield "".join(f"\n{code(remark)}\n" for remark in tag_remarks(comparison))
    for title, count, changes in (
        ("Regressions", comparison.worse, comparison.regressions),
        ("Improvements", comparison.better, comparison.improvements),
    ):
        if changes:
            yield f"\n### {title} ({count:,})\n\n"
            yield from markdown_table([*CHANGES, "why"], _explained(changes))
            if count > MAX_LISTED:
                yield f"\n… and {count - MAX_LISTED:,} more.\n"
    if comparison.worst is not None:
        yield f"\n### Calls of the worst regression\n\n{code(comparison.worst.case_id)}, from a to b:\n\n"
        yield "".join(f"{caution}\n\n" for caution in call_cautions(comparison.worst))
        yield fenced("\n".join(diff_lines(comparison.worst)), "diff")


def _label(side: Side) -> str:
    return f"{side.agent} in {side.name}"


def sides_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the two sides."""
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


def comparison_remarks(comparison: Comparison) -> Iterator[str]:
    """What must be known beside the sentence: which cases and runs it is about, and which it leaves out."""
    yield (
        f"Averaged over {figures.plural(comparison.paired, 'case')} with graded runs on both sides, "
        f"{figures.percent(comparison.rate_a)} became {figures.percent(comparison.rate_b)}."
    )
    for letter, side in (("a", comparison.a), ("b", comparison.b)):
        if side.unfinished is not None:
            yield f"{letter} {printable(side.unfinished)}."
    if comparison.unpaired:
        yield (
            f"{figures.plural(comparison.unpaired, 'case')} left out: only one side has a graded run "
            f"({_named(comparison.unpaired_cases, comparison.unpaired)}). Errored runs are not counted. "
            f"Why: {why_left_out(comparison.left_out)}."
        )
    if comparison.unselected:
        yield f"{unselected_sentence(comparison)}."
    if comparison.lost:
        yield (
            f"{figures.plural(comparison.lost, 'case')} could be judged in a, and not in b, or not in every trial that "
            "was planned: whether b regressed there is not known."
        )
    for letter, side in (("a", comparison.a), ("b", comparison.b)):
        if (sentence := left_out_sentence(side.summary)) is not None:
            yield f"{letter}: {sentence}"
    yield from suite_remarks(comparison)
    for letter, side in (("a", comparison.a), ("b", comparison.b)):
        if remark := remarks(side.summary):
            yield f"{letter}: {remark}"
        last = side.summary.trials[-1] if side.summary.trials else None
        if last is not None and last.k > 1:
            yield (
                f"{letter}: pass@{last.k} {figures.percent(last.pass_at_k)}, pass^{last.k} "
                f"{figures.percent(last.pass_hat_k)}, {figures.plural(side.summary.flaky, 'flaky case')}."
            )


def suite_remarks(comparison: Comparison) -> Iterator[str]:
    """What differs between the suites of the two sides, so that a difference may not be the agent's doing."""
    if comparison.a.suite_hash != comparison.b.suite_hash:
        yield "The suites are not the same; cases are paired by their ids alone."
        if comparison.suite_changes:
            yield f"What differs beside the cases: {', '.join(map(printable, comparison.suite_changes))}."
        if comparison.edited:
            yield (
                f"{figures.plural(comparison.edited, 'case')} {'is' if comparison.edited == 1 else 'are'} not the same "
                f"on both sides, so that a difference may not be the agent's doing: "
                f"{_named(comparison.edited_cases, comparison.edited)}."
            )


def cautions(comparison: Comparison) -> Iterator[str]:
    """What makes the whole comparison doubtful."""
    a, b = comparison.a.suite, comparison.b.suite
    if a != b:
        yield (
            f"a is of the suite {a or comparison.a.name!r}, b of {b or comparison.b.name!r}: only cases of the same id "
            "are compared, whatever they ask."
        )


def unselected_sentence(comparison: Comparison) -> str:
    """Which cases nobody compared, because b was told to run others."""
    cases = comparison.unselected
    were = "was" if len(cases) == 1 else "were"
    return f"{figures.plural(len(cases), 'case')} of a {were} not selected in b: {_named(cases, len(cases))}"


def _named(cases: Sequence[str], count: int) -> str:
    shown = ", ".join(one_line(case_id, 80) for case_id in cases[:MAX_NAMED])
    return f"{shown}, and {count - MAX_NAMED:,} more" if count > MAX_NAMED else shown


def call_cautions(found: TrajectoryDiff) -> Iterator[str]:
    """That there may have been more calls than those that are shown."""
    for letter, level in (("a", found.calls_a), ("b", found.calls_b)):
        if level != "complete":
            yield f"The calls of the run in {letter} are not all known: it may have made others."


def _explained(changes: Sequence[CaseChange]) -> list[list[str]]:
    return [
        [*row, code(one_line(why, MAX_REASON)) if (why := why_moved(change)) is not None else ""]
        for row, change in zip(_changes(changes), changes, strict=False)
    ]


def _changes(changes: Sequence[CaseChange]) -> list[list[str]]:
    return [change_cells(change) for change in changes[:MAX_LISTED]]


def change_cells(change: CaseChange) -> list[str]:
    """A row of `CHANGES`."""
    return [
        change.case_id,
        f"{change.passed_a} of {change.graded_a}",
        f"{change.passed_b} of {change.graded_b}",
        figures.decimal(change.score_a),
        figures.decimal(change.score_b),
    ]
