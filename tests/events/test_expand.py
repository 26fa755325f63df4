"""Chunks into start, content and end (B6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import content, end, events, legal_runs, start
from strategies.messages import texts

from seatrial.events import Expander, OrderViolation, expand, fold, to_transcript
from seatrial.events import types as t
from seatrial.events.types import Event

Text, Tool, Reason = t.TextMessageChunk, t.ToolCallChunk, t.ReasoningMessageChunk


def expanded(*chunks: Event) -> list[Event]:
    result, violation = expand(chunks)
    assert violation is None, violation
    return result


def violation_of(*chunks: Event) -> tuple[int, str]:
    _, violation = expand(chunks)
    assert violation is not None
    assert violation.message
    return violation.index, violation.code


def text_start(item: str, **fields: Any) -> Event:
    return t.TextMessageStart(message_id=item, role="assistant", **fields)


def text(item: str, delta: str, **fields: Any) -> Event:
    return t.TextMessageContent(message_id=item, delta=delta, **fields)


def text_end(item: str, **fields: Any) -> Event:
    return t.TextMessageEnd(message_id=item, **fields)


RUN_END = t.RunFinished(thread_id="t", run_id="r")


def test_chunks_with_the_same_or_no_id_are_one_message() -> None:
    chunks = (Text(message_id="m", delta="a"), Text(delta="b"), Text(message_id="m", delta=""), RUN_END)
    assert expanded(*chunks) == [
        text_start("m"), text("m", "a"), text("m", "b"), text("m", ""), text_end("m"), RUN_END,
    ]  # fmt: skip


def test_another_id_ends_the_message_before_it() -> None:
    assert expanded(Text(message_id="m", delta="a"), Text(message_id="n", delta="b")) == [
        text_start("m"), text("m", "a"), text_end("m"), text_start("n"), text("n", "b"),
    ]  # fmt: skip


def test_another_kind_of_chunk_ends_it_too() -> None:
    call = Tool(tool_call_id="c", tool_call_name="f", parent_message_id="m", delta="{")
    assert expanded(Text(message_id="m", delta="a"), call, Reason(message_id="r", delta="hm"), RUN_END) == [
        text_start("m"),
        text("m", "a"),
        text_end("m"),
        t.ToolCallStart(tool_call_id="c", tool_call_name="f", parent_message_id="m"),
        t.ToolCallArgs(tool_call_id="c", delta="{"),
        t.ToolCallEnd(tool_call_id="c"),
        t.ReasoningMessageStart(message_id="r"),
        t.ReasoningMessageContent(message_id="r", delta="hm"),
        t.ReasoningMessageEnd(message_id="r"),
        RUN_END,
    ]


def test_the_start_takes_role_and_name_and_the_content_the_raw_event() -> None:
    chunk = Text(message_id="m", role="user", name="ann", raw_event={"x": 1}, timestamp=7)
    assert expanded(chunk) == [
        t.TextMessageStart(message_id="m", role="user", name="ann", timestamp=7),
        text("m", "", raw_event={"x": 1}, timestamp=7),
    ]


def test_metadata_goes_to_start_and_content_and_never_to_the_end() -> None:
    first, last = {"a": 1}, {"usage": 2}
    chunks = (Text(message_id="m", metadata=first), Text(delta="x", metadata=first), Text(metadata=last), RUN_END)
    assert expanded(*chunks) == [
        text_start("m", metadata=first),
        text("m", "x", metadata=first),
        text("m", "", metadata=last),
        text_end("m"),
        RUN_END,
    ]


def test_a_chunk_that_says_nothing_gives_nothing() -> None:
    assert expanded(Text(message_id="m"), Text(), Text(message_id="m", role="assistant")) == [text_start("m")]


@pytest.mark.parametrize(
    "event",
    [
        t.TextMessageStart(message_id="n"),
        t.ToolCallResult(message_id="n", tool_call_id="c", content=""),
        t.StateDelta(delta=[]),
        t.CustomEvent(name="n", value=1),
        t.StepStarted(step_name="s"),
        t.ReasoningStart(message_id="n"),
        t.RunStarted(thread_id="t", run_id="r"),
        t.RunError(message="m"),
        t.MessagesSnapshot(messages=[]),
    ],
)
def test_most_events_end_the_stream_of_their_lane(event: Event) -> None:
    assert expanded(Text(message_id="m"), event) == [text_start("m"), text_end("m"), event]


@pytest.mark.parametrize(
    "event",
    [
        t.RawEvent(event=1),
        t.ActivitySnapshot(message_id="n", activity_type="PLAN", content={}),
        t.ActivityDelta(message_id="n", activity_type="PLAN", patch=[]),
        t.ReasoningEncryptedValue(subtype="message", entity_id="m", encrypted_value="x"),
        t.SubagentStarted(subagent_run_id="s", name="n"),
    ],
)
def test_some_events_end_nothing(event: Event) -> None:
    chunks = (Text(message_id="m"), event, Text(delta="x"))
    assert expanded(*chunks) == [text_start("m"), event, text("m", "x")]


def test_each_agent_has_a_lane_of_its_own() -> None:
    chunks = (
        Text(message_id="m", delta="a"),
        Text(message_id="n", delta="b", subagent_run_id="s"),
        Text(delta="c"),
        Text(delta="d", subagent_run_id="s"),
        t.StepStarted(step_name="x"),
        Text(message_id="n", delta="e"),
        t.SubagentFinished(subagent_run_id="s"),
    )
    s = {"subagent_run_id": "s"}
    assert expanded(*chunks) == [
        text_start("m"),
        text("m", "a"),
        text_start("n", **s),
        text("n", "b", **s),
        text("m", "c"),
        text("n", "d", **s),
        text_end("m"),
        t.StepStarted(step_name="x"),
        text("n", "e", **s),
        text_end("n", **s),
        t.SubagentFinished(subagent_run_id="s"),
    ]


def test_the_end_of_a_run_ends_every_lane_in_the_order_in_which_they_opened() -> None:
    chunks = (Text(message_id="m", subagent_run_id="s"), Text(message_id="n"), t.MessagesSnapshot(messages=[]))
    assert expanded(*chunks)[2:4] == [text_end("m", subagent_run_id="s"), text_end("n")]


def test_the_end_of_a_subagent_ends_its_lane_only() -> None:
    chunks = (Text(message_id="m", subagent_run_id="s"), Text(message_id="n"), t.SubagentFinished(subagent_run_id="s"))
    assert expanded(*chunks)[2:] == [text_end("m", subagent_run_id="s"), t.SubagentFinished(subagent_run_id="s")]


def test_a_chunk_that_tells_nothing_continues_the_only_stream_of_its_kind() -> None:
    tool = Tool(tool_call_id="c", tool_call_name="f")
    chunks = (Text(message_id="m", subagent_run_id="s"), tool, Text(delta="x"))
    assert expanded(*chunks)[-1] == text("m", "x", subagent_run_id="s")


def test_a_chunk_that_could_continue_two_streams_is_ambiguous() -> None:
    chunks = (Text(message_id="m", subagent_run_id="s"), Text(message_id="n", subagent_run_id="u"), Text(delta="x"))
    assert violation_of(*chunks) == (2, "chunk_ambiguous")


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ((Text(delta="x"),), (0, "chunk_without_id")),
        ((Reason(delta="x"),), (0, "chunk_without_id")),
        ((Tool(tool_call_name="f"),), (0, "chunk_without_id")),
        ((Tool(tool_call_id="c"),), (0, "chunk_without_name")),
        ((Text(message_id="m"), RUN_END, Text(delta="x")), (2, "chunk_without_id")),
        ((Text(message_id="m"), Text(delta="x", subagent_run_id="s")), (1, "chunk_without_id")),
        ((Text(message_id="m"), Text(message_id="m", role="user")), (1, "chunk_changed")),
        ((Text(message_id="m", role="user"), Text(role="assistant")), (1, "chunk_changed")),
        ((Text(message_id="m"), Text(name="n")), (1, "chunk_changed")),
        ((Tool(tool_call_id="c", tool_call_name="f"), Tool(tool_call_name="g")), (1, "chunk_changed")),
        ((Tool(tool_call_id="c", tool_call_name="f"), Tool(parent_message_id="m")), (1, "chunk_changed")),
        ((Text(message_id="m"), Text(message_id="m", subagent_run_id="s")), (1, "attribution")),
        ((Text(message_id="m", subagent_run_id="u"), Text(message_id="m", subagent_run_id="s")), (1, "attribution")),
    ],
)
def test_what_cannot_be_expanded_is_a_violation(chunks: tuple[Event, ...], expected: tuple[int, str]) -> None:
    assert violation_of(*chunks) == expected


def test_a_chunk_that_is_refused_changes_nothing() -> None:
    expander = Expander()
    expander.feed(Text(message_id="m"), 0)
    for refused in (Tool(tool_call_id="c"), Text(message_id="m", role="user"), Reason(delta="x")):
        assert isinstance(expander.feed(refused, 1), OrderViolation)
    assert expander.feed(Text(delta="x"), 2) == [text("m", "x")]


def test_the_end_of_the_stream_ends_nothing() -> None:
    assert expanded(Text(message_id="m", delta="a"))[-1] == text("m", "a")


@given(st.lists(events(), max_size=8))
def test_what_is_expanded_has_no_chunks_and_is_expanded_to_itself(stream: list[Event]) -> None:
    result, _ = expand(stream)
    assert not any(isinstance(event, Text | Tool | Reason) for event in result)
    assert expand(result) == (result, None)


@given(legal_runs())
def test_events_without_chunks_are_left_alone(run: list[Event]) -> None:
    assert expand(run) == (run, None)


CHUNKS: dict[str, Any] = {
    "text": lambda item, delta: Text(message_id=item, delta=delta),
    "tool": lambda item, delta: Tool(tool_call_id=item, tool_call_name="f", delta=delta),
    "reasoning": lambda item, delta: Reason(message_id=item, delta=delta),
}


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(CHUNKS)), st.lists(texts(max_size=4), min_size=1, max_size=4)), max_size=5
    )
)
def test_a_run_in_chunks_folds_to_the_same_as_the_run_in_whole_events(streams: list[tuple[str, list[str]]]) -> None:
    chunked: list[Event] = [t.RunStarted(thread_id="t", run_id="r")]
    whole: list[Event] = [t.RunStarted(thread_id="t", run_id="r")]
    for number, (kind, deltas) in enumerate(streams):
        item = f"i{number}"
        chunked += [CHUNKS[kind](item, delta) for delta in deltas]
        whole += [start(kind, item), *[content(kind, item, delta) for delta in deltas], end(kind, item)]
    chunked.append(RUN_END)
    whole.append(RUN_END)
    one, other = fold(expanded(*chunked)), fold(whole)
    assert one.messages == other.messages
    assert to_transcript(one) == to_transcript(other)
