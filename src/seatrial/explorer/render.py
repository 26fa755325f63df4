"""Templates that escape every value, and the addresses they link to. Nothing here knows HTTP: exports use it too."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from seatrial.explorer import numbers
from seatrial.explorer.assets import asset
from seatrial.reports.findings import place_text
from seatrial.reports.html import escaping_templates

if TYPE_CHECKING:
    import jinja2


@cache
def templates() -> jinja2.Environment:
    """The templates of all pages."""
    found = escaping_templates("seatrial.explorer")
    found.globals.update(asset=asset, address=address, visitor=None, exported=None)
    found.filters.update(
        bytes=numbers.size,
        change=numbers.change,
        count=numbers.count,
        duration=numbers.duration,
        money=numbers.money,
        percent=numbers.percent,
        plural=numbers.plural,
        points=numbers.points,
        score=numbers.score,
        step=numbers.step,
        when=numbers.when,
        place_text=place_text,
        day=numbers.day,
        iso=numbers.iso,
        anchor=run_anchor,
    )
    # In every template and part, without an import.
    found.globals["marks"] = found.get_template("marks.html").module
    return found


def address(*parts: str, **parameters: object) -> str:
    """The address of a page: `address("runs", run_id, at="/steps/4")`. Parameters that are None are left out."""
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    given = {name: str(value) for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def run_anchor(run_id: str) -> str:
    """The id of what stands for a run in a page with many."""
    return "run-" + "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in run_id)


def rendered(template: str, **context: Any) -> str:
    """The text of a template."""
    return templates().get_template(template).render(**context)
