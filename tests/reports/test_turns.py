"""What an agent thought before a call, and what it answered, read without the rest of the run."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from strategies import records

from seatrial.formats.reading import Reading
from seatrial.reports import turns
from seatrial.reports.turns import TurnPart, last_turn, stored_answer, turn_before
from seatrial.store import RunRecord, Store
from seatrial.trajectory.step import Step
from seatrial.transcript import (
    AssistantMessage,
    Message,
    ReasoningBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)

_numbers = itertools.count(1)


def said(*blocks: Any) -> AssistantMessage:
    return AssistantMessage(list(blocks), StopReason.END_TURN)


def stored(store: Store, messages: list[Message], steps: list[Step], **transcript: Any) -> RunRecord:
    if not store.experiments():
        store.create_experiment(records.experiment(), records.cases(1))
    reading = Reading("agent-response", Transcript(messages, **transcript), [])
    number = next(_numbers)
    run = records.run(run_id=f"run-{number}", trial=number, reading=reading, steps=steps, said=(), completeness=None)
    store.record_run(run).wait()
    return store.run_record(run.run_id)


def test_the_turn_of_a_call_is_what_stands_before_it_in_all_channels(store: Store) -> None:
    message = said(
        ThinkingBlock("I look first."),
        ReasoningBlock("native"),
        TextBlock("One moment."),
        ToolCall("1", "find", {}),
        TextBlock("after it"),
        ToolCall("2", "refund", {}),
    )
    record = stored(store, [UserMessage("help"), message], [Step(0, "find", {}, "1"), Step(1, "refund", {}, "2")])
    found = turn_before(store, record, Step(0, "find", {}, "1"))
    assert found is not None
    assert found.message == 1
    assert found.parts == [
        TurnPart("thinking", "I look first."),
        TurnPart("reasoning", "native"),
        TurnPart("text", "One moment."),
    ]
    second = turn_before(store, record, Step(1, "refund", {}, "2"))
    assert second is not None
    assert second.parts[-1] == TurnPart("text", "after it")


def test_thoughts_in_a_message_of_their_own_belong_to_the_call_behind_them(store: Store) -> None:
    messages: list[Message] = [
        UserMessage("help"),
        said(ToolCall("1", "find", {})),
        ToolResultMessage("1", "find", [TextBlock("found")]),
        said(ReasoningBlock("so I refund")),
        said(ToolCall("2", "refund", {})),
    ]
    record = stored(store, messages, [Step(0, "find", {}, "1"), Step(1, "refund", {}, "2")])
    found = turn_before(store, record, Step(1, "refund", {}, "2"))
    assert found is not None
    assert found.parts == [TurnPart("reasoning", "so I refund")]


def test_a_call_that_is_in_no_message_has_no_turn(store: Store) -> None:
    record = stored(store, [UserMessage("help"), said(TextBlock("done"))], [Step(0, "find", {}, "9")])
    assert turn_before(store, record, Step(0, "find", {}, "9")) is None


@pytest.mark.parametrize("at_once", [3, 7, 1000])
def test_any_call_of_a_long_run_is_found(store: Store, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(turns, "ENTRIES_AT_ONCE", at_once)
    messages: list[Message] = [UserMessage("help")]
    steps = []
    for index in range(150):
        messages += [
            said(ThinkingBlock(f"thought {index}"), ToolCall(f"c{index}", "find", {"n": index})),
            ToolResultMessage(f"c{index}", "find", [TextBlock("found")]),
        ]
        steps.append(Step(index, "find", {"n": index}, f"c{index}"))
        if index == 70:
            messages += [said(TextBlock("still at it"))] * 40
    record = stored(store, messages, steps)
    for index in (0, 1, 69, 70, 71, 149):
        found = turn_before(store, record, steps[index])
        assert found is not None
        assert found.parts[-1].text == f"thought {index}"


def test_the_answer_is_that_of_the_whole_run(store: Store) -> None:
    long = "word " * 10_000
    runs: list[tuple[list[Message], str | None]] = [
        ([UserMessage("help"), said(TextBlock("first")), said(TextBlock("last"), TextBlock(" words"))], None),
        ([UserMessage("help"), said(TextBlock(long)), UserMessage("thanks")], None),
        ([UserMessage("help"), said(TextBlock("said"))], "named"),
        ([UserMessage("help"), said(TextBlock("said"))], long),
        ([UserMessage("help")], None),
        ([UserMessage("help"), said(TextBlock("given")), UserMessage("more")], None),
    ]
    for messages, named in runs:
        record = stored(store, messages, [], answer=named, given=[0, 1] if len(messages) == 3 and named else [0])
        found = stored_answer(store, record)
        assert (None if found is None else found.text) == store.run(record.summary.run_id).answer


def test_before_an_answer_only_what_was_not_said_counts(store: Store) -> None:
    record = stored(store, [UserMessage("help"), said(ThinkingBlock("enough"), TextBlock("Done."))], [])
    found = last_turn(store, record)
    assert found is not None
    assert found.parts == [TurnPart("thinking", "enough")]
    assert last_turn(store, stored(store, [UserMessage("help")], [])) is None
