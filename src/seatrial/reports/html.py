"""One HTML file that needs nothing else: no script, no request, and nothing that an agent wrote is markup.

Its content security policy allows the one style sheet in it, by its hash, and nothing more. Only runs that did not pass
are shown in detail, and only until the page has its size: the rest are one line each. What it looks like is in
`templates/`, which escape every value.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from heapq import nsmallest
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from seatrial._support.printable import one_line, printable
from seatrial.reports import figures
from seatrial.reports.figures import left_out_sentence, left_out_sentences
from seatrial.reports.findings import finding_text
from seatrial.reports.notes import calls_text, notes_table, notes_text, remarks, shown_notes, without_run
from seatrial.reports.report import ERRORED_NOTE, UNPASSED, Alike, Report, reason, runs_alike
from seatrial.reports.rows import NoteLine, RunRow, matrix
from seatrial.reports.statistics.intervals import Interval
from seatrial.reports.summary import AgentSummary
from seatrial.reports.tags import tag_remarks, tags_table
from seatrial.reports.terminal import agents_table, graders_table
from seatrial.runs import Outcome
from seatrial.store import Cell, StoredOutcome

if TYPE_CHECKING:
    import jinja2
    import markupsafe

MAX_MATRIX = 2_500_000
"""Bytes of the matrix; cases after them are only counted."""
MAX_DETAILS = 3_500_000
"""Bytes of details; runs after them are one line each."""
MAX_LINES = 3_000_000
"""Bytes of such lines; runs after them are only counted."""
MAX_NOTED = 500_000
"""Bytes of runs that passed with notes; those after them are only counted."""
MAX_REASON = 240
MAX_CAUSES = 50
MAX_CASES = 20_000
"""Cases that are put in order before the page is full of them."""
MAX_WORDY = 8
"""Agents beside each other whose cells have words; those of more have a sign."""
RUNS_AT_ONCE = 100
OTHERS: frozenset[StoredOutcome] = frozenset({"skipped", "ungraded", "cancelled", "unfinished"})


class _ShownRun(msgspec.Struct):
    """A run with the words that its template needs."""

    row: RunRow
    kind: str
    """Its CSS class."""
    name: str
    why: str
    marks: list[str]
    facts: list[str]
    calls: str
    notes: Sequence[NoteLine]
    more_notes: int
    alike: str = ""
    """Above the first of several that fail alike."""


def html_page(report: Report) -> Iterator[str]:
    """The page in pieces."""
    templates = page_templates()
    page: Any = templates.get_template("report.html").module
    runs: Any = templates.get_template("runs.html").module
    yield from _start(report, page)
    if report.summary.agents:
        groups = runs_alike(report.rows, UNPASSED | OTHERS)
        yield _agents(report, page)
        yield from _by_tag(report, page)
        yield from _causes(report, page, groups)
        yield from _matrix(report, page)
        yield from _unpassed_runs(report, runs, groups)
        yield from _noted_runs(report, runs)
        if report.graders:
            yield _graders(report, page)
        if report.summary.flaky:
            title = f"{figures.plural(report.summary.flaky_cases, 'case')} passed in some trials and failed in others"
            yield page.flaky(title, report.summary.flaky)
        yield from _notes(report, page)
    else:
        yield "<p>There are no runs.</p>\n"
        yield from _notes(report, page)
    yield page.end(ERRORED_NOTE, report.experiment.version or "unknown")


def page_templates() -> jinja2.Environment:
    """The templates of pages, which escape every value."""
    templates = escaping_templates("seatrial.reports")
    templates.filters.update(
        anchor=anchor, count_text="{:,}".format, decimal=figures.decimal, finding_text=finding_text
    )
    return templates


def escaping_templates(package: str) -> jinja2.Environment:
    """The templates of a package, which escape every value and make what is hidden in it visible."""
    import jinja2
    import markupsafe

    def harmless(value: object) -> object:
        """Text of anybody, in which nothing is hidden or reorders what stands beside it."""
        return printable(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        finalize=harmless,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def anchor(run_id: str) -> str:
    """What links to a run lead to."""
    return "run-" + "".join(character if character.isalnum() and character.isascii() else "-" for character in run_id)


def page_style() -> tuple[markupsafe.Markup, str]:
    """The style sheet of pages, and its hash for the policy that allows it."""
    import markupsafe

    style = files("seatrial.reports").joinpath("page.css").read_text("utf-8")
    # The style sheet is ours, and no markup is needed to end it.
    return markupsafe.Markup(style), b64encode(sha256(style.encode()).digest()).decode()  # noqa: S704


def _start(report: Report, page: Any) -> Iterator[str]:
    experiment, summary = report.experiment, report.summary
    yield page.start(experiment.name, *page_style())
    tiles = [
        ("", figures.plural(summary.runs, "run").split()[1], summary.runs),
        ("passed", "passed", summary.passed),
        ("failed", "failed", summary.failed),
        ("errored", "errored", summary.errored),
        ("", "cases", summary.cases),
    ]
    if summary.other:
        tiles.insert(4, ("", "skipped or unfinished", summary.other))
    if summary.trials > 1:
        tiles.append(("", "flaky", summary.flaky_cases))
    if incomplete := sum(agent.incomplete for agent in summary.agents):
        tiles.append(("errored", "calls not all known", incomplete))
    if report.notes.runs:
        tiles.append(("errored", "with notes to look at", report.notes.runs))
    when = datetime.fromtimestamp(experiment.created_at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    took = "" if report.duration_ms is None else f" in {figures.duration(report.duration_ms)}"
    yield page.header(
        experiment,
        report.stopped.capitalize(),
        "" if report.lost is None else report.lost.capitalize(),
        f"{when} · {experiment.status}{took}",
        # A count of nothing bad needs no alarming colour.
        [(kind if number else "", label, f"{number:,}") for kind, label, number in tiles],
    )


def _agents(report: Report, page: Any) -> str:
    titles, rows = agents_table(report)
    # The worst first; what its rate leaves out cannot make an agent better.
    paired = sorted(zip(rows, report.summary.agents, strict=True), key=lambda pair: _badness(pair[1]))
    agents = [agent for _, agent in paired]
    rate = titles.index("pass rate")
    # A rate is what a narrow screen must show, beside the name.
    others = [at for at in range(1, len(titles)) if at != rate]
    found: str = page.agents(
        [titles[0], titles[rate], *(titles[at] for at in others)],
        [(row[0], _agent_rate(agent), row[rate], [row[at] for at in others]) for row, agent in paired],
        list(left_out_sentences(agents)),
        [
            (agent.agent, [(name, f"{number:,}") for name, number in agent.error_classes.items()])
            for agent in agents
            if agent.error_classes
        ],
        [(agent.agent, remark) for agent in agents if (remark := remarks(agent))],
    )
    return found


def _by_tag(report: Report, page: Any) -> Iterator[str]:
    if not (remarks_on_tags := tag_remarks(report.by_tag)):
        return
    titles, rows = tags_table(report.by_tag)
    names, rate = (2 if "agent" in titles else 1), titles.index("pass rate")
    others = [at for at in range(names, len(titles)) if at != rate]
    yield page.by_tag(
        [*titles[:names], titles[rate], *(titles[at] for at in others)],
        names,
        [
            (row[:names], pass_rate_bar(found.pass_rate, found.interval, None), row[rate], [row[at] for at in others])
            for row, found in zip(rows, report.by_tag.rows, strict=True)
        ],
        remarks_on_tags,
    )


def _badness(agent: AgentSummary) -> tuple[float, float]:
    return (2.0 if agent.pass_rate is None else agent.pass_rate, agent.rate_of_all or 0.0)


def _graders(report: Report, page: Any) -> str:
    (corner, *agents), rows = graders_table(report)
    counted = {(counts.grader, counts.agent): counts.outcomes for counts in report.graders}
    found: str = page.graders(
        [corner, *agents],
        [
            (
                row[0],
                [
                    (_grader_kind(counted.get((row[0], agent), {})), cell)
                    for agent, cell in zip(agents, row[1:], strict=True)
                ],
            )
            for row in rows
        ],
    )
    return found


def _grader_kind(outcomes: Mapping[Outcome, int]) -> str:
    """The class of a cell: what is worst in it."""
    words: tuple[Outcome, ...] = ("failed", "errored", "passed")
    return next((word for word in words if outcomes.get(word)), "other")


def _causes(report: Report, page: Any, groups: list[Alike]) -> Iterator[str]:
    """Why runs did not pass, each way once: only where that is shorter than the list of the runs."""
    judged = [group for group in groups if group.outcome in UNPASSED]
    total = sum(group.count for group in judged)
    if total < 2 or len(judged) == total:
        return
    shown = judged[:MAX_CAUSES]
    first = {row.run_id: row for row in report.rows(detailed=True, run_ids=frozenset(group.first for group in shown))}
    rows = [
        (group.outcome, f"{group.count:,}", one_line(reason(first[group.first]), MAX_REASON), group.first)
        for group in shown
        if group.first in first
    ]
    yield page.causes(rows, f"{len(judged) - len(shown):,}" if len(judged) > len(shown) else "")


class _PassRate(msgspec.Struct):
    """Lengths in percent, and the same in words."""

    label: str
    rate: str
    low: str
    high: str


def _agent_rate(agent: AgentSummary) -> _PassRate | None:
    return pass_rate_bar(agent.pass_rate, agent.interval, left_out_sentence(agent))


def pass_rate_bar(share: float | None, interval: Interval | None, left_out: str | None) -> _PassRate | None:
    """A pass rate with its interval, to be drawn; None where there is none."""
    if share is None or interval is None:
        return None
    label = f"{figures.percent(share)} passed, 95% interval {figures.percent_range(interval)}"
    if left_out is not None:
        label = f"{label}; {left_out}"
    rate, low, high = (f"{part * 100:.2f}" for part in (share, interval.low, interval.high))
    return _PassRate(label, rate, low, high)


def _matrix(report: Report, page: Any) -> Iterator[str]:
    agents = [agent.agent for agent in report.summary.agents]
    clean = dirty = 0
    for _, cells in matrix(report.rows()):
        good = _all_passed(cells, agents)
        clean += good
        dirty += not good
    dense = len(agents) > MAX_WORDY
    yield '<section aria-labelledby="cases">\n<h2 id="cases">Cases</h2>\n'
    yield page.legend(report.summary.trials > 1)
    if dirty:
        bad = (found for found in matrix(report.rows()) if not _all_passed(found[1], agents))
        # The worst first, and equals in the order of the suite; of a great many, those that the page has room for.
        worst = nsmallest(MAX_CASES, bad, key=lambda found: _case_badness(found[1], agents))
        yield from _matrix_table(worst, page, agents, dirty, dense=dense)
    if clean:
        verb = "was" if clean == 1 else "were"
        yield f"<details><summary>{figures.plural(clean, 'case')} {verb} passed by every agent, every time</summary>\n"
        good_ones = (found for found in matrix(report.rows()) if _all_passed(found[1], agents))
        yield from _matrix_table(good_ones, page, agents, clean, dense=dense)
        yield "</details>\n"
    yield "</section>\n"


def _case_badness(cells: Mapping[str, Cell], agents: list[str]) -> tuple[float, int]:
    """The share of graded runs that passed, over all agents; then how many passed at all."""
    passed = sum(cell.passed for cell in cells.values())
    graded = sum(cell.graded for cell in cells.values())
    missing = sum(cell.errored + cell.other for cell in cells.values()) + len(agents) - len(cells)
    if not graded:
        return 0.5, -missing
    failed = any(cell.failed for cell in cells.values())
    # A case that nobody failed is behind those that somebody did.
    return passed / graded if failed else 1.0, -missing


def _matrix_table(
    found: Iterable[tuple[str, dict[str, Cell]]], page: Any, agents: list[str], total: int, *, dense: bool
) -> Iterator[str]:
    yield page.table_start(["case", *agents], kind="matrix dense" if dense else "matrix")
    size = shown = 0
    for case_id, cells in found:
        if size > MAX_MATRIX // 2:
            break
        row = page.matrix_row(case_id, [_matrix_cell(cells.get(agent)) for agent in agents], dense)
        size += len(row.encode())
        shown += 1
        yield row
    if shown < total:
        yield page.matrix_rest(f"{total - shown:,}")
    yield page.table_end()


def _all_passed(cells: dict[str, Cell], agents: list[str]) -> bool:
    if len(cells) < len(agents):
        return False
    return not any(cell.failed or cell.errored or cell.other for cell in cells.values())


class _MatrixCell(msgspec.Struct):
    kind: str
    label: str
    mark: str = ""
    """What is unknown."""
    sign: str = "–"
    """The label as one character."""
    run: str | None = None
    """The id of the run that it links to."""


def _matrix_cell(cell: Cell | None) -> _MatrixCell:
    if cell is None:
        return _MatrixCell("other", "–")
    run, mark = cell.failed_run, ""
    # Passed is only what passed every time: a run without a verdict did not.
    if cell.flaky:
        kind, sign = "flaky", "±"
    elif cell.failed:
        kind, sign = "failed", "✕"
    elif cell.errored:
        kind, sign = "errored", "!"
    else:
        kind, sign = ("other", "–") if cell.other else ("passed", "✓")
    if cell.graded:
        label = f"{sign} {kind}" if cell.runs == 1 else f"{sign} {cell.passed}/{cell.graded}"
        label += " passed" if kind in ("errored", "other") else ""
        label += f" · {cell.errored} errored" if cell.errored else ""
        label += f" · {cell.other} not graded" if cell.other else ""
    else:
        label = "! errored" if cell.errored else "not graded"
    if cell.errored:
        run = run or cell.errored_run
    if cell.incomplete:
        which = "calls" if cell.runs == 1 else f"calls of {cell.incomplete}"
        mark = f"{which} not all known"
        run = run or (cell.passed_run if cell.incomplete == cell.runs else None)
    return _MatrixCell(kind, label, mark, sign, run)


def _notes(report: Report, page: Any) -> Iterator[str]:
    titles, rows = notes_table(report, harmless=True)
    apart = list(without_run(report))
    if rows or apart:
        yield page.notes(titles, rows, apart)


def _unpassed_runs(report: Report, page: Any, groups: list[Alike]) -> Iterator[str]:
    """The section about them."""
    summary = report.summary
    total = summary.failed + summary.errored + summary.other
    yield '<section aria-labelledby="runs">\n<h2 id="runs">Runs that did not pass</h2>\n'
    if not total:
        yield "<p>All passed.</p>\n</section>\n"
        return
    if summary.failed and summary.errored:
        counts = (("all", total), ("failed", summary.failed), ("errored", summary.errored))
        yield page.filter([(key, f"{number:,}") for key, number in counts])
    details = lines = shown = 0
    for group in groups:
        for at in range(0, len(group.run_ids), RUNS_AT_ONCE):
            some = frozenset(group.run_ids[at : at + RUNS_AT_ONCE])
            # When no page has room for details, they need not be read.
            for number, row in enumerate(report.rows(detailed=details < MAX_DETAILS, run_ids=some), at):
                run = _shown(row, summary.trials)
                if group.count > 1:
                    run.alike = f"{group.count:,} runs fail alike" if number == 0 else ""
                    run.why = run.why if number == 0 else ""
                if details < MAX_DETAILS and row.detail is not None:
                    piece = page.detailed(run, row.detail)
                    details += len(piece.encode())
                elif lines < MAX_LINES:
                    piece = page.one_line(run)
                    lines += len(piece.encode())
                else:
                    yield f"<p>… and {total - shown:,} more: the JSON report and the store have them all.</p>\n"
                    yield "</section>\n"
                    return
                shown += 1
                yield piece
    if shown < total:
        yield f"<p>… and {total - shown:,} more: the JSON report and the store have them all.</p>\n"
    yield "</section>\n"


def _noted_runs(report: Report, page: Any) -> Iterator[str]:
    """The section about runs that passed, but whose record needs a look; nothing when there is none."""
    size = shown = omitted = 0
    for row in report.rows(detailed=True):
        if row.outcome != "passed" or not row.needs_look:
            continue
        if not shown:
            yield '<section aria-labelledby="noted">\n<h2 id="noted">Passed, but the record needs a look</h2>\n'
        if size > MAX_NOTED:
            omitted += 1
            continue
        piece = page.noted(_shown(row, report.summary.trials))
        size += len(piece.encode())
        shown += 1
        yield piece
    if omitted:
        yield f"<p>… and {omitted:,} more: the JSON and CSV reports have them all.</p>\n"
    if shown:
        yield "</section>\n"


def _shown(row: RunRow, trials: int) -> _ShownRun:
    marks = ["calls not all known" if row.calls == "partial" else "calls unknown"] if row.calls_incomplete else []
    marks += [said] if (said := notes_text(row)) else []
    calls = calls_text(row)
    notes, more_notes = shown_notes(row)
    return _ShownRun(
        row=row,
        kind=row.outcome if row.outcome in ("passed", "failed", "errored") else "other",
        name=figures.run_name(row, trials),
        why=one_line(reason(row), MAX_REASON) if row.outcome != "passed" else "",
        marks=marks,
        facts=_facts(row),
        calls=calls[:1].upper() + calls[1:],
        notes=notes,
        more_notes=more_notes,
    )


def _facts(row: RunRow) -> list[str]:
    tokens = row.input_tokens, row.output_tokens
    known = [
        figures.steps(row),
        figures.duration(row.duration_ms) if row.duration_ms is not None else "",
        f"{row.attempts} attempts" if row.attempts > 1 else "",
        f"{tokens[0]:,} tokens in, {tokens[1]:,} out" if tokens[0] is not None and tokens[1] is not None else "",
        figures.money(row.cost_usd) if row.cost_usd is not None else "",
        f"judges {figures.judges(row.judges)}" if row.judges is not None else "",
    ]
    unknown = [
        name
        for name, value in (("duration", row.duration_ms), ("tokens", tokens[0]), ("cost", row.cost_usd))
        if value is None
    ]
    if unknown:
        known.append(f"{' and '.join(unknown)} unknown")
    return [fact for fact in known if fact]
