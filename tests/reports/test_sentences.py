"""The sentences of experiments and of comparisons: every figure is one of the data, and no word says more than they."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.reports import figures, summarise
from seatrial.reports.sentences import comparison_sentence, experiment_sentence, interval_text
from seatrial.reports.statistics.paired import CaseCounts, PairedDifference, paired_difference
from seatrial.reports.summary import AgentSummary
from seatrial.store import RunSummary, StoredOutcome

_FIGURE = re.compile(r"[+−]?[0-9][0-9,.]*%?")
_OUTCOMES: dict[str, StoredOutcome] = {"p": "passed", "f": "failed", "e": "errored", "s": "skipped", "u": "unfinished"}


def agents(**outcomes: str) -> list[AgentSummary]:
    """Agents with runs that ended so: `crew="ppf"`."""
    rows = [
        RunSummary(
            run_id=f"{agent}-{index}",
            agent=agent,
            case_id=f"case-{index}",
            trial=1,
            status="completed",
            outcome=_OUTCOMES[letter],
        )
        for agent, letters in outcomes.items()
        for index, letter in enumerate(letters)
    ]
    return summarise(rows).agents


def shown(text: str) -> set[str]:
    """The figures of a sentence, but for those in names and in the word for its interval."""
    text = re.sub(r"95% interval|agent-[a-z]|p [<=] [0-9.e-]+", "", text)
    return {figure.rstrip(".,") for figure in _FIGURE.findall(text)}


counts = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda graded: st.tuples(st.integers(0, graded[0]), st.integers(0, graded[1])).map(
        lambda passed: CaseCounts(passed[0], graded[0], passed[1], graded[1])
    )
)
differences = st.lists(counts, min_size=1, max_size=40).map(paired_difference)


@given(differences)
def test_worse_and_better_are_written_only_where_the_interval_is_without_zero(found: PairedDifference) -> None:
    text = comparison_sentence(found).text
    if found.interval.low <= 0 <= found.interval.high:
        assert "worse" not in text
        assert "better" not in text
        assert text.startswith("No clear difference")
    else:
        assert ("b is worse than a" in text) == (found.interval.high < 0)
        assert ("b is better than a" in text) == (found.interval.low > 0)


@given(differences)
def test_every_figure_of_a_comparison_is_one_of_its_data(found: PairedDifference) -> None:
    sentence = comparison_sentence(found)
    ends = set(_FIGURE.findall(interval_text(found)))
    assert shown(sentence.text) <= {
        figures.points(found.difference),
        *ends,
        *(f"{count:,}" for count in (found.worse, found.better, found.paired)),
    }
    assert figures.p_value(found.p_value) in sentence.text


@given(
    st.dictionaries(
        st.sampled_from([f"agent-{letter}" for letter in "abcde"]), st.text("pfesu", max_size=12), max_size=5
    ),
    st.booleans(),
)
def test_every_figure_of_an_experiment_is_one_of_its_data(outcomes: dict[str, str], running: bool) -> None:
    some = agents(**outcomes)
    text = experiment_sentence(some, running=running).text
    known = {f"{number:,}" for agent in some for number in (agent.graded,)}
    known |= {figures.percent(agent.pass_rate) for agent in some}
    known |= {end for agent in some for end in re.findall(r"[0-9.]+%?", figures.percent_range(agent.interval))}
    known |= {f"{sum(agent.errored for agent in some):,}", f"{sum(agent.other for agent in some):,}"}
    known |= {str(sum(agent.pass_rate is not None for agent in some))}
    assert shown(text) <= known
    assert "worse" not in text
    assert "better" not in text


@given(st.text("pfe", min_size=1, max_size=12))
def test_errored_runs_are_counted_apart_and_never_forgotten(letters: str) -> None:
    some = agents(crew=letters)
    text = experiment_sentence(some).text
    assert ("errored" in text) == ("e" in letters)
    if set(letters) == {"e"}:
        assert "passes" not in text
        assert experiment_sentence(some).tone == "errored"


@pytest.mark.parametrize(
    ("outcomes", "running", "text"),
    [
        ({}, False, "There are no runs."),
        ({}, True, "No runs yet."),
        ({"crew": "ee"}, False, "No run passed or failed: 2 errored."),
        ({"crew": "ess"}, False, "No run passed or failed: 1 errored and 2 not judged."),
        ({"crew": "pppp"}, False, "crew passes 100% of 4 graded runs (95% interval 51.0–100.0%)."),
        (
            {"crew": "ppfe", "mate": "f"},
            True,
            "So far, crew passes 66.7% of 3 graded runs (95% interval 20.8–93.9%), mate 0% of 1 (95% interval "
            "0.0–79.3%). Not counted: 1 errored.",
        ),
        (
            {"crew": "ppsse"},
            False,
            "crew passes 100% of 2 graded runs (95% interval 34.2–100.0%). Not counted: 1 errored and 2 not judged.",
        ),
        (
            {"a": "p", "b": "f", "c": "pf", "d": "pf"},
            False,
            "4 agents pass 0% to 100% of their graded runs, b the fewest and a the most.",
        ),
    ],
)
def test_an_experiment_is_said_in_a_sentence(outcomes: dict[str, str], running: bool, text: str) -> None:
    assert experiment_sentence(agents(**outcomes), running=running).text == text


def test_a_comparison_names_its_sides_and_counts_their_cases() -> None:
    found = paired_difference([CaseCounts(1, 1, 0, 1)] * 9 + [CaseCounts(0, 1, 1, 1)] + [CaseCounts(1, 1, 1, 1)] * 30)
    sentence = comparison_sentence(found, "clerk 2.3.2", "clerk 2.4.0")
    assert sentence.lead == "clerk 2.4.0 is worse than clerk 2.3.2"
    assert sentence.rest.endswith("9 of 40 cases pass less often, 1 more often.")
    assert sentence.tone == "worse"
