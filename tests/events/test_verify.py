"""The order of events (B5): one test for each rule, and the rules to come as notes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.events import events, legal_runs

from seatrial.events import VIOLATION_CODES, OrderViolation, Verifier, verify
from seatrial.events import types as t
from seatrial.events.types import Event

STARTED = t.RunStarted(thread_id="t", run_id="r")
FINISHED = t.RunFinished(thread_id="t", run_id="r")
ERRORED = t.RunError(message="boom")
CUSTOM = t.CustomEvent(name="n", value=1)


def text(item: str = "m", **fields: Any) -> list[Event]:
    return [
        t.TextMessageStart(message_id=item, **fields),
        t.TextMessageContent(message_id=item, delta="x", **fields),
        t.TextMessageEnd(message_id=item, **fields),
    ]


def call(item: str = "c", **fields: Any) -> list[Event]:
    return [
        t.ToolCallStart(tool_call_id=item, tool_call_name="f", **fields),
        t.ToolCallArgs(tool_call_id=item, delta="{}"),
        t.ToolCallEnd(tool_call_id=item),
    ]


def reasoning(item: str = "m") -> list[Event]:
    return [
        t.ReasoningMessageStart(message_id=item),
        t.ReasoningMessageContent(message_id=item, delta="x"),
        t.ReasoningMessageEnd(message_id=item),
    ]


def span(item: str = "m") -> list[Event]:
    return [t.ReasoningStart(message_id=item), t.ReasoningEnd(message_id=item)]


def subagent(item: str = "s", **fields: Any) -> list[Event]:
    return [
        t.SubagentStarted(subagent_run_id=item, name="n", **fields),
        t.SubagentFinished(subagent_run_id=item),
    ]


def step(name: str = "p", **fields: Any) -> list[Event]:
    return [t.StepStarted(step_name=name, **fields), t.StepFinished(step_name=name, **fields)]


def accepts(*run: Event) -> None:
    assert verify(run) is None


def refuses(code: str, *run: Event) -> None:
    """The last event is the offending one."""
    violation = verify(run)
    assert violation is not None
    assert (violation.index, violation.code) == (len(run) - 1, code)
    assert violation.code in VIOLATION_CODES
    assert len(violation.message) > 10


# Rule 1


@pytest.mark.parametrize("event", [FINISHED, CUSTOM, *text(), *call()])
def test_the_first_event_is_run_started_or_run_error(event: Event) -> None:
    refuses("run_not_started", event)
    accepts(STARTED)
    accepts(ERRORED)
    accepts()


# Rule 2


def test_a_run_does_not_start_while_another_is_active() -> None:
    refuses("run_still_active", STARTED, *text(), STARTED)


# Rule 3


@pytest.mark.parametrize("event", [FINISHED, CUSTOM, *text()])
def test_after_run_finished_only_run_error_or_a_new_run_comes(event: Event) -> None:
    refuses("run_already_finished", STARTED, FINISHED, event)
    accepts(STARTED, FINISHED, ERRORED)
    accepts(STARTED, FINISHED, STARTED, FINISHED)


@pytest.mark.parametrize("event", [FINISHED, ERRORED, CUSTOM, *text()])
def test_after_run_error_only_a_new_run_comes(event: Event) -> None:
    refuses("run_already_errored", STARTED, ERRORED, event)
    refuses("run_already_errored", ERRORED, event)
    accepts(STARTED, ERRORED, STARTED, *text(), FINISHED)


def test_a_new_run_forgets_what_was_open_and_whose_it_was() -> None:
    opened = (*text("m", subagent_run_id="s")[:2], call("c")[0], *span("m")[:1], *subagent()[:1], *step()[:1])
    accepts(STARTED, *opened, ERRORED, STARTED, *text("m"), *call("c"), *span("m"), *subagent(), *step(), FINISHED)
    refuses("not_open", STARTED, *text("m")[:1], ERRORED, STARTED, text("m")[1])


# Rule 4


@pytest.mark.parametrize("item", [text(), call(), reasoning(), span()])
def test_what_is_continued_or_ended_has_been_started(item: list[Event]) -> None:
    for event in item[1:]:
        refuses("not_open", STARTED, event)
        refuses("not_open", STARTED, *item, event)
    accepts(STARTED, *item, FINISHED)


@pytest.mark.parametrize("item", [text(), call(), reasoning(), span()])
def test_what_is_open_does_not_start_again_but_what_is_closed_may(item: list[Event]) -> None:
    refuses("already_open", STARTED, item[0], item[0])
    accepts(STARTED, *item, *item, FINISHED)


def test_items_may_interleave() -> None:
    a, b, c = text("a"), text("b"), call("a")
    accepts(STARTED, a[0], b[0], c[0], b[1], a[1], c[1], c[2], a[2], b[2], FINISHED)


def test_a_span_a_message_and_a_call_may_share_an_id() -> None:
    opened = (span("x")[0], reasoning("x")[0], text("x")[0], call("x")[0])
    closed = (span("x")[1], reasoning("x")[2], text("x")[2], call("x")[2])
    accepts(STARTED, *opened, *closed, FINISHED)


# Rule 5


def test_steps_are_kept_by_owner_and_name() -> None:
    accepts(STARTED, *step()[:1], *step("p", subagent_run_id="s"), *step()[1:], FINISHED)
    refuses("step_already_open", STARTED, *step()[:1], step()[0])
    refuses("step_not_open", STARTED, step()[1])
    refuses("step_of_another", STARTED, step()[0], step("p", subagent_run_id="s")[1])
    refuses("step_of_another", STARTED, step("p", subagent_run_id="s")[0], step()[1])


# Rule 6


def test_a_run_does_not_finish_while_something_is_open_and_names_it_in_the_order_of_the_rule() -> None:
    order = [
        ("steps", step("p1")[0]),
        ("text messages", text("p2")[0]),
        ("reasoning messages", reasoning("p3")[0]),
        ("reasoning spans", span("p4")[0]),
        ("tool calls", call("p5")[0]),
        ("subagents", subagent("p6")[0]),
    ]
    for at, (kind, event) in enumerate(order):
        later = [opener for _, opener in order[at:]]
        refuses("left_open", STARTED, *later, FINISHED)
        violation = verify([STARTED, *later, FINISHED])
        assert violation is not None
        assert f"{kind} are open: p{at + 1}" in violation.message
        accepts(STARTED, event, ERRORED)


def test_a_long_list_of_what_is_open_is_cut() -> None:
    violation = verify([STARTED, *[text(f"m{n}")[0] for n in range(9)], FINISHED])
    assert violation is not None
    assert violation.message.endswith("m0, m1, m2, m3, m4 and 4 more")


# Rule 7


def test_a_subagent_starts_once_under_a_parent_that_was_started() -> None:
    accepts(STARTED, *subagent("s"), *subagent("u", parent_subagent_run_id="s"), FINISHED)
    refuses("subagent_already_active", STARTED, subagent()[0], subagent()[0])
    refuses("subagent_reused", STARTED, *subagent(), subagent()[0])
    refuses("subagent_parent_unknown", STARTED, subagent("u", parent_subagent_run_id="s")[0])
    refuses("subagent_not_active", STARTED, subagent()[1])
    refuses("subagent_not_active", STARTED, *subagent(), t.SubagentError(subagent_run_id="s", message="m"))


# Rule 8


@pytest.mark.parametrize("opener", [None, "u"])
@pytest.mark.parametrize(
    ("first", "later"),
    [
        (text()[0], text()[1]),
        (text()[0], text()[2]),
        (call()[0], call()[1]),
        (call()[0], call()[2]),
        (reasoning()[0], reasoning()[1]),
        (reasoning()[0], reasoning()[2]),
        (span()[0], span()[1]),
        (text()[0], t.ReasoningEncryptedValue(subtype="message", entity_id="m", encrypted_value="x")),
        (reasoning()[0], t.ReasoningEncryptedValue(subtype="message", entity_id="m", encrypted_value="x")),
        (call()[0], t.ReasoningEncryptedValue(subtype="tool-call", entity_id="c", encrypted_value="x")),
        (
            t.ActivitySnapshot(message_id="a", activity_type="A", content={}),
            t.ActivityDelta(message_id="a", activity_type="A", patch=[]),
        ),
    ],
)
def test_a_continuation_does_not_disagree_with_its_opener(opener: str | None, first: Any, later: Any) -> None:
    first, later, same = copy.copy(first), copy.copy(later), copy.copy(later)
    if opener is not None:
        first.subagent_run_id = same.subagent_run_id = opener
    later.subagent_run_id = "s"
    refuses("attribution", STARTED, first, later)
    accepts(STARTED, first, same)


def test_an_id_belongs_to_whom_opened_it_for_the_whole_run() -> None:
    refuses("attribution", STARTED, *text("m"), text("m", subagent_run_id="s")[0])
    accepts(STARTED, *text("m", subagent_run_id="s"), *text("m"), FINISHED)
    mixed = (text("m")[0], text("m", subagent_run_id="s")[1])
    refuses("attribution", STARTED, *text("m", subagent_run_id="u"), *mixed)


def test_a_tool_call_belongs_to_the_message_that_carries_it() -> None:
    message = text("m", subagent_run_id="s")
    accepts(STARTED, *message, *call(parent_message_id="m"), FINISHED)
    accepts(STARTED, *message, call(parent_message_id="m", subagent_run_id="s")[0])
    refuses("attribution", STARTED, *message, call(parent_message_id="m", subagent_run_id="u")[0])
    args = t.ToolCallArgs(tool_call_id="c", delta="", subagent_run_id="u")
    refuses("attribution", STARTED, *message, call(parent_message_id="m")[0], args)
    refuses("attribution", STARTED, *message, *call("c"), call("c", parent_message_id="m")[0])


def test_a_tool_result_is_a_message_of_whom_ran_the_tool() -> None:
    result = t.ToolCallResult(message_id="m", tool_call_id="c", content="", subagent_run_id="s")
    refuses("attribution", STARTED, result, text("m", subagent_run_id="u")[0])
    accepts(STARTED, *text("m", subagent_run_id="u"), result, *text("m", subagent_run_id="s"), FINISHED)


def test_snapshots_tell_whose_the_messages_are() -> None:
    messages: list[Any] = [
        {"id": "m", "role": "assistant", "subagentRunId": "s", "toolCalls": [{"id": "c"}]},
        {"id": "r", "role": "reasoning", "content": "x", "subagentRunId": "s"},
        {"id": "a", "role": "activity", "subagentRunId": "s"},
        {"id": "p", "role": "user", "content": "x"},
        "nonsense",
        {"id": 5},
        {"id": "q", "role": ["odd"], "toolCalls": [7, {"id": None}]},
    ]
    snapshot = t.MessagesSnapshot(messages=messages)
    for fault in (
        text("m", subagent_run_id="u")[0],
        call("c", subagent_run_id="u")[0],
        t.ReasoningMessageStart(message_id="r", subagent_run_id="u"),
        t.ActivityDelta(message_id="a", activity_type="A", patch=[], subagent_run_id="u"),
        text("p", subagent_run_id="s")[0],
    ):
        refuses("attribution", STARTED, snapshot, fault)
    # A snapshot overrules what was known, the input of a run only adds to it.
    accepts(STARTED, *text("m"), snapshot, *text("m", subagent_run_id="s"), FINISHED)
    started = t.RunStarted(thread_id="t", run_id="r", input={"messages": messages})
    refuses("attribution", started, text("m", subagent_run_id="u")[0])


def test_a_message_is_not_attributed_to_null() -> None:
    messages = [{"id": "m", "role": "user", "content": "", "subagentRunId": None}]
    refuses("attribution_null", STARTED, t.MessagesSnapshot(messages=messages))
    refuses("attribution_null", t.RunStarted(thread_id="t", run_id="r", input={"messages": messages}))


def test_an_activity_changes_hands_only_when_it_is_replaced() -> None:
    def snapshot(**fields: Any) -> Event:
        return t.ActivitySnapshot(message_id="a", activity_type="A", content={}, **fields)

    delta = t.ActivityDelta(message_id="a", activity_type="A", patch=[], subagent_run_id="s")
    accepts(STARTED, snapshot(), snapshot(subagent_run_id="s"), delta)
    refuses("attribution", STARTED, snapshot(), snapshot(subagent_run_id="s", replace=False), delta)


# Rule 9


@pytest.mark.parametrize(
    "event",
    [
        t.ToolCallResult(message_id="x", tool_call_id="nobody", content=""),
        CUSTOM,
        t.RawEvent(event=1),
        t.StateSnapshot(snapshot=None),
        t.StateDelta(delta=[{"op": "nonsense"}]),
        t.MessagesSnapshot(messages=[]),
        t.ActivitySnapshot(message_id="x", activity_type="A", content={}),
        t.ActivityDelta(message_id="x", activity_type="A", patch=[]),
        t.ReasoningEncryptedValue(subtype="message", entity_id="x", encrypted_value=""),
    ],
)
def test_the_rest_is_legal_anywhere_inside_a_run(event: Event) -> None:
    accepts(STARTED, event, text()[0], event, text()[1], event, text()[2], event, FINISHED)
    refuses("run_not_started", event)
    refuses("run_already_finished", STARTED, FINISHED, event)


# Rules to come


def notes_of(*run: Event) -> list[str]:
    verifier = Verifier()
    for event in run:
        assert verifier.feed(event) is None
    return [note.code for note in verifier.close()]


def test_rules_to_come_are_notes() -> None:
    snapshots = (t.StateSnapshot(snapshot={}), t.MessagesSnapshot(messages=[]))
    one = t.InterruptOutcome([t.Interrupt("i", "confirmation")])
    two = t.InterruptOutcome([t.Interrupt("i", "confirmation"), t.Interrupt("i", "confirmation")])
    assert notes_of(STARTED, FINISHED) == []
    assert notes_of(STARTED, t.RunFinished(thread_id="t", run_id="other")) == ["run_ids_disagree"]
    assert notes_of(STARTED, t.RunFinished(thread_id="other", run_id="r")) == ["run_ids_disagree"]
    assert notes_of(STARTED, FINISHED, t.RunStarted(thread_id="u", run_id="r2"), ERRORED) == ["thread_changed"]
    assert notes_of(STARTED, *snapshots, t.RunFinished(thread_id="t", run_id="r", outcome=one)) == []
    assert notes_of(STARTED, *snapshots, t.RunFinished(thread_id="t", run_id="r", outcome=two)) == [
        "interrupt_id_repeated"
    ]
    assert notes_of(STARTED, t.RunFinished(thread_id="t", run_id="r", outcome=one)) == ["interrupt_without_snapshots"]
    assert notes_of(STARTED) == ["event_stream_truncated"]
    assert notes_of() == ["event_stream_truncated"]


# As a whole


@given(legal_runs())
def test_legal_runs_are_legal(run: list[Event]) -> None:
    accepts(*run)


@given(st.lists(events(), max_size=12))
def test_an_event_that_is_refused_leaves_no_trace(stream: list[Event]) -> None:
    """A recorder that refuses what is illegal ends up with a legal log."""
    verifier = Verifier()
    stored = [event for event in [STARTED, *stream] if verifier.feed(event) is None]
    accepts(*stored)


def test_the_index_can_be_given_and_is_counted_otherwise() -> None:
    verifier = Verifier()
    assert verifier.feed(STARTED) is None
    assert verifier.feed(STARTED) == OrderViolation(1, "run_still_active", "run 'r' starts while another run is active")
    assert verifier.feed(STARTED, 41) == OrderViolation(
        41, "run_still_active", "run 'r' starts while another run is active"
    )
