"""Telling what a run started from from what the agent did."""

from __future__ import annotations

import pytest

from seatrial.transcript import (
    AssistantMessage,
    Message,
    Note,
    StopReason,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)
from seatrial.transcript.given import GIVEN_BY_ORDER, GIVEN_OR_REPEATED, mark_given


def said(text: str) -> AssistantMessage:
    return AssistantMessage([TextBlock(text)], StopReason.END_TURN)


def called(name: str, call_id: str = "1") -> AssistantMessage:
    return AssistantMessage([ToolCall(call_id, name, {})], StopReason.TOOL_USE)


def result(call_id: str = "1") -> ToolResultMessage:
    return ToolResultMessage(call_id, "", [TextBlock("done")])


HISTORY: list[Message] = [UserMessage("a"), called("refund"), result(), said("b"), UserMessage("c")]


def marked(messages: list[Message], given: list[Message]) -> tuple[list[int], list[Note]]:
    transcript = Transcript(messages)
    notes: list[Note] = []
    mark_given(transcript, given, notes)
    return transcript.given, notes


@pytest.mark.parametrize(
    ("messages", "given"),
    [
        ([said("b")], []),
        ([UserMessage("a"), said("b")], [0]),
        ([SystemMessage("s"), UserMessage([TextBlock("a ")]), said("b")], [1]),
        ([UserMessage("a"), said("b"), UserMessage("made up by the agent"), said("c")], [0]),
        ([UserMessage("a")], [0]),
        ([], []),
    ],
)
def test_the_instruction_is_found_at_the_head_of_what_the_agent_returned(
    messages: list[Message], given: list[int]
) -> None:
    assert marked(messages, [UserMessage("a")]) == (given, [])


def test_a_call_of_the_earlier_conversation_is_not_the_agents() -> None:
    transcript = Transcript([*HISTORY, said("d")])
    mark_given(transcript, HISTORY, [])
    assert transcript.done() == [said("d")]
    assert transcript.final_text() == "d"


def test_an_agent_that_only_echoes_what_it_was_given_has_no_answer() -> None:
    transcript = Transcript([*HISTORY])
    mark_given(transcript, HISTORY, [])
    assert transcript.done() == []
    assert transcript.final_text() is None


def test_a_system_prompt_of_ours_that_the_agent_left_out_does_not_end_the_prefix() -> None:
    assert marked([*HISTORY, said("d")], [SystemMessage("s"), *HISTORY]) == ([0, 1, 2, 3, 4], [])


def test_a_conversation_in_other_words_goes_by_its_order_with_a_note() -> None:
    told: list[Message] = [UserMessage("A!"), called("refund"), result(), said("B!"), UserMessage("C!"), said("d")]
    given, notes = marked(told, HISTORY)
    assert given == [0, 1, 2, 3, 4]
    assert [note.code for note in notes] == [GIVEN_BY_ORDER]


def test_a_call_that_was_not_given_is_the_agents_wherever_it_stands() -> None:
    told: list[Message] = [UserMessage("A!"), called("delete"), result(), said("B!"), UserMessage("C!"), said("d")]
    assert marked(told, HISTORY)[0] == [0, 3, 4]


def test_a_call_that_was_given_once_is_the_agents_the_second_time() -> None:
    told: list[Message] = [UserMessage("A!"), called("refund"), result(), called("refund", "2"), UserMessage("C!")]
    assert marked(told, HISTORY)[0] == [0, 1, 2, 4]


def test_only_new_messages_that_begin_with_a_call_of_the_history_are_all_the_agents() -> None:
    given: list[Message] = [called("refund"), result(), UserMessage("again")]
    assert marked([called("refund"), result(), said("d")], given) == ([], [])


def test_a_conversation_without_its_beginning_is_known_by_the_ids_of_its_calls() -> None:
    assert marked([*HISTORY[1:], said("d")], HISTORY) == ([0, 1, 2, 3], [])


