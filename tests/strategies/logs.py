"""Strategies for the logs of runs: every type of event, chunks and subagents too, in an order that is legal."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st
from msgspec import UNSET

from seatrial.events import Expander, OrderViolation, Verifier
from seatrial.events import types as t
from strategies.events import events_of

_OPENING: list[type[Any]] = [
    t.StepStarted,
    t.TextMessageStart,
    t.TextMessageChunk,
    t.ToolCallStart,
    t.ToolCallChunk,
    t.ReasoningStart,
    t.ReasoningMessageStart,
    t.ReasoningMessageChunk,
    t.SubagentStarted,
]
_GOING_ON: list[type[Any]] = [
    t.TextMessageContent,
    t.TextMessageEnd,
    t.ToolCallArgs,
    t.ToolCallEnd,
    t.ToolCallResult,
    t.ReasoningMessageContent,
    t.ReasoningMessageEnd,
    t.ReasoningEncryptedValue,
    t.StateSnapshot,
    t.StateDelta,
    t.ActivitySnapshot,
    t.ActivityDelta,
    t.SubagentFinished,
    t.SubagentError,
    t.MessagesSnapshot,
    t.CustomEvent,
]
_ANYTHING = st.one_of([events_of(kind) for kind in [*_OPENING, *_OPENING, *_GOING_ON]])

_SOME = st.lists(_ANYTHING, max_size=4) | st.lists(_ANYTHING, min_size=10, max_size=24)


@st.composite
def logs(draw: st.DrawFn) -> list[t.Event]:
    """A run that a verifier passes. It may not have ended, and ends in RUN_ERROR when something is open."""
    expander, verifier = Expander(), Verifier()
    log: list[t.Event] = []
    end = draw(st.sampled_from([None, t.RunFinished(thread_id="t1", run_id="r1")]))
    started = t.RunStarted(thread_id="t1", run_id="r1")
    for event in [started, *draw(_SOME), *([] if end is None else [end])]:
        _aim(event, verifier)
        before = copy.deepcopy((expander, verifier))
        parts = expander.feed(event, 0)
        if isinstance(parts, OrderViolation) or any(verifier.feed(part, 0) for part in parts):
            expander, verifier = before
        else:
            log.append(event)
    if end is not None and not verifier.ended:
        log.append(t.RunError(message="gave up"))
    return log


def _aim(event: t.Event, verifier: Verifier) -> None:
    """Make an event continue something that is open, when it continues anything; few would by chance."""
    match event:
        case t.TextMessageContent() | t.TextMessageEnd() if verifier.texts - {event.message_id}:
            event.message_id = min(verifier.texts)
        case t.ReasoningMessageContent() | t.ReasoningMessageEnd() if verifier.reasonings - {event.message_id}:
            event.message_id = min(verifier.reasonings)
        case t.ToolCallArgs() | t.ToolCallEnd() if verifier.calls - {event.tool_call_id}:
            event.tool_call_id = min(verifier.calls)
        case t.SubagentFinished() | t.SubagentError() if verifier.subagents:
            event.subagent_run_id = verifier.subagents[0]
        case _:
            return
    if isinstance(event, t.AgentEvent) and event.thread_id is UNSET:
        event.subagent_run_id = UNSET
