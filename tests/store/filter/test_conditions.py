"""Which runs a filter finds, on both stores."""

from __future__ import annotations

import pytest
from strategies import records

from seatrial.runs import Case, Fault, Verdict
from seatrial.store import Review, RunFilter, Store
from seatrial.store.filter import parse_filter, written_term
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.step import Step
from seatrial.transcript import Note, Usage

NOW = 1_795_000_000_000


@pytest.fixture
def told(store: Store) -> Store:
    """Runs `a` to `e`, each with something of its own."""
    cases = [Case(id=f"case-{name}", instruction="", tags=tags) for name, tags in (
        ("a", ["vip", "50%_off"]), ("b", ["vip"]), ("c", []), ("d", []), ("e", [])
    )]  # fmt: skip
    store.create_experiment(records.experiment(), cases)

    def step(name: str, status: str = "ok") -> Step:
        return Step(0, name, {}, "c1", "messages", status)  # type: ignore[arg-type]

    complete = Completeness("complete")
    store.record_run(
        records.run(
            "case-a", agent="clerk-2", run_id="a", steps=[step("refund")], completeness=complete,
            reading=records.reading("hello", "out of stock", usage=Usage(10_000, 500), cost=0.25),
        )
    )  # fmt: skip
    store.record_run(
        records.run(
            "case-b", agent="clerk-1", run_id="b", steps=[step("refund", "error")], outcome="failed",
            completeness=Completeness("partial"),
            reading=records.reading("hello", "in stock", notes=[Note("bom_removed", "", "a mark")]),
            verdicts=[Verdict(kind="contains", grader="it's % a_grader", outcome="failed", score=0)],
        )
    )  # fmt: skip
    store.record_run(
        records.run("case-c", agent="clerk-1", run_id="c", steps=[], completeness=complete, duration_ms=12_000.0)
    )
    store.record_run(records.run("case-d", agent="Clerk_1", run_id="d", steps=[], completeness=Completeness("none")))
    fault = Fault("agent_timeout", "nothing for 30 s")
    store.record_run(
        records.run(
            "case-e", agent="clerk-1", run_id="e", status="failed", outcome="failed", fault=fault, said=(), steps=[]
        )
    ).wait()
    return store


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "abcde"),
        ("agent:clerk-1", "bce"),
        ("agent:clerk-*", "abce"),
        ("agent:Clerk?1", "d"),
        ('agent:"clerk-*"', ""),
        ("-agent:clerk-*", "d"),
        ("agent!=clerk-1", "ad"),
        ("tag:vip", "ab"),
        ("-tag:vip", "cde"),
        ("tag:50%_*", "a"),
        ("tag:50__off", ""),
        ("case:case-[a]", ""),
        ("outcome:failed", "be"),
        ("outcome:failed,errored -error:agent_timeout", "b"),
        ("error:agent_timeout", "e"),
        ("-error:agent_timeout", "abcd"),
        # A run of which not all calls are known matches neither what it may have done nor its opposite.
        ("tool:refund", "ab"),
        ("-tool:refund", "c"),
        ("tool:lookup", ""),
        ("-tool:lookup", "ac"),
        ("toolfail:refund", "b"),
        ("-toolfail:refund", "ac"),
        ("steps>=1", "ab"),
        ("steps<1", "c"),
        ("steps:0", "c"),
        ("-steps:0", "ab"),
        ("steps:unknown", "bde"),
        ("calls:complete", "ac"),
        ("calls:partial,none", "bd"),
        ("calls:unknown", "e"),
        ("cost>=25¢", "a"),
        ("-cost>=25¢", ""),
        ("cost:unknown", "bcde"),
        ("tokens>10k", "a"),
        ("tokens:unknown", "bcde"),
        ("duration>10s", "c"),
        ("note:bom_*", "b"),
        ('grader:"it\'s % a_grader"', "b"),
        ('grader:"it\'s % a_grader"=passed', ""),
        ("stock", "ab"),
        ('"out of stock"', "a"),
        ("stock -out", "b"),
        ("(stock -out or duration>10s)", "bc"),
        ("-(agent:clerk-1 or agent:clerk-2)", "d"),
        ("experiment:nope", ""),
        ("experiment:exp-*", "abcde"),
        ("flaky:yes", ""),
        ("flaky:no outcome:failed", "be"),
        ('agent:"\' OR 1=1 --"', ""),
    ],
)
def test_a_filter_finds_what_is_known_to_match(told: Store, text: str, found: str) -> None:
    where = RunFilter(terms=parse_filter(text, NOW))
    assert "".join(run.run_id for run in told.runs("exp-1", where)) == found
    assert told.count_runs("exp-1", where) == len(found)


