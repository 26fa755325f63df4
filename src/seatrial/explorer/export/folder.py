"""An experiment as a folder of pages that open from a disk: for what is too large for one file.

    index.html     what came of it: agents, tags, why runs did not pass, the worst cases, graders, notes
    runs.html      every run in a line, searched and sorted
    cases-1.html   every case, fifty to a page
    runs/ID.html   a run; a long one goes on in ID.2.html. Images and texts that are too long for a page lie beside it

One run is in memory at a time. The folder appears once all of it is written.
"""

from __future__ import annotations

import os
import shutil
import string
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from seatrial._support.whole_file import whole_file
from seatrial.errors import SeatrialError
from seatrial.explorer.export.files import SCRIPT, STYLE, outer_head, script, style
from seatrial.explorer.export.links import without_server
from seatrial.explorer.export.one_file import Advance, unheard
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
from seatrial.explorer.export.runs import ExportPage, RunAddress, RunParts, is_plain_link, run_address, run_parts
from seatrial.explorer.render import templates
from seatrial.explorer.texts import image_at, text_at
from seatrial.explorer.transcript import TranscriptRange
from seatrial.reports.report import ERRORED_NOTE, Report
from seatrial.store import Store

CASES_AT_ONCE = 50
MAX_LINES = 10_000
"""Runs that are listed and searched; all have their pages."""
MAX_FILES = 200
"""Texts and images of one run that are written beside its page."""
_PLAIN = frozenset(string.ascii_letters + string.digits + "-_")
MARK = ".seatrial-export"
"""A file that says of a folder that it is an export, and may be replaced by another one."""


