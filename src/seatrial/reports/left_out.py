"""What a pass rate leaves out: a rate of few runs must not look like one of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from seatrial.reports import figures
from seatrial.reports.summary import AgentSummary

A_POINT = 0.01 + 1e-9
"""From here on the rate of all runs is another one; rates are fractions, and a point must not be more by rounding."""


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
    of_all = f"; of all runs, {figures.percent(rated.rate_of_all)} passed" if differs(rated) else ""
    verb = "is" if count == 1 else "are"
    return f"{count:,} of {figures.plural(rated.runs, 'run')} {verb} not counted: {why}{of_all}"


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
            row.append(figures.percent(agent.rate_of_all))
    return head, cells
