"""The page of reviews, and the form of one word."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable

import pytest
from server.test_sign_in import Visitor, visiting
from strategies import records

from explorer.test_routes import fetched
from seatrial.explorer.review import review_page
from seatrial.runs import Experiment, Verdict
from seatrial.store import Review, Store

NOW = time.time_ns() // 1_000_000


@pytest.fixture
def judged(store: Store) -> Store:
    """Three runs that a judge passed, of which other graders failed one."""
    suite = {"name": "refunds", "graders": [{"kind": "judge", "name": "polite", "rubric": "Is it friendly?"}]}
    store.create_experiment(
        Experiment(experiment_id="exp-1", name="refunds", suite=suite, suite_hash="h", created_at=records.CREATED_AT),
        records.cases(3),
    )
    for case in range(3):
        polite = Verdict(grader="polite", kind="judge", outcome="passed", score=1, reasons=["It is very friendly."])
        other = records.verdict("failed" if case == 1 else "passed", key="k2")
        grade = records.grade("failed" if case == 1 else "passed")
        store.record_run(records.run(case, verdicts=[polite, other], grade=grade)).wait()
    return store


def words(store: Store, path: str) -> str:
    status, _, text = fetched(store, path)
    assert status == 200, text
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def review(store: Store, case: int, word: str, **fields: object) -> None:
    given = {"at": 5, "reviewer": "Ada", "grader": "polite", "word": word, **fields}
    store.add_review(f"run-crew-case-{case}-1", Review(**given)).wait()  # type: ignore[arg-type]


def test_what_the_grader_and_others_say_is_hidden_until_one_has_answered(judged: Store) -> None:
    review(judged, 1, "wrong", comment="Too much money.", chosen="contradicts")
    before = words(judged, "/review?by=Bob&run=run-crew-case-1-1")
    assert "What the grader and other people say is hidden until you have answered." in before
    assert "Was shipped" in before or "It was shipped yesterday." in before, "what the agent did is there"
    for secret in ("It is very friendly.", "Too much money.", "Ada", "disagrees", "points here", "1 of 1 calls"):
        assert secret not in before
    assert "Is it friendly?" in before, "what the grader looks at is no verdict"
    review(judged, 1, "right", reviewer="Bob")
    after = words(judged, "/review?by=Bob&run=run-crew-case-1-1")
    assert "The grader passed, score 1" in after
    assert "It is very friendly." in after
    assert "Ada: Too much money." in after


def test_the_queue_leads_on_and_the_figures_are_of_the_reviews(judged: Store) -> None:
    first = review_page(judged, reviewer="Ada")
    assert (first.grader, first.left) == ("polite", 3)
    assert first.queue[0].why == "graders contradict each other"
    assert first.sentence.lead == "No run was reviewed yet"
    review(judged, 1, "wrong")
    page = review_page(judged, reviewer="Ada")
    assert page.left == 2
    assert [each.run_id for each in page.reviewed] == ["run-crew-case-1-1"]
    assert page.reviewed[0].words[0].agrees is False
    assert page.chosen.agreement.confusion.only_first_passed == 1
    assert page.graders[0].found.words == "too few to say: 20 are needed"
    assert review_page(judged, reviewer="Bob").left == 3


def test_a_run_of_another_experiment_is_not_reviewed_here(judged: Store) -> None:
    assert fetched(judged, "/review?run=nowhere")[0] == 404
    assert "No grader “police” judged a run here." in words(judged, "/review?grader=police")


def test_a_word_is_kept_with_how_the_run_was_chosen_and_leads_back(judged: Store) -> None:
    async def visit(ada: Visitor, _: Callable[[], Visitor]) -> None:
        await ada.get("/review?grader=polite")
        form = {
            "token": ada.token,
            "word": "wrong",
            "grader": "polite",
            "reviewer": " Ada  Lovelace ",
            "blind": "1",
            "comment": "No.\r\nNever.",
            "next": "/review?experiment=exp-1&grader=polite&run=run-crew-case-1-1",
        }
        assert await ada.post("/runs/run-crew-case-1-1/reviews", form) == 303
        there = ada.headers["Location"]
        assert there == "/review?experiment=exp-1&grader=polite&run=run-crew-case-1-1&by=Ada+Lovelace#word"
        assert await ada.get(there.partition("#")[0]) == 200
        assert "The grader passed" in ada.text
        # A change of mind, from the page of the run, which shows the verdicts.
        form |= {"word": "right", "grader": "", "blind": "", "next": "https://elsewhere.test/review?a"}
        assert await ada.post("/runs/run-crew-case-1-1/reviews", form) == 303
        assert ada.headers["Location"] == "/runs/run-crew-case-1-1#reviews"
        await ada.get("/runs/run-crew-case-1-1")
        assert "Ada Lovelace" in ada.text
        for wrong in ({"word": "great"}, {"reviewer": " "}, {"grader": "nobody"}, {"comment": "x" * 5000}):
            assert await ada.post("/runs/run-crew-case-1-1/reviews", form | wrong) in (400, 404), wrong
        assert await ada.post("/runs/nowhere/reviews", form) == 404

    visiting(judged, visit)
    first, second = judged.run_reviews("run-crew-case-1-1")
    assert first.review.reviewer == "Ada Lovelace"
    assert (first.review.word, first.review.comment, first.review.blind) == ("wrong", "No.\nNever.", True)
    assert first.review.chosen == "random"
    assert first.review.draw is not None
    assert (second.review.word, second.review.grader, second.review.blind) == ("right", None, False)


def _forged(form: dict[str, str], token: str | None) -> dict[str, str]:
    return form if token is None else {**form, "token": token}


def test_a_form_without_the_token_of_this_browser_is_refused(judged: Store) -> None:
    async def visit(ada: Visitor, another: Callable[[], Visitor]) -> None:
        await ada.get("/review")
        own = ada.token
        mallory = another()
        await mallory.get("/review")
        form = {"word": "right", "reviewer": "Ada"}
        for token in (None, "", "0" * 64, mallory.token):
            assert await ada.post("/runs/run-crew-case-1-1/reviews", _forged(form, token)) == 403
        forged = {"Origin": "https://elsewhere.test"}
        assert await ada.post("/runs/run-crew-case-1-1/reviews", form | {"token": own}, **forged) == 403

    visiting(judged, visit)
    assert judged.run_reviews("run-crew-case-1-1") == []


def test_a_key_that_may_only_read_has_no_form_and_its_word_is_refused(judged: Store) -> None:
    async def visit(ada: Visitor, another: Callable[[], Visitor]) -> None:
        await ada.sign_in(secrets["reader"])
        await ada.get("/review")
        assert "Your key may only read." in ada.text
        assert 'name="word"' not in ada.text
        form = {"token": ada.token, "word": "right", "reviewer": "Bob"}
        assert await ada.post("/runs/run-crew-case-1-1/reviews", form) == 403
        bob = another()
        await bob.sign_in(secrets["runner"])
        await bob.get("/review")
        assert 'name="reviewer"' not in bob.text, "who is signed in gives no other name"
        form = {"token": bob.token, "word": "right", "reviewer": "Ada", "next": "/review?experiment=exp-1"}
        assert await bob.post("/runs/run-crew-case-1-1/reviews", form) == 303
        assert bob.headers["Location"] == "/review?experiment=exp-1#word"

    secrets = {
        name: judged.keyring.add(name, [scope], now=NOW)[1]  # type: ignore[list-item]
        for name, scope in (("reader", "read"), ("runner", "run"))
    }
    visiting(judged, visit)
    assert [each.review.reviewer for each in judged.run_reviews("run-crew-case-1-1")] == ["runner"]
