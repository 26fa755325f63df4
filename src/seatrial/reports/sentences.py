"""What an experiment, and a comparison of two, come to: one sentence each, the same in the terminal, in reports and on
pages.

Every figure in a sentence is one of its data. "Worse" and "better" are written only where the interval is without zero,
and runs that errored are never in one figure with runs that failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from seatrial._support.printable import one_line
from seatrial.reports import figures
from seatrial.reports.statistics.paired import PairedDifference, Test
from seatrial.reports.summary import AgentSummary
from seatrial.store import GraderCounts

Tone: TypeAlias = Literal["worse", "better", "plain", "errored"]

MAX_NAME = 60
MAX_RATED = 3
"""Agents whose rates are all in the sentence; of more, there are the lowest and the highest."""

_TESTS: dict[Test, str] = {"mcnemar": "McNemar", "sign_flip": "sign-flip test"}


class HeadSentence(msgspec.Struct, frozen=True):
    """What stands above everything else: how it starts is what must be read."""

    lead: str
    rest: str
    tone: Tone = "plain"

    @property
    def text(self) -> str:
        """The whole of it."""
        return self.lead + self.rest


def comparison_sentence(found: PairedDifference, a: str = "a", b: str = "b") -> HeadSentence:
    """What the figures come to: a difference only where the test says so, and then the interval is without zero."""
    tone = tone_of(found)
    lead = f"{_name(b)} is {tone} than {_name(a)}" if tone != "plain" else "No clear difference"
    test = f"{_TESTS[found.test]} {figures.p_value(found.p_value)}"
    return HeadSentence(
        lead,
        f": {figures.points(found.difference)} points (95% interval {interval_text(found)}; {test}). "
        f"{found.worse:,} of {figures.plural(found.paired, 'case')} pass{'' if found.worse != 1 else 'es'} less often, "
        f"{found.better:,} more often.",
        tone,
    )


def tone_of(found: PairedDifference) -> Literal["worse", "better", "plain"]:
    """Which word the test allows."""
    return "worse" if found.is_worse else "better" if found.is_better else "plain"


def interval_text(found: PairedDifference) -> str:
    """`−27.1 to −5.2`; an end that only the test keeps off zero is `below 0` or `above 0`."""
    return f"{_end(found.interval.low)} to {_end(found.interval.high)}"


def _end(value: float) -> str:
    text = figures.points(value)
    return text if text != "0.0" or not value else "above 0" if value > 0 else "below 0"


def experiment_sentence(agents: Sequence[AgentSummary], *, running: bool = False) -> HeadSentence:
    """What the runs of an experiment come to, without a comparison."""
    if not any(agent.runs for agent in agents):
        return HeadSentence("No runs yet." if running else "There are no runs.", "")
    rated = [agent for agent in agents if agent.pass_rate is not None]
    errored = sum(agent.errored for agent in agents)
    other = sum(agent.other for agent in agents)
    so_far = "So far, " if running else ""
    if not rated:
        words = [f"{errored:,} errored" if errored else "", f"{other:,} {_others(running)}" if other else ""]
        lead = "no run passed or failed" if running else "No run passed or failed"
        return HeadSentence(f"{so_far}{lead}", f": {' and '.join(filter(None, words))}.", "errored")
    if len(rated) <= MAX_RATED:
        first, *others = rated
        lead = f"{so_far}{_name(first.agent)} passes {_share(first)} graded {_runs(first.graded)}"
        rest = _interval(first) + "".join(f", {_name(each.agent)} {_share(each)}{_interval(each)}" for each in others)
    else:
        worst, best = min(rated, key=_rate), max(rated, key=_rate)
        low, high = figures.percent(worst.pass_rate), figures.percent(best.pass_rate)
        lead = f"{so_far}{len(rated):,} agents pass {low} to {high} of their graded runs"
        rest = "" if low == high else f", {_name(worst.agent)} the fewest and {_name(best.agent)} the most"
    rest += "."
    left_out = [f"{errored:,} errored"] if errored else []
    if other and not running:
        left_out.append(f"{other:,} not judged")
    if left_out:
        rest += f" Not counted: {' and '.join(left_out)}."
    return HeadSentence(lead, rest)


def grader_sentence(name: str, counts: Sequence[GraderCounts], *, running: bool = False) -> HeadSentence:
    """What a grader says of the runs of an experiment; what it did not judge is counted apart."""
    passed, failed, errored, skipped = [
        sum(counted.outcomes.get(word, 0) for counted in counts) for word in ("passed", "failed", "errored", "skipped")
    ]
    left_out = [f"{count:,} {word}" for count, word in ((errored, "errored"), (skipped, "skipped")) if count]
    beside = f" Not counted: {' and '.join(left_out)}." if left_out else ""
    so_far = " so far" if running else ""
    judged = passed + failed
    if not judged:
        return HeadSentence(f"{_name(name)} has judged no run{so_far}", f".{beside}", "errored" if errored else "plain")
    share = figures.percent(passed / judged)
    return HeadSentence(
        f"{_name(name)} passes {passed:,} of {figures.plural(judged, 'run')}",
        f" that it judged{so_far} ({share}).{beside}",
    )


def _others(running: bool) -> str:
    return "not ended or not judged" if running else "not judged"


def _share(agent: AgentSummary) -> str:
    return f"{figures.percent(agent.pass_rate)} of {agent.graded:,}"


def _runs(count: int) -> str:
    return "run" if count == 1 else "runs"


def _interval(agent: AgentSummary) -> str:
    return f" (95% interval {figures.percent_range(agent.interval)})"


def _rate(agent: AgentSummary) -> float:
    return agent.pass_rate or 0.0


def _name(text: str) -> str:
    return one_line(text, MAX_NAME)


FEW = 5
MANY = 20


def running_sentence(elapsed_ms: float | None, took_ms: Sequence[float], alike: str, deadline_s: float | None) -> str:
    """`19.4 s so far. Runs of this case took 22 s (median of 8), 51 s at most; the limit is 60 s.`

    `took_ms` is how long other runs took, which `alike` names. Nothing is said of what nobody knows.
    """
    said = [] if elapsed_ms is None else [f"{figures.duration(elapsed_ms)} so far."]
    times = sorted(took_ms)
    limit = "" if deadline_s is None else figures.duration(deadline_s * 1000)
    if times:
        longest = figures.duration(times[-1])
        if len(times) == 1:
            told = f"{alike} took {longest} (one has ended)"
        elif len(times) < FEW:
            told = f"{alike} took {figures.duration(times[0])} to {longest} ({len(times)} have ended)"
        else:
            median = figures.duration(times[len(times) // 2])
            told = f"{alike} took {median} (median of {len(times):,}), {longest} at most"
            if len(times) >= MANY:
                high = figures.duration(times[-(-95 * len(times) // 100) - 1])
                told = f"{alike} took {median} (median of {len(times):,}), {high} (95th percentile)"
        said.append(f"{told}; the limit is {limit}." if limit else f"{told}.")
    elif limit:
        said.append(f"The limit is {limit}.")
    return " ".join(said) or "It is running."
