"""One case over experiments, in a sentence."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.reports.case_history import CaseTally, case_sentence, tail
from seatrial.reports.statistics.paired import SIGNIFICANT


def tally(name: str, passed: int, graded: int, **left_out: int) -> CaseTally:
    return CaseTally(name, passed, graded, left_out)


OLD = [tally("2.3", 5, 5)] * 4


@pytest.mark.parametrize(
    ("now", "before", "text"),
    [
        (
            tally("2.4", 1, 4, agent_timeout=1),
            OLD,
            "Flaky since 2.4: 1 of 4 graded trials pass, before 20 of 20. If nothing had changed, this would happen in "
            "1 of 580 experiments. 1 trial is not counted: agent_timeout (1).",
        ),
        (
            tally("2.5", 0, 2),
            [tally("2.5", 0, 0, skipped=2), tally("2.4", 0, 2), *OLD],
            "Fails since 2.4: 0 of 4 graded trials pass, before 20 of 20. If nothing had changed, this would happen "
            "1 time in 13,000.",
        ),
        (tally("2.4", 4, 5), OLD[:1], "Flaky: 4 of 5 graded trials pass, before 5 of 5: no clear change."),
        (tally("2.4", 5, 5), OLD, "Passes: 5 of 5 graded trials pass, before 20 of 20."),
        (tally("2.4", 1, 1), [], "Passes: 1 of 1 graded trial passes. No earlier experiment has a graded trial of it."),
        (
            tally("2.4", 0, 0, agent_unavailable=5),
            OLD,
            "Not judged here: no trial passed or failed. 5 trials are not counted: agent_unavailable (5). Before, "
            "20 of 20 graded trials pass.",
        ),
    ],
)
def test_the_sentence_of_a_case(now: CaseTally, before: list[CaseTally], text: str) -> None:
    assert case_sentence(now, before).text == text


counts = st.integers(0, 12).flatmap(lambda graded: st.tuples(st.integers(0, graded), st.just(graded)))


@given(counts, st.lists(counts, max_size=6))
def test_a_change_is_only_said_where_it_would_be_rare(now: tuple[int, int], before: list[tuple[int, int]]) -> None:
    found = case_sentence(tally("now", *now), [tally(f"-{index}", *each) for index, each in enumerate(before, 1)])
    if " since " not in found.lead:
        assert found.tone in ("plain", "errored")
        assert "If nothing had changed" not in found.text
        return
    # Some experiment is the first that differs, and with it all since then.
    name = found.lead.rpartition(" ")[2]
    first = 0 if name == "now" else -int(name)
    since, earlier = [now, *before][: first + 1], before[first:]
    sums = [sum(each[at] for each in some) for some in (since, earlier) for at in (0, 1)]
    assert tail(*sums) < SIGNIFICANT
    assert (found.tone == "worse") == (sums[0] * sums[3] < sums[2] * sums[1])
    assert f"{sums[0]} of {sums[1]} graded" in found.rest
    assert f"before {sums[2]} of {sums[3]}." in found.rest


def exact(passed: int, graded: int, passed_before: int, graded_before: int) -> float:
    """The same with fractions: the rate averaged over all that may be, weighed by how well they explain the past."""
    a, b = passed_before + 1, graded_before - passed_before + 1

    def share(k: int) -> Fraction:
        n = graded
        beta = Fraction(1, (a + b - 1) * comb(a + b - 2, a - 1))
        with_these = Fraction(1, (a + b + n - 1) * comb(a + b + n - 2, a + k - 1))
        return comb(n, k) * with_these / beta

    more = passed * graded_before > passed_before * graded
    return float(sum(share(k) for k in (range(passed, graded + 1) if more else range(passed + 1))))


@given(counts.filter(lambda count: count[1] > 0), counts.filter(lambda count: count[1] > 0))
def test_the_tail_is_exact(now: tuple[int, int], before: tuple[int, int]) -> None:
    assert tail(*now, *before) == pytest.approx(exact(*now, *before))
