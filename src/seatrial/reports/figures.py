"""Numbers as people read them, the same in every report.

`?` is a figure that nobody knows, `–` one that there cannot be: the pass rate of no runs.
"""

from __future__ import annotations

from seatrial.reports.rows import RunRow
from seatrial.reports.statistics import Interval
from seatrial.reports.summary import AgentSummary
from seatrial.runs import ModelCosts


def percent(share: float | None) -> str:
    """0.918 is `91.8%`; 100% and 0% only when it is all or none."""
    if share is None:
        return "–"
    if share in (0, 1):
        return f"{share:.0%}"
    return f"{min(max(share * 100, 0.1), 99.9):.1f}%"


def percent_change(before: float, after: float) -> str:
    """`98.0 → 82.7 %`."""
    return f"{percent(before)} → {percent(after)}".replace("%", "", 1).replace("%", " %")


def percent_range(interval: Interval | None) -> str:
    """`84.7–95.8%`."""
    return "–" if interval is None else f"{interval.low * 100:.1f}–{interval.high * 100:.1f}%"


def points(difference: float) -> str:
    """A difference of two rates in percentage points: `−4.0`."""
    text = f"{difference * 100:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def decimal(value: float | None) -> str:
    """A score."""
    return "–" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def duration(milliseconds: float | None) -> str:
    """`12 ms`, `1.2 s`, `2 m 03 s`, `1 h 04 m`."""
    if milliseconds is None:
        return "?"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} m {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} m"


def money(usd: float | None, *, unknown: int = 0) -> str:
    """`$1.20`; more digits for less than ten cents; `≥ $1.20` for a sum in which so many runs are missing."""
    if usd is None:
        return "?"
    text = f"${usd:,.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.2g}"
    return f"≥ {text}" if unknown else text


def cost(agent: AgentSummary) -> str:
    """The cost of all runs of an agent."""
    return money(agent.cost_usd, unknown=agent.unknown.get("cost_usd", 0))


def judges(costs: ModelCosts | None) -> str:
    """What asking models to grade runs cost: `≥ $0.20` where not all of it is known, `–` where none was asked."""
    if costs is None:
        return "–"
    known = costs.known_usd if costs.usd_is_all or costs.known_usd else None
    return money(known, unknown=not costs.usd_is_all)


def steps(row: RunRow) -> str:
    """`2 steps`; `at least 2 steps` when there may be more."""
    if row.steps is None:
        return "number of steps unknown"
    return f"{'' if row.calls == 'complete' else 'at least '}{plural(row.steps, 'step')}"


def p_value(p: float) -> str:
    """`p = 0.03`, `p < 0.0001`."""
    if p < 0.0001:
        return "p < 0.0001"
    # Not rounded to the limit at which a difference is called one.
    return f"p = {p:.2g}" if abs(p - 0.05) > 0.0005 or p == 0.05 else f"p = {p:.3g}"


def plural(count: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def run_name(row: RunRow, trials: int) -> str:
    """The case, and which trial of it where there are several."""
    return row.case_id if trials <= 1 else f"{row.case_id} (trial {row.trial})"
