"""Unique tool-call ids (transcript.md 1.5)."""

from __future__ import annotations

import copy
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from strategies.growth import growth
from strategies.messages import conversations

from seatrial.transcript import (
    AssistantMessage,
    Message,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UniqueToolCallIds,
    UserMessage,
    normalize_tool_call_ids,
)


def turn(*ids: str) -> AssistantMessage:
    return AssistantMessage([TextBlock("x"), *[ToolCall(id, "shell", {}) for id in ids]], StopReason.TOOL_USE)


def result(id: str) -> ToolResultMessage:
    return ToolResultMessage(id, "shell", [TextBlock("ok")])


def ids(messages: list[Message]) -> list[str]:
    """All ids in order: those of calls, and those of results with an arrow before them."""
    found = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            found.extend([call.id for call in message.tool_calls()])
        elif isinstance(message, ToolResultMessage):
            found.append(f">{message.tool_call_id}")
    return found


def normalized(*messages: Message) -> list[str]:
    return ids(normalize_tool_call_ids(messages).messages)


def test_a_repeated_id_is_renamed_together_with_its_result() -> None:
    history: list[Message] = [UserMessage("1"), turn("a"), result("a"), UserMessage("2"), turn("a"), result("a")]
    unique = normalize_tool_call_ids(history)
    assert unique.renamed_count == 1
    assert ids(unique.messages) == ["a", ">a", "clark_agent_call_1", ">clark_agent_call_1"]


def test_results_in_one_turn_pair_by_position_per_id() -> None:
    assert normalized(turn("a", "b", "a"), result("b"), result("a"), result("a")) == [
        *("a", "b", "clark_agent_call_1"),
        *(">b", ">a", ">clark_agent_call_1"),
    ]


def test_new_ids_skip_every_id_in_the_input_also_later_ones_and_those_of_results() -> None:
    assert normalized(
        turn("a"), turn("a", "clark_agent_call_1"), result("clark_agent_call_1"), result("clark_agent_call_2")
    ) == ["a", "clark_agent_call_3", "clark_agent_call_1", ">clark_agent_call_1", ">clark_agent_call_2"]


def test_only_results_directly_after_the_turn_are_renamed() -> None:
    assert normalized(turn("a"), result("a"), turn("a"), UserMessage("wait"), result("a")) == [
        *("a", ">a", "clark_agent_call_1"),
        ">a",
    ]


def test_a_result_too_many_keeps_its_id() -> None:
    assert normalized(turn("a"), turn("a"), result("a"), result("a"), result("z")) == [
        *("a", "clark_agent_call_1", ">clark_agent_call_1"),
        *(">a", ">z"),
    ]


@st.composite
def histories_with_repeats(draw: st.DrawFn) -> list[Message]:
    messages = draw(conversations(max_turns=4))
    for message in messages:
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls():
                call.id = draw(st.sampled_from(["a", "b", "clark_agent_call_1"]))
        elif isinstance(message, ToolResultMessage):
            message.tool_call_id = draw(st.sampled_from(["a", "b", "clark_agent_call_1"]))
    return messages


@given(histories_with_repeats())
def test_ids_come_out_unique_the_input_is_untouched_and_once_is_enough(messages: list[Message]) -> None:
    before = copy.deepcopy(messages)
    unique = normalize_tool_call_ids(messages)
    assert messages == before
    calls = [id for id in ids(unique.messages) if not id.startswith(">")]
    assert len(set(calls)) == len(calls)
    again = normalize_tool_call_ids(unique.messages)
    assert again.renamed_count == 0
    assert [message for message in again.messages if isinstance(message, AssistantMessage)] == [
        message for message in unique.messages if isinstance(message, AssistantMessage)
    ]


def test_messages_without_repeats_are_not_even_copied() -> None:
    history: list[Message] = [turn("a"), result("a"), turn("b")]
    unique = normalize_tool_call_ids(history)
    assert unique.renamed_count == 0
    assert all(new is old for new, old in zip(unique.messages, history, strict=True))


def test_the_transform_has_a_name_and_gives_the_messages() -> None:
    transform = UniqueToolCallIds()
    assert transform.name == "unique_tool_call_ids"
    assert ids(transform([turn("a"), turn("a")])) == ["a", "clark_agent_call_1"]


def test_the_cost_is_linear() -> None:
    def normalizing(count: int) -> Callable[[], object]:
        history: list[Message] = [turn("a", "a"), result("a"), result("a")] * count
        return lambda: normalize_tool_call_ids(history)

    assert growth(normalizing, 2_000, 20_000, below=40) < 40
