from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from seatrial.events import types as t
from seatrial.formats.chat.calls import PlacedFacts
from seatrial.formats.chat.reader import messages_from_objects
from seatrial.formats.reading import TraceEvent
from seatrial.trajectory import Step, steps_from_events, steps_from_objects, steps_from_trace, steps_from_transcript
from seatrial.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    Note,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
)
from seatrial.transcript.arguments import unparsed_arguments


def openai_call(name: str = "search", arguments: Any = '{"q": 1}', call_id: Any = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **more}


def tool(content: Any, call_id: Any = "c1", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def only(messages: list[Any]) -> Step:
    steps, _ = steps_from_objects(messages)
    assert len(steps) == 1
    return steps[0]


# From decoded messages


@pytest.mark.parametrize(
    "call",
    [
        openai_call(),
        openai_call(arguments={"q": 1}),
        {"id": "c1", "name": "search", "arguments": {"q": 1}},
        {"id": "c1", "name": "search", "arguments": '{"q":1}'},
        {"id": "c1", "tool": "search", "input": {"q": 1}},
        {"id": "c1", "tool": "search", "input": '{"q": 1}'},
        {"id": "c1", "function": {"name": "search", "arguments": '{"q": 1}'}},
    ],
)
def test_every_shape_of_a_call_gives_the_same_step(call: dict[str, Any]) -> None:
    assert only([assistant(call), tool("found")]) == Step(0, "search", {"q": 1}, "c1", "messages", "ok", "found")


def test_anthropic_blocks_give_the_same_step_too() -> None:
    messages = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "search", "input": {"q": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "found"}]},
    ]
    assert only(messages) == Step(0, "search", {"q": 1}, "c1", "messages", "ok", "found")


def test_an_output_inside_the_call_is_its_result() -> None:
    assert only([assistant({"tool": "a", "output": {"n": 1}})]).result == {"n": 1}
    assert only([assistant({"tool": "a", "output": "text"})]).result == "text"
    assert only([assistant({"tool": "a", "output": None})]).result is None
    assert only([assistant({"tool": "a"})]).result is UNSET


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({}, {}), (None, None), ("", {}), ("  ", {}), ([1], [1]), ("5", 5), ("null", None), (UNSET, {})],
)
def test_absent_and_blank_arguments_are_none_at_all_and_null_stays_null(arguments: Any, expected: Any) -> None:
    call = {"name": "a"} if arguments is UNSET else {"name": "a", "arguments": arguments}
    assert only([assistant(call)]).arguments == expected


def test_arguments_that_are_not_json_are_kept_as_text_with_a_note() -> None:
    steps, notes = steps_from_objects([assistant(openai_call(arguments='{"q": '))])
    assert (steps[0].arguments, steps[0].arguments_text) == (None, '{"q": ')
    assert [note.code for note in notes] == ["arguments_not_json"]


def test_calls_are_taken_in_order_whatever_the_role() -> None:
    messages = [
        {"role": "user", "content": "go", "tool_calls": [openai_call("a")]},
        assistant(openai_call("b", call_id="c2"), openai_call("c", call_id="c3")),
        tool("3", "c3"),
        tool("2", "c2"),
        {"role": "planner", "tool_calls": [{"tool": "d"}]},
    ]
    steps, _ = steps_from_objects(messages)
    assert [(step.index, step.name, step.result) for step in steps] == [
        (0, "a", UNSET),
        (1, "b", "2"),
        (2, "c", "3"),
        (3, "d", UNSET),
    ]


def test_results_without_an_id_are_paired_by_order_with_a_note() -> None:
    messages = [
        assistant({"name": "a"}, {"name": "b"}),
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": "2"},
    ]
    steps, notes = steps_from_objects(messages)
    assert [(step.id, step.result) for step in steps] == [(None, "1"), (None, "2")]
    assert [note.code for note in notes].count("tool_result_paired_by_order") == 2


