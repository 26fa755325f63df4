"""A stream's transcript, its steps and its events say the same: the same calls, and the same of them failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.events import EventReader, read_log, replay, to_transcript, unfold
from seatrial.events import types as t
from seatrial.formats.reading import TraceEvent
from seatrial.trajectory.sources import steps_from_events, steps_from_trace, steps_from_transcript
from seatrial.trajectory.step import FAILED, Step
from seatrial.transcript import AssistantMessage, Note, StopReason, ToolCall, ToolResultMessage, Transcript, UserMessage

LIVE = Path(__file__).parent.parent / "resources" / "agui-lang.sse"


def folded(events: list[t.Event], notes: list[Note] | None = None) -> Transcript:
    result = replay(events)
    if notes is not None:
        notes += result.notes
    return to_transcript(result.folded, notes)


def called(steps: list[Step]) -> list[tuple[Any, ...]]:
    return sorted(
        (
            step.id or "",
            step.name,
            str(step.arguments),
            step.arguments_text or "",
            step.status in FAILED,
        )
        for step in steps
    )


def agree(events: list[t.Event]) -> list[Step]:
    """The steps of a stream, which are the same whichever way they are taken out of it."""
    steps = steps_from_events(events)
    assert called(steps) == called(steps_from_transcript(folded(events).done()))
    return steps


def test_a_failed_result_that_only_a_snapshot_brought_counts() -> None:
    events = read_log(LIVE.read_bytes()).events
    (step,) = agree(events)
    assert (step.name, step.status) == ("find_order", "error")
    assert "db down" in str(step.result)
    transcript = folded(events)
    assert [type(message) for message in transcript.messages] == [
        UserMessage,
        AssistantMessage,
        ToolResultMessage,
        AssistantMessage,
    ], "in the order of the snapshot"
    (result,) = [message for message in transcript.messages if isinstance(message, ToolResultMessage)]
    assert result.is_error


def said(name: str, call_id: str, arguments: str = "{}", *, id: str = "") -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"id": id or f"m-{call_id}", "role": "assistant", "content": "so", "toolCalls": [call]}


GIVEN = [
    {"id": "u1", "role": "user", "content": "hello"},
    said("read", "g1", id="a1"),
    {"id": "r1", "role": "tool", "toolCallId": "g1", "content": "old", "error": "broken"},
    {"id": "a2", "role": "assistant", "content": "the old answer"},
    {"id": "u2", "role": "user", "content": "again"},
]


def run(*events: dict[str, Any], given: list[dict[str, Any]] = GIVEN) -> list[t.Event]:
    reader = EventReader()
    started = {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": {"messages": given}}
    finished = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
    return [reader.read_value(event) for event in (started, *events, finished)]


def test_what_a_run_was_given_is_none_of_its_steps_and_not_its_answer() -> None:
    events = run()
    assert agree(events) == []
    transcript = folded(events)
    assert transcript.given == [0, 1, 2, 3, 4]
    assert transcript.final_text() is None


def test_given_messages_in_a_snapshot_stay_given_and_new_calls_in_it_are_steps() -> None:
    events = run({"type": "MESSAGES_SNAPSHOT", "messages": [*GIVEN, said("write", "c1", '{"x":1}')]})
    (step,) = agree(events)
    assert (step.name, step.arguments) == ("write", {"x": 1})
    transcript = folded(events)
    assert transcript.given == [0, 1, 2, 3, 4]
    assert transcript.final_text() == "so"


def test_a_given_message_that_comes_back_with_a_new_call_is_split() -> None:
    grown = said("read", "g1", id="a1")
    grown["toolCalls"] = [*grown["toolCalls"], *said("write", "c1")["toolCalls"]]
    events = run({"type": "MESSAGES_SNAPSHOT", "messages": [GIVEN[0], grown, *GIVEN[2:]]})
    (step,) = agree(events)
    assert step.name == "write"
    started = run({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "write", "parentMessageId": "a1"},
                  {"type": "TOOL_CALL_END", "toolCallId": "c1"})  # fmt: skip
    (step,) = agree(started)
    assert step.name == "write"


def test_text_that_goes_on_with_a_given_message_is_the_agents_and_the_rest_is_not() -> None:
    events = run(
        {"type": "TEXT_MESSAGE_START", "messageId": "a2"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a2", "delta": " and more"},
        {"type": "TEXT_MESSAGE_END", "messageId": "a2"},
    )
    assert folded(events).final_text() == " and more"


def test_given_calls_are_known_again_under_new_message_ids() -> None:
    again = [{**message, "id": f"new-{message['id']}"} for message in GIVEN]
    assert agree(run({"type": "MESSAGES_SNAPSHOT", "messages": again})) == []


def test_a_call_under_the_id_of_a_given_one_leaves_the_calls_partly_unknown() -> None:
    notes: list[Note] = []
    events = run({"type": "TOOL_CALL_START", "toolCallId": "g1", "toolCallName": "delete_account"},
                 {"type": "TOOL_CALL_END", "toolCallId": "g1"})  # fmt: skip
    folded(events, notes)
    assert "given_call_restarted" in [note.code for note in notes if note.serious]
    assert agree(events) == []


def test_a_snapshot_cannot_make_a_call_undone_or_another_one() -> None:
    made: list[dict[str, Any]] = [
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "delete_account"},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": "c1", "content": "gone", "isError": True},
    ]
    (step,) = agree(run(*made, {"type": "MESSAGES_SNAPSHOT", "messages": GIVEN}))
    assert (step.name, step.status) == ("delete_account", "error")
    notes: list[Note] = []
    folded(run(*made, {"type": "MESSAGES_SNAPSHOT", "messages": [said("read", "c1")]}), notes)
    assert "call_rewritten" in [note.code for note in notes if note.serious]


def test_a_result_that_was_said_to_have_failed_has_failed() -> None:
    call = said("read", "c1")
    failed = {"id": "r", "role": "tool", "toolCallId": "c1", "content": "no"}
    for how in ({"error": "broken"}, {"isError": True}, {"status": "failed"}, {"success": False}):
        (step,) = agree(run({"type": "MESSAGES_SNAPSHOT", "messages": [call, {**failed, **how}]}))
        assert step.status == "error", how
    (step,) = agree(run({"type": "MESSAGES_SNAPSHOT", "messages": [call, {**failed, "error": ""}]}))
    assert step.status == "ok"


def test_a_call_that_a_snapshot_has_beside_the_given_one_of_its_id_was_made() -> None:
    again = [said("read", "g1", id="n1"), {"id": "n2", "role": "tool", "toolCallId": "g1", "content": "new"}]
    events = run({"type": "MESSAGES_SNAPSHOT", "messages": [*GIVEN, *again]})
    assert [step.name for step in steps_from_events(events)] == ["read"]
    assert [step.name for step in steps_from_transcript(folded(events).done())] == ["read"]
    both = run({"type": "MESSAGES_SNAPSHOT", "messages": [{**GIVEN[1], "toolCalls": GIVEN[1]["toolCalls"] * 2}]})
    assert [step.name for step in steps_from_events(both)] == ["read"]
    assert [step.name for step in steps_from_transcript(folded(both).done())] == ["read"]


def test_another_call_under_the_id_of_a_given_one_was_made_and_is_noted() -> None:
    for other in (said("write", "g1", id="n1"), said("read", "g1", '{"a":1}', id="n1")):
        events = run({"type": "MESSAGES_SNAPSHOT", "messages": [other]})
        assert len(steps_from_events(events)) == 1
        notes: list[Note] = []
        folded(events, notes)
        assert "call_rewritten" in [note.code for note in notes if note.serious]


def test_a_given_call_in_a_message_with_another_id_is_still_given() -> None:
    renamed = [{**message, "id": f"new-{message['id']}"} for message in GIVEN]
    assert agree(run({"type": "MESSAGES_SNAPSHOT", "messages": renamed})) == []


IDS = st.sampled_from(["c1", "c2", "g1"])
NAMES = st.sampled_from(["read", "write"])
SNAPSHOTS = st.lists(
    st.one_of(
        st.sampled_from(GIVEN),
        st.builds(said, NAMES, IDS, st.sampled_from(["{}", '{"a":1}', "{"]), id=st.sampled_from(["", "a1", "x"])),
        st.builds(
            lambda call, error: {"id": f"r-{call}", "role": "tool", "toolCallId": call, "content": "c", **error},
            IDS,
            st.sampled_from([{}, {"error": "no"}, {"error": ""}]),
        ),
    ),
    max_size=6,
    unique_by=(lambda message: message["id"], lambda message: str(message.get("toolCalls", [message])[0].get("id"))),
)
EVENTS = st.one_of(
    st.builds(
        lambda call, name, parent: {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name, **parent},
        IDS,
        NAMES,
        st.sampled_from([{}, {"parentMessageId": "a1"}, {"parentMessageId": "p"}]),
    ),
    st.builds(lambda call: {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": '{"b":2}'}, IDS),
    st.builds(lambda call: {"type": "TOOL_CALL_END", "toolCallId": call}, IDS),
    st.builds(
        lambda call, how: {"type": "TOOL_CALL_RESULT", "messageId": f"res-{call}", "toolCallId": call, **how},
        IDS,
        st.sampled_from([{"content": "c"}, {"content": "c", "status": "failed"}, {"content": "c", "isError": True}]),
    ),
    st.builds(lambda messages: {"type": "MESSAGES_SNAPSHOT", "messages": messages}, SNAPSHOTS),
)


@settings(max_examples=300)
@given(st.lists(EVENTS, max_size=8))
def test_steps_of_events_and_of_the_transcript_never_contradict_each_other_without_a_note(
    events: list[dict[str, Any]],
) -> None:
    stream = run(*_without_early_results(events))
    notes: list[Note] = []
    folded(stream, notes)
    # A call that is made twice under one id is noted: then it is not known which of the two was meant.
    if not {note.code for note in notes} & {"call_rewritten", "given_call_restarted"}:
        agree(stream)


def _without_early_results(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A result that comes before its call belongs to none, and is noted as such."""
    kept: list[dict[str, Any]] = []
    known = {"g1"}
    for event in events:
        if event["type"] == "TOOL_CALL_START":
            known.add(event["toolCallId"])
        elif event["type"] == "TOOL_CALL_RESULT" and event["toolCallId"] not in known:
            continue
        elif event["type"] == "MESSAGES_SNAPSHOT":
            messages: list[dict[str, Any]] = []
            here: set[str] = set()
            for message in event["messages"]:
                here |= {call["id"] for call in message.get("toolCalls", ())}
                if message["role"] != "tool" or message["toolCallId"] in here:
                    messages.append(message)
            known |= here
            event = {**event, "messages": messages}
        kept.append(event)
    return kept


