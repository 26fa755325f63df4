"""How far graders agree with the people who reviewed their runs."""

from __future__ import annotations

from typing import Any

import pytest
from strategies import records

from seatrial.reports.agreement import agreement
from seatrial.reports.judge_check import FEW
from seatrial.reports.review_queue import how_chosen, random_sample, review_queue
from seatrial.reports.reviews import ReviewedGrader, reviewed_graders, reviews_sentence, together
from seatrial.runs import JudgedBy, JudgeDetails, RunKey, Verdict
from seatrial.store import Review, ReviewedRun, Store


def reviewed(run: int, word: Any, said: Any = "passed", *, by: str = "Ada", at: int = 1, **fields: Any) -> ReviewedRun:
    review = Review(at=at, reviewer=by, grader="polite", word=word, **fields)
    return ReviewedRun(run_id=f"r{run}", key=RunKey("crew", f"c{run}", 1), outcome="passed", said=said, review=review)


def of(reviews: list[ReviewedRun], sample: tuple[str, ...] = ()) -> ReviewedGrader:
    return reviewed_graders(reviews, {"polite": sample})["polite"]


def test_the_latest_word_of_each_person_counts_and_what_most_say() -> None:
    changed = [reviewed(0, "right"), reviewed(0, "wrong", at=2)]
    assert of(changed).agreement.confusion.only_first_passed == 1
    outvoted = [reviewed(0, "wrong"), reviewed(0, "right", by="Bob"), reviewed(0, "right", by="Cy")]
    assert of(outvoted).agrees == 1
    assert (of(outvoted).people, of(outvoted).runs) == (3, 1)


def test_what_nobody_can_say_is_in_no_figure_and_counted() -> None:
    found = of(
        [
            reviewed(0, "right"),
            reviewed(0, "wrong", by="Bob"),
            reviewed(1, "unsure"),
            reviewed(2, "right", None),
            reviewed(3, "wrong", "errored"),
            reviewed(4, "right", blind=True),
        ]
    )
    assert (found.divided, found.unsure, found.not_judged, found.not_blind) == (1, 1, 2, 4)
    assert found.agreement.pairs == 1
    assert together(["unsure"]) == "unsure"
    assert together(["unsure", "right"]) == "right"


def test_the_random_part_ends_at_the_first_draw_that_nobody_looked_at() -> None:
    reviews = [reviewed(run, "right") for run in (0, 1, 3, 9)]
    assert of(reviews, ("r0", "r1", "r2", "r3")).random.pairs == 2
    assert of([*reviews, reviewed(2, "unsure")], ("r0", "r1", "r2", "r3")).random.pairs == 3
    assert of(reviews).random.pairs == 0


def grader(name: str, both: int, only_grader: int, only_people: int, neither: int) -> ReviewedGrader:
    pairs = [(True, True)] * both + [(True, False)] * only_grader
    pairs += [(False, True)] * only_people + [(False, False)] * neither
    return ReviewedGrader(grader=name, agreement=agreement(pairs), random=agreement([]), runs=len(pairs))


@pytest.mark.parametrize(
    ("graders", "text"),
    [
        ([], "No run was reviewed yet: whether graders agree with people is not known."),
        (
            [grader("polite", FEW - 1, 0, 0, 0)],
            "Too few reviews to say: 20 runs that people and a grader judged are needed, and the most of any grader "
            "are 19.",
        ),
        (
            [grader("polite", 30, 0, 0, 0)],
            "Agreement says nothing here: people and graders said one and the same of every run.",
        ),
        (
            [grader("polite", 33, 2, 6, 21)],
            "polite agrees with people in 54 of 62 runs (κ 0.73, 95% interval 0.54 to 0.88).",
        ),
        (
            [grader("polite", 33, 2, 6, 21), grader("friendly", 25, 15, 4, 4)],
            "friendly may do no better than chance (κ 0.08, 95% interval −0.16 to 0.33): do not gate on it. polite "
            "agrees with people in 54 of 62 runs (κ 0.73, 95% interval 0.54 to 0.88).",
        ),
    ],
)
def test_the_sentence_says_which_graders_can_be_relied_on(graders: list[ReviewedGrader], text: str) -> None:
    assert reviews_sentence(graders).text == text


def test_a_grader_is_not_distrusted_for_few_reviews_nor_trusted_for_an_interval_that_is_wide() -> None:
    assert grader("polite", 5, 10, 0, 0).trusted is None
    assert grader("polite", 33, 2, 6, 21).trusted is None
    assert grader("polite", 33, 1, 1, 27).trusted is True
    assert grader("polite", 10, 10, 10, 10).trusted is False
    assert grader("polite", 30, 0, 0, 0).words == "both said one and the same of every run"


@pytest.fixture
def judged(store: Store) -> Store:
    """Runs of which a judge says something."""
    store.create_experiment(records.experiment(), records.cases(20))
    for case in range(20):
        for trial in (1, 2):
            agreement_of_votes = 0.6 if (case, trial) == (7, 1) else 1.0
            details = JudgeDetails(judge=JudgedBy(model="m", votes=3, agreement=agreement_of_votes, prompt_hash="p"))
            outcome: Any = "errored" if case == 3 else "passed"
            verdict = Verdict(grader="polite", kind="judge", outcome=outcome, details=details)
            failed = case == 9 and trial == 2
            store.record_run(
                records.run(case, trial=trial, verdicts=[verdict], grade=records.grade("failed" if failed else outcome))
            )
    store.finish_experiment("exp-1", finished_at=records.CREATED_AT).wait()
    return store


def test_the_queue_begins_with_doubts_and_each_run_is_in_it_once(judged: Store) -> None:
    queue = review_queue(judged, "exp-1", "polite")
    assert [(each.key.case_id, each.key.trial, each.chosen) for each in queue[:2]] == [
        ("case-7", 1, "split"),
        ("case-9", 2, "contradicts"),
    ]
    assert {each.chosen for each in queue[2:]} == {"random"}
    assert len({each.run_id for each in queue}) == len(queue) == 38, "all that were judged, and no other"


def test_the_sample_is_the_same_each_time_another_for_each_grader_and_of_judged_runs(judged: Store) -> None:
    sample = random_sample(judged, "exp-1", "polite")
    assert sample == random_sample(judged, "exp-1", "polite")
    assert [each.draw for each in sample] == sorted(each.draw or 0 for each in sample)
    assert "case-3" not in {each.key.case_id for each in sample}
    whole = random_sample(judged, "exp-1", None)
    assert [each.run_id for each in whole] != [each.run_id for each in sample]
    assert random_sample(judged, "exp-1", "nobody") == []


def test_a_run_that_was_drawn_is_of_the_sample_even_if_graders_are_in_doubt_about_it(judged: Store) -> None:
    chosen, draw = how_chosen(judged, "exp-1", "polite", "run-crew-case-7-1")
    assert chosen == "random"
    assert draw is not None
    assert how_chosen(judged, "exp-1", "polite", "run-crew-case-3-1") == ("own", None)
