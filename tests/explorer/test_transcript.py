"""The transcript of a run."""

from __future__ import annotations

from typing import Any

import pytest
from strategies import records

from seatrial.explorer.cards import CallCard, Prose, ThoughtView
from seatrial.explorer.transcript import NEAR, ShownItem, transcript_range
from seatrial.formats.reading import Reading
from seatrial.runs import Run
from seatrial.store import Store
from seatrial.trajectory.step import Step
from seatrial.transcript import (
    AssistantMessage,
    Message,
    Note,
    ReasoningBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)


@pytest.fixture
def filled(store: Store) -> Store:
    store.create_experiment(records.experiment(), records.cases(5))
    return store


def recorded(store: Store, *messages: Message, steps: list[Step] | None = None, **fields: Any) -> Run:
    """A stored run with these messages."""
    given, notes = fields.pop("given", []), fields.pop("notes", [])
    reading = Reading("agent_response", Transcript(list(messages), fields.pop("answer", None), given=given), notes)
    run = records.run(reading=reading, steps=steps or [], **fields)
    store.record_run(run).wait()
    return run


def called(*calls: ToolCall, text: str = "") -> AssistantMessage:
    blocks: list[Any] = [TextBlock(text)] if text else []
    return AssistantMessage([*blocks, *calls], StopReason.TOOL_USE)


def answered(call_id: str, tool: str, text: str) -> ToolResultMessage:
    return ToolResultMessage(call_id, tool, [TextBlock(text)])


def cards(items: list[ShownItem]) -> list[CallCard]:
    return [part for item in items for part in item.parts if isinstance(part, CallCard)]


def turns(count: int, text: str = "found") -> tuple[list[Message], list[Step]]:
    """So many turns of a call and its result, behind a question."""
    messages: list[Message] = [UserMessage("Look.")]
    for index in range(count):
        messages += [called(ToolCall(f"c{index}", "look", {"at": index})), answered(f"c{index}", "look", text)]
    return messages, [Step(index, "look", {"at": index}, f"c{index}", "messages", "ok") for index in range(count)]


def test_a_call_and_its_result_are_one_card_with_the_number_of_the_step(filled: Store) -> None:
    messages, steps = turns(2)
    run = recorded(filled, *messages, steps=steps)
    shown = transcript_range(filled, run.run_id, 0, 40)
    assert [item.pointer for item in shown.items] == ["/messages/0", "/messages/1", "/messages/3"]
    assert [(card.number, card.name, card.line) for card in cards(shown.items)] == [
        (0, "look", '{"at": 0}'),
        (1, "look", '{"at": 1}'),
    ]
    [result] = cards(shown.items)[1].results
    assert isinstance(result, Prose)
    assert (result.passage.text, result.passage.pointer) == ("found", "/messages/4/content/0/text")


def test_details_of_a_result_are_not_shown_again_where_its_text_says_the_same(filled: Store) -> None:
    def parts(details: Any) -> int:
        result = ToolResultMessage("c", "look", [TextBlock('{"found": 1}')], details=details)
        run = recorded(
            filled, called(ToolCall("c", "look", {})), result, run_id=f"run-{len(details)}", trial=90 + len(details)
        )
        [card] = cards(transcript_range(filled, run.run_id, 0, 40).items)
        return len(card.results)

    assert parts({"found": 1}) == 1
    assert parts({"found": 1, "more": 2}) == 2


def test_ranges_show_every_message_once_however_they_are_cut(filled: Store) -> None:
    messages, steps = turns(120)
    run = recorded(filled, *messages, AssistantMessage([TextBlock("Done.")], StopReason.END_TURN), steps=steps)
    whole = transcript_range(filled, run.run_id, 0, 100, size=10**9)
    for width in (1, 2, 7, 40):
        items: list[ShownItem] = []
        first = 0
        while first < 100:
            part = transcript_range(filled, run.run_id, first, min(width, 100 - first), size=10**9)
            items += part.items
            first = part.end
        assert [item.pointer for item in items] == [item.pointer for item in whole.items]
        assert [card.number for card in cards(items)] == list(range(50))
        assert all(card.results for card in cards(items))


def test_a_result_far_from_its_call_stands_apart_and_names_the_step(filled: Store) -> None:
    between = [UserMessage(f"wait {index}") for index in range(NEAR)]
    run = recorded(
        filled,
        called(ToolCall("c", "look", {})),
        *between,
        answered("c", "look", "late"),
        steps=[Step(0, "look", {}, "c", "messages", "ok", "late")],
    )
    call, orphan = cards(transcript_range(filled, run.run_id, 0, 100).items)
    assert call.results  # the step has it
    assert orphan.remark == "The result of step 0."


def test_calls_without_results_and_results_without_calls_say_so(filled: Store) -> None:
    run = recorded(filled, called(ToolCall("c", "look", {})), answered("x", "ghost", "boo"))
    call, orphan = cards(transcript_range(filled, run.run_id, 0, 40).items)
    assert (call.number, call.remark) == (None, "No result was recorded.")
    assert (orphan.name, orphan.remark) == ("ghost", "There is no call that this is the result of.")