def test_given_calls_of_a_case_that_a_snapshot_repeats_are_no_steps() -> None:
    # RUN_STARTED does not say what the run started from; its case does.
    events = run({"type": "MESSAGES_SNAPSHOT", "messages": [*GIVEN, said("write", "c1")]}, given=[])
    given = folded(events).messages[:5]
    assert [step.name for step in steps_from_events(events, given)] == ["write"]


def test_a_call_that_is_streamed_was_made_whatever_its_id() -> None:
    started = [
        {"type": "TOOL_CALL_START", "toolCallId": "g1", "toolCallName": "read"},
        {"type": "TOOL_CALL_END", "toolCallId": "g1"},
    ]
    events = run(*started, {"type": "MESSAGES_SNAPSHOT", "messages": GIVEN}, given=[])
    given = folded(run({"type": "MESSAGES_SNAPSHOT", "messages": GIVEN}, given=[])).messages
    assert [step.name for step in steps_from_events(events, given)] == ["read"]


TWICE = '"{\\"amount\\": 5000}"'


def test_arguments_that_were_encoded_twice_are_decoded_in_events_and_snapshots_and_traces() -> None:
    streamed = run(
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "refund"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": TWICE[:5]},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": TWICE[5:]},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    )
    snapshot = run({"type": "MESSAGES_SNAPSHOT", "messages": [*GIVEN, said("refund", "c1", TWICE)]})
    for events in (streamed, snapshot):
        (step,) = agree(events)
        assert step.arguments == {"amount": 5000}
        notes: list[Note] = []
        folded(events, notes)
        assert "arguments_encoded_twice" in [note.code for note in notes]
    (step,), trace_notes = steps_from_trace([TraceEvent("tool_call", name="refund", input=TWICE)])
    assert step.arguments == {"amount": 5000}
    assert [note.code for note in trace_notes] == ["arguments_encoded_twice"]


