"""Transcripts in ranges: parts of a long run without the rest of it."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from strategies import messages, records

from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading, TraceEvent
from seatrial.runs import Run
from seatrial.store import Store, StoredStep, schema
from seatrial.store.documents import MAX_TEXT, CutText, unpack
from seatrial.store.items import MAX_BYTES, MAX_ITEMS
from seatrial.trajectory.step import Step
from seatrial.transcript import AssistantMessage, StopReason, TextBlock, Transcript, UserMessage

_numbers = itertools.count()
HUGE = 'A long text, with "quotes", \\ and\nlines. é ' * 2000


def long_run(count: int = 1234, **fields: Any) -> Run:
    return records.run(said=[f"message {index} " * 20 for index in range(count)], **fields)


def rows_of(store: Store, table: sa.Table = schema.items) -> list[sa.Row[Any]]:
    with store._dialect.reading.connect() as connection:
        return list(connection.execute(sa.select(table)))


def change(store: Store, statement: sa.Executable) -> None:
    with store._dialect.migrating() as connection:
        connection.execute(statement)


def test_a_long_run_comes_back_whole(filled: Store) -> None:
    run = long_run()
    filled.record_run(run).wait()
    assert filled.run(run.run_id) == run


def test_a_long_transcript_is_in_rows_of_a_hundred_messages_or_64_kilobytes(filled: Store) -> None:
    filled.record_run(long_run(950)).wait()
    filled.record_run(records.run(1, said=["x" * 10_000] * 40)).wait()
    rows = rows_of(filled)
    assert max(row._mapping["count"] for row in rows) == MAX_ITEMS
    assert max(len(unpack(row.packed, row.data)) for row in rows) <= MAX_BYTES
    assert sum(row._mapping["count"] for row in rows) == 990


def test_a_short_transcript_stays_with_its_head(filled: Store) -> None:
    filled.record_run(records.run()).wait()
    assert rows_of(filled) == []
    assert [item.index for item in filled.items("run-crew-case-0-1")] == [0, 1]


@pytest.mark.parametrize(
    ("first", "count"), [(0, 100), (0, 1), (99, 2), (100, 100), (555, 250), (1233, 5), (1234, 9), (-5, 7), (3, 0)]
)
def test_any_range_of_messages_can_be_read(filled: Store, first: int, count: int) -> None:
    run = long_run()
    filled.record_run(run).wait()
    assert run.reading is not None
    wanted = [
        (index, run.reading.transcript.messages[index]) for index in range(1234) if first <= index < first + count
    ]
    assert [(item.index, item.message) for item in filled.items(run.run_id, first, count)] == wanted


def test_a_range_is_read_without_the_rest_of_the_run(filled: Store) -> None:
    run = long_run()
    filled.record_run(run).wait()
    change(filled, sa.update(schema.items).where(schema.items.c.first != 300).values(data=b"damaged"))
    assert [item.index for item in filled.items(run.run_id, 310, 20)] == list(range(310, 330))
    assert filled.run_record(run.run_id).messages == 1234
    whole = filled.run(run.run_id)
    assert whole.fault is not None
    assert whole.fault.error_class == "record_damaged"


def test_a_run_that_lacks_some_of_its_messages_is_damaged(filled: Store) -> None:
    filled.record_run(long_run()).wait()
    change(filled, sa.delete(schema.items).where(schema.items.c.first == 300))
    run = filled.run("run-crew-case-0-1")
    assert run.errored
    assert run.fault is not None
    assert "300 of 1234" in run.fault.message


def test_long_texts_are_kept_once_and_come_back_where_they_were(filled: Store) -> None:
    for case in range(3):
        reading = Reading(
            "x", Transcript([UserMessage("hi"), AssistantMessage([TextBlock(HUGE)], StopReason.END_TURN)], HUGE), []
        )
        run = records.run(case, reading=reading)
        filled.record_run(run).wait()
        assert filled.run(run.run_id) == run
    large = [row for row in rows_of(filled, schema.bodies) if row.size > MAX_TEXT]
    assert len(large) == 1
    [_, item] = filled.items("run-crew-case-0-1")
    [text] = item.long_texts
    assert (text.pointer, text.lines) == ("/content/0/text", 2001)
    assert filled.text(text.address) == HUGE
    assert isinstance(item.message, AssistantMessage)
    assert HUGE.startswith(item.message.plain_text())
    assert len(item.message.plain_text()) == 1000


def test_the_record_of_a_run_is_small_however_long_the_run_is(filled: Store) -> None:
    run = long_run(800, metadata={"seed": 1})
    assert run.reading is not None
    run.reading.transcript.answer = HUGE
    run.reading.transcript.given = [0, 1]
    filled.record_run(run).wait()
    record = filled.run_record(run.run_id)
    assert (record.messages, record.given, record.metadata) == (800, [0, 1], {"seed": 1})
    assert (record.summary.outcome, record.verdicts, record.grade) == ("passed", run.verdicts, run.grade)
    assert record.answer == HUGE[:1000]
    assert [text.pointer for text in record.long_texts] == ["/transcript/answer"]
    [head] = rows_of(filled, schema.readings)
    assert len(head.data) < 3000


def test_a_run_without_an_answer_has_a_record_and_no_items(filled: Store) -> None:
    filled.record_run(records.run(status="failed", outcome=None, said=(), steps=[], attempts=[])).wait()
    record = filled.run_record("run-crew-case-0-1")
    assert (record.format, record.messages) == (None, 0)
    assert filled.items("run-crew-case-0-1") == []


def test_a_text_that_is_gone_makes_the_run_damaged(filled: Store) -> None:
    filled.record_run(records.run(said=["hi", HUGE])).wait()
    change(filled, sa.delete(schema.bodies).where(schema.bodies.c.size > MAX_TEXT))
    run = filled.run("run-crew-case-0-1")
    assert run.errored
    assert run.fault is not None
    assert "has no text" in run.fault.message
    assert len(filled.items("run-crew-case-0-1")) == 2


def test_a_long_trace_is_in_rows_too(filled: Store) -> None:
    run = records.run()
    assert run.reading is not None
    run.reading.trace = [TraceEvent("tool_call", index, f"c{index}", "refund", {"n": index}) for index in range(350)]
    filled.record_run(run).wait()
    assert filled.run(run.run_id) == run
    assert [row._mapping["count"] for row in rows_of(filled) if row.part == 1] == [100, 100, 100, 50]


def test_long_arguments_and_results_of_steps_are_kept_by_their_address(filled: Store) -> None:
    table = {"rows": [{"order": number, "state": "shipped"} for number in range(2000)]}
    steps = [
        Step(0, "query", {"result": table}, "c0", "messages", "ok", table),
        Step(1, "read", {"path": "log"}, "c1", "messages", "error", HUGE, error=HUGE + "!"),
        Step(2, "query", table, "c2", "messages", "ok", "shipped", arguments_text=HUGE),
    ]
    run = records.run(steps=steps, metadata={"log": HUGE}, reported=steps[:1])
    filled.record_run(run).wait()
    assert filled.run(run.run_id) == run
    assert max(len(row.data) for row in rows_of(filled, schema.steps)) < MAX_TEXT
    pointers = [
        [cut.text.pointer for cut in msgspec.json.decode(row.texts, type=list[CutText])]
        for row in rows_of(filled, schema.steps)
    ]
    assert pointers == [["/arguments", "/result"], ["/result", "/error"], ["/arguments", "/arguments_text"]]
    record = filled.run_record(run.run_id)
    assert len(record.metadata["log"]) == 1000
    [text] = record.long_texts
    assert (text.pointer, filled.text(text.address)) == ("/metadata/log", HUGE)


def test_the_values_of_steps_that_several_runs_share_are_kept_once(filled: Store) -> None:
    for case in range(3):
        filled.record_run(records.run(case, steps=[Step(0, "read", {}, "c", "messages", "ok", HUGE)])).wait()
    assert [row.size for row in rows_of(filled, schema.bodies) if row.size > MAX_TEXT] == [
        len(msgspec.json.encode(HUGE))
    ]


def test_a_result_that_is_gone_makes_the_run_damaged(filled: Store) -> None:
    run = records.run(steps=[Step(0, "read", {}, "c", "messages", "ok", HUGE)])
    filled.record_run(run).wait()
    change(filled, sa.delete(schema.bodies).where(schema.bodies.c.size > MAX_TEXT))
    found = filled.run(run.run_id)
    assert found.fault is not None
    assert found.fault.error_class == "record_damaged"
    assert "its step 1 cannot be read" in found.fault.message


def test_items_of_an_unknown_run_are_not_found(filled: Store) -> None:
    for read in (filled.items, filled.run_record):
        with pytest.raises(SeatrialError) as caught:
            read("nope")
        assert caught.value.code == "not_found"
    with pytest.raises(SeatrialError):
        filled.text("ab" * 32)


@given(transcript=messages.transcripts(), arguments=messages.json_values())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_a_run_holds_comes_back_from_rows_that_are_as_short_as_can_be(
    filled: Store, transcript: Transcript, arguments: Any
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("seatrial.store.items.MAX_TEXT", 8)
        patched.setattr("seatrial.store.items.MAX_ITEMS", 2)
        patched.setattr("seatrial.store.items.MAX_BYTES", 100)
        patched.setattr("seatrial.store.documents.MAX_TEXT", 8)
        patched.setattr("seatrial.store.documents._BEGINNING", 3)
        trace = [TraceEvent("tool_call", input=arguments)]
        steps = [
            Step(0, "call", arguments, "c", "messages", "ok", [arguments, "long enough"], error="also long enough")
        ]
        run = records.run(reading=Reading("openai", transcript, [], trace=trace), steps=steps)
        run.run_id = f"run-{next(_numbers)}"
        assert filled.record_run(run, replace=True).wait()
        assert msgspec.json.encode(filled.run(run.run_id)) == msgspec.json.encode(run)
        assert len(filled.items(run.run_id, 0, 1000)) == len(transcript.messages)


def test_any_range_of_steps_can_be_read_with_the_beginnings_of_long_values(filled: Store) -> None:
    steps = [Step(index, "look", {"page": index}, result="x" * 20_000 if index == 7 else "short") for index in range(9)]
    run = records.run(steps=steps)
    filled.record_run(run).wait()
    found = filled.steps(run.run_id, 6, 2)
    assert [stored.step.arguments for stored in found] == [{"page": 6}, {"page": 7}]
    assert found[0] == StoredStep(steps[6])
    (cut,) = found[1].long_texts
    assert (cut.pointer, cut.size) == ("/result", 20_002)
    assert filled.text(cut.address) == steps[7].result
    assert found[1].step.result == "x" * 1000
    assert filled.steps(run.run_id, 9, 5) == []
    with pytest.raises(SeatrialError, match="run"):
        filled.steps("nobody")


def test_long_arguments_come_whole_for_those_who_compare_them(filled: Store) -> None:
    steps = [Step(0, "write", {"text": HUGE}, result=HUGE), Step(1, "write", {"text": "short"})]
    filled.record_run(records.run(steps=steps)).wait()
    (cut, _), (whole, short) = (
        filled.steps("run-crew-case-0-1"),
        filled.steps("run-crew-case-0-1", whole_arguments=True),
    )
    assert cut.step.arguments is None
    assert whole.step.arguments == {"text": HUGE}
    assert whole.step.result != HUGE
    assert [text.pointer for text in whole.long_texts] == ["/result"]
    assert short == StoredStep(steps[1])