def write_folder(store: Store, report: Report, path: Path, progress: Advance = unheard) -> None:
    """Write the folder. An export that is there already is replaced, anything else is not."""
    path = path.absolute()
    if path.exists() and not _replaceable(path):
        hint = "name a folder that is not there yet, an empty one, or one that was exported before"
        raise SeatrialError("unwritable_file", f"{path} is not an export, and is not overwritten", hint=hint)
    making = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        (making / "runs").mkdir(parents=True)
        _Folder(store, report, making).write(progress)
        if path.exists():
            old = making.with_suffix(".old")
            path.rename(old)
            making.rename(path)
            shutil.rmtree(old)
        else:
            making.rename(path)
    except OSError as error:
        raise SeatrialError("unwritable_file", f"{path} cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _replaceable(path: Path) -> bool:
    return path.is_dir() and ((path / MARK).exists() or not any(path.iterdir()))


class _Folder:
    def __init__(self, store: Store, report: Report, path: Path) -> None:
        self._store = store
        self._report = report
        self._path = path
        self._page: Any = templates().get_template("export/parts.html").module
        self._name = report.experiment.name

    def write(self, progress: Advance) -> None:
        found = overview(self._report)
        (self._path / STYLE).write_text(style(), "utf-8")
        (self._path / SCRIPT).write_text(script(), "utf-8")
        self._write_runs(progress)
        cases = self._write_cases(found)
        self._write("index.html", self._index(found, cases))
        (self._path / MARK).write_text(f"{self._report.experiment.experiment_id}\n", "utf-8")

    def _write(self, name: str, pieces: Iterator[str]) -> None:
        with whole_file(self._path / name) as file:
            file.writelines(piece.encode("utf-8", "replace") for piece in pieces)

    def _around(self, title: str, inner: Iterator[str], root: str = "") -> Iterator[str]:
        yield self._page.start(title, outer_head(root))
        crumbs = [(self._name, None)] if title == self._name else [(self._name, "index.html"), (title, None)]
        yield self._page.bar(crumbs)
        yield from inner
        yield self._page.end(self._report.experiment.version or "unknown", ERRORED_NOTE)

    def _index(self, found: Overview, cases: list[tuple[str, str]]) -> Iterator[str]:
        def inner() -> Iterator[str]:
            page, agents = self._page, found.agent_names
            yield page.head(found)
            if self._report.summary.agents:
                yield '<p class="pgs" id="runs"><a class="ic pri" href="runs.html">All runs, with search</a></p>\n'
                yield page.agents(found)
                yield page.causes(found, _href)
                _, bad = bad_cases(self._report, agents)
                yield '<section aria-labelledby="cases"><div class="sec"><h2 id="cases">Cases</h2>'
                yield f'<span class="f">{bad:,} not passed by every agent, every time; the worst first</span></div>\n'
                if bad:
                    yield from self._table(iter(worst_cases(self._report, agents, CASES_AT_ONCE)), agents)
                yield page.ways(cases, "")
                yield "</section>\n"
            else:
                yield '<div id="runs"></div>\n'
            yield page.rest(found)

        return self._around(self._name, inner())

    def _table(self, lines: Iterator[CaseLine], agents: list[str]) -> Iterator[str]:
        yield self._page.cases_start(agents, "Cases")
        for line in lines:
            yield self._page.case(line, _href)
        yield self._page.cases_end()

    def _write_cases(self, found: Overview) -> list[tuple[str, str]]:
        total, _ = bad_cases(self._report, found.agent_names)
        firsts = range(0, total, CASES_AT_ONCE)
        ways = [
            (f"{first + 1:,} to {min(first + CASES_AT_ONCE, total):,}", f"cases-{number}.html")
            for number, first in enumerate(firsts, 1)
        ]
        lines = case_lines(self._report, found.agent_names)
        for name, where in ways:
            some = list(islice(lines, CASES_AT_ONCE))

            def inner(name: str = name, where: str = where, some: list[CaseLine] = some) -> Iterator[str]:
                yield f'<h1 id="runs">Cases {name}</h1>\n'
                yield self._page.ways(ways, where)
                yield from self._table(iter(some), found.agent_names)

            self._write(where, self._around(f"Cases {name}", inner()))
        return ways

    def _write_runs(self, progress: Advance) -> None:
        total = self._report.summary.runs
        unlisted = max(0, total - MAX_LINES)

        def inner() -> Iterator[str]:
            yield "<h1>Runs</h1>\n"
            yield self._page.search("Search cases, agents, tags, and why runs failed")
            yield self._page.titles()
            more = f' data-more="{unlisted}"' if unlisted else ""
            yield f'<div class="sheet list" id="runs" data-list{more}>\n'
            for done, (row, chips) in enumerate(ordered_rows(self._store, self._report), 1):
                why = self._write_run(row.run_id)
                if done <= MAX_LINES:
                    yield self._page.linked(RunLine(row=row, why=why, chips=chips), _href(row.run_id))
                progress()
            yield "</div>\n"
            if unlisted:
                yield self._page.unlisted(unlisted)

        self._write("runs.html", self._around("Runs", inner()))

    def _write_run(self, run_id: str) -> str:
        """The pages of a run; gives what came of it in a sentence."""
        try:
            return _RunPages(self._store, run_id, self._path / "runs").write()
        except SeatrialError as error:
            why = str(error)

        def inner() -> Iterator[str]:
            yield "<h1>Run</h1>\n"
            yield self._page.unreadable(why)

        self._write(f"runs/{file_name(run_id)}", self._around(run_id, inner(), "../"))
        return f"cannot be read: {why}"


class _RunPages:
    """The pages of a run, and what lies beside them."""

    def __init__(self, store: Store, run_id: str, path: Path) -> None:
        self._store = store
        self._run_id = run_id
        self._path = path
        self._places: dict[str, int] = {}
        """On which page the items are, by their anchors."""
        self._beside: dict[str, str | None] = {}
        self._verdicts: dict[str, str] = {}
        """The files of the pages on verdicts, by the name of the grader."""

    def write(self) -> str:
        parts = run_parts(self._store, self._run_id)
        self._verdicts = {
            card.verdict.grader: f"{file_name(self._run_id)[:-5]}.verdict-{number}.html"
            for number, card in enumerate(parts.verdicts, 1)
        }
        # Every page links to places on all others: where these are is known before the first is written.
        firsts = [0]
        while True:
            items = parts.items(firsts[-1])
            for item in items.items:
                for anchor in item.anchors:
                    self._places.setdefault(anchor, len(firsts))
            if items.end >= items.total or items.end <= firsts[-1]:
                break
            firsts.append(items.end)
        for number, first in enumerate(firsts, 1):
            self._page(parts, items if len(firsts) == 1 else parts.items(first), number)
        for card in parts.verdicts:
            self._verdict(parts, card.verdict.grader)
        return parts.why

    def _page(self, parts: RunParts, items: TranscriptRange, number: int) -> None:
        html = parts.html(items, ExportPage(head=outer_head("../")))
        self._write(parts, file_name(self._run_id, number), html, items, number)

    def _verdict(self, parts: RunParts, grader: str) -> None:
        html = parts.verdict_html(grader, ExportPage(head=outer_head("../")))
        self._write(parts, self._verdicts[grader], html, None, 0)

    def _write(self, parts: RunParts, name: str, html: str, items: TranscriptRange | None, here: int) -> None:
        def target(href: str) -> str | None:
            if is_plain_link(href):
                return href
            if href.startswith("?"):
                return self._at(parts, href.partition("#")[2], here)
            found = run_address(href)
            if found is None:
                return "../index.html" if href.startswith("/experiments") else None
            if found.run_id != self._run_id:
                return None if found.part or found.given.keys() - {"at"} else file_name(found.run_id)
            return self._inside(parts, found, items, here)

        with whole_file(self._path / name) as file:
            file.write(without_server(html, target).encode("utf-8", "replace"))

    def _at(self, parts: RunParts, anchor: str, here: int) -> str | None:
        known = parts.anchor(anchor, self._places)
        if known is None:
            return None
        there = self._places[known]
        return f"#{known}" if there == here else f"{file_name(self._run_id, there)}#{known}"

    def _inside(self, parts: RunParts, found: RunAddress, items: TranscriptRange | None, here: int) -> str | None:
        if found.part == "items" and items is not None:
            behind = found.given.get("from") == str(items.end)
            return file_name(self._run_id, here + 1 if behind else here - 1)
        if found.part == "text":
            return self._file(found.pointer, self._text)
        if found.part == "image":
            return self._file(found.pointer, self._image)
        if found.given.keys() - {"at"}:
            return None
        if found.part:
            return self._verdicts.get(found.pointer[1:]) if found.part == "verdicts" else None
        return self._at(parts, found.anchor, here) if found.anchor else file_name(self._run_id)

    def _file(self, pointer: str, written: Callable[[str, str], tuple[str, bytes]]) -> str | None:
        """What is written beside the pages for a pointer; None when there is nothing, or too much already."""
        if pointer not in self._beside:
            self._beside[pointer] = None
            if len(self._beside) <= MAX_FILES:
                try:
                    ending, data = written(self._run_id, pointer)
                except SeatrialError:
                    return None
                name = f"{file_name(self._run_id)[:-5]}.{len(self._beside)}{ending}"
                (self._path / name).write_bytes(data)
                self._beside[pointer] = name
        return self._beside[pointer]

    def _text(self, run_id: str, pointer: str) -> tuple[str, bytes]:
        # A byte order mark, for browsers would take a file without one for another encoding.
        return ".text.txt", b"\xef\xbb\xbf" + text_at(self._store, run_id, pointer).text.encode("utf-8", "replace")

    def _image(self, run_id: str, pointer: str) -> tuple[str, bytes]:
        kind, data = image_at(self._store, run_id, pointer)
        return f".{kind.rpartition('/')[2]}", data


def file_name(run_id: str, number: int = 1) -> str:
    """The file of a page of a run; ids of runs may have anything in them."""
    plain = [letter if letter in _PLAIN else f"~{ord(letter):x}" for letter in run_id]
    stem = "".join(plain)[:200]
    return f"{stem}.html" if number == 1 else f"{stem}.{number}.html"


def _href(run_id: str) -> str:
    return f"runs/{quote(file_name(run_id), safe='~')}"
