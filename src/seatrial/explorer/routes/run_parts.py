"""Parts of one run: ranges of its transcript, single texts and images, find, the event log, the body, downloads."""

from __future__ import annotations

import re
import time
from urllib.parse import quote

from litestar import Response, get
from litestar.params import FromPath

from seatrial.errors import SeatrialError
from seatrial.explorer.cards import json_in
from seatrial.explorer.download import download_page, written
from seatrial.explorer.json_view import json_view
from seatrial.explorer.keys import KEYS
from seatrial.explorer.page import Arguments, PageRequest, TheStore, html, is_fragment
from seatrial.explorer.passages import OPEN_BYTES, passage, text_page
from seatrial.explorer.render import address
from seatrial.explorer.run_events import events_page
from seatrial.explorer.so_far import run_view
from seatrial.explorer.texts import image_at, text_at, text_range
from seatrial.explorer.transcript import (
    FIRST_ITEMS,
    MAX_ITEMS,
    MAX_RANGE_SIZE,
    VIEWS,
    anchor_of,
    record_tag,
    transcript_range,
)
from seatrial.formats.registry import writable
from seatrial.store import RunRecord

FOUND_AT_ONCE = 50
_SAFE_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'"


@get("/runs/{run_id:str}/items", sync_to_thread=True)
def show_items(request: PageRequest, store: TheStore, run_id: FromPath[str]) -> Response[str]:
    """A range of the transcript."""
    arguments = Arguments(request, "from", "count", "show", "at", "open", "v")
    store = run_view(store, run_id, time.time() * 1000)
    record = store.run_record(run_id)
    unchanged, headers = _part_caching(request, record)
    if unchanged:
        return Response("", status_code=304, headers=headers)
    transcript = transcript_range(
        store,
        run_id,
        arguments.number("from"),
        max(1, min(arguments.number("count", FIRST_ITEMS), MAX_ITEMS)),
        arguments.get("at"),
        show=arguments.choice("show", VIEWS, "read"),
        opened=(arguments.get("open") or "").split(","),
        record=record,
        size=MAX_RANGE_SIZE,
    )
    template = "parts/range.html" if is_fragment(request) else "items.html"
    return html(template, headers=headers, transcript=transcript, complaints=arguments.complaints)


@get("/runs/{run_id:str}/text/{place:path}", sync_to_thread=True)
def show_text(request: PageRequest, store: TheStore, run_id: FromPath[str], place: FromPath[str]) -> Response[str]:
    """One text: a range of it as a page; as a part, all of it, the way that the transcript shows it."""
    arguments = Arguments(request, "from", "count", "v")
    store = run_view(store, run_id, time.time() * 1000)
    record = store.run_record(run_id)
    unchanged, headers = _part_caching(request, record)
    if unchanged:
        return Response("", status_code=304, headers=headers)
    pointer = "/" + place.strip("/")
    found = text_at(store, run_id, pointer)
    size = len(found.text.encode("utf-8", "replace"))
    if is_fragment(request) and size <= OPEN_BYTES and arguments.get("from") is None:
        if not found.prose and (value := json_in(found.text)) is not None:
            view = json_view(value, pointer, lambda place: text_page(run_id, place))
            return html(
                "parts/value.html", headers=headers, pointer=pointer, view=view, page=text_page(run_id, pointer)
            )
        shown = passage(run_id, pointer, found.text, prose=found.prose, opened=True)
        return html("parts/passage.html", headers=headers, text=shown)
    page = text_range(run_id, pointer, found.text, arguments.number("from"), arguments.number("count"))
    template = "parts/lines.html" if is_fragment(request) else "text.html"
    return html(template, headers=headers, page=page, anchor=anchor_of(pointer), complaints=arguments.complaints)


@get("/runs/{run_id:str}/image/{place:path}", sync_to_thread=True)
def show_image(request: PageRequest, store: TheStore, run_id: FromPath[str], place: FromPath[str]) -> Response[bytes]:
    """An image of the record, if that is what it is."""
    unchanged, headers = _caching(request, store.run_record(run_id))
    if unchanged:
        return Response(b"", status_code=304, headers=headers)
    kind, data = image_at(store, run_id, "/" + place.strip("/"))
    headers |= {"content-security-policy": _SANDBOX, "content-disposition": "inline"}
    return Response(data, media_type=kind, headers=headers)


