"""An experiment as one HTML file that needs nothing else: no request, and nothing that an agent wrote is markup.

Runs that did not pass come first, and each opens on its page: findings, timeline, transcript, verdicts, record. Once
the file has its size, further runs are one line each, and after those they are counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from markupsafe import Markup

from seatrial.errors import SeatrialError
from seatrial.explorer.export.files import inner_head, inner_script
from seatrial.explorer.export.links import main_part, without_server
from seatrial.explorer.export.overview import (
    CaseLine,
    Overview,
    RunLine,
    bad_cases,
    case_lines,
    ordered_rows,
    overview,
    worst_cases,
)
from seatrial.explorer.export.runs import ExportPage, data_url, is_plain_link, run_address, run_parts
from seatrial.explorer.render import run_anchor, templates
from seatrial.reports.report import ERRORED_NOTE, Report
from seatrial.reports.write import write_pieces
from seatrial.store import Store

MAX_RUNS = 16_000_000
"""Bytes of runs with their pages; runs after them are one line each."""
MAX_LINES = 10_000
"""Runs that are listed; those after them are only counted."""
MAX_CASES = 2_500_000
"""Bytes of the table of cases; cases after them are only counted."""
SORTED_CASES = 20_000
RANGES = 5
"""How many times as many items as a range has are shown of one run."""
_TITLE = re.compile(r"<h1\b.*?</h1>", re.DOTALL)
_SPACE = re.compile(r">\n\s*<")

Advance: TypeAlias = Callable[[], object]
"""Is called whenever a run is written."""


def unheard() -> None:
    """The progress that nobody follows."""


def write_file(store: Store, report: Report, path: Path, progress: Advance = unheard) -> None:
    """Write the file; it appears once all of it is there."""
    write_pieces(path, one_file(store, report, progress))


def one_file(store: Store, report: Report, progress: Advance = unheard) -> Iterator[str]:
    """The file in pieces. No more than one run is in memory."""
    page: Any = templates().get_template("export/parts.html").module
    found = overview(report)
    yield page.start(found.experiment.name, inner_head())
    yield page.bar([(found.experiment.name, None)])
    yield page.head(found)
    if report.summary.agents:
        yield page.agents(found)
        yield page.causes(found, _href)
        yield from _cases(report, found, page)
        yield from _runs(store, report, page, progress)
        yield page.rest(found)
    else:
        yield '<div id="runs"></div>\n'
        yield page.rest(found)
    yield page.end(found.experiment.version or "unknown", ERRORED_NOTE, inner_script())


def _href(run_id: str) -> str:
    return f"#{run_anchor(run_id)}"


def _cases(report: Report, found: Overview, page: Any) -> Iterator[str]:
    agents = found.agent_names
    total, bad = bad_cases(report, agents)
    yield '<section aria-labelledby="cases"><div class="sec"><h2 id="cases">Cases</h2>'
    yield '<span class="f">the worst first</span></div>\n'
    if bad:
        yield from _table(worst_cases(report, agents, SORTED_CASES), bad, agents, page)
    if good := total - bad:
        verb = "cases were" if good > 1 else "case was"
        yield f'<details class="sheet fold2"><summary>{good:,} {verb} passed by every agent, every time</summary>\n'
        passed = (line for line in case_lines(report, agents) if all(cell.kind == "passed" for cell in line.cells))
        yield from _table(passed, good, agents, page)
        yield "</details>\n"
    yield "</section>\n"


def _table(lines: Iterable[CaseLine], total: int, agents: list[str], page: Any) -> Iterator[str]:
    yield page.cases_start(agents, "Cases")
    size = shown = 0
    for line in lines:
        if size > MAX_CASES // 2:
            break
        piece = page.case(line, _href)
        size += len(piece)
        shown += 1
        yield piece
    yield page.cases_end()
    if shown < total:
        yield f'<p class="f">and {total - shown:,} more cases</p>\n'


def _runs(store: Store, report: Report, page: Any, progress: Advance) -> Iterator[str]:
    total = report.summary.runs
    yield '<section aria-labelledby="runs"><div class="sec"><h2 id="runs">Runs</h2>'
    yield '<span class="f">failed and errored ones first; each opens on its transcript</span></div>\n'
    unlisted = max(0, total - MAX_LINES)
    yield page.search("Search in all that is in this file")
    yield page.titles()
    more = f' data-more="{unlisted}"' if unlisted else ""
    yield f'<div class="sheet list" data-list{more}>\n'
    size = listed = whole = 0
    for listed, (row, chips) in enumerate(ordered_rows(store, report), 1):
        if listed > MAX_LINES:
            listed -= 1
            break
        body, why = "", row.error_class or ""
        if size < MAX_RUNS:
            body, why = _run(store, row.run_id, f"r{listed}-", page)
            size += len(body)
            whole += 1
        line = RunLine(row=row, why=why, chips=chips)
        yield page.opened(line, Markup(body)) if body else page.alone(line)  # noqa: S704 - made of our templates
        progress()
    yield "</div>\n"
    yield page.left_out(report.experiment.experiment_id, listed - whole, unlisted)
    yield "</section>\n"


def _run(store: Store, run_id: str, prefix: str, page: Any) -> tuple[str, str]:
    """The page of a run without what only a server has, and what came of it in a sentence."""
    exported = ExportPage(one_file=True)
    try:
        parts = run_parts(store, run_id)
        items = parts.items(0, RANGES)
        html = parts.html(items, exported)
        verdicts = [(card, parts.verdict_html(card.verdict.grader, exported)) for card in parts.verdicts]
    except SeatrialError as error:
        return str(page.unreadable(str(error))), f"cannot be read: {error}"
    places = dict.fromkeys(anchor for item in items.items for anchor in item.anchors)
    anchors = {card.verdict.grader: f"{prefix}verdict-{number}" for number, (card, _) in enumerate(verdicts)}

    def place(anchor: str) -> str | None:
        known = parts.anchor(anchor, places)
        return None if known is None else f"#{prefix}{known}"

    def target(href: str) -> str | None:
        if is_plain_link(href):
            return href
        if href.startswith("?"):
            return place(href.partition("#")[2])
        found = run_address(href)
        if found is None or found.given.keys() - {"at"}:
            return None
        if found.part == "image":
            return data_url(store, found.run_id, found.pointer)
        if found.part == "verdicts":
            anchor = anchors.get(found.pointer[1:])
            return None if anchor is None else f"#{anchor}"
        if found.part:
            return None
        return place(found.anchor) if found.run_id == run_id and found.anchor else _href(found.run_id)

    def inside(text: str, prefix: str) -> str:
        return _SPACE.sub("><", without_server(_TITLE.sub("", main_part(text), count=1), target, prefix))

    pieces = [inside(html, prefix)]
    for card, text in verdicts:
        anchor = anchors[card.verdict.grader]
        # Ours, and without a server.
        pieces.append(page.verdict(card, anchor, Markup(inside(text, f"{anchor}-"))))  # noqa: S704
    return "".join(pieces), parts.why
