from __future__ import annotations

from strategies import records

from seatrial.engine.budget import Spending, spent_by
from seatrial.runs import Attempt, Fault, Run, Verdict
from seatrial.suites import Budget
from seatrial.transcript import AssistantMessage, Note, StopReason, TextBlock, Usage


def a_run(*, usage: Usage | None = None, cost: float | None = None) -> Run:
    return records.run(reading=records.reading("Where?", "Here.", usage=usage, cost=cost))


def add(spending: Spending, run: Run) -> list[Note]:
    return spending.add(run.key.agent, spent_by(run, spending.budget))


def test_money_of_agents_and_judges_counts() -> None:
    spending = Spending(Budget(cost_usd=0.5))
    run = a_run(cost=0.25)
    add(spending, run)
    assert spending.exceeded(0) is None
    run.verdicts = [Verdict(grader="judge", kind="judge", outcome="passed", cost_usd=0.1)]
    add(spending, run)
    assert spending.exceeded(0) == "cost budget reached: 0.6000 of 0.5000 USD"


def test_tokens_of_agents_and_judges_count() -> None:
    spending = Spending(Budget(tokens=100))
    run = a_run(usage=Usage(input_tokens=40, output_tokens=10))
    add(spending, run)
    assert spending.exceeded(0) is None
    run.verdicts = [Verdict(grader="judge", kind="judge", outcome="passed", tokens=3)]
    add(spending, run)
    assert spending.exceeded(0) == "token budget reached: 103 of 100"


def test_tokens_are_added_up_from_messages_where_there_is_no_sum() -> None:
    spending = Spending(Budget(tokens=30))
    run = a_run()
    assert run.reading is not None
    said = AssistantMessage([TextBlock("Here.")], StopReason.END_TURN, usage=Usage(input_tokens=20, output_tokens=10))
    run.reading.transcript.messages.append(said)
    add(spending, run)
    assert spending.exceeded(0) == "token budget reached: at least 30 of 30"  # another message says nothing


def test_time_is_up_when_it_is_up() -> None:
    spending = Spending(Budget(wall_time_s=60))
    assert spending.exceeded(59.9) is None
    assert spending.exceeded(60) == "time budget reached: 60 of 60 s"


def test_without_a_budget_nothing_is_ever_too_much() -> None:
    spending = Spending(Budget())
    add(spending, a_run(cost=1e9, usage=Usage(input_tokens=10**12)))
    assert spending.exceeded(1e9) is None


def test_a_run_that_does_not_say_what_it_cost_is_reported_once_and_counted() -> None:
    spending = Spending(Budget(cost_usd=0.5))
    (first,) = add(spending, a_run())
    assert (first.code, first.weight) == ("budget_cost_unknown", "look")
    assert "`budget.cost_usd` is 0.5" in first.message
    assert add(spending, a_run()) == []
    assert add(spending, a_run(cost=0.5)) == []
    assert spending.exceeded(0) == "cost budget reached: at least 0.5000 of 0.5000 USD"
    ((agent, (note,)),) = spending.notes().items()
    assert agent == a_run().key.agent
    assert note.message.startswith("2 of 3 runs did not say what they cost")


def test_a_run_without_an_answer_has_unknown_costs() -> None:
    spending = Spending(Budget(cost_usd=0.5, tokens=10))
    run = a_run()
    run.reading = None
    assert [note.code for note in add(spending, run)] == ["budget_cost_unknown", "budget_tokens_unknown"]


def test_a_judge_without_prices_makes_the_cost_unknown() -> None:
    spending = Spending(Budget(cost_usd=0.5))
    run = a_run(cost=0.1)
    run.verdicts = [Verdict(grader="judge", kind="judge", outcome="passed", tokens=100)]
    assert [note.code for note in add(spending, run)] == ["budget_cost_unknown"]


def test_what_no_budget_limits_may_be_unknown() -> None:
    assert add(Spending(Budget(wall_time_s=5)), a_run()) == []
    assert add(Spending(Budget(tokens=5)), a_run(usage=Usage(input_tokens=1, output_tokens=1))) == []
    assert add(Spending(Budget(cost_usd=5)), a_run(cost=0.0)) == []


def test_what_is_known_of_a_judges_cost_counts_and_the_rest_is_reported() -> None:
    spending = Spending(Budget(cost_usd=0.5, tokens=10))
    run = a_run(cost=0.25, usage=Usage(input_tokens=1, output_tokens=1))
    run.verdicts = [Verdict(grader="judge", kind="judge", outcome="errored", least_cost_usd=0.25, least_tokens=8)]
    assert [note.code for note in add(spending, run)] == ["budget_cost_unknown", "budget_tokens_unknown"]
    assert spending.exceeded(0) == "cost budget reached: at least 0.5000 of 0.5000 USD"


def test_what_attempts_before_the_last_one_cost_is_not_counted_and_reported() -> None:
    spending = Spending(Budget(cost_usd=0.5, tokens=10))
    run = a_run(cost=0.25, usage=Usage(input_tokens=1, output_tokens=1))
    lost = Fault("connection_lost", "no answer")
    run.exchanges = records.exchanges(
        [Attempt(number=1, started_at=0, duration_ms=1, fault=lost), Attempt(number=2, started_at=1, duration_ms=1)]
    )
    assert [note.code for note in add(spending, run)] == ["budget_cost_unknown", "budget_tokens_unknown"]
