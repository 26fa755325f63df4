"""One run, its timeline, and what one grader says of it."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar import Response, get
from litestar.params import FromPath
from litestar.response import Redirect

from seatrial.explorer.live import running_page
from seatrial.explorer.page import Arguments, PageRequest, TheStore, html, is_fragment
from seatrial.explorer.plots.timeline import MAX_SHAPES, minimap_svg, timeline_svg
from seatrial.explorer.render import address
from seatrial.explorer.run import SingleRunPage, run_page
from seatrial.explorer.so_far import run_view
from seatrial.explorer.timeline import Axis, Timeline, run_timeline
from seatrial.explorer.transcript import (
    FIRST_ITEMS,
    MAX_ITEMS,
    MAX_RANGE_SIZE,
    VIEWS,
    TranscriptRange,
    anchor_of,
    transcript_range,
)
from seatrial.explorer.verdict import verdict_page
from seatrial.reports.stored_findings import stored_findings

WIDTH = 1180
"""Pixels that a timeline is drawn for, until its page says how wide it is."""
FIRST_SHAPES = 160
"""Shapes of the timeline that a page comes with: its first answer is small."""
LIVE_ITEMS = 20
"""Items that the page of a running run comes with: the last ones."""
MINIMAP_FROM = 2000
"""Items of a run that is shown as a whole below its timeline, too."""
_STATE = ("from", "to", "axis", "lanes", "show", "grading")


class TimelineMove(msgspec.Struct, frozen=True):
    """What moves or zooms a timeline."""

    key: str
    sign: str
    words: str
    href: str
    on: bool = True


@get("/runs/{run_id:str}", sync_to_thread=True)
def show_run(request: PageRequest, store: TheStore, run_id: FromPath[str]) -> Response[str]:
    """A run, with the first of its messages, or those around a place in it; of a running one, the last."""
    arguments = Arguments(request, "at", *_STATE, "find", "open")
    now = time.time() * 1000
    axis, window, lanes = _timeline_arguments(arguments)
    grading = arguments.number("grading") if arguments.get("grading") is not None else None
    at = arguments.get("at")
    seen = run_view(store, run_id, now)
    page = run_page(seen, run_id, at=at, axis=axis, window=window, lanes=lanes, grading=grading, now=now)
    transcript = transcript_range(
        seen,
        run_id,
        0 if page.so_far is None else max(0, page.record.messages - LIVE_ITEMS),
        FIRST_ITEMS,
        at,
        show=arguments.choice("show", VIEWS, "read"),
        opened=(arguments.get("open") or "").split(","),
        record=page.record,
    )
    if grading is not None and page.grading is None and grading not in [each.number for each in page.gradings[-1:]]:
        arguments.complaints.append(f"This run has no grading {grading}; the verdicts below are of the latest.")
    return _run_html("run.html", arguments, page, transcript, WIDTH)


@get("/runs/{run_id:str}/live", sync_to_thread=True)
def show_changes(request: PageRequest, store: TheStore, run_id: FromPath[str]) -> Response[str] | Redirect:
    """What of a running run's page is to be shown anew: all but the items before one of them."""
    if not is_fragment(request):
        return Redirect(address("runs", run_id), status_code=303)
    arguments = Arguments(request, "at", *_STATE, "find", "open", "items", "px")
    now = time.time() * 1000
    axis, window, lanes = _timeline_arguments(arguments)
    seen = run_view(store, run_id, now)
    page = run_page(seen, run_id, at=arguments.get("at"), axis=axis, window=window, lanes=lanes, now=now)
    transcript = transcript_range(
        seen,
        run_id,
        max(arguments.number("items"), page.record.messages - FIRST_ITEMS, 0),
        MAX_ITEMS,
        show=arguments.choice("show", VIEWS, "read"),
        opened=(arguments.get("open") or "").split(","),
        record=page.record,
        size=MAX_RANGE_SIZE,
    )
    px = arguments.number("px", WIDTH)
    return _run_html("parts/live.html", arguments, page, transcript, px, headers={"cache-control": "no-store"})


@get("/live", sync_to_thread=True)
def show_running(request: PageRequest, store: TheStore) -> Response[str]:
    """Runs that are running."""
    arguments = Arguments(request, "agent", "before")
    page = running_page(store, time.time() * 1000, agent=arguments.get("agent"), before=arguments.get("before"))
    return html("live.html", headers={"cache-control": "no-store"}, page=page, complaints=arguments.complaints)


def _run_html(
    template: str,
    arguments: Arguments,
    page: SingleRunPage,
    transcript: TranscriptRange,
    px: int,
    headers: dict[str, str] | None = None,
) -> Response[str]:
    def view(**changed: object) -> str:
        """The address of the page of the run with something changed."""
        return arguments.address("runs", page.run_id, **{"items": None, "px": None, **changed})

    return html(
        template,
        headers=headers,
        page=page,
        transcript=transcript,
        view=view,
        anchor_of=anchor_of,
        **_drawn(arguments, page.timeline, px, _base(arguments), FIRST_SHAPES),
        complaints=arguments.complaints,
    )


