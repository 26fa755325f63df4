"""One HTML file that needs nothing else: no script, no request, and nothing that an agent wrote is markup.

Its content security policy allows the one style sheet in it, by its hash, and nothing more. Only runs that did not pass
are shown in detail, and only until the page has its size: the rest are one line each.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files

from seatrial.reports import figures
from seatrial.reports.html_runs import anchor, note_list, noted_runs, text, unpassed_runs
from seatrial.reports.left_out import left_out_sentence, left_out_sentences
from seatrial.reports.notes import notes_table, remarks, without_run
from seatrial.reports.report import ERRORED_NOTE, Report
from seatrial.reports.rows import Cell, matrix
from seatrial.reports.summary import AgentSummary
from seatrial.reports.terminal import agents_table, graders_table

MAX_MATRIX = 2_500_000
"""Bytes of the matrix; cases after them are only counted."""

_CLOSED_TABLE = "</tbody></table></div>\n"


def html_page(report: Report) -> Iterator[str]:
    """The page in pieces."""
    style = files("seatrial.reports").joinpath("page.css").read_text("utf-8")
    allowed = b64encode(sha256(style.encode()).digest()).decode()
    name = text(report.experiment.name)
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{name} · Seatrial</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#runs">Skip to the runs that did not pass</a>\n'
    )
    yield from _header(report)
    yield "<main>\n"
    if report.summary.agents:
        yield from _agents(report)
        yield from _graders(report)
        yield from _matrix(report)
        yield from _flaky(report)
        yield from _notes(report)
        yield from unpassed_runs(report)
        yield from noted_runs(report)
    else:
        yield "<p>There are no runs.</p>\n"
        yield from _notes(report)
    version = text(report.experiment.version) or "unknown"
    yield f"</main>\n<footer>{ERRORED_NOTE} Run by Seatrial {version}.</footer>\n</body>\n</html>\n"


def _header(report: Report) -> Iterator[str]:
    experiment, summary = report.experiment, report.summary
    when = datetime.fromtimestamp(experiment.created_at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    took = "" if report.duration_ms is None else f" in {figures.duration(report.duration_ms)}"
    yield f'<header>\n<p class="brand">Seatrial</p>\n<h1 dir="auto">{text(experiment.name)}</h1>\n'
    yield f'<p class="faint"><code>{text(experiment.experiment_id)}</code> · {when} · {experiment.status}{took}</p>\n'
    if experiment.stop_reason:
        yield f'<p class="warning">Stopped before all was run: {text(experiment.stop_reason)}</p>\n'
    tiles = [
        ("", figures.plural(summary.runs, "run").split()[1], f"{summary.runs:,}"),
        ("passed", "passed", f"{summary.passed:,}"),
        ("failed", "failed", f"{summary.failed:,}"),
        ("errored", "errored", f"{summary.errored:,}"),
        ("", "cases", f"{summary.cases:,}"),
    ]
    if summary.other:
        tiles.insert(4, ("", "skipped or unfinished", f"{summary.other:,}"))
    if summary.trials > 1:
        tiles.append(("", "flaky", f"{summary.flaky_cases:,}"))
    if incomplete := sum(agent.incomplete for agent in summary.agents):
        tiles.append(("errored", "calls not all known", f"{incomplete:,}"))
    if report.notes.runs:
        tiles.append(("errored", "with notes to look at", f"{report.notes.runs:,}"))
    yield '<dl class="tiles">\n'
    for kind, label, value in tiles:
        # A count of nothing bad needs no alarming colour.
        yield f'<div class="tile {kind if value != "0" else ""}"><dt>{label}</dt><dd>{value}</dd></div>\n'
    yield "</dl>\n</header>\n"


def _agents(report: Report) -> Iterator[str]:
    head, rows = agents_table(report)
    yield '<section aria-labelledby="agents">\n<h2 id="agents">Agents</h2>\n'
    yield _opened_table([head[0], "", *head[1:]])
    for row, agent in zip(rows, report.summary.agents, strict=True):
        cells = "".join(f"<td>{text(cell)}</td>" for cell in row[1:])
        yield f'<tr><th scope="row">{text(row[0])}</th><td>{_bar(agent)}</td>{cells}</tr>\n'
    yield _CLOSED_TABLE
    for name, sentence in left_out_sentences(report.summary.agents):
        yield f'<p class="warning">{text(name)}: {text(sentence)}</p>\n'
    classes = [
        f"{text(agent.agent)}: "
        + ", ".join(f"<code>{text(name)}</code> × {number:,}" for name, number in agent.error_classes.items())
        for agent in report.summary.agents
        if agent.error_classes
    ]
    if classes:
        yield f'<p class="faint">Faults by class. {"; ".join(classes)}.</p>\n'
    for agent in report.summary.agents:
        if remark := remarks(agent):
            yield f'<p class="faint">{text(agent.agent)}: {remark}</p>\n'
    yield "</section>\n"


def _bar(agent: AgentSummary) -> str:
    """The pass rate with its interval, drawn."""
    if agent.pass_rate is None or agent.interval is None:
        return ""
    low, high = agent.interval.low * 100, agent.interval.high * 100
    label = f"{figures.percent(agent.pass_rate)} passed, 95% interval {figures.percent_range(agent.interval)}"
    if (sentence := left_out_sentence(agent)) is not None:
        label = f"{label}; {text(sentence)}"
    return (
        f'<svg class="bar" viewBox="0 0 100 14" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f'<rect class="track" width="100" height="14" rx="2"/>'
        f'<rect class="fill" width="{agent.pass_rate * 100:.2f}" height="14" rx="2"/>'
        '<path class="whisker" vector-effect="non-scaling-stroke" '
        f'd="M{low:.2f} 7H{high:.2f}M{low:.2f} 3V11M{high:.2f} 3V11"/>'
        "</svg>"
    )


def _graders(report: Report) -> Iterator[str]:
    if not report.graders:
        return
    head, rows = graders_table(report)
    yield '<section aria-labelledby="graders">\n<h2 id="graders">Graders</h2>\n'
    yield _opened_table(head, names=2)
    for row in rows:
        cells = "".join(f"<td>{cell}</td>" for cell in row[2:])
        yield f'<tr><th scope="row">{text(row[0])}</th><td class="name">{text(row[1])}</td>{cells}</tr>\n'
    yield f"{_CLOSED_TABLE}</section>\n"


def _matrix(report: Report) -> Iterator[str]:
    agents = [agent.agent for agent in report.summary.agents]
    clean = dirty = 0
    for _, cells in matrix(report.rows()):
        good = _all_passed(cells, agents)
        clean += good
        dirty += not good
    yield '<section aria-labelledby="cases">\n<h2 id="cases">Cases</h2>\n'
    if dirty:
        yield from _matrix_table(report, agents, False, dirty)
    if clean:
        verb = "was" if clean == 1 else "were"
        yield f"<details><summary>{figures.plural(clean, 'case')} {verb} passed by every agent, every time</summary>\n"
        yield from _matrix_table(report, agents, True, clean)
        yield "</details>\n"
    yield "</section>\n"


def _matrix_table(report: Report, agents: list[str], clean: bool, total: int) -> Iterator[str]:
    yield _opened_table(["case", *agents], kind="matrix")
    size = shown = 0
    for case_id, cells in matrix(report.rows()):
        if _all_passed(cells, agents) is not clean:
            continue
        if size > MAX_MATRIX // 2:
            yield f'<tr><th scope="row">… and {total - shown:,} more</th></tr>\n'
            break
        row = f'<tr><th scope="row">{text(case_id)}</th>{"".join(_cell(cells.get(agent)) for agent in agents)}</tr>\n'
        size += len(row.encode())
        shown += 1
        yield row
    yield _CLOSED_TABLE


def _all_passed(cells: dict[str, Cell], agents: list[str]) -> bool:
    if len(cells) < len(agents):
        return False
    return not any(cell.failed or cell.errored or cell.other for cell in cells.values())


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return '<td class="other-cell">–</td>'
    run = cell.failed_run
    if cell.flaky:
        kind, label = "flaky", f"± {cell.passed}/{cell.graded}"
    elif cell.graded:
        kind, label = ("passed", "✓ passed") if cell.passed else ("failed", "✕ failed")
        if cell.graded > 1:
            label = f"{label[0]} {cell.passed}/{cell.graded}"
    elif cell.errored:
        kind, label, run = "errored", "! errored", cell.errored_run
    else:
        kind, label = "other", "not graded"
    if cell.graded and cell.errored:
        label += f" · {cell.errored} errored"
        run = run or cell.errored_run
    if cell.incomplete:
        which = "calls" if cell.runs == 1 else f"calls of {cell.incomplete}"
        label += f' <span class="mark">{which} not all known</span>'
        run = run or (cell.passed_run if cell.incomplete == cell.runs else None)
    inner = label if run is None else f'<a href="#{anchor(run)}">{label}</a>'
    return f'<td class="{kind}-cell">{inner}</td>'


def _flaky(report: Report) -> Iterator[str]:
    summary = report.summary
    if not summary.flaky:
        return
    yield (
        f'<section aria-labelledby="flaky">\n<h2 id="flaky">Flaky cases</h2>\n<details><summary>'
        f"{figures.plural(summary.flaky_cases, 'case')} passed in some trials and failed in others</summary>\n"
        f"{_opened_table(['agent', 'case', 'passed'], names=2)}"
    )
    for case in summary.flaky:
        yield (
            f'<tr><th scope="row">{text(case.agent)}</th><td class="name">{text(case.case_id)}</td>'
            f"<td>{case.passed} of {case.graded}</td></tr>\n"
        )
    yield f"{_CLOSED_TABLE}</details>\n</section>\n"


def _notes(report: Report) -> Iterator[str]:
    head, rows = notes_table(report, harmless=True)
    apart = list(without_run(report))
    if not rows and not apart:
        return
    yield '<section aria-labelledby="notes">\n<h2 id="notes">Notes</h2>\n'
    yield '<p class="faint">What was dropped, guessed or repaired in what the agents sent.</p>\n'
    if rows:
        yield _opened_table(head, names=3)
        for agent, weight, code, *numbers in rows:
            cells = "".join(f"<td>{number}</td>" for number in numbers)
            badge = f'<span class="badge {weight}">{weight}</span>'
            yield (
                f'<tr><th scope="row">{text(agent)}</th><td class="name">{badge}</td>'
                f'<td class="name"><code>{text(code)}</code></td>{cells}</tr>\n'
            )
        yield _CLOSED_TABLE
    for agent, notes, more in apart:
        yield f"<p>{text(agent)} sent what belongs to no run:</p>\n{note_list(notes, more)}"
    yield "</section>\n"


def _opened_table(titles: list[str], *, names: int = 1, kind: str = "plain") -> str:
    """The beginning of a table whose first columns hold names, the others figures."""
    cells = [
        f'<th scope="col"{" class=name" if index < names else ""}>{text(title)}</th>' if title else "<td></td>"
        for index, title in enumerate(titles)
    ]
    # To be reached by keyboard, where it is wider than the screen and must be scrolled.
    wide = '<div class="wide" tabindex="0">'
    return f'{wide}<table class="{kind}">\n<thead><tr>{"".join(cells)}</tr></thead>\n<tbody>\n'
