"""Stored events as frames of the AG-UI view."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seatrial.events import SseFrame, SseParser, encode_event
from seatrial.events import types as t
from seatrial.events.codec import to_native
from seatrial.server.agui_stream import View
from seatrial.server.agui_view import Standing

STARTED = t.RunStarted(thread_id="t", run_id="r")
FINISHED = t.RunFinished(thread_id="t", run_id="r")


def parsed(frames: bytes) -> list[SseFrame]:
    return SseParser().feed(frames)


def shown(*log: t.Event, legal: bool = True) -> list[tuple[str | None, Any]]:
    """Id and event of each frame that a client is given from the start."""
    view = View("r", legal=legal)
    data = b"".join([view.frames(sequence, encode_event(event)) for sequence, event in enumerate(log)])
    return [(frame.id, msgspec.json.decode(frame.data)) for frame in parsed(data)]


def kinds(*log: t.Event, legal: bool = True) -> list[tuple[str | None, str]]:
    return [(cursor, event["type"]) for cursor, event in shown(*log, legal=legal)]


def test_every_stored_event_is_one_frame_with_its_cursor() -> None:
    assert shown(STARTED, t.CustomEvent(name="n", value=1), FINISHED) == [
        ("r:0", {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}),
        ("r:1", {"type": "CUSTOM", "name": "n", "value": 1}),
        ("r:2", {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}),
    ]


def test_the_cursor_is_one_line_of_ascii_whatever_the_run_is_called() -> None:
    assert View("a\nb:é", legal=True).frames(0, encode_event(STARTED)).startswith(b"id: a%0Ab:%C3%A9:0\ndata: {")


def test_a_delta_that_needs_no_change_is_sent_as_it_is_stored() -> None:
    view = View("r", legal=True)
    view.frames(0, encode_event(STARTED))
    view.frames(1, encode_event(t.TextMessageStart(message_id="m")))
    # No encoder of ours writes an escape there.
    stored = rb'{"type":"TEXT_MESSAGE_CONTENT","timestamp":5,"messageId":"m","delta":"\u0041\"b\\"}'
    assert view.frames(2, stored) == b"id: r:2\ndata: " + stored + b"\n\n"


@pytest.mark.parametrize(
    "stored",
    [
        b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a","colour":"blue"}',
        b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","timestamp":"noon","delta":"a"}',
        b'{"type":"TEXT_MESSAGE_CONTENT","delta":"a"}',
        b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","content":"a"}',
        b'{"type":"TEXT_MESSAGE_CONTENT","toolCallId":"m","delta":"a"}',
    ],
)
def test_what_a_client_would_refuse_or_warn_of_is_repaired_though_the_log_has_it_as_it_was_sent(stored: bytes) -> None:
    view = View("r", legal=True)
    view.frames(0, encode_event(STARTED))
    view.frames(1, encode_event(t.TextMessageStart(message_id="m")))
    sent = b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}'
    assert view.frames(2, stored) == b"id: r:2\ndata: " + sent + b"\n\n"


def test_an_event_of_an_unknown_type_is_not_sent() -> None:
    view = View("r", legal=True)
    view.frames(0, encode_event(STARTED))
    assert view.frames(1, b'{"type":"TOMORROW","x":1}') == b""


def test_of_the_frames_that_a_chunk_becomes_the_last_one_has_the_cursor() -> None:
    assert kinds(
        STARTED,
        t.TextMessageChunk(message_id="m", delta="a"),
        t.TextMessageChunk(delta="b"),
        t.TextMessageChunk(),
        t.ToolCallChunk(tool_call_id="c", tool_call_name="f"),
        FINISHED,
    ) == [
        ("r:0", "RUN_STARTED"),
        (None, "TEXT_MESSAGE_START"),
        ("r:1", "TEXT_MESSAGE_CONTENT"),
        ("r:2", "TEXT_MESSAGE_CONTENT"),
        (None, "TEXT_MESSAGE_END"),
        ("r:4", "TOOL_CALL_START"),
        (None, "TOOL_CALL_END"),
        ("r:5", "RUN_FINISHED"),
    ]


def test_a_delta_behind_a_chunk_ends_what_the_chunk_began() -> None:
    log: list[t.Event] = [
        STARTED,
        t.TextMessageStart(message_id="a"),
        t.TextMessageChunk(message_id="b", delta="x"),
        t.TextMessageContent(message_id="a", delta="y"),
    ]
    assert kinds(*log)[-2:] == [(None, "TEXT_MESSAGE_END"), ("r:3", "TEXT_MESSAGE_CONTENT")]


@pytest.mark.parametrize(
    "event",
    [
        t.SubagentStarted(subagent_run_id="s", name="n"),
        t.ActivityDelta(message_id="m", activity_type="PLAN", patch=[]),
    ],
)
def test_a_type_that_the_native_view_carries_goes_out_as_itself(event: t.Event) -> None:
    assert shown(STARTED, to_native(event))[1:] == [("r:1", msgspec.to_builtins(event))]


def test_what_only_the_native_view_has_is_left_out_of_deltas_too() -> None:
    log: list[t.Event] = [
        STARTED,
        t.TextMessageStart(message_id="m"),
        t.TextMessageContent(message_id="m", delta='"status"', event_id="e", created_at="now", thread_id="t"),
    ]
    assert shown(*log)[-1] == ("r:2", {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": '"status"'})


def test_what_a_client_would_refuse_is_not_shown_of_a_log_that_nobody_verified() -> None:
    assert kinds(
        t.TextMessageContent(message_id="m", delta="too early"),
        STARTED,
        t.TextMessageContent(message_id="m", delta="of nothing"),
        t.TextMessageChunk(delta="of nothing"),
        t.StateDelta(delta=[{"op": "grow"}]),
        t.RunError(message="an attempt"),
        t.TextMessageStart(message_id="m"),
        STARTED,
        STARTED,
        FINISHED,
        legal=False,
    ) == [("r:1", "RUN_STARTED"), ("r:5", "RUN_ERROR"), ("r:7", "RUN_STARTED"), ("r:9", "RUN_FINISHED")]


def test_a_log_without_a_terminal_event_is_not_shown_as_a_success() -> None:
    view = View("r", legal=False)
    view.frames(0, encode_event(STARTED))
    (frame,) = parsed(view.ending())
    assert frame.id is None
    assert msgspec.json.decode(frame.data)["type"] == "RUN_ERROR"
    view = View("r", legal=True)
    view.frames(0, encode_event(STARTED))
    view.frames(1, encode_event(FINISHED))
    assert view.ending() == b""


# What a client that came late cannot know


def late(*before: t.Event) -> View:
    standing = Standing()
    for event in before:
        standing.feed(encode_event(event))
    view = View("r", legal=True, standing=standing)
    view.prelude(standing.resuming("r", "t"))
    return view


def seen(view: View, event: t.Event) -> Any:
    (frame,) = parsed(view.frames(9, encode_event(event)))
    return msgspec.json.decode(frame.data)


def test_an_attribution_that_a_late_client_would_refuse_is_left_out() -> None:
    view = late(
        STARTED,
        t.SubagentStarted(subagent_run_id="s", name="n"),
        t.TextMessageStart(message_id="m", subagent_run_id="s"),
        t.TextMessageEnd(message_id="m"),
    )
    # It belongs to the subagent, which only those know who saw it start.
    view.frames(4, encode_event(t.TextMessageStart(message_id="m")))
    event = t.TextMessageContent(message_id="m", delta="x", subagent_run_id="s")
    assert seen(view, event) == {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}


CALLED: list[t.Event] = [
    STARTED,
    t.ToolCallStart(tool_call_id="a", tool_call_name="f"),
    t.ToolCallEnd(tool_call_id="a"),
]


def test_a_late_client_is_told_which_tool_calls_wait_for_a_result() -> None:
    view = late(*CALLED, t.ToolCallStart(tool_call_id="b", tool_call_name="f"))
    view.frames(4, encode_event(t.ToolCallEnd(tool_call_id="b")))
    for call in "cd":
        view.frames(5, encode_event(t.ToolCallChunk(tool_call_id=call, tool_call_name="f")))
    view.frames(6, encode_event(t.ToolCallResult(message_id="m", tool_call_id="c", content="")))
    frames = parsed(view.frames(9, encode_event(FINISHED)))
    outcome = {"type": "success", "pendingToolCallIds": ["a", "b", "d"]}
    assert msgspec.json.decode(frames[-1].data)["outcome"] == outcome


def test_a_list_of_waiting_calls_stands_where_the_agent_gave_one() -> None:
    named = t.RunFinished(thread_id="t", run_id="r", outcome=t.SuccessOutcome(pending_tool_call_ids=["z"]))
    assert seen(late(*CALLED), named)["outcome"]["pendingToolCallIds"] == ["z"]
    cancelled = t.RunFinished(thread_id="t", run_id="r", outcome=t.CancelledOutcome())
    assert seen(late(*CALLED), cancelled)["outcome"] == {"type": "cancelled"}


def test_nothing_is_named_when_no_call_waits_or_the_client_saw_all_of_them() -> None:
    answered = t.ToolCallResult(message_id="m", tool_call_id="a", content="")
    assert "outcome" not in seen(late(*CALLED, answered), FINISHED)
    view = late(*CALLED)
    view.frames(3, encode_event(answered))
    assert "outcome" not in seen(view, FINISHED)
    assert "outcome" not in shown(*CALLED, FINISHED)[-1][1]
