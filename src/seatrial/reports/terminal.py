"""The summary that a terminal shows after an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from seatrial._support.printable import coloured, one_line
from seatrial.reports import figures
from seatrial.reports.figures import left_out_columns, left_out_sentences
from seatrial.reports.layout import MAX_CELL, NO_TERMINAL, cells, prose, table
from seatrial.reports.notes import calls_reason, calls_text, note_text, notes_table, notes_text, remarks, without_run
from seatrial.reports.report import ERRORED_NOTE, Alike, Report, not_judged, reason, runs_alike
from seatrial.reports.rows import RunRow
from seatrial.reports.summary import AgentSummary
from seatrial.reports.tags import tag_remarks, tags_table
from seatrial.runs import Outcome
from seatrial.store import GraderCounts

MAX_LISTED = 10
MAX_TAG_ROWS = 10
MAX_APART = 3
MAX_REASON = 800
MAX_NAMED = 5
"""Runs that are named of those that fail alike."""
DROPPABLE = ("p95", "median", "score", "cost", "judges", "of all runs", "95% interval")
"""Columns of the agents' table that a narrow terminal does without, the first of them first."""

_INDENT = " " * 10

_COLOURS = {"failed": "red", "errored": "yellow"}


def terminal_summary(
    report: Report,
    *,
    colour: bool = False,
    harmless: bool = False,
    width: int = NO_TERMINAL,
    tags: int = MAX_TAG_ROWS,
) -> str:
    """Agents with their figures, by tag too, the notes, then why runs did not pass, those that fail alike together;
    ends with a newline.

    Harmless notes are counted only when asked for.
    """
    return "".join(f"{line}\n" for line in _lines(report, colour, harmless, width, tags))


def _lines(report: Report, colour: bool, harmless: bool, width: int, tags: int) -> Iterator[str]:
    summary = report.summary
    experiment = report.experiment
    took = "" if report.duration_ms is None else f" in {figures.duration(report.duration_ms)}"
    name = one_line(experiment.name, 60)
    facts = f"{figures.plural(summary.cases, 'case')}, {report.counted_runs}, {experiment.status}{took}"
    shown_id = one_line(experiment.experiment_id, 60)
    if len(name) + len(shown_id) + len(facts) + 4 <= width:
        yield f"{_paint(name, 'bold', colour)}  {shown_id}  {facts}"
    else:
        yield f"{_paint(name, 'bold', colour)}  {shown_id}"
        yield facts
    if experiment.stop_reason:
        yield from _painted(
            prose(f"{report.stopped}: {one_line(experiment.stop_reason, MAX_REASON)}", width), "yellow", colour
        )
    elif report.lost is not None:
        yield from _painted(prose(report.lost, width), "red", colour)
    yield ""
    if not summary.agents:
        yield "There are no runs."
        return
    yield from table(*agents_table(report), width=width, droppable=DROPPABLE)
    yield ""
    for name, sentence in left_out_sentences(summary.agents):
        yield from _painted(prose(f"{one_line(name, 60)}: {sentence}", width, "  ", ""), "yellow", colour)
    yield from prose(f"Pass rates with 95% intervals. {ERRORED_NOTE}", width)
    for agent in summary.agents:
        if remark := remarks(agent):
            yield from prose(f"{one_line(agent.agent, 50)}: {remark}", width, "  ", "")
    yield from _by_tag(report, colour, width, tags)
    if report.graders:
        yield ""
        yield _paint("graders: runs passed of those judged, the worst first", "bold", colour)
        yield from _graders(report, width)
    for title, lines in (
        ("faults by class", _error_classes(report)),
        ("flaky cases", _flaky(report)),
        ("notes: what was dropped, guessed or repaired in what the agents sent", _notes(report, harmless, width)),
        ("notes that belong to no run", _without_run(report, width)),
    ):
        if lines:
            yield ""
            yield _paint(title, "bold", colour)
            yield from lines
    yield from _not_passed(report, colour, width)
    yield from _not_judged(report, width)


def _by_tag(report: Report, colour: bool, width: int, most: int) -> Iterator[str]:
    head, rows = tags_table(report.by_tag)
    remarks = tag_remarks(report.by_tag)
    if remarks:
        yield ""
        yield _paint("by tag: the lowest pass rate first", "bold", colour)
    if rows:
        left = 2 if "agent" in head else 1
        yield from table(head, rows[:most], left=left, width=width, droppable=("of all runs", "runs"))
        if len(rows) > most:
            yield f"… and {len(rows) - most:,} more: `--group-by tag` shows them all"
    for remark in remarks:
        yield from prose(one_line(remark, MAX_REASON), width, "  ", "")


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
    if any(agent.judges is not None for agent in agents):
        head.append("judges")
        for row, agent in zip(rows, agents, strict=True):
            row.append(figures.judges(agent.judges))
    return head, rows


def graders_table(report: Report) -> tuple[list[str], list[list[str]]]:
    """Head and rows of what each grader said of each agent: a row for each grader, the worst first."""
    return grader_table(report.graders)


def grader_table(every: Sequence[GraderCounts]) -> tuple[list[str], list[list[str]]]:
    """The same of these counts."""
    agents = list(dict.fromkeys(counts.agent for counts in every))
    found: dict[str, dict[str, GraderCounts]] = {}
    for counts in every:
        found.setdefault(counts.grader, {})[counts.agent] = counts
    by_badness = sorted(found.items(), key=lambda item: _share_passed(item[1].values()))
    rows = [[grader, *(grader_cell(of_agent.get(agent)) for agent in agents)] for grader, of_agent in by_badness]
    return ["grader", *agents], rows


