"""A transcript as events and back: exactly the same, legal, and sensible to other clients."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.messages import message_lists, transcripts

from seatrial.events import encode_event, expand, read_event, replay, to_transcript, unfold, verify
from seatrial.events import types as t
from seatrial.events.types import Event
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    ReasoningDetailsBlock,
    RunIdentity,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    Usage,
    UserMessage,
)
from seatrial.transcript.arguments import unparsed_arguments


def unfolded(transcript: Transcript) -> list[Event]:
    """The events, through their bytes."""
    read = []
    for event in unfold(transcript, thread_id="t", run_id="r"):
        again, notes = read_event(encode_event(event))
        assert (again, notes) == (event, [])
        read.append(again)
    return read


def there_and_back(transcript: Transcript) -> Transcript:
    stream = unfolded(transcript)
    assert expand(stream) == (stream, None)
    assert verify(stream) is None
    return to_transcript(replay(stream).folded)


def client_view(*messages: Message) -> Any:
    """What any AG-UI client holds, without metadata and ids."""
    folded = replay(unfolded(Transcript(messages=list(messages)))).folded
    view = msgspec.json.decode(msgspec.json.encode(folded.messages))
    for message in view:
        del message["id"]
        message.pop("metadata", None)
    return view


def of_type(stream: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in stream if isinstance(event, kind)]


@given(transcripts())
def test_a_transcript_comes_back_exactly(transcript: Transcript) -> None:
    before = msgspec.json.encode(transcript)
    assert there_and_back(transcript) == transcript
    assert msgspec.json.encode(transcript) == before


@given(message_lists())
def test_messages_in_any_order_come_back_exactly(messages: list[Message]) -> None:
    assert there_and_back(Transcript(messages=messages)) == Transcript(messages=messages)


@given(st.lists(st.sampled_from(["a", "b", "", "x" * 300]), min_size=1, max_size=4), st.randoms())
def test_call_ids_that_repeat_are_empty_or_too_long_come_back(ids: list[str], random: Any) -> None:
    messages: list[Message] = []
    for number, call_id in enumerate(ids):
        messages.append(AssistantMessage([ToolCall(call_id, f"f{number}", number)], StopReason.TOOL_USE))
        messages.append(ToolResultMessage(call_id, f"f{number}", [TextBlock(str(number))]))
    random.shuffle(messages)
    transcript = Transcript(messages=messages)
    assert there_and_back(transcript) == transcript
    for start in of_type(unfolded(transcript), t.ToolCallStart):
        assert 1 <= len(start.tool_call_id) <= 256


CASES: dict[str, list[Message]] = {
    "several text blocks": [AssistantMessage([TextBlock("a"), TextBlock("b")], StopReason.END_TURN)],
    "an empty text block": [AssistantMessage([TextBlock("")], StopReason.END_TURN)],
    "blocks in no usual order": [
        AssistantMessage(
            [TextBlock("a"), ToolCall("c", "f", {}), ReasoningBlock("r"), ThinkingBlock("t"), TextBlock("b")],
            StopReason.OTHER,
        )
    ],
    "a thought that holds a closing tag": [
        AssistantMessage([ThinkingBlock("</thought>x"), TextBlock("<thought>")], StopReason.END_TURN)
    ],
    "details as sent": [
        AssistantMessage(
            [ReasoningDetailsBlock([msgspec.Raw(b'{"b":1.50,"a":1e5}'), msgspec.Raw(b"18446744073709551616")])],
            StopReason.END_TURN,
        )
    ],
    "an empty reasoning text in front of details": [
        AssistantMessage([ReasoningBlock(""), ReasoningDetailsBlock([]), ReasoningBlock("")], StopReason.END_TURN)
    ],
    "a user with images": [
        UserMessage([TextBlock("a"), ImageBlock("data:image/png;base64,AA", alt="x"), TextBlock("")])
    ],
    "a user with no blocks": [UserMessage([])],
    "times past what an event can tell": [SystemMessage("s", 2**64 - 1), UserMessage("u", 2**53)],
    "a custom message with any payload": [
        CustomMessage("k", None, 3),
        CustomMessage("k", {"value": 1}),
        CustomMessage("", [1]),
    ],
    "a result with everything": [
        ToolResultMessage(
            "c",
            "f",
            [ImageBlock("https://x/y", "image/png", "alt"), TextBlock("t"), ImageBlock("data:;base64,AA")],
            is_error=True,
            narration="did it",
            details={"a": None},
            timestamp=5,
        )
    ],
    "a result after the user spoke": [
        AssistantMessage([ToolCall("c", "f", {})], StopReason.TOOL_USE),
        UserMessage("wait"),
        ToolResultMessage("c", "f", [TextBlock("late")]),
        AssistantMessage([TextBlock("ok")], StopReason.END_TURN),
        ToolResultMessage("c", "other", []),
    ],
    "a result before its call": [
        ToolResultMessage("c", "f", [TextBlock("early")]),
        AssistantMessage([ToolCall("c", "f", {})], StopReason.TOOL_USE),
    ],
    "arguments that were not JSON": [
        AssistantMessage(
            [
                ToolCall("a", "f", unparsed_arguments("any error", '{"q":')),
                ToolCall("b", "f", {**unparsed_arguments("e", "x"), "more": 1}),
                ToolCall("c", "f", ""),
            ],
            StopReason.TOOL_USE,
        )
    ],
    "an error in the middle": [
        AssistantMessage([], StopReason.ERROR, error_message="e"),
        AssistantMessage([TextBlock("a")], StopReason.ERROR),
    ],
    "an error at the end": [AssistantMessage([], StopReason.ERROR, error_message="")],
    "aborted at the end": [AssistantMessage([TextBlock("a")], StopReason.ABORTED, timestamp=0)],
    "aborted with an error message": [AssistantMessage([], StopReason.ABORTED, error_message="e")],
    "usage of one message": [AssistantMessage([], StopReason.END_TURN, usage=Usage(-1, 2**62))],
}


@pytest.mark.parametrize("messages", CASES.values(), ids=CASES.keys())
def test_what_is_hard_to_carry_comes_back(messages: list[Message]) -> None:
    assert there_and_back(Transcript(messages=messages)) == Transcript(messages=messages)


@pytest.mark.parametrize(
    "transcript",
    [
        Transcript(),
        Transcript(answer=""),
        Transcript(answer="a", messages=[AssistantMessage([], StopReason.ERROR, error_message="e")]),
        Transcript(answer="a", messages=[AssistantMessage([], StopReason.ABORTED)]),
        Transcript(usage=Usage()),
        Transcript(usage=Usage(1, 2, 3, 4), cost_usd=0.0, duration_ms=1.5),
        Transcript(usage=Usage(-1)),
        Transcript(usage=Usage(2**60)),
        Transcript(identity=RunIdentity("r", conversation_id="t")),
        Transcript(identity=RunIdentity("other", "parent", 2, None, 5)),
        Transcript(metadata={"result": 1, "error_code": None}),
    ],
)
def test_what_is_said_of_the_run_comes_back(transcript: Transcript) -> None:
    assert there_and_back(transcript) == transcript


def test_the_events_of_a_plain_conversation_are_plain() -> None:
    transcript = Transcript(
        messages=[
            UserMessage("hi", timestamp=5),
            AssistantMessage([TextBlock("look"), ToolCall("c", "f", {"q": 1})], StopReason.TOOL_USE),
            ToolResultMessage("c", "f", [TextBlock("found")]),
            AssistantMessage([TextBlock("done")], StopReason.END_TURN),
        ],
        identity=RunIdentity("r", conversation_id="t"),
        answer="done",
    )
    stream = unfold(transcript, thread_id="t", run_id="r")
    assert all(event.metadata is msgspec.UNSET for event in stream)
    assert stream[0] == t.RunStarted(thread_id="t", run_id="r", protocol_version="1.0")
    assert stream[1] == t.TextMessageStart(message_id="r-m0", role="user", timestamp=5)
    assert stream[-1] == t.RunFinished(thread_id="t", run_id="r", result="done")


def test_other_clients_see_a_sensible_conversation() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"q":1}'}}
    assert client_view(
        SystemMessage("s"),
        UserMessage([TextBlock("look at "), ImageBlock("https://x/y"), TextBlock("this")]),
        AssistantMessage(
            [ReasoningBlock("hm"), TextBlock("I "), TextBlock("see"), ToolCall("c", "f", {"q": 1})],
            StopReason.TOOL_USE,
        ),
        ToolResultMessage("c", "f", [TextBlock("a"), ImageBlock("data:image/png;base64,AA")]),
        CustomMessage("note", {"x": 1}),
    ) == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "look at this"},
        {"role": "reasoning", "content": "hm"},
        {"role": "assistant", "content": "I see", "toolCalls": [call]},
        {
            "role": "tool",
            "toolCallId": "c",
            "content": [
                {"type": "text", "text": "a"},
                {
                    "type": "image",
                    "source": {"type": "data", "value": "AA", "mimeType": "image/png"},
                    "metadata": {"seatrial": {"media_type": None}},
                },
            ],
        },
        {"role": "activity", "activityType": "note", "content": {"x": 1}},
    ]  # fmt: skip


def test_thinking_is_in_the_text_and_never_in_a_reasoning_message() -> None:
    message = AssistantMessage([ThinkingBlock("plan"), TextBlock("hi"), ReasoningBlock("native")], StopReason.END_TURN)
    stream = unfolded(Transcript(messages=[message]))
    assert [event.delta for event in of_type(stream, t.TextMessageContent)] == ["<thought>plan</thought>hi"]
    assert [event.delta for event in of_type(stream, t.ReasoningMessageContent)] == ["native"]


def test_a_thought_in_native_reasoning_stays_there() -> None:
    message = AssistantMessage([ReasoningBlock("<thought>x</thought>")], StopReason.END_TURN)
    stream = unfolded(Transcript(messages=[message]))
    assert of_type(stream, t.TextMessageContent) == []
    assert there_and_back(Transcript(messages=[message])).messages == [message]


def test_opaque_details_travel_as_the_value_that_they_hold() -> None:
    opaque = msgspec.Raw(b'{"type":"reasoning.encrypted","format":"unknown","data":"sig"}')
    message = AssistantMessage([ReasoningBlock("hm"), ReasoningDetailsBlock([opaque])], StopReason.END_TURN)
    stream = unfolded(Transcript(messages=[message]))
    assert [event.encrypted_value for event in of_type(stream, t.ReasoningEncryptedValue)] == ["sig"]
    assert len(of_type(stream, t.ReasoningMessageStart)) == 1


def test_how_the_last_message_ended_is_how_the_run_ends() -> None:
    def ends(stop_reason: StopReason, error: str | None) -> Any:
        message = AssistantMessage([], stop_reason, error_message=error)
        return unfold(Transcript(messages=[message]), thread_id="t", run_id="r")[-1]

    assert ends(StopReason.ERROR, "boom").message == "boom"
    assert isinstance(ends(StopReason.ABORTED, None).outcome, t.CancelledOutcome)
    assert ends(StopReason.END_TURN, None).outcome is msgspec.UNSET


def test_text_of_the_model_that_was_not_json_is_sent_as_it_was() -> None:
    text = '{"q":'
    parsed = there_and_back(
        Transcript(
            messages=[AssistantMessage([ToolCall("c", "f", unparsed_arguments("?", text))], StopReason.TOOL_USE)]
        )
    ).messages[0]
    assert isinstance(parsed, AssistantMessage)
    arguments = parsed.tool_calls()[0].arguments
    same = Transcript(messages=[AssistantMessage([ToolCall("c", "f", arguments)], StopReason.TOOL_USE)])
    assert there_and_back(same) == same


def test_a_long_run_id_does_not_make_the_ids_too_long() -> None:
    transcript = Transcript(messages=[AssistantMessage([ToolCall("", "f", {})], StopReason.TOOL_USE)])
    for event in unfold(transcript, thread_id="t", run_id="r" * 256):
        for field in ("message_id", "tool_call_id"):
            assert 1 <= len(getattr(event, field, "x")) <= 256
