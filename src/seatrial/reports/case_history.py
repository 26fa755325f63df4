"""One case over experiments: whether it is flaky, and since when, in one sentence.

That something changed is only said where it would be rare if nothing had: in less than 1 of 20 experiments. How rare
that is, is the tail of the beta-binomial distribution: of so many trials now, if they pass as often as those before, of
which the rate is known only as well as so many trials show it. A binomial tail at the rate that was seen would call the
first failure of a case impossible after three trials that passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, lgamma
from typing import Literal, TypeAlias

import msgspec

from seatrial._support.printable import one_line
from seatrial.reports import figures
from seatrial.reports.sentences import HeadSentence, Tone
from seatrial.reports.statistics.paired import SIGNIFICANT

CaseState: TypeAlias = Literal["passes", "flaky", "fails", "unknown"]

MAX_NAME = 60
_WORDS: dict[CaseState, str] = {"passes": "Passes", "flaky": "Flaky", "fails": "Fails", "unknown": "Not judged here"}


class CaseTally(msgspec.Struct, frozen=True):
    """What the trials of a case by one agent came to in one experiment."""

    name: str
    """Of the experiment."""
    passed: int
    graded: int
    left_out: Mapping[str, int] = {}
    """Trials that neither passed nor failed, by why."""

    @property
    def state(self) -> CaseState:
        """What can be said of it alone."""
        if not self.graded:
            return "unknown"
        return "passes" if self.passed == self.graded else "flaky" if self.passed else "fails"


def case_sentence(now: CaseTally, before: Sequence[CaseTally]) -> HeadSentence:
    """What a case does in an experiment, against those `before` it, the newest first."""
    left_out = _left_out(now)
    if now.state == "unknown":
        earlier = _of(before)
        then = f" Before, {_rate(*earlier)}." if earlier[1] else ""
        return HeadSentence(_WORDS["unknown"], f": no trial passed or failed.{left_out}{then}", "errored")
    stretch = _stretch(now.state, before)
    since, earlier = [now, *before[:stretch]], _of(before[stretch:])
    passed, graded = _of(since)
    tone: Tone = "plain"
    if earlier[1] and (chance := tail(passed, graded, *earlier)) < SIGNIFICANT:
        tone = "better" if passed * earlier[1] > earlier[0] * graded else "worse"
        oldest = next(tally for tally in reversed(since) if tally.graded)
        lead = f"{_WORDS[now.state]} since {one_line(oldest.name, MAX_NAME)}"
        one = len([tally for tally in since if tally.graded]) == 1
        rest = (
            f": {_rate(passed, graded)}, before {earlier[0]:,} of {earlier[1]:,}. If nothing had changed, this would "
        )
        rest += f"happen in 1 of {_rarity(chance)} experiments." if one else f"happen 1 time in {_rarity(chance)}."
        return HeadSentence(lead, f"{rest}{left_out}", tone)
    earlier = _of(before)
    rest = f": {_rate(now.passed, now.graded)}"
    if not earlier[1]:
        rest += ". No earlier experiment has a graded trial of it."
    elif now.passed * earlier[1] == earlier[0] * now.graded:
        rest += f", before {earlier[0]:,} of {earlier[1]:,}."
    else:
        rest += f", before {earlier[0]:,} of {earlier[1]:,}: no clear change."
    return HeadSentence(_WORDS[now.state], f"{rest}{left_out}", tone)


def tail(passed: int, graded: int, passed_before: int, graded_before: int) -> float:
    """How likely so few of these trials pass (or so many, where more pass than before), if nothing changed."""
    more = passed * graded_before > passed_before * graded
    wanted = range(passed, graded + 1) if more else range(passed + 1)
    a, b = passed_before + 1, graded_before - passed_before + 1
    total = sum(exp(_log_choose(graded, k) + _log_beta(k + a, graded - k + b) - _log_beta(a, b)) for k in wanted)
    return min(total, 1.0)


def _stretch(state: CaseState, before: Sequence[CaseTally]) -> int:
    """How many of the experiments before, the newest first, show the same; those that show nothing are passed over."""
    for index, tally in enumerate(before):
        if tally.state not in (state, "unknown"):
            return index
    return len(before)


def _of(tallies: Sequence[CaseTally]) -> tuple[int, int]:
    return sum(tally.passed for tally in tallies), sum(tally.graded for tally in tallies)


def _rate(passed: int, graded: int) -> str:
    return f"{passed:,} of {figures.plural(graded, 'graded trial')} pass{'' if graded != 1 else 'es'}"


def _left_out(tally: CaseTally) -> str:
    count = sum(tally.left_out.values())
    if not count:
        return ""
    why = ", ".join(f"{one_line(reason, 40)} ({number:,})" for reason, number in tally.left_out.items())
    return f" {figures.plural(count, 'trial')} {'is' if count == 1 else 'are'} not counted: {why}."


def _rarity(chance: float) -> str:
    """`560`: two digits, for it is an estimate."""
    odds = 1 / max(chance, 1e-9)
    digits = len(str(int(odds))) - 2
    return f"{int(round(odds, -digits)) if digits > 0 else int(odds):,}"


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