def test_a_call_without_a_name_and_a_message_without_a_role_are_dropped_with_a_note_and_the_rest_stays() -> None:
    messages = [
        assistant({"id": "x"}, openai_call()),
        {"content": "?", "tool_calls": [openai_call("lost")]},
        tool("ok"),
    ]
    steps, notes = steps_from_objects(messages)
    assert [step.name for step in steps] == ["search"]
    assert [(note.code, note.pointer) for note in notes] == [
        ("tool_call_dropped_no_name", "/0/tool_calls/0"),
        ("message_dropped_no_role", "/1"),
    ]


def test_the_timestamp_of_a_call_counts_before_that_of_its_message() -> None:
    messages = [assistant({"tool": "a"}, {"tool": "b", "timestamp": "2026-01-01T00:00:09Z"}, timestamp=5000)]
    steps, _ = steps_from_objects(messages)
    assert [step.started_at for step in steps] == [5000, "2026-01-01T00:00:09Z"]


def test_times_and_status_beside_a_call_are_kept_as_given() -> None:
    call = {"tool": "a", "startTime": 10, "endTime": 30.5, "status": "timeout", "error": "too slow"}
    step = only([assistant(call)])
    assert (step.started_at, step.ended_at, step.duration_ms, step.status, step.error) == (
        10,
        30.5,
        20.5,
        "timeout",
        "too slow",
    )
    assert only([assistant({"tool": "a", "durationMs": 7})]).duration_ms == 7


def test_facts_of_the_wrong_type_are_ignored() -> None:
    call: dict[str, Any] = {
        "tool": "a",
        "timestamp": [],
        "end_time": None,
        "duration_ms": -1,
        "status": "great",
        "error": [],
    }
    assert only([assistant(call)]) == Step(0, "a", {}, None, "messages", "unknown")


def test_a_result_that_says_error_is_one() -> None:
    step = only([assistant(openai_call()), tool("boom", is_error=True)])
    assert (step.status, step.error, step.result) == ("error", "boom", "boom")


CALLS = st.one_of(
    st.builds(
        openai_call,
        st.sampled_from(["a", "b", "", 5]),
        st.sampled_from(
            ['{"q": 1}', "{}", "", "{", "[1]", {"q": 1}, None, '{"__clark_arg_parse_error":"x","__clark_arg_raw":"y"}']
        ),
        st.sampled_from(["c1", "c2", "", None, "seatrial_call_0"]),
    ),
    st.sampled_from(
        [
            {"name": "a"},
            {"tool": "b", "input": {"x": 1}, "output": "o"},
            {"function": {}},
            {"id": "c9", "type": "function", "function": {"name": "a", "arguments": "{}"}, "name": "z"},
            {"id": "c9", "index": 0, "type": "function", "function": {"name": "a", "arguments": "{}"}},
            {"id": "c9", "output": "o", "function": {"name": "a", "arguments": "{}"}},
            {"id": "c9", "timestamp": 5, "function": {"name": "a", "arguments": "{}"}},
            5,
            None,
        ]
    ),
)
CONTENTS = st.sampled_from(["", "text", None, [], [{"type": "text", "text": "t"}], {"n": 1}, 5])
MESSAGES = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["assistant", "assistant", "user", "system", "developer", "odd", None])},
        optional={
            "content": CONTENTS,
            "tool_calls": st.lists(CALLS, max_size=2) | st.sampled_from([None, 5]),
            "toolCalls": st.lists(CALLS, max_size=1),
            "timestamp": st.sampled_from([5, "x"]),
            "thinking": st.sampled_from([None, [], "t"]),
            "name": st.just("n"),
        },
    ),
    st.builds(lambda calls: assistant(*calls), st.lists(CALLS, min_size=1, max_size=3)),
    st.fixed_dictionaries(
        {"role": st.just("tool"), "content": CONTENTS},
        optional={
            "tool_call_id": st.sampled_from(["c1", "c2", "c9", "zz", "", None]),
            "is_error": st.booleans(),
            "name": st.just("n"),
            "tool_calls": st.just([openai_call()]),
        },
    ),
    st.sampled_from([None, 5, [], {}]),
)


