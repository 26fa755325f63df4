"""The summary that a terminal shows after an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from textwrap import wrap

from seatrial._support.printable import coloured, one_line
from seatrial.reports import figures
from seatrial.reports.left_out import left_out_columns, left_out_sentences
from seatrial.reports.notes import calls_reason, calls_text, note_text, notes_table, notes_text, remarks, without_run
from seatrial.reports.report import ERRORED_NOTE, Report, not_judged, reason
from seatrial.reports.rows import RunRow
from seatrial.reports.summary import AgentSummary
from seatrial.reports.table import table

MAX_LISTED = 10
MAX_APART = 3
MAX_REASON = 800
WIDTH = 110

_INDENT = " " * 10

_COLOURS = {"failed": "red", "errored": "yellow"}


def terminal_summary(report: Report, *, colour: bool = False, listed: int = MAX_LISTED, harmless: bool = False) -> str:
    """Agents with their figures, the notes, then the first runs that did not pass, with reasons; ends with a newline.

    Harmless notes are counted only when asked for.
    """
    return "".join(f"{line}\n" for line in _lines(report, colour, listed, harmless))


def _lines(report: Report, colour: bool, listed: int, harmless: bool) -> Iterator[str]:
    summary = report.summary
    experiment = report.experiment
    took = "" if report.duration_ms is None else f" in {figures.duration(report.duration_ms)}"
    name = one_line(experiment.name, 60)
    yield (
        f"{_paint(name, 'bold', colour)}  {one_line(experiment.experiment_id, 60)}  "
        f"{figures.plural(summary.cases, 'case')}, {report.counted_runs}, {experiment.status}{took}"
    )
    if experiment.stop_reason:
        yield _paint(f"{report.stopped}: {one_line(experiment.stop_reason, MAX_REASON)}", "yellow", colour)
    elif report.lost is not None:
        yield _paint(report.lost, "red", colour)
    yield ""
    if not summary.agents:
        yield "There are no runs."
        return
    yield from table(*agents_table(report))
    yield ""
    for name, sentence in left_out_sentences(summary.agents):
        yield _paint(f"{one_line(name, 60)}: {sentence}", "yellow", colour)
    yield f"Pass rates with 95% intervals. {ERRORED_NOTE}"
    for agent in summary.agents:
        if remark := remarks(agent):
            yield from wrap(f"{one_line(agent.agent, 50)}: {remark}", WIDTH, subsequent_indent="  ")
    if report.graders:
        yield ""
        yield from table(*graders_table(report), left=2)
    for title, lines in (
        ("faults by class", _error_classes(report)),
        ("flaky cases", _flaky(report)),
        ("notes: what was dropped, guessed or repaired in what the agents sent", _notes(report, harmless)),
        ("notes that belong to no run", _without_run(report)),
    ):
        if lines:
            yield ""
            yield _paint(title, "bold", colour)
            yield from lines
    yield from _not_passed(report, colour, listed)
    yield from _not_judged(report)


def agents_table(report: Report) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the agents' table; columns about trials, cost and others only where there are some."""
    agents = report.summary.agents
    trials = report.summary.trials > 1
    beside, left_out = left_out_columns(agents)
    head = ["agent", "runs", "passed", "failed", "errored", "pass rate", *beside, "95% interval", "score"]
    rows = [
        [
            agent.agent,
            f"{agent.runs:,}",
            f"{agent.passed:,}",
            f"{agent.failed:,}",
            f"{agent.errored:,}",
            figures.percent(agent.pass_rate),
            *cells,
            figures.percent_range(agent.interval),
            figures.decimal(agent.score),
        ]
        for agent, cells in zip(agents, left_out, strict=True)
    ]
    if trials:
        most = max((agent.trials[-1].k for agent in agents if agent.trials), default=1)
        head += [f"pass@{most}", f"pass^{most}", "flaky"]
        for row, agent in zip(rows, agents, strict=True):
            row += [*_of_trials(agent, most), f"{agent.flaky:,}"]
    if any(agent.other for agent in agents):
        head.append("other")
        for row, agent in zip(rows, agents, strict=True):
            row.append(f"{agent.other:,}")
    head += ["median", "p95"]
    for row, agent in zip(rows, agents, strict=True):
        row += [figures.duration(agent.duration_p50_ms), figures.duration(agent.duration_p95_ms)]
    if any(agent.cost_usd is not None for agent in agents):
        head.append("cost")
        for row, agent in zip(rows, agents, strict=True):
            row.append(figures.cost(agent))
    return head, rows


