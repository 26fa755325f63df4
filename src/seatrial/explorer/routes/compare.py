"""Two runs, or two experiments, side by side."""

from __future__ import annotations

from litestar import Response, get
from msgspec.structs import replace

from seatrial.errors import SeatrialError
from seatrial.explorer.compare_experiments import ORDERS, compare_experiments_page
from seatrial.explorer.compare_runs import compare_runs_page
from seatrial.explorer.filter_box import filter_box
from seatrial.explorer.page import Arguments, PageRequest, TheStore, html


@get("/compare/runs", sync_to_thread=True)
def compare_two_runs(request: PageRequest, store: TheStore) -> Response[str]:
    """Two runs side by side."""
    arguments = Arguments(request, "a", "b", "at", "show")
    a, b = (_needed(arguments, name, "the id of a run") for name in ("a", "b"))
    show = arguments.choice("show", ("changes", "all"), "changes")
    page = compare_runs_page(store, a, b, arguments.get("at"), show)
    if page.complaint is not None:
        arguments.complaints.append(page.complaint)
    return html("compare_runs.html", page=page, complaints=arguments.complaints)


@get("/compare", sync_to_thread=True)
def compare_two_experiments(request: PageRequest, store: TheStore) -> Response[str]:
    """Two experiments side by side, or two agents."""
    arguments = Arguments(request, "a", "b", "q", "sort", "after")
    a, b = (_needed(arguments, name, "an experiment") for name in ("a", "b"))
    order = next(each for each in ORDERS if each == arguments.choice("sort", ORDERS, "change"))
    kept = {"a": a, "b": b} | ({"sort": order} if order != "change" else {})
    box = filter_box(arguments.get("q"), None, kept)
    page = compare_experiments_page(store, a, b, box.terms, query=box.text, order=order, after=arguments.get("after"))
    box = replace(box, experiment=page.b.experiment.experiment_id)
    if page.complaint is not None:
        arguments.complaints.append(page.complaint)
    return html("compare_experiments.html", page=page, filter_box=box, complaints=arguments.complaints)


def _needed(arguments: Arguments, name: str, what: str) -> str:
    value = arguments.get(name)
    if value is None:
        raise SeatrialError("invalid_request", f"the address lacks `{name}`, {what}", hint="it has ?a=...&b=...")
    return value


HANDLERS = [compare_two_runs, compare_two_experiments]
