"""What people say of runs, in both kinds of store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from strategies import records

from seatrial.errors import SeatrialError
from seatrial.runs import JudgedBy, JudgeDetails, Run, RunKey, Verdict
from seatrial.store import Review, Store, open_store, schema
from seatrial.store.reviews import MAX_COMMENT


def review(word: Any = "right", *, at: int = 1, reviewer: str = "Ada", **fields: Any) -> Review:
    return Review(at=at, reviewer=reviewer, word=word, **fields)


def judged(case: int, outcome: Any, agreement: float | None = 1.0, *, together: Any = None, trial: int = 1) -> Run:
    """A run with the verdict of a judge."""
    details = JudgeDetails(judge=JudgedBy(model="m", votes=3, agreement=agreement, prompt_hash="p"))
    verdict = Verdict(grader="polite", kind="judge", outcome=outcome, details=details)
    return records.run(case, trial=trial, verdicts=[verdict], grade=records.grade(together or outcome))


def run_ids(candidates: Any) -> list[tuple[str, str]]:
    return [(each.run_id, each.chosen) for each in candidates]


def test_what_a_person_says_is_kept_with_how_the_run_was_chosen(filled: Store) -> None:
    run = records.run()
    filled.record_run(run).wait()
    given = review(
        "wrong", grader="trajectory", comment="Too much \u202e\0 money.", blind=True, chosen="random", draw=7
    )
    filled.add_review(run.run_id, given).wait()
    (found,) = filled.run_reviews(run.run_id)
    assert found.review == given
    assert (found.run_id, found.key, found.outcome, found.said) == (run.run_id, run.key, "passed", "passed")
    assert filled.reviews("exp-1") == [found]


def test_a_change_of_mind_is_another_row(filled: Store) -> None:
    filled.record_run(records.run()).wait()
    for at, word in enumerate(("right", "wrong", "wrong")):
        filled.add_review("run-crew-case-0-1", review(word, at=at)).wait()
    assert [found.review.word for found in filled.run_reviews("run-crew-case-0-1")] == ["right", "wrong", "wrong"]


def test_the_same_review_stored_again_is_there_once(filled: Store) -> None:
    filled.record_run(records.run()).wait()
    first = filled.add_review("run-crew-case-0-1", review()).wait()
    assert filled.add_review("run-crew-case-0-1", review()).wait() == first
    assert len(filled.run_reviews("run-crew-case-0-1")) == 1


def test_a_word_on_the_run_as_a_whole_is_compared_with_its_outcome(filled: Store) -> None:
    filled.record_run(records.run(0, outcome="failed"))
    filled.record_run(records.run(1, outcome=None)).wait()
    filled.add_review("run-crew-case-0-1", review()).wait()
    filled.add_review("run-crew-case-1-1", review()).wait()
    assert [found.said for found in filled.reviews("exp-1")] == ["failed", None]


def test_a_new_grading_counts_and_reviews_stay(filled: Store) -> None:
    filled.record_run(records.run()).wait()
    filled.add_review("run-crew-case-0-1", review(grader="trajectory")).wait()
    filled.record_verdicts("run-crew-case-0-1", [records.verdict("failed")], records.grade("failed")).wait()
    assert [found.said for found in filled.reviews("exp-1")] == ["failed"]
    filled.record_verdicts("run-crew-case-0-1", [], records.grade("failed")).wait()
    assert [found.said for found in filled.reviews("exp-1")] == [None]


@pytest.mark.parametrize(
    ("run_id", "given", "code"),
    [
        ("run-99", review(), "not_found"),
        ("run-crew-case-0-1", review(grader="nobody"), "not_found"),
        ("run-crew-case-0-1", review("perhaps"), "invalid_request"),
        ("run-crew-case-0-1", review(reviewer="  "), "invalid_request"),
        ("run-crew-case-0-1", review(comment="x" * (MAX_COMMENT + 1)), "invalid_request"),
        ("run-crew-case-0-1", review(chosen="dice"), "invalid_request"),
    ],
)
def test_a_review_of_nothing_that_is_there_is_refused(filled: Store, run_id: str, given: Review, code: str) -> None:
    filled.record_run(records.run()).wait()
    with pytest.raises(SeatrialError) as caught:
        filled.add_review(run_id, given).wait()
    assert caught.value.code == code
    assert filled.reviews("exp-1") == []


def test_reviews_of_other_experiments_are_not_among_them(filled: Store) -> None:
    filled.create_experiment(records.experiment("exp-2"), records.cases(1))
    filled.record_run(records.run(0, experiment_id="exp-2", run_id="other")).wait()
    filled.add_review("other", review()).wait()
    assert filled.reviews("exp-1") == []
    assert len(filled.reviews("exp-2")) == 1


def test_the_closest_votes_come_first_then_what_graders_say_otherwise(filled: Store) -> None:
    filled.record_run(judged(0, "passed", 2 / 3))
    filled.record_run(judged(1, "passed", 3 / 5))
    filled.record_run(judged(2, "passed", 1.0))
    filled.record_run(judged(3, "failed", 1.0, together="passed"))
    filled.record_run(judged(4, "passed", None, together="failed")).wait()
    assert run_ids(filled.doubtful_runs("exp-1", "polite")) == [
        ("run-crew-case-1-1", "split"),
        ("run-crew-case-0-1", "split"),
        ("run-crew-case-4-1", "contradicts"),
        ("run-crew-case-3-1", "contradicts"),
    ]
    assert run_ids(filled.doubtful_runs("exp-1", "polite", limit=1)) == [
        ("run-crew-case-1-1", "split"),
        ("run-crew-case-4-1", "contradicts"),
    ]
    assert filled.doubtful_runs("exp-1", "nobody") == []


def test_only_the_votes_of_the_latest_grading_count(filled: Store) -> None:
    filled.record_run(judged(0, "passed", 2 / 3)).wait()
    again = judged(0, "passed", 1.0)
    filled.record_verdicts("run-crew-case-0-1", again.verdicts, records.grade("passed")).wait()
    assert filled.doubtful_runs("exp-1", "polite") == []
    filled.record_verdicts("run-crew-case-0-1", judged(0, "passed", 0.6).verdicts, records.grade("passed")).wait()
    assert run_ids(filled.doubtful_runs("exp-1", "polite")) == [("run-crew-case-0-1", "split")]


def test_details_that_are_not_of_a_judge_are_no_votes(filled: Store) -> None:
    for case, details in enumerate(
        [{"judge": {"agreement": "most"}}, {"judge": {"agreement": 7}}, ["x"], None, {"judge": 1}]
    ):
        verdict = Verdict(grader="polite", kind="judge", outcome="passed", details=details)
        filled.record_run(records.run(case, verdicts=[verdict])).wait()
    assert filled.doubtful_runs("exp-1", "polite") == []


def test_only_runs_that_were_judged_can_be_drawn(filled: Store) -> None:
    filled.record_run(judged(0, "passed"))
    filled.record_run(judged(1, "errored"))
    filled.record_run(records.run(2, outcome="failed")).wait()
    keys = [RunKey("crew", f"case-{case}", 1) for case in range(5)]
    assert set(filled.judged_runs("exp-1", "polite", keys)) == {keys[0]}
    assert set(filled.judged_runs("exp-1", None, keys)) == {keys[0], keys[2]}
    assert filled.judged_runs("exp-1", None, []) == {}
    assert filled.case_ids("exp-1", [4, 0, 99]) == {0: "case-0", 4: "case-4"}


def test_reviews_go_with_their_run(filled: Store) -> None:
    filled.record_run(judged(0, "passed", 0.6)).wait()
    filled.add_review("run-crew-case-0-1", review()).wait()
    filled.record_run(records.run(0, run_id="anew"), replace=True).wait()
    assert filled.reviews("exp-1") == []
    with filled._dialect.reading.connect() as connection:
        for table in (schema.reviews, schema.split_votes):
            assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one() == 0


def test_reviews_are_there_when_the_store_is_opened_again(where: str | Path) -> None:
    with open_store(where) as store:
        store.create_experiment(records.experiment(), records.cases(1))
        store.record_run(records.run())
        store.add_review("run-crew-case-0-1", review()).wait()
    with open_store(where) as store:
        assert len(store.reviews("exp-1")) == 1