def grader_cell(counts: GraderCounts | None) -> str:
    """`6/7`, with the mean score where that says more (`6/7 ø 0.93`), and what gave no verdict: `6/7, 2 errored`."""
    if counts is None:
        return "–"
    passed, failed, errored, skipped = [counts.outcomes.get(outcome, 0) for outcome in _VERDICTS]
    judged = passed + failed
    parts = [f"{passed:,}/{judged:,}"] if judged else []
    if judged and counts.score is not None and abs(counts.score - passed / judged) > 0.0005:
        parts[0] += f" ø {figures.decimal(counts.score)}"
    parts += [f"{errored:,} errored"] if errored else []
    parts += [f"{skipped:,} skipped"] if skipped else []
    return ", ".join(parts) or "–"


_VERDICTS: tuple[Outcome, ...] = ("passed", "failed", "errored", "skipped")


def _share_passed(counts: Iterable[GraderCounts]) -> float:
    """Of what a grader judged; what it did not judge is as bad as half of it."""
    passed = failed = missing = 0
    for found in counts:
        passed += found.outcomes.get("passed", 0)
        failed += found.outcomes.get("failed", 0)
        missing += found.outcomes.get("errored", 0)
    total = passed + failed + missing
    return (passed + missing / 2) / total if total else 2.0


def _graders(report: Report, width: int) -> Iterator[str]:
    """The matrix; where not all agents fit beside each other, a part of it below the other."""
    head, rows = graders_table(report)
    columns = [max(cells(one_line(row[at], MAX_CELL)) for row in (head, *rows)) for at in range(len(head))]
    first = 1
    while first < len(head):
        end, used = first, columns[0]
        while end < len(head) and (end == first or used + 2 + columns[end] <= width):
            used += 2 + columns[end]
            end += 1
        yield from table([head[0], *head[first:end]], [[row[0], *row[first:end]] for row in rows], width=width)
        first = end
        if first < len(head):
            yield ""


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


def _notes(report: Report, harmless: bool, width: int) -> list[str]:
    head, rows = notes_table(report, harmless=harmless)
    return table(head, rows, left=3, indent="  ", width=width) if rows else []


def _without_run(report: Report, width: int) -> list[str]:
    lines: list[str] = []
    for agent, notes, more in without_run(report):
        first = notes[:MAX_APART]
        for note in first:
            lines += prose(one_line(f"{agent}: {note_text(note)}", MAX_REASON), width, "    ", "  ")
        if more := more + len(notes) - len(first):
            lines.append(f"  {one_line(agent, 50)}: … and {more:,} more")
    return lines


def _not_passed(report: Report, colour: bool, width: int) -> Iterator[str]:
    summary = report.summary
    total = summary.failed + summary.errored
    if not total:
        return
    groups = runs_alike(report.rows)
    yield ""
    kinds = f": {figures.plural(total, 'run')}, {figures.plural(len(groups), 'kind')}" if len(groups) < total else ""
    yield _paint(f"failed and errored{kinds}", "bold", colour)
    shown = groups[:MAX_LISTED]
    first = {row.run_id: row for row in report.rows(detailed=True, run_ids=frozenset(group.first for group in shown))}
    for group in shown:
        if (row := first.get(group.first)) is None:
            continue
        word = _paint(row.outcome, _COLOURS[row.outcome], colour)
        alike = f"{group.count:,} runs fail alike; the first:  " if group.count > 1 else ""
        name = f"{one_line(row.agent, 50)}  {one_line(figures.run_name(row, summary.trials), 80)}"
        if alike and len(row.outcome) + len(alike) + cells(name) + 4 > width:
            yield f"  {word}  {alike.strip()}"
            yield f"{_INDENT}{name}"
        else:
            yield f"  {word}  {alike}{name}"
        for text in _told(row):
            yield from prose(one_line(text, MAX_REASON), width, _INDENT)
        if group.count > 1:
            yield from prose(_others(group, summary.trials), width, _INDENT)
    if more := sum(group.count for group in groups[MAX_LISTED:]):
        yield f"  … and {more:,} more: `seatrial show {one_line(report.experiment.experiment_id, 60)}` lists them"


def _others(group: Alike, trials: int) -> str:
    names = [
        f"{one_line(agent, 50)} on {one_line(case_id, 60)}{f' (trial {trial})' if trials > 1 else ''}"
        for agent, case_id, trial in group.named[1 : MAX_NAMED + 1]
    ]
    more = group.count - 1 - len(names)
    return f"also {', '.join(names)}{f', and {more:,} more' if more > 0 else ''}"


def _not_judged(report: Report, width: int) -> Iterator[str]:
    """Without it, a suite whose graders decide nothing would look like one that has no graders."""
    if (found := not_judged(report)) is not None:
        told, first = found
        yield ""
        name = figures.run_name(first, report.summary.trials)
        text = f"{told}. The first, {first.agent} on {name}: {first.outcome}: {reason(first)}"
        yield from prose(one_line(text, MAX_REASON), width)


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


def _painted(lines: Iterable[str], tone: str, colour: bool) -> Iterator[str]:
    return (_paint(line, tone, colour) for line in lines)