def test_a_call_under_a_new_id_after_the_instruction_is_the_agents() -> None:
    told: list[Message] = [
        UserMessage("c"),
        called("refund", "2"),
        result("2"),
        UserMessage("keep going"),
        UserMessage("more"),
        said("d"),
    ]
    transcript = Transcript(told)
    notes: list[Note] = []
    mark_given(transcript, HISTORY, notes)
    assert called("refund", "2") in transcript.done() or any(note.serious for note in notes)
    assert 1 not in transcript.given


def test_a_call_that_was_told_apart_by_order_alone_is_a_serious_guess() -> None:
    told: list[Message] = [
        UserMessage("A!"),
        called("refund", "9"),
        result("9"),
        said("B!"),
        UserMessage("C!"),
        said("d"),
    ]
    given, notes = marked(told, HISTORY)
    assert given == [0, 1, 2, 3, 4]
    assert [note.weight for note in notes] == ["serious"]


REPEATED: list[Message] = [UserMessage("a"), called("refund"), result(), said("b"), UserMessage("a")]
"""A conversation whose instruction is the request that it began with."""
WITHOUT_ID = "seatrial_call_1_0"


@pytest.mark.parametrize("last", [said("b"), said("c"), called("pay", "3")])
def test_the_agents_own_turn_is_its_own_when_the_instruction_repeats_an_earlier_request(last: Message) -> None:
    told: list[Message] = [UserMessage("a"), called("refund", "2"), result("2"), last]
    assert marked(told, REPEATED) == ([0], [])


def test_a_repeated_request_without_calls_leaves_the_agent_its_answer() -> None:
    assert marked([UserMessage("a"), said("b")], [UserMessage("a"), said("b"), UserMessage("a")]) == ([0], [])


def test_a_whole_conversation_with_a_repeated_request_is_given_whatever_the_ids() -> None:
    for call_id in ("1", "2", WITHOUT_ID):
        told: list[Message] = [UserMessage("a"), called("refund", call_id), result(call_id), said("b")]
        told += [UserMessage("a"), said("d")]
        assert marked(told, REPEATED) == ([0, 1, 2, 3, 4], [])


def test_the_ids_of_given_calls_tell_that_a_conversation_without_the_repeated_instruction_is_the_given_one() -> None:
    assert marked([*REPEATED[:4], called("pay", "2"), said("d")], REPEATED) == ([0, 1, 2, 3], [])


def test_a_call_without_an_id_behind_a_repeated_request_is_a_serious_guess() -> None:
    told: list[Message] = [UserMessage("a"), called("refund", WITHOUT_ID), result(WITHOUT_ID), said("done again")]
    given, notes = marked(told, REPEATED)
    assert given == [0, 1, 2]
    assert [(note.code, note.weight) for note in notes] == [(GIVEN_OR_REPEATED, "serious")]


def test_the_end_of_a_conversation_with_a_repeated_request_is_known_by_the_ids_of_its_calls() -> None:
    assert marked([*REPEATED, said("d")], [UserMessage("z"), said("y"), *REPEATED]) == ([0, 1, 2, 3, 4], [])


def test_a_conversation_that_begins_with_the_result_of_a_given_call_is_known_by_its_id() -> None:
    assert marked([*HISTORY[2:], said("d")], HISTORY) == ([0, 1, 2], [])
    other = [result("9"), *HISTORY[3:], said("d")]
    assert marked(other, HISTORY)[0] == []


def test_a_turn_before_any_user_message_is_the_agents_when_none_was_given() -> None:
    # An agent that writes its calls into its text returns its own turns, and results in the user's name.
    returned: list[Message] = [said("Action: delete"), UserMessage("Observation: deleted"), said("done")]
    transcript = Transcript(returned)
    mark_given(transcript, [UserMessage("Delete it.")], [])
    assert returned[0] in transcript.done()
