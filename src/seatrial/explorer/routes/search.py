"""Looking for something: what may be meant in a filter, runs by what was said in them, and where one may go."""

from __future__ import annotations

from litestar import Response, get
from litestar.response import Redirect

from seatrial.explorer.filter_box import filter_box, suggested_filters
from seatrial.explorer.page import Arguments, PageRequest, TheStore, html, is_fragment
from seatrial.explorer.render import address
from seatrial.explorer.search import destinations, search_page


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


@get("/search", sync_to_thread=True)
def search_runs(request: PageRequest, store: TheStore) -> Response[str]:
    """Runs in which something was said or done, and what has such a name."""
    arguments = Arguments(request, "q", "experiment", "before")
    page = search_page(store, arguments.get("q") or "", arguments.get("experiment"), arguments.get("before"))
    return html("search.html", page=page, complaints=arguments.complaints)


@get("/search/go", sync_to_thread=True)
def list_destinations(request: PageRequest, store: TheStore) -> Response[str] | Redirect:
    """Where one may go, for the palette; without script, the search has the same."""
    arguments = Arguments(request, "q", "experiment")
    query = arguments.get("q") or ""
    if not is_fragment(request):
        return Redirect(address("search", q=query or None), status_code=303)
    to = destinations(store, query, arguments.get("experiment"))
    return html("parts/destinations.html", headers={"cache-control": "no-store"}, to=to)


HANDLERS = [suggest_filter, search_runs, list_destinations]
