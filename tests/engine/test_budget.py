from __future__ import annotations

from strategies import records

from seatrial.engine.budget import Spending
from seatrial.runs import Run, Verdict
from seatrial.suites import Budget
from seatrial.transcript import AssistantMessage, StopReason, TextBlock, Usage


def a_run(*, usage: Usage | None = None, cost: float | None = None) -> Run:
    return records.run(reading=records.reading("Where?", "Here.", usage=usage, cost=cost))


def test_money_of_agents_and_judges_counts() -> None:
    spending = Spending(Budget(cost_usd=0.5))
    run = a_run(cost=0.25)
    spending.add(run)
    assert spending.exceeded(0) is None
    run.verdicts = [Verdict(grader="judge", kind="judge", judgement="passed", cost_usd=0.1)]
    spending.add(run)
    assert spending.exceeded(0) == "cost budget reached: 0.6000 of 0.5000 USD"


def test_tokens_of_agents_and_judges_count() -> None:
    spending = Spending(Budget(tokens=100))
    run = a_run(usage=Usage(input_tokens=40, output_tokens=10))
    spending.add(run)
    assert spending.exceeded(0) is None
    run.verdicts = [Verdict(grader="judge", kind="judge", judgement="passed", tokens=3)]
    spending.add(run)
    assert spending.exceeded(0) == "token budget reached: 103 of 100"


def test_tokens_are_added_up_from_messages_where_there_is_no_sum() -> None:
    spending = Spending(Budget(tokens=30))
    run = a_run()
    assert run.reading is not None
    said = AssistantMessage([TextBlock("Here.")], StopReason.END_TURN, usage=Usage(input_tokens=20, output_tokens=10))
    run.reading.transcript.messages.append(said)
    spending.add(run)
    assert spending.exceeded(0) == "token budget reached: 30 of 30"


def test_time_is_up_when_it_is_up() -> None:
    spending = Spending(Budget(wall_time_s=60))
    assert spending.exceeded(59.9) is None
    assert spending.exceeded(60) == "time budget reached: 60 of 60 s"


def test_without_a_budget_nothing_is_ever_too_much() -> None:
    spending = Spending(Budget())
    spending.add(a_run(cost=1e9, usage=Usage(input_tokens=10**12)))
    assert spending.exceeded(1e9) is None
