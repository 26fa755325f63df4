"""Which runs a filter finds, on both stores."""

from __future__ import annotations

import pytest
from strategies import records

from seatrial.runs import Case, Fault, Verdict
from seatrial.store import RunFilter, Store
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
