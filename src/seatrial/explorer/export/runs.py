"""A run as it stands in an export: the page of the server, with every item of its transcript that there is room for."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

import msgspec
from markupsafe import Markup

from seatrial.errors import SeatrialError
from seatrial.explorer.plots.timeline import MAX_SHAPES, minimap_svg, timeline_svg
from seatrial.explorer.render import address, rendered
from seatrial.explorer.run import SingleRunPage, VerdictCard, run_page
from seatrial.explorer.texts import image_at
from seatrial.explorer.transcript import MAX_ITEMS, MAX_RANGE_SIZE, TranscriptRange, anchor_of, transcript_range
from seatrial.explorer.verdict import verdict_page
from seatrial.reports.findings import place_text
from seatrial.store import RunRecord, Store

MAX_IMAGE = 256 * 1024
"""Bytes of an image that is written into a page."""
WIDTH = 1180
"""Pixels that timelines are drawn for."""
MINIMAP_FROM = 2_000
MAX_WHY = 240
MAX_VERDICTS = 20
"""Verdicts of one run that have a page of their own."""


class ExportPage(msgspec.Struct, frozen=True, kw_only=True):
    """What templates know of the export that they are rendered for, as `exported`; None where a server answers."""

    head: Markup = Markup("")
    """The policy, the styles and the script of a page."""
    root: str = ""
    """The way from the page to the folder of the export."""
    one_file: bool = False
    """Whether there is nothing beside the page: what it does not have is not in the export."""


class RunParts(msgspec.Struct, frozen=True):
    """What pages of a run are made from."""

    page: SingleRunPage
    store: Store

    @property
    def run_id(self) -> str:
        """Of the run."""
        return self.page.run_id

    @property
    def why(self) -> str:
        """What came of it, in a sentence."""
        sentence = self.page.findings.sentence
        place = place_text(sentence.place) if sentence.place else ""
        return f"{sentence.lead}{place}{sentence.rest}"[:MAX_WHY]

    def items(self, first: int, ranges: int = 1) -> TranscriptRange:
        """The items from one on; with more `ranges`, so many times as many."""
        found = _items(self.store, self.page.record, first)
        for _ in range(1, ranges):
            if found.end >= found.total:
                break
            more = _items(self.store, self.page.record, found.end)
            found = msgspec.structs.replace(found, items=[*found.items, *more.items], end=more.end)
        return found

    def html(self, transcript: TranscriptRange, exported: ExportPage) -> str:
        """The page of the run, as the server has it, with these items."""
        timeline = self.page.timeline
        mapped = timeline.items > MINIMAP_FROM
        return rendered(
            "run.html",
            page=self.page,
            transcript=transcript,
            view=lambda **changed: address("runs", self.run_id, **changed),
            anchor_of=anchor_of,
            timeline=timeline,
            drawing=timeline_svg(timeline, WIDTH, "?", MAX_SHAPES) if timeline.spans else None,
            map=minimap_svg(timeline, WIDTH) if mapped and timeline.spans else None,
            moves=[],
            axes={"time": "", "steps": ""},
            exported=exported,
            complaints=[],
        )

    def anchor(self, wanted: str, known: Mapping[str, object]) -> str | None:
        """The id of a place among those that are known; None for a place that is not. An answer that is what the last
        message says has no item of its own: that message stands for it."""
        if wanted not in known and wanted == "answer" and self.page.record.messages:
            wanted = anchor_of(f"/messages/{self.page.record.messages - 1}")
        return wanted if wanted in known else None

    @property
    def verdicts(self) -> list[VerdictCard]:
        """The verdicts that have a page of their own: those that did not pass, and what judges said."""
        cards = [card for card in self.page.verdicts if card.page and (card.verdict.outcome != "passed" or card.judges)]
        return cards[:MAX_VERDICTS]

    def verdict_html(self, grader: str, exported: ExportPage) -> str:
        """The page of a verdict, as the server has it."""
        return rendered(
            "verdict.html",
            page=verdict_page(self.store, self.run_id, grader),
            view=lambda **changed: address("runs", self.run_id, "verdicts", grader, **changed),
            anchor_of=anchor_of,
            exported=exported,
            complaints=[],
        )


def run_parts(store: Store, run_id: str) -> RunParts:
    """A run of a store."""
    return RunParts(run_page(store, run_id), store)


def _items(store: Store, record: RunRecord, first: int) -> TranscriptRange:
    run_id = record.summary.run_id
    return transcript_range(store, run_id, first, MAX_ITEMS, record=record, size=MAX_RANGE_SIZE, whole=True)


class RunAddress(msgspec.Struct, frozen=True):
    """An address below `/runs/`, taken apart."""

    run_id: str
    part: str
    """What it is of the run: "" for its page, else `text`, `image`, `items`, ..."""
    pointer: str
    given: dict[str, str]
    anchor: str


def run_address(href: str) -> RunAddress | None:
    """An address of the server, where it is about a run."""
    path, _, anchor = href.partition("#")
    path, _, query = path.partition("?")
    parts = path.split("/", 4)
    if len(parts) < 3 or parts[0] or parts[1] != "runs" or not parts[2]:
        return None
    part = parts[3] if len(parts) > 3 else ""
    pointer = "/" + unquote(parts[4]) if len(parts) > 4 else ""
    return RunAddress(unquote(parts[2]), part, pointer, dict(parse_qsl(query)), anchor)


def is_plain_link(href: str) -> bool:
    """Whether an address leads out of the server, or is that of a file of the export already."""
    return not href.startswith(("/", "?", "#"))


def data_url(store: Store, run_id: str, pointer: str) -> str | None:
    """An image of a run as its own address; None for one that is none, or too large for a page."""
    try:
        kind, data = image_at(store, run_id, pointer)
    except SeatrialError:
        return None
    return None if len(data) > MAX_IMAGE else f"data:{kind};base64,{base64.b64encode(data).decode()}"
