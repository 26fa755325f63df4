"""All experiments."""

from __future__ import annotations

from litestar import Response, get
from litestar.response import Redirect

from seatrial.explorer.experiments import experiments_page
from seatrial.explorer.page import Arguments, PageRequest, TheStore, html


@get("/", sync_to_thread=False)
def home() -> Redirect:
    """The first page."""
    return Redirect("/experiments", status_code=303)


@get("/experiments", sync_to_thread=True)
def show_experiments(request: PageRequest, store: TheStore) -> Response[str]:
    """All experiments, the newest first."""
    arguments = Arguments(request)
    page = experiments_page(store)
    return html("experiments.html", page=page, complaints=arguments.complaints)


HANDLERS = [home, show_experiments]