def test_signatures_are_found_by_what_the_list_of_them_says(told: Store) -> None:
    for group in told.signatures("exp-1"):
        text = f"{written_term('why', group.signature)} {written_term('agent', group.agent)}"
        where = RunFilter(terms=parse_filter(text, NOW))
        assert told.count_runs("exp-1", where) == group.runs


def test_times_are_compared_with_the_beginning_of_the_run(told: Store) -> None:
    began = {run.run_id: run.started_at for run in told.runs("exp-1")}
    known = [run_id for run_id, at in began.items() if at is not None]
    at = began[known[0]]
    assert at is not None
    assert told.count_runs("exp-1", RunFilter(terms=parse_filter("since:1d", at + 3_600_000))) == len(known)
    assert told.count_runs("exp-1", RunFilter(terms=parse_filter("since:1h", at + 7_200_000))) == 0


def test_counting_stops_at_its_limit(told: Store) -> None:
    assert told.count_runs("exp-1", RunFilter(), limit=3) == 3


def test_a_case_is_held_against_the_last_finished_experiment_of_its_suite(store: Store) -> None:
    for name, outcomes in (("one", "pfp"), ("two", "fpp"), ("three", "ppf")):
        store.create_experiment(records.experiment(name), records.cases(4))
        for index, letter in enumerate(outcomes):
            outcome = "passed" if letter == "p" else "failed"
            store.record_run(records.run(index, run_id=f"{name}-{index}", experiment_id=name, outcome=outcome)).wait()  # type: ignore[arg-type]
        if name != "two":
            store.finish_experiment(name, finished_at=NOW).wait()

    def found(experiment: str, text: str) -> str:
        return "".join(run.run_id[-1] for run in store.runs(experiment, RunFilter(terms=parse_filter(text, NOW))))

    # Against the first: the second is not finished.
    assert [found("three", f"change:{word}") for word in ("worse", "better", "same")] == ["2", "1", "0"]
    assert found("three", "-change:worse") == "01"
    assert found("two", "change:worse") == "0"
    # The first has nothing before it.
    assert found("one", "change:same") == found("one", "-change:same") == ""
    assert found("one", "suite:5u1") == "012"
    assert found("one", "suite:u17") == ""
    assert found("one", "suite:*17*") == "012"


def test_what_people_say_last_counts(store: Store) -> None:
    store.create_experiment(records.experiment(), records.cases(5))
    for index, outcome in enumerate(("passed", "passed", "failed", "failed", "passed")):
        store.record_run(records.run(index, run_id=f"run-{index}", outcome=outcome)).wait()  # type: ignore[arg-type]
    said = [("run-0", "wrong"), ("run-0", "right"), ("run-1", "wrong"), ("run-2", "wrong"), ("run-3", "unsure")]
    for at, (run_id, word) in enumerate(said):
        store.add_review(run_id, Review(at=at, reviewer="ann", word=word)).wait()  # type: ignore[arg-type]
    store.add_review("run-2", Review(at=9, reviewer="bob", grader="trajectory", word="right")).wait()

    def found(text: str) -> str:
        return "".join(run.run_id[-1] for run in store.runs("exp-1", RunFilter(terms=parse_filter(text, NOW))))

    assert [found(f"reviewed:{word}") for word in ("yes", "no", "right", "wrong", "unsure")] == [
        "0123",
        "4",
        "02",
        "12",
        "3",
    ]
    # Bob says that the failed verdict is wrong; of what nobody decided, nobody knows whether graders agree.
    assert (found("agrees:yes"), found("agrees:no"), found("-agrees:yes")) == ("0", "12", "12")