def test_text_that_is_the_arguments_stays_text_on_the_way_through_events() -> None:
    call = AssistantMessage([ToolCall("c1", "run_sql", '{"a": 1}')], StopReason.TOOL_USE)
    events = unfold(Transcript([call]), thread_id="t", run_id="r")
    (step,) = agree(events)
    assert step.arguments == '{"a": 1}'


def test_a_call_that_never_ended_has_unknown_arguments_unless_they_are_a_whole_object() -> None:
    start = {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "refund"}
    end = {"type": "TOOL_CALL_END", "toolCallId": "c1"}
    for pieces, ended, serious in (
        ([], False, True),
        ([], True, False),
        (["{"], False, True),
        (["12"], False, True),
        (['{"a":', "1}"], False, False),
    ):
        arguments = [{"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": piece} for piece in pieces]
        notes: list[Note] = []
        folded(run(start, *arguments, *([end] if ended else [])), notes)
        assert ("call_not_ended" in [note.code for note in notes if note.serious]) is serious, (pieces, ended)


def test_a_call_that_never_ended_but_is_whole_in_a_snapshot_has_known_arguments() -> None:
    notes: list[Note] = []
    events = run(
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "refund"},
        {"type": "MESSAGES_SNAPSHOT", "messages": [*GIVEN, said("refund", "c1", "{}")]},
    )
    folded(events, notes)
    assert "call_not_ended" not in [note.code for note in notes]