USUAL = st.one_of(
    st.builds(
        lambda calls: assistant(*calls),
        st.lists(
            st.builds(openai_call, st.sampled_from("ab"), call_id=st.sampled_from(["c1", "c2", "c3", "c9"])), max_size=2
        ),
    ),
    st.builds(tool, st.sampled_from(["", "text", None]), st.sampled_from(["c1", "c2", "c3"])),
    st.just({"role": "user", "content": "go"}),
)


@settings(max_examples=400)
@given(st.lists(USUAL | MESSAGES, max_size=5) | st.lists(USUAL, max_size=7))
def test_steps_and_notes_of_objects_are_those_of_their_transcript(messages: list[Any]) -> None:
    notes: list[Note] = []
    facts: list[PlacedFacts] = []
    wanted = steps_from_transcript(messages_from_objects(messages, notes, facts=facts), facts)
    assert steps_from_objects(messages) == (wanted, notes)


# From a transcript


def said(*blocks: Any, **more: Any) -> AssistantMessage:
    return AssistantMessage(list(blocks), StopReason.TOOL_USE, **more)


def test_steps_of_a_transcript_have_times_tokens_and_results() -> None:
    messages: list[Message] = [
        said(ToolCall("1", "a", {}), ToolCall("2", "b", {}), timestamp=1000, usage=Usage(10, 5)),
        ToolResultMessage("2", "b", [TextBlock("x"), TextBlock("y")], timestamp=1500),
        ToolResultMessage("1", "a", [TextBlock("no")], is_error=True, timestamp=3000),
    ]
    first, second = steps_from_transcript(messages)
    assert (first.status, first.error, first.duration_ms, first.tokens) == ("error", "no", 2000, 15)
    assert (second.status, second.result, second.duration_ms, second.tokens) == ("ok", "xy", 500, None)


def test_an_id_that_a_reader_made_up_is_left_out() -> None:
    (step,) = steps_from_transcript([said(ToolCall("seatrial_call_0", "a", {}))])
    assert step.id is None


def test_sentinel_arguments_become_the_text_as_sent() -> None:
    (step,) = steps_from_transcript([said(ToolCall("1", "a", unparsed_arguments("bad", "{oops")))])
    assert (step.arguments, step.arguments_text) == (None, "{oops")


def test_a_result_with_details_is_the_details_and_one_with_images_is_its_blocks() -> None:
    call = said(ToolCall("1", "a", {}))
    (step,) = steps_from_transcript([call, ToolResultMessage("1", "a", [TextBlock("{}")], details={"n": 1})])
    assert step.result == {"n": 1}
    (step,) = steps_from_transcript([call, ToolResultMessage("1", "a", [TextBlock("t"), ImageBlock("u")])])
    assert step.result == [{"type": "text", "text": "t"}, {"type": "image", "source": "u"}]


def test_an_id_that_is_used_again_means_the_new_call() -> None:
    messages: list[Message] = [
        said(ToolCall("1", "a", {})),
        ToolResultMessage("1", "a", [TextBlock("first")]),
        said(ToolCall("1", "b", {})),
        ToolResultMessage("1", "b", [TextBlock("second")]),
        ToolResultMessage("7", "x", [TextBlock("of nothing")]),
    ]
    assert [step.result for step in steps_from_transcript(messages)] == ["first", "second"]


def test_calls_of_one_turn_that_share_an_id_get_their_results_in_order() -> None:
    messages: list[Message] = [
        said(ToolCall("1", "a", {"n": 1}), ToolCall("1", "a", {"n": 2})),
        ToolResultMessage("1", "a", [TextBlock("first")]),
        ToolResultMessage("1", "a", [TextBlock("second")]),
    ]
    assert [step.result for step in steps_from_transcript(messages)] == ["first", "second"]


# From a trace