@get("/runs/{run_id:str}/find", sync_to_thread=True)
def find_text(request: PageRequest, store: TheStore, run_id: FromPath[str]) -> Response[str]:
    """Where in the whole run a text is."""
    arguments = Arguments(request, "q", "after")
    query = arguments.get("q") or ""
    after = arguments.number("after", -1) if arguments.get("after") is not None else -1
    found = store.find_in_run(run_id, query, after=after, limit=FOUND_AT_ONCE)
    more = None if found.after is None else address("runs", run_id, "find", q=query, after=found.after)
    template = "parts/found.html" if is_fragment(request) else "find.html"
    return html(
        template,
        headers={"cache-control": "no-store"},
        run_id=run_id,
        query=query,
        found=found,
        more=more,
        behind=after >= 0,
        anchor_of=anchor_of,
        text_page=text_page,
        complaints=arguments.complaints,
    )


@get("/runs/{run_id:str}/events", sync_to_thread=True)
def show_events(request: PageRequest, store: TheStore, run_id: FromPath[str]) -> Response[str]:
    """The event log, as it was sent."""
    arguments = Arguments(request, "after", "types")
    types = [name for name in (arguments.get("types") or "").split(",") if name]
    after = arguments.number("after", -1) if arguments.get("after") is not None else -1
    page = events_page(store, run_id, after, types)
    template = "parts/events.html" if is_fragment(request) else "events.html"
    return html(template, page=page, complaints=arguments.complaints)


@get("/runs/{run_id:str}/body", sync_to_thread=True)
def download_body(request: PageRequest, store: TheStore, run_id: FromPath[str]) -> Response[bytes]:
    """What the agent sent, byte for byte, as a file that no browser takes for a page."""
    number = Arguments(request, "attempt").number("attempt")
    attempts = [attempt for exchange in store.run_record(run_id).exchanges for attempt in exchange.attempts]
    known = {index: attempt for index, attempt in enumerate(attempts, 1) if attempt.body_hash is not None}
    chosen = known.get(number or max(known, default=0))
    if chosen is None and not number and (body := store.run(run_id).body) is not None:
        return _file(body, f"{run_id}-body.txt")  # of a run whose attempts nobody recorded
    if chosen is None or chosen.body_hash is None:
        which = f"attempt {number} of run {run_id}" if number else f"run {run_id}"
        raise SeatrialError("not_found", f"{which} brought no body")
    return _file(store.body(chosen.body_hash), f"{run_id}-body.txt")


@get("/runs/{run_id:str}/download", sync_to_thread=True)
def download_run(request: PageRequest, store: TheStore, run_id: FromPath[str]) -> Response[bytes] | Response[str]:
    """The run in a format; first what that format loses, where it loses something."""
    arguments = Arguments(request, "format", "losses")
    chosen = arguments.choice("format", tuple(writable()), "") if arguments.get("format") else ""
    found = written(store, run_id, chosen) if chosen else None
    if found is not None and (not found.losses or arguments.get("losses") == "accepted"):
        return _file(found.data, f"{run_id}.{chosen}.txt")
    page = download_page(store, run_id, chosen or None, found)
    return html("download.html", page=page, complaints=arguments.complaints)


@get("/help/keys", sync_to_thread=False)
def show_keys(request: PageRequest) -> Response[str]:
    """All keys."""
    template = "parts/keys.html" if is_fragment(request) else "keys.html"
    return html(template, keys=KEYS, complaints=Arguments(request).complaints)


def _caching(request: PageRequest, record: RunRecord) -> tuple[bool, dict[str, str]]:
    """Whether the browser has a part already; and headers that say how long it may be kept.

    What an ended run says never changes; what is shown of it does with a new grading, or a new version of the page.
    """
    tag = f'"{record_tag(record)}"'
    if record_tag(record) == "":
        return False, {"cache-control": "no-store"}
    keep = "private, max-age=31536000, immutable" if request.query_params.get("v") else "private, no-cache"
    return request.headers.get("if-none-match") == tag, {"etag": tag, "cache-control": keep}


def _part_caching(request: PageRequest, record: RunRecord) -> tuple[bool, dict[str, str]]:
    # A page has more than the part in it: who looks at it, for one.
    return _caching(request, record) if is_fragment(request) else (False, {})


def _file(data: bytes, name: str) -> Response[bytes]:
    name = _SAFE_NAME.sub("-", name)[-120:]
    headers = {
        "content-disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}",
        "x-content-type-options": "nosniff",
        "content-security-policy": _SANDBOX,
    }
    return Response(data, media_type="text/plain", headers=headers)


HANDLERS = [
    show_items,
    show_text,
    show_image,
    find_text,
    show_events,
    download_body,
    download_run,
    show_keys,
]