def graders_table(report: Report) -> tuple[list[str], list[list[str]]]:
    """Head and rows of what each grader said of each agent."""
    head = ["agent", "grader", "passed", "failed", "errored", "skipped", "score"]
    rows = [
        [
            counts.agent,
            counts.grader,
            *(
                f"{counts.outcomes.get(outcome, 0):,}"
                for outcome in ("passed", "failed", "errored", "skipped")  # in the order of the head
            ),
            figures.decimal(counts.score),
        ]
        for counts in report.graders
    ]
    return head, rows


def _of_trials(agent: AgentSummary, k: int) -> tuple[str, str]:
    for trials in agent.trials:
        if trials.k == k:
            return figures.percent(trials.pass_at_k), figures.percent(trials.pass_hat_k)
    return "–", "–"


def _error_classes(report: Report) -> list[str]:
    rows = [
        [agent.agent, error_class, f"{count:,}"]
        for agent in report.summary.agents
        for error_class, count in agent.error_classes.items()
    ]
    return table(rows[0], rows[1:], left=2, indent="  ") if rows else []


def _flaky(report: Report) -> list[str]:
    summary = report.summary
    rows = [[case.agent, case.case_id, f"{case.passed} of {case.graded} passed"] for case in summary.flaky[:MAX_LISTED]]
    if not rows:
        return []
    lines = table(rows[0], rows[1:], left=3, indent="  ")
    more = summary.flaky_cases - len(rows)
    return [*lines, f"  … and {more:,} more"] if more > 0 else lines


def _notes(report: Report, harmless: bool) -> list[str]:
    head, rows = notes_table(report, harmless=harmless)
    return table(head, rows, left=3, indent="  ") if rows else []


def _without_run(report: Report) -> list[str]:
    lines: list[str] = []
    for agent, notes, more in without_run(report):
        first = notes[:MAX_APART]
        lines += [f"  {one_line(f'{agent}: {note_text(note)}', MAX_REASON)}" for note in first]
        if more := more + len(notes) - len(first):
            lines.append(f"  {one_line(agent, 50)}: … and {more:,} more")
    return lines


def _not_passed(report: Report, colour: bool, listed: int) -> Iterator[str]:
    summary = report.summary
    total = summary.failed + summary.errored
    if not total or not listed:
        return
    yield ""
    yield _paint("failed and errored", "bold", colour)
    wanted = (row for row in report.rows(detailed=True) if row.outcome in _COLOURS)
    for row in islice(wanted, listed):
        word = _paint(row.outcome, _COLOURS[row.outcome], colour)
        yield f"  {word}  {one_line(row.agent, 50)}  {one_line(figures.run_name(row, summary.trials), 80)}"
        for text in _told(row):
            yield from wrap(one_line(text, MAX_REASON), WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
    if total > listed:
        yield f"  … and {total - listed:,} more"


def _not_judged(report: Report) -> Iterator[str]:
    """Without it, a suite whose graders decide nothing would look like one that has no graders."""
    if (found := not_judged(report)) is not None:
        told, first = found
        yield ""
        name = figures.run_name(first, report.summary.trials)
        text = f"{told}. The first, {first.agent} on {name}: {first.outcome}: {reason(first)}"
        yield from wrap(one_line(text, MAX_REASON), WIDTH)


def _told(row: RunRow) -> Iterator[str]:
    """Why a run did not pass, and the last line of what a fault left: a log ends with what matters."""
    why = reason(row)
    yield why
    if row.calls_incomplete and calls_reason(row) not in why:
        yield calls_text(row)
    if noted := notes_text(row):
        yield noted
    lines = (row.detail.fault_detail or "").strip().splitlines() if row.detail is not None else []
    if lines and lines[-1].strip() not in why:
        yield lines[-1].strip()


def _paint(text: str, tone: str, colour: bool) -> str:
    return coloured(text, tone) if colour else text
