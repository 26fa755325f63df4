"""The page of a grader in an experiment."""

from __future__ import annotations

from urllib.parse import quote

from explorer.test_compare_experiments import experiment
from explorer.test_experiment import words
from explorer.test_routes import fetched
from seatrial.reports.sentences import grader_sentence
from seatrial.store import GraderCounts, Review, Store


def page(store: Store, address: str, status: int = 200) -> str:
    """What the page says."""
    answered, _, text = fetched(store, f"/experiments/{address}")
    assert answered == status, text
    return words(text)


def test_the_page_says_how_many_runs_it_passes_and_lists_those_that_it_failed(store: Store) -> None:
    experiment(store, "monday", ["pp", "pf", "ff"])
    text = page(store, "monday/graders/trajectory")
    assert "trajectory passes 3 of 6 runs that it judged (50.0%)." in text
    assert "No run was reviewed yet: whether people agree with it is not known." in text
    assert "case-1 trial 2" in text
    assert "case-0" not in text
    assert "3 runs" in text
    assert "No run matches" in page(store, f"monday/graders/trajectory?q={quote('agent:nobody')}")


def test_what_people_say_is_held_against_it_with_kappa_where_it_exists(store: Store) -> None:
    experiment(store, "monday", ["pf"] * 10)
    for number in range(10):
        for trial, word in ((1, "right"), (2, "wrong" if number else "right")):
            review = Review(at=number, reviewer="ann", grader="trajectory", word=word, blind=True)  # type: ignore[arg-type]
            store.add_review(f"monday-crew-{number}-{trial}", review).wait()
    text = page(store, "monday/graders/trajectory")
    assert "People agree with it in 19 of 20 runs, κ 0.90 (95% interval" in text


def test_a_grader_that_nobody_knows_is_not_found_and_one_without_runs_says_so(store: Store) -> None:
    experiment(store, "monday", ["p"])
    page(store, "monday/graders/nobody", 404)
    assert "It failed no run." in page(store, "monday/graders/trajectory")


def test_errored_verdicts_are_never_in_the_rate() -> None:
    counts = [GraderCounts("crew", "tone", 0.5, {"passed": 1, "failed": 1, "errored": 3})]
    assert (
        grader_sentence("tone", counts).text
        == "tone passes 1 of 2 runs that it judged (50.0%). Not counted: 3 errored."
    )
    errored = [GraderCounts("crew", "tone", None, {"errored": 3})]
    assert grader_sentence("tone", errored).text == "tone has judged no run. Not counted: 3 errored."
    assert grader_sentence("tone", errored).tone == "errored"
