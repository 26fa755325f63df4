"""Logs taken from the middle: what comes before the tail makes it legal, and adds up to the same."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from strategies.logs import logs

from seatrial.events import Folding, SseParser, Verifier, decode_event, encode_event, verify
from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.server.agui_stream import View
from seatrial.server.agui_view import Standing
from server.real_client import Held, follow

RUN, THREAD = "r1", "t1"


def read(frames: bytes) -> list[t.Event]:
    return [decode_event(frame.data) for frame in SseParser().feed(frames)]


def frames_from_the_start(log: Sequence[t.Event]) -> list[bytes]:
    """What a client is given for each stored event."""
    view = View(RUN, legal=True)
    return [view.frames(sequence, encode_event(event)) for sequence, event in enumerate(log)]


def from_the_start(log: Sequence[t.Event]) -> list[list[t.Event]]:
    return [read(frames) for frames in frames_from_the_start(log)]


def standing_at(log: Sequence[t.Event], *, lightly: bool = False) -> Standing:
    standing = Standing()
    for event in log:
        standing.feed(encode_event(event), lightly=lightly)
    return standing


def taken_up(log: Sequence[t.Event], cut: int, *, resuming: bool) -> bytes:
    """What a client is given that comes when so many events are stored."""
    standing = standing_at(log[:cut], lightly=resuming)
    if resuming and not standing.sees_through():
        standing, resuming = standing_at(log[:cut]), False
    prelude = standing.resuming(RUN, THREAD) if resuming else standing.joining(RUN, THREAD)
    view = View(RUN, legal=True, standing=standing)
    frames = view.prelude(prelude)
    for sequence, event in enumerate(log[cut:], cut):
        frames += view.frames(sequence, encode_event(event))
    return frames


def held(*streams: Sequence[t.Event], log: Sequence[t.Event]) -> Any:
    """What a client holds after these, which come of this log."""
    answered = {event.tool_call_id for event in log if isinstance(event, t.ToolCallResult)}
    folding = Folding()
    for stream in streams:
        for event in stream:
            folding.feed(event, 0)
    folded = folding.result()
    succeeded = isinstance(folded.terminal, t.RunFinished) and not isinstance(
        folded.terminal.outcome, t.CancelledOutcome | t.InterruptOutcome
    )
    result = {
        "messages": folded.messages,
        "state": folded.state,
        # A call that starts again after its result is pending for a client that has missed the result.
        "pending": [call for call in folded.pending if call not in answered] if succeeded else None,
        "interrupts": folded.pending_interrupts,
    }
    return msgspec.json.decode(msgspec.json.encode(result))


def length_before_the_end(log: Sequence[t.Event]) -> int:
    """How many events there are before the terminal one, which every client is given."""
    return len(log) - isinstance(log[-1], t.RunFinished | t.RunError)


def can_be_told(log: Sequence[t.Event]) -> bool:
    """Whether a snapshot can tell, at every place of the log, what whoever has followed knows of the messages.

    Not where two messages have the same id. And not where a message is made in the name of one agent under an id, or
    for a call or a parent, that was in a message of another: AG-UI lets it pass for a client that saw TOOL_CALL_START
    make that message, but not for one that has it from a snapshot. The latter is given the new message without its
    `subagentRunId`.
    """
    folding, joiner = Folding(), Verifier()
    count = 0
    for part in [part for parts in from_the_start(log) for part in parts]:
        folding.feed(part, 0)
        messages = folding.result().messages
        violation = joiner.feed(part, 0)
        if violation is not None and violation.code == "attribution" and len(messages) > count:
            return False
        count = len(messages)
        if len({message.id for message in messages}) < count:
            return False
        joiner.feed(t.MessagesSnapshot(messages=msgspec.to_builtins(messages)))
    return True


STARTED = t.RunStarted(thread_id=THREAD, run_id=RUN)
USER = {"id": "u", "role": "user", "content": "hi"}


def joined(*log: t.Event) -> list[Any]:
    """The prelude of whoever joins behind these, as JSON."""
    standing = standing_at([STARTED, *log])
    return [msgspec.to_builtins(event) for event in standing.joining(RUN, THREAD)]


def resumed(*log: t.Event) -> list[Any]:
    standing = standing_at([STARTED, *log], lightly=True)
    assert standing.sees_through()
    return [msgspec.to_builtins(event) for event in standing.resuming(RUN, THREAD)]


def test_a_log_that_has_nothing_yet_is_joined_with_a_start_that_it_is_given() -> None:
    started, snapshot = standing_at([]).joining(RUN, THREAD)
    assert started == STARTED
    assert snapshot == t.MessagesSnapshot(messages=[])


def test_the_start_has_no_input_and_its_messages_are_in_the_snapshot_once_behind_those_of_the_thread() -> None:
    standing = Standing(messages=agui.read_messages([{"id": "old", "role": "assistant"}], (), []))
    standing.feed(encode_event(t.RunStarted(thread_id=THREAD, run_id=RUN, input={"messages": [USER]})))
    assert standing.joining(RUN, THREAD) == [
        STARTED,
        t.MessagesSnapshot(messages=[{"id": "old", "role": "assistant"}, USER]),
    ]


def test_the_state_is_told_when_there_is_any() -> None:
    def state_told(*log: t.Event, given: Any = UNSET, before: Any = UNSET) -> Any:
        standing = Standing(state=before)
        run_input = {} if given is UNSET else {"state": given}
        for event in [t.RunStarted(thread_id=THREAD, run_id=RUN, input=run_input), *log]:
            standing.feed(encode_event(event))
        snapshots = [event.snapshot for event in standing.joining(RUN, THREAD) if isinstance(event, t.StateSnapshot)]
        return snapshots[0] if snapshots else UNSET

    delta = t.StateDelta(delta=[{"op": "add", "path": "/b", "value": 2}])
    assert state_told() is UNSET
    assert state_told(given={}) is UNSET
    assert state_told(before={"a": 1}) == {"a": 1}
    assert state_told(before={"a": 1}, given={}) == {}
    assert state_told(delta, given={"a": 1}) == {"a": 1, "b": 2}
    assert state_told(t.StateSnapshot(snapshot={"a": 1}), t.StateSnapshot(snapshot={})) == {}
    assert state_told(t.StateSnapshot(snapshot=None)) is None


def test_what_is_open_starts_again_in_its_order_and_with_its_owner() -> None:
    prelude = resumed(
        t.SubagentStarted(subagent_run_id="s1", name="a"),
        t.StepStarted(step_name="x", subagent_run_id="s1"),
        t.StepStarted(step_name="x"),
        t.StepFinished(step_name="x"),
        t.ReasoningStart(message_id="r"),
        t.ReasoningMessageStart(message_id="r"),
        t.TextMessageStart(message_id="m", role="user", name="n", subagent_run_id="s1", metadata={"k": 1}),
        t.TextMessageStart(message_id="gone"),
        t.TextMessageEnd(message_id="gone"),
        t.ToolCallStart(tool_call_id="c", tool_call_name="f", parent_message_id="m"),
    )
    assert prelude[1:] == [
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "a"},
        {"type": "STEP_STARTED", "stepName": "x", "subagentRunId": "s1"},
        {"type": "REASONING_START", "messageId": "r"},
        {"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"},
        # Metadata would overwrite what came after it.
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "user", "name": "n", "subagentRunId": "s1"},
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "c",
            "toolCallName": "f",
            "parentMessageId": "m",
            "subagentRunId": "s1",
        },
    ]


def test_a_subagent_that_has_ended_is_told_because_another_may_name_it_as_its_parent() -> None:
    prelude = resumed(
        t.SubagentStarted(subagent_run_id="s1", name="a"),
        t.SubagentStarted(subagent_run_id="s2", name="b", parent_subagent_run_id="s1"),
        t.SubagentError(subagent_run_id="s1", message="oops"),
    )
    assert [event["type"] for event in prelude[1:]] == ["SUBAGENT_STARTED", "SUBAGENT_ERROR", "SUBAGENT_STARTED"]


def test_a_call_starts_again_under_the_name_that_it_has_now() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "g", "arguments": "{"}}
    prelude = resumed(
        t.ToolCallStart(tool_call_id="c", tool_call_name="f"),
        t.MessagesSnapshot(messages=[{"id": "m", "role": "assistant", "toolCalls": [call]}]),
    )
    assert prelude[-1] == {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "g"}


def test_what_a_snapshot_left_out_while_it_was_open_makes_no_message_when_it_starts_again() -> None:
    kept = [USER, {"id": "other", "role": "reasoning", "content": ""}]
    log: list[t.Event] = [
        t.TextMessageStart(message_id="m"),
        t.ReasoningMessageStart(message_id="r"),
        t.ToolCallStart(tool_call_id="c", tool_call_name="f"),
        t.MessagesSnapshot(messages=kept),
    ]
    assert not standing_at([STARTED, *log], lightly=True).sees_through()
    prelude = joined(*log)
    assert [event["type"] for event in prelude] == [
        "RUN_STARTED",
        "MESSAGES_SNAPSHOT",
        "TEXT_MESSAGE_START",
        "REASONING_MESSAGE_START",
        "TOOL_CALL_START",
        "MESSAGES_SNAPSHOT",
    ]
    assert [message["id"] for message in prelude[1]["messages"]] == ["u", "other", "m", "r", "seatrial-call-c"]
    assert prelude[-1]["messages"] == kept


def test_what_a_patch_has_made_of_an_activity_is_told_though_a_snapshot_has_objects_only() -> None:
    log: list[t.Event] = [
        STARTED,
        t.ActivitySnapshot(message_id="a", activity_type="PLAN", content={"done": 0}),
        t.ActivityDelta(message_id="a", activity_type="LIST", patch=[{"op": "replace", "path": "", "value": [1]}]),
    ]
    frames = b"".join(frames_from_the_start(log))
    followed = follow([client(frames), client(taken_up(log, len(log), resuming=False))])
    for held in followed:
        assert held.messages == [{"id": "a", "role": "activity", "activityType": "LIST", "content": [1]}]


def test_a_message_of_two_agents_is_given_to_whoever_joins_without_an_attribution() -> None:
    log: list[t.Event] = [
        STARTED,
        t.ToolCallStart(tool_call_id="c", tool_call_name="f", parent_message_id="m"),
        t.MessagesSnapshot(messages=[]),
        t.TextMessageStart(message_id="m", subagent_run_id="s"),
    ]
    assert not can_be_told(log)
    joined = read(taken_up(log, 2, resuming=False))
    assert verify(joined) is None
    assert joined[-1] == t.TextMessageStart(message_id="m")


def test_an_event_that_a_client_would_refuse_leaves_no_trace() -> None:
    assert joined(t.TextMessageEnd(message_id="m"), t.ToolCallChunk(delta="x"), STARTED) == joined()


@given(logs())
def test_whoever_joins_anywhere_is_given_a_legal_stream_that_adds_up_to_the_whole(log: list[t.Event]) -> None:
    assume(can_be_told(log))
    whole = held([part for parts in from_the_start(log) for part in parts], log=log)
    for cut in range(length_before_the_end(log) + 1):
        joined = read(taken_up(log, cut, resuming=False))
        assert verify(joined) is None
        assert held(joined, log=log) == whole


@given(logs())
def test_whoever_resumes_anywhere_is_given_a_legal_stream_that_goes_on_from_what_he_has(log: list[t.Event]) -> None:
    assume(can_be_told(log))
    seen = from_the_start(log)
    whole = held([part for parts in seen for part in parts], log=log)
    for cut in range(1, length_before_the_end(log) + 1):
        had = [part for parts in seen[:cut] for part in parts]
        resumed = read(taken_up(log, cut, resuming=True))
        assert verify(resumed) is None
        assert held(had, resumed, log=log) == whole


@settings(max_examples=4, phases=[Phase.generate])  # to shrink it would take a process of Node for each attempt
@given(st.lists(logs().filter(can_be_told), min_size=12, max_size=12), st.randoms(use_true_random=False))
def test_the_real_client_takes_what_whoever_joins_or_resumes_is_given(
    samples: list[list[t.Event]], dice: Random
) -> None:
    clients: list[dict[str, Any]] = []
    for log in samples:
        frames = frames_from_the_start(log)
        clients.append(client(b"".join(frames)))
        for _ in range(3):
            cut = dice.randint(1, length_before_the_end(log))
            clients.append(client(taken_up(log, cut, resuming=False)))
            clients.append(client(b"".join(frames[:cut]), taken_up(log, cut, resuming=True)))
    followed = iter(follow(clients))
    for log in samples:
        answered = {event.tool_call_id for event in log if isinstance(event, t.ToolCallResult)}
        whole = what_counts(next(followed), answered)
        for _ in range(6):
            assert what_counts(next(followed), answered) == whole


def client(*bodies: bytes) -> dict[str, Any]:
    """A client that is given these responses, one after the other."""
    return {"threadId": THREAD, "steps": [{"body": body.decode()} for body in bodies]}


def what_counts(held: Held, answered: set[str]) -> dict[str, Any]:
    assert held.errors == []
    assert not [warning for warning in held.warnings if "[enforce]" in warning]
    finished = [{**end, "pending": [call for call in end["pending"] if call not in answered]} for end in held.finished]
    return {
        "messages": held.messages,
        "state": held.state,
        "interrupts": held.pending_interrupts,
        "finished": finished,
        "errors": held.run_errors,
    }
