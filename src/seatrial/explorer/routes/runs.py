"""One run."""

from __future__ import annotations

from litestar import Response, get
from litestar.params import FromPath

from seatrial.explorer.page import Arguments, PageRequest, TheStore, html
from seatrial.explorer.run import run_page
from seatrial.explorer.transcript import FIRST_ITEMS, VIEWS, transcript_range


@get("/runs/{run_id:str}", sync_to_thread=True)
def show_run(request: PageRequest, store: TheStore, run_id: FromPath[str]) -> Response[str]:
    """A run, with the first of its messages, or those around a place in it."""
    arguments = Arguments(request, "at", "from", "to", "axis", "lanes", "show", "find", "open", "grading")
    page = run_page(store, run_id)
    transcript = transcript_range(
        store,
        run_id,
        0,
        FIRST_ITEMS,
        arguments.get("at"),
        show=arguments.choice("show", VIEWS, "read"),
        opened=(arguments.get("open") or "").split(","),
        record=page.record,
    )
    return html("run.html", page=page, transcript=transcript, complaints=arguments.complaints)


HANDLERS = [show_run]
