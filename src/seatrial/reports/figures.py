"""Numbers as people read them, the same in every report.

`?` is a figure that nobody knows, `–` one that there cannot be: the pass rate of no runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from seatrial.reports.statistics.intervals import Interval
from seatrial.runs import ModelCosts

if TYPE_CHECKING:
    from seatrial.reports.rows import RunRow
    from seatrial.reports.summary import AgentSummary

A_POINT = 0.01 + 1e-9
"""From here on the rate of all runs is another one; rates are fractions, and a point must not be more by rounding."""


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


class Rated(Protocol):
    """Runs with a pass rate: of an agent, or of an agent on the cases with a tag."""

    @property
    def runs(self) -> int: ...
    @property
    def graded(self) -> int: ...
    @property
    def pass_rate(self) -> float | None: ...
    @property
    def rate_of_all(self) -> float | None: ...
    @property
    def left_out(self) -> Mapping[str, int]: ...


def left_out_count(rated: Rated) -> int:
    """Runs that are in no rate."""
    return rated.runs - rated.graded


def differs(rated: Rated) -> bool:
    """Whether the rate of all runs is more than a point from the pass rate."""
    if rated.rate_of_all is None or rated.pass_rate is None:
        return False
    return abs(rated.rate_of_all - rated.pass_rate) > A_POINT


def left_out_reasons(rated: Rated) -> str:
    """`4 of 7 runs are not counted: agent_unavailable (3), skipped (1); of all runs, 28.6% passed`."""
    count = left_out_count(rated)
    why = ", ".join(f"{reason} ({number:,})" for reason, number in rated.left_out.items())
    of_all = f"; of all runs, {percent(rated.rate_of_all)} passed" if differs(rated) else ""
    verb = "is" if count == 1 else "are"
    return f"{count:,} of {plural(rated.runs, 'run')} {verb} not counted: {why}{of_all}"


def left_out_sentence(agent: AgentSummary) -> str | None:
    """What the rate of an agent leaves out, and why; None for none.

    A failed grader of an errored run does not count as a failure, so these are listed too.
    """
    if not left_out_count(agent):
        return None
    failing = agent.errored_with_failure
    also = f" {agent.errored:,} errored, of which {failing:,} {_have(failing)} a failed grader." if failing else ""
    return f"{left_out_reasons(agent)}.{also}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def left_out_sentences(agents: list[AgentSummary]) -> Iterator[tuple[str, str]]:
    """Each agent whose rates leave something out, with what they do."""
    for agent in agents:
        if (sentence := left_out_sentence(agent)) is not None:
            yield agent.agent, sentence


def left_out_columns(agents: Sequence[Rated]) -> tuple[list[str], list[list[str]]]:
    """Titles and cells that stand beside a pass rate, where there is something to say: `left out`, `of all runs`."""
    head: list[str] = []
    cells: list[list[str]] = [[] for _ in agents]
    if any(map(left_out_count, agents)):
        head.append("left out")
        for row, agent in zip(cells, agents, strict=True):
            row.append(f"{left_out_count(agent):,}")
    if any(map(differs, agents)):
        head.append("of all runs")
        for row, agent in zip(cells, agents, strict=True):
            row.append(percent(agent.rate_of_all))
    return head, cells
