"""One case of an experiment."""

from __future__ import annotations

from litestar import Response, get
from litestar.params import FromPath

from seatrial.explorer.case import BACK, case_page
from seatrial.explorer.page import Arguments, PageRequest, TheStore, html, rest_of


@get("/experiments/{ref:str}/cases/{case_id:path}", sync_to_thread=True)
def show_case(request: PageRequest, store: TheStore, ref: FromPath[str], case_id: FromPath[str]) -> Response[str]:
    """A case with its trials and its history."""
    case_id = rest_of(request, 3)
    arguments = Arguments(request, "agents", "back")
    # Its id may have slashes.
    case_id = case_id.removeprefix("/")
    page = case_page(store, ref, case_id, arguments.get("agents"), arguments.number("back", BACK), arguments.complaints)
    return html("case.html", page=page, complaints=arguments.complaints)


HANDLERS = [show_case]