def test_a_first_answer_ends_before_it_is_too_large_and_the_next_range_goes_on(filled: Store) -> None:
    messages, steps = turns(60, "many words " * 100)
    run = recorded(filled, *messages, steps=steps)
    shown = transcript_range(filled, run.run_id, 0, 40, size=10_000)
    assert 0 < len(shown.items) < 20
    assert shown.after is not None
    assert f"from={shown.end}" in shown.after
    following = transcript_range(filled, run.run_id, shown.end, 40, size=10_000)
    assert following.items[0].place >= shown.end


def test_what_was_asked_for_is_shown_whatever_comes_before_it(filled: Store) -> None:
    messages, steps = turns(60, "many words " * 100)
    run = recorded(filled, *messages, steps=steps)
    for at in ("/messages/41", "/messages/42", "/steps/20", "/steps/20/arguments"):
        shown = transcript_range(filled, run.run_id, 0, 40, at, size=3_000)
        [selected] = [item for item in shown.items if item.selected]
        assert selected.pointer == "/messages/41", at


def test_a_place_that_is_not_there_is_said(filled: Store) -> None:
    run = recorded(filled, UserMessage("Look."))
    for at in ("/messages/1", "/steps/0", "/elsewhere", "messages", "/messages/-1", "/messages/٣", "/"):
        assert "no place" in transcript_range(filled, run.run_id, 0, 40, at).problem


def test_steps_of_no_message_are_items_before_the_answer(filled: Store) -> None:
    steps = [Step(index, "look", {"at": index}, None, "trace", "ok", {"found": index}) for index in range(150)]
    run = records.run(steps=steps, steps_source="trace")
    filled.record_run(run).wait()
    shown = transcript_range(filled, run.run_id, 0, 3)
    assert (shown.total, [item.pointer for item in shown.items]) == (152, ["/messages/0", "/steps/0", "/steps/1"])
    shown = transcript_range(filled, run.run_id, 100, 100, size=10**9)
    assert [item.pointer for item in shown.items][-2:] == ["/steps/149", "/messages/1"]
    [selected] = [each for each in transcript_range(filled, run.run_id, 0, 10, "/steps/77").items if each.selected]
    assert selected.pointer == "/steps/77"


def test_given_messages_are_marked_and_turns_counted_from_the_run_itself(filled: Store) -> None:
    said: list[Message] = [UserMessage("a"), AssistantMessage([TextBlock("b")], StopReason.END_TURN), UserMessage("c")]
    done = [AssistantMessage([TextBlock(text)], StopReason.END_TURN) for text in "de"]
    messages: list[Message] = [SystemMessage("s"), *said, *done]
    run = recorded(filled, *messages, given=[0, 1, 2, 3])
    shown = transcript_range(filled, run.run_id, 0, 40)
    assert [(item.given, item.turn) for item in shown.items] == [(True, None)] * 4 + [(False, 1), (False, 2)]
    assert transcript_range(filled, run.run_id, 5, 1).items[0].turn == 2


def test_an_answer_of_its_own_is_the_last_item(filled: Store) -> None:
    run = recorded(filled, UserMessage("a"), AssistantMessage([TextBlock("b")], StopReason.END_TURN), answer="c")
    shown = transcript_range(filled, run.run_id, 0, 40)
    assert [item.pointer for item in shown.items] == ["/messages/0", "/messages/1", "/answer"]
    assert transcript_range(filled, run.run_id, 0, 40, "/answer").items[-1].selected


def test_the_two_hidden_channels_are_told_apart_and_closed(filled: Store) -> None:
    blocks: list[Any] = [ThinkingBlock("inside tags"), ReasoningBlock("beside the text"), TextBlock("Hello")]
    run = recorded(filled, AssistantMessage(blocks, StopReason.END_TURN))
    thinking, reasoning, _ = transcript_range(filled, run.run_id, 0, 40).items[0].parts
    assert isinstance(thinking, ThoughtView)
    assert isinstance(reasoning, ThoughtView)
    assert (thinking.channel, reasoning.channel) == ("thinking", "reasoning")
    assert (thinking.open, thinking.facts) == (False, ["2 words"])
    opened = transcript_range(filled, run.run_id, 0, 40, opened=["/messages/0/content/0"]).items[0].parts[0]
    assert isinstance(opened, ThoughtView)
    assert not opened.open  # a block is not the text in it
    opened = transcript_range(filled, run.run_id, 0, 40, opened=[thinking.pointer]).items[0].parts[0]
    assert isinstance(opened, ThoughtView)
    assert opened.open


def test_calls_only_hides_prose_and_says_how_much(filled: Store) -> None:
    messages, steps = turns(2)
    run = recorded(filled, *messages, steps=steps)
    shown = transcript_range(filled, run.run_id, 0, 40, show="calls")
    assert (len(shown.items), shown.hidden) == (2, 1)


def test_notes_stand_at_the_message_that_they_are_about(filled: Store) -> None:
    note = Note("content_dropped", "/messages/1/content/0", "dropped a part")
    run = recorded(filled, UserMessage("a"), UserMessage("b"), notes=[note])
    assert [item.notes for item in transcript_range(filled, run.run_id, 0, 40).items] == [[], [note]]