@get("/runs/{run_id:str}/timeline", sync_to_thread=True)
def show_timeline(request: PageRequest, store: TheStore, run_id: FromPath[str]) -> Response[str]:
    """A part of the timeline of a run."""
    arguments = Arguments(request, "from", "to", "axis", "lanes", "px", "show", "grading", "at")
    axis, window, lanes = _timeline_arguments(arguments)
    seen = run_view(store, run_id, time.time() * 1000)
    record = seen.run_record(run_id)
    found = stored_findings(seen, record)
    timeline = run_timeline(seen, record, found.findings, axis=axis, start=window[0], end=window[1], lanes=lanes)
    fragment = is_fragment(request)
    # On a page of its own, places are links to the page of the run.
    base = _base(arguments) if fragment else address("runs", run_id) + _base(arguments)
    return html(
        "parts/timeline.html" if fragment else "timeline.html",
        headers={
            "cache-control": "no-store" if record.summary.status in ("pending", "running") else "private, no-cache"
        },
        **_drawn(arguments, timeline, arguments.number("px", WIDTH), base, MAX_SHAPES),
        complaints=arguments.complaints,
    )


@get("/runs/{run_id:str}/verdicts/{grader:path}", sync_to_thread=True)
def show_verdict(request: PageRequest, store: TheStore, run_id: FromPath[str], grader: FromPath[str]) -> Response[str]:
    """What one grader says of a run, and what it rests on."""
    arguments = Arguments(request, "at", "from", "grading")
    grading = arguments.number("grading") if arguments.get("grading") is not None else None
    first = arguments.number("from") if arguments.get("from") is not None else None
    page = verdict_page(store, run_id, grader, at=arguments.get("at"), first=first, grading=grading)
    if grading is not None and page.grading is None and grading not in [each.number for each in page.gradings[-1:]]:
        arguments.complaints.append(f"This run has no grading {grading}; this is the latest.")

    def view(**changed: object) -> str:
        """The address of this page with something changed."""
        return arguments.address("runs", run_id, "verdicts", page.verdict.grader, **changed)

    return html("verdict.html", page=page, view=view, anchor_of=anchor_of, complaints=arguments.complaints)


def _timeline_arguments(arguments: Arguments) -> tuple[Axis, tuple[float | None, float | None], list[str]]:
    start = float(arguments.number("from")) if arguments.get("from") is not None else None
    end = float(arguments.number("to")) if arguments.get("to") is not None else None
    lanes = [lane for lane in (arguments.get("lanes") or "").split(",") if lane]
    return ("steps" if arguments.choice("axis", ("time", "steps"), "time") == "steps" else "time"), (start, end), lanes


def _base(arguments: Arguments) -> str:
    """The beginning of links to places: what is shown stays, and where changes."""
    state = {name: value for name in _STATE if (value := arguments.get(name)) is not None}
    return f"?{urlencode(state)}&" if state else "?"


def _drawn(arguments: Arguments, timeline: Timeline, px: int, base: str, limit: int) -> dict[str, Any]:
    """What the template of a timeline needs."""

    def to(start: float, end: float) -> str:
        start, end = max(0.0, start), min(timeline.whole, end)
        whole = start <= 0 and end >= timeline.whole
        window = {"from": None, "to": None} if whole else {"from": int(start), "to": int(-(-end // 1))}
        return arguments.address("runs", timeline.run_id, **window, px=None, items=None) + "#timeline"

    start, end = timeline.start, timeline.end
    length = end - start
    middle, unit = (start + end) / 2, max(length / 4, 0.5)
    closer = length > (8 if timeline.axis == "time" else 3)
    left, right = min(length / 2, start), min(length / 2, timeline.whole - end)
    moves = [
        TimelineMove("[", "◂", "earlier", to(start - left, end - left), start > 0),
        TimelineMove("]", "▸", "later", to(start + right, end + right), end < timeline.whole),
        TimelineMove("+", "+", "zoom in", to(middle - unit, middle + unit), closer),
        TimelineMove("-", "−", "zoom out", to(middle - length, middle + length), timeline.zoomed),
        TimelineMove("0", "all", "all of the run", to(0, timeline.whole), timeline.zoomed),
    ]
    mapped = timeline.zoomed or timeline.items > MINIMAP_FROM
    return {
        "timeline": timeline,
        "drawing": timeline_svg(timeline, px, base, limit) if timeline.spans else None,
        "map": minimap_svg(timeline, px) if mapped and timeline.spans else None,
        "moves": moves,
        "axes": {
            axis: arguments.address(
                "runs",
                timeline.run_id,
                axis=None if axis == "time" else axis,
                **{"from": None, "to": None, "px": None, "items": None},
            )
            + "#timeline"
            for axis in ("time", "steps")
        },
    }


HANDLERS = [show_run, show_changes, show_timeline, show_verdict, show_running]
