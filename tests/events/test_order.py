"""The order of a growing log: refusals leave no trace, and every log has a legal end."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from strategies.events import events, events_of

from seatrial.events import expand, verify
from seatrial.events import types as t
from seatrial.events.order import Order

STARTED = t.RunStarted(thread_id="t", run_id="r")
FINISHED = t.RunFinished(thread_id="t", run_id="r")
ENDS = (t.RunStarted, t.RunFinished, t.RunError)
CHUNKS = (t.TextMessageChunk, t.ToolCallChunk, t.ReasoningMessageChunk)

happenings = st.lists(
    # Chunks meet what was opened otherwise: that is where the two stages could disagree.
    st.one_of(events(), *[events_of(kind) for kind in (*CHUNKS, t.TextMessageEnd, t.ToolCallResult)]),
    max_size=30,
)


def started() -> Order:
    order = Order()
    assert order.feed(STARTED) is None
    return order


def is_legal(log: list[t.Event]) -> bool:
    """Whether a client takes all of it."""
    expanded, violation = expand(log)
    return violation is None and verify(expanded) is None


@given(happenings)
def test_what_was_let_in_is_a_legal_log_that_can_be_ended_in_either_way(events: list[t.Event]) -> None:
    order = started()
    log = [STARTED, *[event for event in events if not isinstance(event, ENDS) and order.feed(event) is None]]
    failed, finished = copy.deepcopy(order), order
    closing = failed.closing("it was cut off")
    assert [failed.feed(event) for event in [*closing, t.RunError(message="no")]] == [None] * (len(closing) + 1)
    closing = finished.closing()
    assert [finished.feed(event) for event in [*closing, FINISHED]] == [None] * (len(closing) + 1)
    assert is_legal([*log, *closing, FINISHED])
    assert is_legal([*log, t.RunError(message="no")])


@given(happenings)
def test_an_event_that_is_refused_leaves_no_trace(events: list[t.Event]) -> None:
    order, spared = started(), started()
    for event in events:
        if order.feed(event) is None:
            assert spared.feed(event) is None
        assert state(order) == state(spared)


def state(order: Order) -> object:
    verifier = order._verifier
    known = copy.deepcopy({name: value for name, value in vars(verifier).items() if name not in ("checks", "notes")})
    known["_steps"] = {owner: names for owner, names in known["_steps"].items() if names}
    return known, dict(order._expander.lanes), {kind: dict(held) for kind, held in order._expander._holders.items()}


def test_what_another_agent_is_streaming_in_chunks_cannot_be_ended() -> None:
    order = started()
    assert order.feed(t.TextMessageChunk(message_id="m", delta="a", subagent_run_id="s")) is None
    fault = order.feed(t.TextMessageEnd(message_id="m"))
    assert fault is not None
    assert fault.code == "attribution"
    assert order.feed(t.RunError(message="no")) is None


def test_a_refused_chunk_does_not_end_the_one_before_it() -> None:
    order = started()
    assert order.feed(t.TextMessageStart(message_id="taken")) is None
    assert order.feed(t.TextMessageChunk(message_id="m", delta="a")) is None
    fault = order.feed(t.TextMessageChunk(message_id="taken", delta="b"))
    assert fault is not None
    assert fault.code == "already_open"
    assert order.feed(t.TextMessageChunk(delta="c")) is None
    assert order.closing() == [t.TextMessageEnd(message_id="taken", subagent_run_id=UNSET)]


def test_everything_is_closed_before_the_end_and_inner_subagents_first() -> None:
    order = started()
    for event in (
        t.SubagentStarted(subagent_run_id="outer", name="outer"),
        t.SubagentStarted(subagent_run_id="inner", name="inner", parent_subagent_run_id="outer"),
        t.StepStarted(step_name="plan", subagent_run_id="inner"),
        t.ReasoningStart(message_id="span"),
        t.ReasoningMessageStart(message_id="thought"),
        t.TextMessageStart(message_id="said", subagent_run_id="outer"),
        t.ToolCallStart(tool_call_id="call", tool_call_name="find"),
    ):
        assert order.feed(event) is None
    assert order.closing("cut off") == [
        t.StepFinished(step_name="plan", subagent_run_id="inner"),
        t.ToolCallEnd(tool_call_id="call"),
        t.TextMessageEnd(message_id="said", subagent_run_id="outer"),
        t.ReasoningMessageEnd(message_id="thought"),
        t.ReasoningEnd(message_id="span"),
        t.SubagentError(subagent_run_id="inner", message="cut off"),
        t.SubagentError(subagent_run_id="outer", message="cut off"),
    ]