def test_a_trace_pairs_calls_and_results_by_id() -> None:
    steps, notes = steps_from_trace(
        [
            TraceEvent("model_step"),
            TraceEvent("tool_call", id="1", name="a", input={"q": 1}, timestamp="2026-01-01T00:00:00Z"),
            TraceEvent("tool_call", id="2", name="b", input='{"q": 2}'),
            TraceEvent("tool_result", id="2", output={"n": 1}),
            TraceEvent("tool_result", id="1", text="done", timestamp="2026-01-01T00:00:01Z"),
            TraceEvent("message", text="bye"),
        ]
    )
    assert notes == []
    assert steps == [
        Step(
            0,
            "a",
            {"q": 1},
            "1",
            "trace",
            "ok",
            "done",
            started_at="2026-01-01T00:00:00Z",
            ended_at="2026-01-01T00:00:01Z",
            duration_ms=1000,
        ),
        Step(1, "b", {"q": 2}, "2", "trace", "ok", {"n": 1}),
    ]


@pytest.mark.parametrize("order", ["ccrr", "crcr"])
def test_calls_of_a_trace_that_share_an_id_get_their_results_in_order(order: str) -> None:
    results = iter(["first", "second"])
    trace = [
        TraceEvent("tool_call", id="1", name="a")
        if kind == "c"
        else TraceEvent("tool_result", id="1", output=next(results))
        for kind in order
    ]
    assert [step.result for step in steps_from_trace(trace)[0]] == ["first", "second"]


def test_a_result_of_a_trace_under_the_id_of_another_tools_call_is_a_serious_note() -> None:
    call = TraceEvent("tool_call", id="1", name="find")
    for name, expected in (("find", []), (None, []), ("refund", ["tool_result_of_another_tool"])):
        _, notes = steps_from_trace([call, TraceEvent("tool_result", id="1", name=name, output="ok")])
        assert [note.code for note in notes if note.serious] == expected


def test_results_of_a_trace_that_share_an_id_go_to_the_calls_of_their_tools() -> None:
    calls = [TraceEvent("tool_call", id="1", name=name) for name in ("find", "pay")]
    results = [TraceEvent("tool_result", id="1", name=name, output=f"{name} gave") for name in ("pay", "find")]
    steps, notes = steps_from_trace([*calls, *results])
    assert [step.result for step in steps] == ["find gave", "pay gave"]
    assert notes == []


def test_results_of_a_trace_without_ids_go_to_the_oldest_open_call_of_their_name_with_a_note() -> None:
    steps, notes = steps_from_trace(
        [
            TraceEvent("tool_call", name="a"),
            TraceEvent("tool_call", name="b"),
            TraceEvent("tool_call", name="b", output="inside"),
            TraceEvent("tool_result", name="b", output=1),
            TraceEvent("tool_result", output=2),
            TraceEvent("tool_result", output=3),
            TraceEvent("tool_result", id="nope", output=4),
        ]
    )
    assert [step.result for step in steps] == [2, 1, "inside"]
    assert [(note.code, note.pointer) for note in notes] == [
        ("tool_result_paired_by_order", "/3"),
        ("tool_result_paired_by_order", "/4"),
        ("tool_result_unpaired", "/5"),
        ("tool_result_unpaired", "/6"),
    ]


def test_an_error_event_that_names_a_call_makes_it_an_error() -> None:
    steps, notes = steps_from_trace(
        [
            TraceEvent("tool_call", id="1", name="a"),
            TraceEvent("error", id="1", text="boom"),
            TraceEvent("error", id="9", text="elsewhere"),
            TraceEvent("error", text="nowhere"),
        ]
    )
    assert (steps[0].status, steps[0].error) == ("error", "boom")
    assert [(note.code, note.pointer, note.weight) for note in notes] == [("tool_result_unpaired", "/2", "look")]


def test_a_trace_call_without_a_name_is_dropped_and_bad_arguments_are_kept_each_with_a_note() -> None:
    steps, notes = steps_from_trace([TraceEvent("tool_call"), TraceEvent("tool_call", name="a", input="{")])
    assert [(step.name, step.arguments, step.arguments_text) for step in steps] == [("a", None, "{")]
    assert [(note.code, note.pointer) for note in notes] == [
        ("tool_call_dropped_no_name", "/0"),
        ("arguments_not_json", "/1"),
    ]


