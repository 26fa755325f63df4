"""Addresses of pages. A handler reads the address, asks the module of its page, and renders what that gives."""

from __future__ import annotations

from litestar import Response, Router, get
from litestar.response import Redirect

from seatrial.explorer.assets import serve_asset
from seatrial.explorer.experiments import experiments_page
from seatrial.explorer.page import Arguments, PageRequest, TheStore, html

PAGE = "seatrial_page"
"""Key of the options of handlers that are pages: these check their parameters themselves."""


@get("/", sync_to_thread=False)
def home() -> Redirect:
    """The first page."""
    return Redirect("/experiments", status_code=303)


@get("/experiments", sync_to_thread=True)
def show_experiments(request: PageRequest, store: TheStore) -> Response[str]:
    """All experiments."""
    arguments = Arguments(request)
    page = experiments_page(store)
    return html("experiments.html", page=page, complaints=arguments.complaints)


PAGES = [home, show_experiments, serve_asset]


def page_router() -> Router:
    """All pages; each application needs a router of its own."""
    return Router("/", route_handlers=PAGES, opt={PAGE: True})
