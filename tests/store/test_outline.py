"""Outlines: what a timeline is drawn from, on every store."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from strategies import records

from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading
from seatrial.runs import Run
from seatrial.store import Store, schema
from seatrial.store.outline import ENTRIES, MAX_ENTRIES, MAX_SPANS, SPANS
from seatrial.trajectory.step import Step
from seatrial.transcript import (
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)

BEGUN = 1_760_000_000_000


def a_run(calls: int = 2, failing: int = 1, **fields: Any) -> Run:
    """A question, so many calls with their results, of which one fails, and an answer."""
    said: list[Message] = [UserMessage("Where is it?", timestamp=BEGUN)]
    steps: list[Step] = []
    for number in range(calls):
        failed = number == failing
        said.append(AssistantMessage([ToolCall(f"c{number}", "lookup", {"order": number})], StopReason.TOOL_USE))
        said.append(ToolResultMessage(f"c{number}", "lookup", [TextBlock("x")], failed, timestamp=BEGUN + 20 * number))
        steps.append(
            Step(
                number,
                "lookup",
                {"order": number},
                f"c{number}",
                "messages",
                "error" if failed else "ok",
                started_at=BEGUN + 20 * number,
                ended_at=BEGUN + 20 * number + 7,
                actor="mate",
            )
        )
    said.append(AssistantMessage([TextBlock("Here.")], StopReason.END_TURN))
    return records.run(reading=Reading("openai", Transcript(said, given=[0]), []), steps=steps, **fields)


def test_calls_that_were_sent_without_ids_have_their_steps(filled: Store) -> None:
    said: list[Message] = [
        AssistantMessage([ToolCall(f"seatrial_call_{at}", name, {})], StopReason.TOOL_USE)
        for at, name in enumerate(("look", "book", "look"))
    ]
    steps = [Step(index, name, {}, None, "messages", "ok") for index, name in enumerate(("look", "book", "look"))]
    run = records.run(reading=Reading("openai", Transcript(said), []), steps=steps)
    filled.record_run(run).wait()
    assert [entry.step for entry in filled.outline(run.run_id)] == [0, 1, 2]
    # What a trace has of calls belongs to no message, unless an id says so.
    traced = [Step(index, "look", {}, None, "trace", "ok") for index in range(3)]
    run = records.run(1, reading=Reading("openai", Transcript(said), []), steps=traced)
    filled.record_run(run).wait()
    assert [entry.step for entry in filled.outline(run.run_id)] == [None, None, None]


def stored_rows(store: Store) -> int:
    with store._dialect.reading.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(schema.outlines)).scalar_one()


def test_an_outline_says_what_happened_when_and_how_it_ended(filled: Store) -> None:
    filled.record_run(a_run()).wait()
    question, first, result, second, failure, answer = filled.outline("run-crew-case-0-1")
    assert (question.kind, question.given, question.status, question.started_at) == ("user", True, None, BEGUN)
    assert (first.kind, first.name, first.step, first.actor, first.status) == ("call", "lookup", 0, "mate", "ok")
    assert (first.started_at, first.ended_at) == (BEGUN, BEGUN + 7)
    assert (result.kind, result.step, result.status, result.started_at) == ("result", 0, "ok", BEGUN)
    assert (second.status, failure.status, failure.name) == ("error", "error", "lookup")
    # Nothing is made up: the answer has no time.
    assert (answer.kind, answer.status, answer.started_at, answer.step) == ("assistant", None, None, None)
    assert answer.size == len(
        '{"role":"assistant","content":[{"type":"text","text":"Here."}],"stop_reason":"end_turn"}'
    )


def test_a_call_of_which_no_step_is_known_has_an_unknown_status(filled: Store) -> None:
    run = a_run()
    run.steps = []
    filled.record_run(run).wait()
    assert [entry.status for entry in filled.outline(run.run_id)] == [None, "unknown", "ok", "unknown", "error", None]


def test_calls_that_share_an_id_belong_to_their_steps_in_order(filled: Store) -> None:
    run = a_run(calls=3, failing=2)
    assert run.reading is not None
    for message in run.reading.transcript.messages:
        if isinstance(message, ToolResultMessage):
            message.tool_call_id = "same"
        elif isinstance(message, AssistantMessage):
            for call in message.tool_calls():
                call.id = "same"
    for step in run.steps:
        step.id = "same"
    filled.record_run(run).wait()
    found = filled.outline(run.run_id)
    assert [entry.step for entry in found] == [None, 0, 0, 1, 1, 2, 2, None]


@pytest.mark.parametrize(("first", "count"), [(0, 10), (995, 20), (1000, 1), (2400, 100), (9000, 5), (-3, 5), (7, 0)])
def test_any_range_of_a_long_run_is_read_from_its_rows(filled: Store, first: int, count: int) -> None:
    run = a_run(calls=1200)
    filled.record_run(run).wait()
    assert stored_rows(filled) == -(-2402 // MAX_ENTRIES) + 1
    # Its messages are not needed for it.
    with filled._dialect.migrating() as connection:
        connection.execute(sa.delete(schema.items))
    wanted = [index for index in range(2402) if first <= index < first + count]
    assert [entry.first for entry in filled.outline(run.run_id, first, count)] == wanted


def test_an_overview_has_every_failure_and_all_messages_in_a_few_hundred_entries(filled: Store) -> None:
    run = a_run(calls=1200, failing=777)
    filled.record_run(run).wait()
    spans = filled.overview(run.run_id)
    assert len(spans) <= MAX_SPANS
    assert sum(span.count for span in spans) == 2402
    assert [span.first for span in spans][1:] == [span.first + span.count for span in spans][:-1]
    assert {span.first <= 2 * 777 + 1 < span.first + span.count for span in spans if span.status == "error"} == {True}
    assert spans[0].started_at == BEGUN
    assert sum(span.size for span in spans) == sum(entry.size for entry in filled.outline(run.run_id, 0, 5000))


def test_the_outline_of_a_short_run_is_not_stored(filled: Store) -> None:
    filled.record_run(a_run()).wait()
    assert stored_rows(filled) == 0
    assert filled.overview("run-crew-case-0-1") == filled.outline("run-crew-case-0-1")


def test_a_run_without_an_answer_has_an_empty_outline_and_an_unknown_one_is_an_error(filled: Store) -> None:
    filled.record_run(records.run(status="failed", outcome=None, said=(), steps=[])).wait()
    assert filled.outline("run-crew-case-0-1") == filled.overview("run-crew-case-0-1") == []
    with pytest.raises(SeatrialError, match="no run"):
        filled.outline("none")


@pytest.mark.parametrize("level", [ENTRIES, SPANS])
def test_an_outline_that_lacks_some_of_its_entries_is_damaged(filled: Store, level: int) -> None:
    run = a_run(calls=1200)
    filled.record_run(run).wait()
    table = schema.outlines
    with filled._dialect.migrating() as connection:
        connection.execute(sa.delete(table).where(table.c.level == level, table.c.first < MAX_ENTRIES))
    with pytest.raises(SeatrialError, match="outline of run run-crew-case-0-1 is damaged"):
        filled.outline(run.run_id, 900, 200) if level == ENTRIES else filled.overview(run.run_id)


def test_the_outline_goes_with_its_run(filled: Store) -> None:
    filled.record_run(a_run(calls=200)).wait()
    filled.record_run(a_run(calls=1, run_id="other"), replace=True).wait()
    assert stored_rows(filled) == 0
