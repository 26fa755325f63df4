"""What pages share that are one file and need nothing else: templates that escape every value, and a style sheet.

The content security policy of such a page allows the one style sheet in it, by its hash, and nothing more.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from seatrial._support.printable import printable
from seatrial.reports import figures
from seatrial.reports.statistics.intervals import Interval

if TYPE_CHECKING:
    import jinja2
    import markupsafe


def page_templates() -> jinja2.Environment:
    """The templates of pages, which escape every value."""
    return escaping_templates("seatrial.reports")


def escaping_templates(package: str) -> jinja2.Environment:
    """The templates of a package, which escape every value and make what is hidden in it visible."""
    import jinja2
    import markupsafe

    def harmless(value: object) -> object:
        """Text of anybody, in which nothing is hidden or reorders what stands beside it."""
        return printable(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value

    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        finalize=harmless,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page_style() -> tuple[markupsafe.Markup, str]:
    """The style sheet of pages, and its hash for the policy that allows it."""
    import markupsafe

    style = files("seatrial.reports").joinpath("page.css").read_text("utf-8")
    # The style sheet is ours, and no markup is needed to end it.
    return markupsafe.Markup(style), b64encode(sha256(style.encode()).digest()).decode()  # noqa: S704


class PassRate(msgspec.Struct):
    """Lengths in percent, and the same in words."""

    label: str
    rate: str
    low: str
    high: str


def pass_rate_bar(share: float | None, interval: Interval | None, left_out: str | None) -> PassRate | None:
    """A pass rate with its interval, to be drawn; None where there is none."""
    if share is None or interval is None:
        return None
    label = f"{figures.percent(share)} passed, 95% interval {figures.percent_range(interval)}"
    if left_out is not None:
        label = f"{label}; {left_out}"
    rate, low, high = (f"{part * 100:.2f}" for part in (share, interval.low, interval.high))
    return PassRate(label, rate, low, high)
