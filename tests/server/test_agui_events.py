"""Events held to AG-UI 1.0."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from strategies.events import events

from seatrial.events import encode_event
from seatrial.events import types as t
from seatrial.events.patch import Patcher
from seatrial.server.agui_view import conformant, is_void


def written(event: t.Event) -> Any:
    return msgspec.json.decode(encode_event(conformant(event)))


@given(events())
def test_what_only_the_native_view_has_is_left_out(event: t.Event) -> None:
    native = {"eventId", "createdAt", "artifactId", "status", "threadId"}
    if isinstance(event, t.RunStarted | t.RunFinished):
        native.discard("threadId")
    assert not native & written(event).keys()


@given(events())
def test_a_bare_event_stays_as_it_is(event: t.Event) -> None:
    once = written(event)
    assert written(event) == once


def test_run_started_comes_without_the_input() -> None:
    started = t.RunStarted(thread_id="t", run_id="r", protocol_version="1.0", input={"messages": []}, event_id="e")
    assert written(started) == {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}


def test_nulls_are_left_out_where_agui_has_none() -> None:
    assert written(t.RunFinished(thread_id="t", run_id="r", result=None)).keys() == {"type", "threadId", "runId"}
    assert written(t.SubagentFinished(subagent_run_id="s", result=None)).keys() == {"type", "subagentRunId"}
    assert written(t.TextMessageEnd(message_id="m", raw_event=None)).keys() == {"type", "messageId"}
    assert written(t.StateSnapshot(snapshot=None)) == {"type": "STATE_SNAPSHOT", "snapshot": None}


def test_a_response_schema_is_an_object_or_absent() -> None:
    interrupts = [t.Interrupt("a", "confirmation", response_schema=schema) for schema in ({"type": "string"}, True)]
    event = t.RunFinished(thread_id="t", run_id="r", outcome=t.InterruptOutcome(interrupts))
    first, second = written(event)["outcome"]["interrupts"]
    assert first["responseSchema"] == {"type": "string"}
    assert "responseSchema" not in second


PARTS: list[dict[str, Any]] = [
    {"type": "text", "text": "a"},
    {"type": "text", "text": 1},
    {"type": "text"},
    {"type": "image", "source": {"type": "url", "value": "u"}},
    {"type": "image", "source": {"type": "data", "value": "u"}},
    {"type": "video", "source": {"type": "torrent", "value": "u"}},
    {"type": "document", "source": {"type": "file", "value": "f", "provider": "p"}, "metadata": None},
    {"type": "smell", "source": {"type": "url", "value": "u"}},
    {},
]
GOOD = [PARTS[0], PARTS[3]]


def test_parts_that_are_none_are_left_out_of_tool_results_and_messages() -> None:
    result = t.ToolCallResult(message_id="m", tool_call_id="c", content=list(PARTS))
    assert written(result)["content"] == GOOD
    snapshot = t.MessagesSnapshot(messages=[{"id": "u", "role": "user", "content": list(PARTS)}])
    assert written(snapshot)["messages"] == [{"id": "u", "role": "user", "content": GOOD}]


def test_old_binary_parts_become_media_parts() -> None:
    part = {"type": "binary", "mimeType": "image/png", "url": "u"}
    result = t.ToolCallResult(message_id="m", tool_call_id="c", content=[part])
    source = {"type": "url", "value": "u", "mimeType": "image/png"}
    assert written(result)["content"] == [{"type": "image", "source": source}]


def test_messages_of_a_snapshot_are_mended_or_left_out() -> None:
    snapshot = t.MessagesSnapshot(
        messages=[
            {"id": "a", "role": "assistant", "content": None, "subagentRunId": None, "mood": "good"},
            {"id": "b", "role": "narrator", "content": "x"},
            {"id": "c", "role": "tool", "toolCallId": "x", "content": "y", "name": "z"},
        ]
    )
    assert written(snapshot)["messages"] == [
        {"id": "a", "role": "assistant"},
        {"id": "c", "role": "tool", "toolCallId": "x", "content": "y"},
    ]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "replace", "path": "/~2", "value": 1},
        {"op": "copy", "path": "/a"},
        {"op": "grow", "path": "/a", "value": 1},
        {"op": "test", "path": 1, "value": 1},
        {"path": "/a"},
        {},
    ],
)
def test_a_patch_that_is_none_is_void_and_would_have_changed_nothing(operation: dict[str, Any]) -> None:
    assert is_void(t.StateDelta(delta=[{"op": "add", "path": "/b", "value": 1}, operation]))
    assert is_void(t.ActivityDelta(message_id="m", activity_type="PLAN", patch=[operation]))
    _, problem = Patcher().apply({"a": {"a": 1}}, [operation])
    assert problem is not None


def test_a_patch_is_not_void_because_it_does_not_apply_or_says_more_than_it_need() -> None:
    assert not is_void(t.StateDelta(delta=[{"op": "remove", "path": "/nowhere", "value": 1, "why": "?"}]))
    assert not is_void(t.StateDelta(delta=[{"op": "move", "path": "/a~1b", "from": ""}]))
    assert not is_void(t.TextMessageEnd(message_id="m"))
