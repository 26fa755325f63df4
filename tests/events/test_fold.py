"""What events add up to (B7)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import events
from strategies.growth import growth

from seatrial.events import Folded, Folding, fold
from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.types import Event

STARTED = t.RunStarted(thread_id="t", run_id="r")
FINISHED = t.RunFinished(thread_id="t", run_id="r")


def messages_of(folded: Folded) -> Any:
    return msgspec.json.decode(msgspec.json.encode(folded.messages))


def folded(*stream: Event, messages: Any = (), state: Any = msgspec.UNSET) -> Any:
    """The messages, as JSON."""
    start = agui.read_messages(list(messages), (), [])
    return messages_of(fold(stream, messages=start, state=state))


def codes(result: Folded) -> list[str]:
    return [note.code for note in result.notes]


def user(item: str = "u", content: Any = "hi", **fields: Any) -> dict[str, Any]:
    return {"id": item, "role": "user", "content": content, **fields}


def assistant(item: str, *calls: str, **fields: Any) -> dict[str, Any]:
    made = [{"id": call, "type": "function", "function": {"name": "f", "arguments": ""}} for call in calls]
    return {"id": item, "role": "assistant", **({"toolCalls": made} if calls else {}), **fields}


def tool(item: str, call: str, content: Any = "ok") -> dict[str, Any]:
    return {"id": item, "role": "tool", "toolCallId": call, "content": content}


def activity(item: str, content: Any = None, kind: str = "PLAN") -> dict[str, Any]:
    return {"id": item, "role": "activity", "activityType": kind, "content": content or {"n": 1}}


def reasoning(item: str, content: str = "hm") -> dict[str, Any]:
    return {"id": item, "role": "reasoning", "content": content}


def start(item: str, **fields: Any) -> Event:
    return t.TextMessageStart(message_id=item, **fields)


def text(item: str, delta: str, **fields: Any) -> Event:
    return t.TextMessageContent(message_id=item, delta=delta, **fields)


def call_start(item: str, name: str = "f", **fields: Any) -> Event:
    return t.ToolCallStart(tool_call_id=item, tool_call_name=name, **fields)


def args(item: str, delta: str, **fields: Any) -> Event:
    return t.ToolCallArgs(tool_call_id=item, delta=delta, **fields)


def result(item: str, call: str, content: Any = "ok", **fields: Any) -> Event:
    return t.ToolCallResult(message_id=item, tool_call_id=call, content=content, **fields)


def snapshot(*messages: dict[str, Any], **fields: Any) -> Event:
    return t.MessagesSnapshot(messages=list(messages), **fields)


# Text and reasoning


def test_a_text_message_is_made_by_its_start_and_grows_by_its_content() -> None:
    assert folded(start("m"), text("m", "a"), text("m", ""), text("m", "b"), t.TextMessageEnd(message_id="m")) == [
        assistant("m", content="ab")
    ]
    assert folded(start("m", role="user", name="ann", subagent_run_id="s")) == [
        {"id": "m", "role": "user", "content": "", "name": "ann", "subagentRunId": "s"}
    ]


def test_a_start_of_an_id_that_exists_appends_to_that_message() -> None:
    assert folded(start("u"), text("u", "!"), messages=[user()]) == [user(content="hi!")]
    assert folded(start("m"), text("m", "a"), start("m"), text("m", "b")) == [assistant("m", content="ab")]
    assert folded(start("m"), messages=[assistant("m", "c")]) == [assistant("m", "c")]
    assert folded(text("m", "x"), messages=[user("m", [{"type": "text", "text": "a"}])]) == [user("m", "x")]


def test_text_under_the_id_of_an_activity_is_dropped() -> None:
    before = agui.read_messages([activity("a")], (), [])
    result = fold([start("a"), text("a", "x"), t.TextMessageEnd(message_id="a")], messages=before)
    assert messages_of(result) == [activity("a")]
    assert codes(result) == ["text_into_activity"] * 3


def test_content_for_nobody_is_ignored_with_a_note() -> None:
    result = fold([text("x", "a"), t.TextMessageEnd(message_id="x"), args("c", "{"), t.ToolCallEnd(tool_call_id="c")])
    assert messages_of(result) == []
    assert codes(result) == ["unknown_message"] * 2 + ["unknown_tool_call"] * 2
    assert [note.pointer for note in result.notes] == ["/0", "/1", "/2", "/3"]


def test_reasoning_is_a_message_of_its_own_and_a_span_is_none() -> None:
    stream: list[Event] = [
        t.ReasoningStart(message_id="s"),
        t.ReasoningMessageStart(message_id="r"),
        t.ReasoningMessageContent(message_id="r", delta="hm"),
        t.ReasoningMessageEnd(message_id="r"),
        t.ReasoningEnd(message_id="s"),
        t.ReasoningEncryptedValue(subtype="message", entity_id="r", encrypted_value="enc"),
    ]
    assert folded(*stream) == [{**reasoning("r"), "encryptedValue": "enc"}]


# Tool calls


@pytest.mark.parametrize(
    ("before", "parent", "after"),
    [
        ([], msgspec.UNSET, [assistant("c", "c")]),
        ([], "", [assistant("c", "c")]),
        ([], "m", [assistant("m", "c")]),
        ([assistant("m", content="x")], "m", [assistant("m", "c", content="x")]),
        ([assistant("m", "b")], "m", [assistant("m", "b", "c")]),
        ([user("m")], "m", [user("m"), assistant("c", "c")]),
    ],
)
def test_a_tool_call_goes_to_its_parent_or_gets_a_message(before: Any, parent: Any, after: Any) -> None:
    assert folded(call_start("c", parent_message_id=parent), messages=before) == after


def test_arguments_are_joined() -> None:
    (message,) = folded(call_start("c"), args("c", '{"q"'), args("c", ":1}"), t.ToolCallEnd(tool_call_id="c"))
    assert message["toolCalls"][0]["function"] == {"name": "f", "arguments": '{"q":1}'}


def test_a_call_that_exists_is_not_made_twice_but_may_get_another_name() -> None:
    stream = [call_start("c"), args("c", "{}"), call_start("c", "g", parent_message_id="other")]
    result = fold(stream)
    (message,) = messages_of(result)
    assert message["toolCalls"] == [{"id": "c", "type": "function", "function": {"name": "g", "arguments": "{}"}}]
    assert codes(result) == ["tool_call_renamed"]


def test_a_result_stands_behind_the_call_and_the_results_that_are_there() -> None:
    before = [assistant("m", "c1", "c2"), user("u1"), assistant("n", "c3"), user("u2")]
    stream = [result("r3", "c3"), result("r1", "c1"), result("r2", "c2"), result("r0", "nobody"), result("r1", "c1")]
    assert [message["id"] for message in folded(*stream, messages=before)] == [
        "m", "r1", "r2", "r1", "u1", "n", "r3", "u2", "r0",
    ]  # fmt: skip


def test_the_first_message_of_an_id_is_the_one_that_is_meant() -> None:
    before = [assistant("m", "c"), user("x", "end")]
    assert folded(text("x", "!"), result("x", "c"), text("x", "?"), messages=before) == [
        assistant("m", "c"),
        tool("x", "c", "ok?"),
        user("x", "end!"),
    ]


def test_tool_results_in_the_input_of_a_run_are_results_like_others() -> None:
    history = [assistant("m", "c"), tool("x", "other")]
    started = t.RunStarted(thread_id="t", run_id="r", input={"messages": history})
    assert folded(started, result("r", "c"), start("n")) == [*history, tool("r", "c"), assistant("n", content="")]


def test_results_before_any_message_stay_in_front() -> None:
    assert folded(result("r", "c"), start("m"), result("q", "d")) == [
        tool("r", "c"),
        assistant("m", content=""),
        tool("q", "d"),
    ]


def test_parts_of_a_result_are_kept_and_old_binary_parts_upgraded() -> None:
    parts = [{"type": "binary", "mimeType": "image/png", "data": "AA", "filename": "f"}, {"type": "text", "text": "x"}]
    folded_result = fold([result("r", "c", parts)])
    assert messages_of(folded_result) == [
        tool(
            "r",
            "c",
            [
                {
                    "type": "image",
                    "source": {"type": "data", "value": "AA", "mimeType": "image/png"},
                    "metadata": {"filename": "f"},
                },
                {"type": "text", "text": "x"},
            ],
        )
    ]
    assert [(note.code, note.pointer) for note in folded_result.notes] == [("binary_part_upgraded", "/0/content/0")]


# State


def test_a_state_snapshot_replaces_the_state() -> None:
    values: list[Any] = [{"a": 1}, [], None, 0, False, ""]
    for value in values:
        assert fold([t.StateSnapshot(snapshot=value)], state={"old": 1}).state == value
    assert fold([]).state == {}
    assert fold([], state=[1]).state == [1]


def test_a_state_delta_applies_as_a_whole_or_is_noted_and_the_run_goes_on() -> None:
    good = {"op": "add", "path": "/a", "value": 1}
    bad = {"op": "replace", "path": "/missing", "value": 1}
    result = fold([t.StateDelta(delta=[good]), t.StateDelta(delta=[{**good, "value": 2}, bad]), start("m")])
    assert result.state == {"a": 1}
    assert codes(result) == ["patch_failed"]
    assert result.notes[0].pointer == "/1"
    assert len(result.messages) == 1


def test_deltas_do_not_change_the_events_that_brought_the_state() -> None:
    stream: list[Event] = [
        t.StateSnapshot(snapshot={"list": []}),
        t.StateDelta(delta=[{"op": "add", "path": "/list/-", "value": {"x": []}}]),
        t.StateDelta(delta=[{"op": "add", "path": "/list/0/x/-", "value": 1}]),
        t.ActivitySnapshot(message_id="a", activity_type="A", content={"n": []}),
        t.ActivityDelta(message_id="a", activity_type="A", patch=[{"op": "add", "path": "/n/-", "value": 1}]),
    ]
    before = copy.deepcopy(stream)
    state: Any = {"own": []}
    assert fold(stream, state=state).state == {"list": [{"x": [1]}]}
    assert stream == before
    fold([t.StateDelta(delta=[{"op": "add", "path": "/own/-", "value": 1}])], state=state)
    assert state == {"own": []}


# Snapshots of messages


def test_a_snapshot_keeps_the_order_replaces_drops_and_appends() -> None:
    before = [user("u", "old"), assistant("gone"), assistant("m", content="old")]
    after = [assistant("m", content="new"), user("new"), user("u", "new")]
    assert folded(snapshot(*after), messages=before) == [user("u", "new"), assistant("m", content="new"), user("new")]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([user("u")], ["r", "a", "b", "u"]),
        ([reasoning("r2")], ["a", "b", "r2"]),
        ([activity("a2")], ["r", "a2"]),
        ([reasoning("r2"), activity("b", {"n": 2})], ["b", "r2"]),
    ],
)
def test_reasoning_and_activities_stay_unless_the_snapshot_has_some_of_its_own(given: Any, kept: list[str]) -> None:
    before = [reasoning("r"), user("gone"), activity("a"), activity("b", kind="OTHER")]
    assert [message["id"] for message in folded(snapshot(*given), messages=before)] == kept


@pytest.mark.parametrize(
    ("declared", "kept"),
    [
        ({"authoritativeActivityTypes": None}, []),
        ({"authoritativeActivityTypes": ["PLAN"]}, ["b"]),
        ({"authoritativeActivityTypes": []}, ["a", "b"]),
        ({"authoritativeActivityTypes": [1]}, ["a", "b"]),
        ({}, ["a", "b"]),
        (5, ["a", "b"]),
    ],
)
def test_a_snapshot_can_declare_which_activities_it_speaks_for(declared: Any, kept: list[str]) -> None:
    before = [activity("a"), activity("b", kind="OTHER")]
    stream = snapshot(metadata={"@ag-ui/client": declared})
    assert [message["id"] for message in folded(stream, messages=before)] == kept


def test_after_a_snapshot_messages_grow_on() -> None:
    stream = [
        start("m"),
        text("m", "lost"),
        call_start("c", parent_message_id="m"),
        snapshot(assistant("m", "c", content="kept ")),
        text("m", "on"),
        args("c", "{}"),
        result("r", "c"),
    ]
    message, answer = folded(*stream)
    assert (message["content"], message["toolCalls"][0]["function"]["arguments"]) == ("kept on", "{}")
    assert answer["id"] == "r"


def test_a_message_in_two_places_is_one_until_an_activity_takes_the_first() -> None:
    twice = [user("a"), user("a")]
    stream = [snapshot(assistant("a", "c", content="x")), text("a", "y"), args("c", "{}")]
    one, other = folded(*stream, messages=twice)
    assert one == other
    assert one["content"] == "xy"
    replaced = t.ActivitySnapshot(message_id="a", activity_type="PLAN", content={"n": 2}, metadata={"k": 1})
    shared = [snapshot(activity("a")), replaced]
    assert folded(*shared, messages=twice) == [{**activity("a", {"n": 2}), "metadata": {"k": 1}}, activity("a")]
    patched = t.ActivityDelta(message_id="a", activity_type="NEW", patch=[{"op": "add", "path": "/n", "value": 2}])
    assert folded(snapshot(activity("a")), patched, messages=twice) == [activity("a", {"n": 2}, "NEW"), activity("a")]
    moved = [snapshot(assistant("a", "c")), replaced, result("r", "c")]
    assert [message["role"] for message in folded(*moved, messages=twice)] == ["activity", "assistant", "tool"]


def test_messages_of_a_snapshot_that_cannot_be_read_are_noted() -> None:
    odd: list[Any] = [user(), {"role": "alien", "id": "x"}, 5, {"id": "n", "role": "assistant", "content": None}]
    result = fold([t.MessagesSnapshot(messages=odd)])
    assert messages_of(result) == [user(), assistant("n")]
    assert [(note.code, note.pointer) for note in result.notes] == [
        ("agui_message_dropped", "/0/messages/1"),
        ("agui_message_dropped", "/0/messages/2"),
        ("agui_message_repaired", "/0/messages/3"),
    ]


# Activities


def test_an_activity_is_made_replaced_kept_or_takes_the_place_of_another_message() -> None:
    def event(content: Any, **fields: Any) -> Event:
        return t.ActivitySnapshot(message_id="a", activity_type="NEW", content=content, **fields)

    new = {"n": 2}
    assert folded(event(new)) == [activity("a", new, "NEW")]
    assert folded(event(new), messages=[activity("a")]) == [activity("a", new, "NEW")]
    assert folded(event(new, replace=False), messages=[activity("a")]) == [activity("a")]
    assert folded(event(new), messages=[user("a"), user("u")]) == [activity("a", new, "NEW"), user("u")]
    assert folded(event(new, replace=False), messages=[user("a")]) == [user("a")]
    before = [assistant("m", "c"), tool("a", "c"), tool("r", "c")]
    assert folded(event(new), result("q", "c"), messages=before) == [
        assistant("m", "c"),
        tool("q", "c"),
        activity("a", new, "NEW"),
        tool("r", "c"),
    ]


def test_a_replaced_activity_changes_hands_and_keeps_its_metadata() -> None:
    made = t.ActivitySnapshot(message_id="a", activity_type="A", content={}, subagent_run_id="s", metadata={"k": 1})
    replaced = t.ActivitySnapshot(message_id="a", activity_type="A", content={}, metadata={"l": 2})
    assert folded(made, replaced) == [
        {"id": "a", "role": "activity", "activityType": "A", "content": {}, "metadata": {"k": 1, "l": 2}}
    ]


def test_a_patch_of_an_activity_applies_or_is_noted() -> None:
    def delta(*patch: Any, item: str = "a", **fields: Any) -> Event:
        return t.ActivityDelta(message_id=item, activity_type="NEW", patch=list(patch), **fields)

    good = {"op": "replace", "path": "/n", "value": 2}
    assert folded(delta(good), messages=[activity("a")]) == [activity("a", {"n": 2}, "NEW")]
    failed = fold(
        [delta({**good, "path": "/x"}, metadata={"k": 1}), delta(good, item="u"), delta(good, item="nobody")],
        messages=agui.read_messages([activity("a"), user("u")], (), []),
    )
    assert messages_of(failed) == [{**activity("a"), "metadata": {"k": 1}}, user("u")]
    assert codes(failed) == ["patch_failed", "not_an_activity", "unknown_message"]


# Metadata


def test_metadata_is_merged_by_key_into_what_the_event_builds() -> None:
    stream = [
        t.RunStarted(thread_id="t", run_id="r", metadata={"run": 1}),
        start("m", metadata={"a": 1, "b": {"x": 1}}),
        text("m", "x", metadata={"b": {"y": 2}}),
        t.TextMessageEnd(message_id="m", metadata={"c": None}),
        call_start("c", parent_message_id="m", metadata={"d": 1}),
        args("c", "", metadata={"d": 2}),
        t.ToolCallEnd(tool_call_id="c", metadata={"e": 3}),
        result("r", "c", metadata={"f": 4}),
        t.ReasoningEncryptedValue(subtype="message", entity_id="m", encrypted_value="v", metadata={"no": 1}),
        t.StateSnapshot(snapshot={}, metadata={"no": 1}),
        t.StepStarted(step_name="s", metadata={"no": 1}),
    ]
    before = copy.deepcopy(stream)
    message, answer = folded(*stream)
    assert message["metadata"] == {"a": 1, "b": {"y": 2}, "c": None}
    assert message["toolCalls"][0]["metadata"] == {"d": 2, "e": 3}
    assert answer["metadata"] == {"f": 4}
    assert stream == before


# The run


def test_the_input_of_a_run_adds_the_messages_that_are_not_there() -> None:
    started = t.RunStarted(thread_id="t", run_id="r", input={"messages": [user("u", "other"), user("v"), user("v")]})
    assert folded(started, messages=[user("u")]) == [user("u"), user("v")]


def test_pending_calls_are_those_that_the_run_names_or_has_no_result_for() -> None:
    calls = [STARTED, call_start("c1"), call_start("c2"), result("r", "c1"), call_start("c1")]

    def pending(*end: Event) -> list[str]:
        return fold([*calls, *end]).pending

    assert pending() == ["c2"]
    assert pending(FINISHED) == ["c2"]
    named = t.SuccessOutcome(pending_tool_call_ids=["x"])
    assert pending(t.RunFinished(thread_id="t", run_id="r", outcome=named)) == ["x"]
    unnamed = t.SuccessOutcome(pending_tool_call_ids=[])
    assert pending(t.RunFinished(thread_id="t", run_id="r", outcome=unnamed)) == ["c2"]
    assert pending(FINISHED, STARTED) == []


def test_a_call_whose_result_only_a_snapshot_brought_is_not_pending() -> None:
    called = t.ToolCallStart(tool_call_id="c", tool_call_name="f", parent_message_id="a")
    snapshot = t.MessagesSnapshot(messages=[assistant("a", "c"), tool("r", "c")])
    assert fold([STARTED, called, t.ToolCallEnd(tool_call_id="c"), snapshot, FINISHED]).pending == []


def test_interrupts_are_pending_until_the_next_run_ends() -> None:
    interrupt = t.Interrupt("i", "confirmation")
    asked = t.RunFinished(thread_id="t", run_id="r", outcome=t.InterruptOutcome([interrupt]))
    assert fold([STARTED, asked]).pending_interrupts == [interrupt]
    assert fold([STARTED, asked, STARTED]).pending_interrupts == [interrupt]
    assert fold([STARTED, asked, STARTED, FINISHED]).pending_interrupts == []


def test_a_newer_protocol_version_is_noted() -> None:
    for version in ("1.0", "0.9"):
        assert fold([t.RunStarted(thread_id="t", run_id="r", protocol_version=version)]).notes == []
    for version in ("1.1", "2.0", "one", "1", "1.0.0", ""):
        result = fold([t.RunStarted(thread_id="t", run_id="r", protocol_version=version)])
        assert [(note.code, note.pointer) for note in result.notes] == [
            ("protocol_version_unknown", "/0/protocolVersion")
        ]


def test_a_chunk_is_noted() -> None:
    assert codes(fold([t.TextMessageChunk(message_id="m", delta="x")])) == ["chunk_not_expanded"]


def test_an_encrypted_value_for_nobody_is_noted() -> None:
    value: dict[str, Any] = {"entity_id": "x", "encrypted_value": "v"}
    call = t.ReasoningEncryptedValue(subtype="tool-call", **value)
    message = t.ReasoningEncryptedValue(subtype="message", **value)
    assert codes(fold([call, message])) == ["unknown_tool_call", "unknown_message"]


# As a whole


@given(st.lists(events(), max_size=12))
def test_any_events_fold_and_are_left_as_they_were(stream: list[Event]) -> None:
    before = copy.deepcopy(stream)
    result = fold(stream)
    assert len(result.messages) == len(result.origins)
    assert stream == before
    msgspec.json.encode(result.messages)


@pytest.mark.parametrize(
    "event",
    [
        lambda number: t.ActivitySnapshot(message_id=f"m-{number}", activity_type="plan", content={}),
        lambda number: t.MessagesSnapshot(messages=[]),
    ],
)
def test_messages_are_not_arranged_anew_without_end(event: Callable[[int], Event]) -> None:
    folding = Folding(rearrange_limit=30)
    for number in range(10):
        folding.feed(t.ReasoningMessageStart(message_id=f"m-{number}"))
    for number in range(10):
        folding.feed(event(number))
    folded = folding.result()
    assert [(note.code, note.pointer) for note in folded.notes] == [
        ("rearranged_too_often", f"/{index}") for index in range(13, 20)
    ]
    assert len(folded.messages) == 10


def test_a_snapshot_that_brings_all_messages_costs_what_it_brings() -> None:
    folding = Folding(rearrange_limit=0)
    snapshot = t.MessagesSnapshot(
        messages=[{"id": f"m-{number}", "role": "user", "content": ""} for number in range(9)]
    )
    for _ in range(5):
        folding.feed(snapshot)
    assert folding.result().notes == []


def test_a_message_of_many_deltas_costs_linear_time() -> None:
    def folding(deltas: int) -> Callable[[], None]:
        stream: list[Event] = [start("m"), call_start("c")]
        stream += [text("m", "0123456789"), args("c", "0123456789")] * deltas

        def fold_all() -> None:
            assert fold(stream).messages[0].content == "0123456789" * deltas

        return fold_all

    # Quadratic cost would be a hundred times as much.
    assert growth(folding, 10_000, 100_000, below=40) < 40


def test_many_late_results_cost_linear_time() -> None:
    def folding(calls: int) -> Callable[[], None]:
        names = [f"c{n}" for n in range(calls)]
        stream: list[Event] = [start("m"), *[call_start(name, parent_message_id="m") for name in names]]
        stream += [start(f"later{n}") for n in range(calls)]
        stream += [result(f"r{n}", name) for n, name in enumerate(names)]

        def fold_all() -> None:
            assert [message.id for message in fold(stream).messages[1:3]] == ["r0", "r1"]

        return fold_all

    assert growth(folding, 2_000, 20_000, below=40) < 40
