"""Looking for something: what may be meant in a filter, runs by what was said in them, and where one may go."""

from __future__ import annotations

from litestar import Response, get

from seatrial.explorer.filter_box import filter_box, suggested_filters
from seatrial.explorer.page import Arguments, PageRequest, TheStore, html, is_fragment


@get("/filter/suggest", sync_to_thread=True)
def suggest_filter(request: PageRequest, store: TheStore) -> Response[str]:
    """What may follow at a place of a filter."""
    arguments = Arguments(request, "q", "caret", "experiment")
    text, experiment = arguments.get("q") or "", arguments.get("experiment")
    caret = len(text) if arguments.get("caret") is None else arguments.number("caret")
    found = suggested_filters(store, experiment, text, caret)
    box = filter_box(text, experiment, arguments.others("q", "caret"))
    template = "parts/suggestions.html" if is_fragment(request) else "suggestions.html"
    return html(
        template,
        headers={"cache-control": "no-store"},
        suggestions=found,
        filter_box=box,
        complaints=arguments.complaints,
    )


HANDLERS = [suggest_filter]
