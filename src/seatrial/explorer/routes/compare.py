"""Two runs, or two experiments, side by side."""

from __future__ import annotations

from litestar import Response, get

from seatrial.errors import SeatrialError
from seatrial.explorer.compare_runs import compare_runs_page
from seatrial.explorer.page import Arguments, PageRequest, TheStore, html


@get("/compare/runs", sync_to_thread=True)
def compare_two_runs(request: PageRequest, store: TheStore) -> Response[str]:
    """Two runs side by side."""
    arguments = Arguments(request, "a", "b", "at", "show")
    a, b = (_needed(arguments, name, "a run") for name in ("a", "b"))
    show = arguments.choice("show", ("changes", "all"), "changes")
    page = compare_runs_page(store, a, b, arguments.get("at"), show)
    if page.complaint is not None:
        arguments.complaints.append(page.complaint)
    return html("compare_runs.html", page=page, complaints=arguments.complaints)


def _needed(arguments: Arguments, name: str, what: str) -> str:
    value = arguments.get(name)
    if value is None:
        raise SeatrialError(
            "invalid_request", f"the address lacks `{name}`, the id of {what}", hint="it has ?a=...&b=..."
        )
    return value


HANDLERS = [compare_two_runs]
