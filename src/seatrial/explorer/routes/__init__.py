"""Addresses of pages. A handler reads the address, asks the module of its page, and renders what that gives."""

from __future__ import annotations

from litestar import Router

from seatrial.explorer.routes import cases, compare, experiments, reviews, run_parts, runs, search, static

PAGE = "seatrial_page"
"""Key of the options of handlers that are pages: these check their parameters themselves."""

HANDLERS = [
    *static.HANDLERS,
    *cases.HANDLERS,
    *compare.HANDLERS,
    *experiments.HANDLERS,
    *reviews.HANDLERS,
    *run_parts.HANDLERS,
    *runs.HANDLERS,
    *search.HANDLERS,
]


def page_router() -> Router:
    """All pages; each application needs a router of its own."""
    return Router("/", route_handlers=HANDLERS, opt={PAGE: True})