def test_metadata_of_a_trace_event_says_who_when_and_how() -> None:
    steps, _ = steps_from_trace(
        [
            TraceEvent("tool_call", id="1", name="a", metadata={"actor": "planner", "parent": "0", "duration_ms": 5}),
            TraceEvent("tool_call", id="2", name="b", metadata={"actor": 5, "status": "cancelled"}),
            TraceEvent("tool_result", id="1", output="x", metadata={"is_error": True}),
            TraceEvent("tool_result", id="2", output="x"),
        ]
    )
    assert [(step.actor, step.parent, step.duration_ms, step.status) for step in steps] == [
        ("planner", "0", 5, "error"),
        (None, None, None, "cancelled"),
    ]


def test_a_long_trace_without_ids_takes_linear_time() -> None:
    events = [TraceEvent("tool_call", name="a") for _ in range(20_000)]
    events += [TraceEvent("tool_result", name="b", output=1) for _ in range(20_000)]
    events += [TraceEvent("tool_result", output=1) for _ in range(20_000)]
    steps, notes = steps_from_trace(events)
    assert all(step.result == 1 for step in steps)
    assert len(notes) == 40_000


# From events


def test_events_give_steps_with_times_agents_and_parents() -> None:
    steps = steps_from_events(
        [
            t.ToolCallStart(tool_call_id="1", tool_call_name="delegate", timestamp=1000),
            t.ToolCallArgs(tool_call_id="1", delta='{"to":'),
            t.SubagentStarted(subagent_run_id="s", name="helper", parent_tool_call_id="1"),
            t.ToolCallStart(
                tool_call_id="2", tool_call_name="read", subagent_run_id="s", created_at="2026-01-01T00:00:00Z"
            ),
            t.ToolCallEnd(tool_call_id="2"),
            t.ToolCallArgs(tool_call_id="1", delta='"helper"}'),
            t.ToolCallResult(message_id="m", tool_call_id="2", content="text", created_at="2026-01-01T00:00:00.250Z"),
            t.ToolCallResult(
                message_id="n",
                tool_call_id="1",
                content=[{"type": "text", "text": "x"}],
                timestamp=3000,
                status="failed",
            ),
            t.ToolCallArgs(tool_call_id="9", delta="lost"),
            t.ToolCallResult(message_id="o", tool_call_id="9", content="lost"),
        ]
    )
    assert steps == [
        Step(
            0,
            "delegate",
            {"to": "helper"},
            "1",
            "events",
            "error",
            "x",
            error="x",
            started_at=1000,
            ended_at=3000,
            duration_ms=2000,
        ),
        Step(
            1,
            "read",
            {},
            "2",
            "events",
            "ok",
            "text",
            started_at="2026-01-01T00:00:00Z",
            ended_at="2026-01-01T00:00:00.250Z",
            duration_ms=250,
            actor="helper",
            parent="1",
        ),
    ]


def test_chunks_are_expanded() -> None:
    steps = steps_from_events(
        [
            t.ToolCallChunk(tool_call_id="1", tool_call_name="a", delta='{"q"'),
            t.ToolCallChunk(delta=": 1}"),
            t.ToolCallChunk(tool_call_id="2", tool_call_name="b", delta="{oops"),
        ]
    )
    assert [(step.name, step.arguments, step.arguments_text) for step in steps] == [
        ("a", {"q": 1}, None),
        ("b", None, "{oops"),
    ]


def test_a_call_that_is_started_again_is_one_step_under_its_new_name() -> None:
    steps = steps_from_events(
        [
            t.ToolCallStart(tool_call_id="1", tool_call_name="a"),
            t.ToolCallArgs(tool_call_id="1", delta="{"),
            t.ToolCallStart(tool_call_id="1", tool_call_name="b"),
            t.ToolCallArgs(tool_call_id="1", delta="}"),
            t.ToolCallResult(message_id="m", tool_call_id="1", content="", status="cancelled"),
        ]
    )
    assert [(step.name, step.arguments, step.status) for step in steps] == [("b", {}, "cancelled")]
