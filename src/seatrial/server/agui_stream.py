"""The AG-UI view of a run as a stream: bare events as SSE, for clients without sequences (events.md B8, B12).

`id:` is the cursor. A stored event may become several frames, because chunks are expanded; the last one has the id, and
those before it can be taken twice without harm. What precedes the tail of a log (`agui_resume`) has no id.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import UNSET

from seatrial.api import CreateRun, RunInput, check_chosen_id
from seatrial.errors import SeatrialError
from seatrial.events import (
    Expander,
    OrderViolation,
    Verifier,
    cursor_text,
    encode_event,
    encode_sse_comment,
    read_run_input,
)
from seatrial.events import types as t
from seatrial.events.event_reader import EventReader
from seatrial.runs import RunHead, ServedRun
from seatrial.server.agui_view import Standing, conformant, is_void
from seatrial.server.conversation import Histories
from seatrial.server.feed import Feeds, Subscription
from seatrial.server.native_stream import deliver, followed
from seatrial.server.run_feed import Block
from seatrial.server.service import RunService
from seatrial.store import Store

EVENTS_AT_ONCE = 2000

_KEEPALIVE = encode_sse_comment("keepalive")


async def agui_run(service: RunService, feeds: Feeds, store: Store, agent: str, body: bytes) -> ASGIApp:
    """Run an agent for an AG-UI client: a RunAgentInput in, the run's events out. The run does not depend on it."""
    asked = read_run_input(body)
    check_chosen_id(asked.thread_id, "/threadId")
    check_chosen_id(asked.run_id, "/runId")
    admitted = await service.create(
        CreateRun(
            agent=agent,
            input=RunInput(
                messages=asked.messages,
                state=asked.state,
                tools=asked.tools,
                context=asked.context,
                forwarded_props=asked.forwarded_props,
            ),
            thread_id=asked.thread_id,
            run_id=asked.run_id,
            resume=None if asked.resume is UNSET or not asked.resume else asked.resume,
        )
    )
    run_id = admitted.run.run_id
    if not admitted.created:
        # The same answers to the same interrupts. A client that sent them twice may have a part of the result already.
        return await agui_stream(feeds, store, run_id, after=None)
    return _streaming(View(run_id, legal=True), await feeds.open(run_id, after=None), feeds.keepalive_s)


async def agui_stream(feeds: Feeds, store: Store, run_id: str, *, after: int | None) -> ASGIApp:
    """A run for a client that joins late, or comes back with all events up to `after`."""
    head = await feeds.head(run_id)
    if after is not None and after >= head.following:
        details = {"head": head.following - 1}
        raise SeatrialError("cursor_ahead", f"the run has no event {after} yet", details=details)
    if head.first > 0 and (after is None or after < head.first - 1):
        details = {"first": head.first}
        raise SeatrialError("cursor_expired", f"events before {head.first} are not kept any more", details=details)
    # Of a run that has ended, everybody is given the terminal event: a stream without one looks cut off.
    count = head.following - 1 if head.closed else head.following
    if after is not None:
        count = min(count, after + 1)
    count = max(count, 0)
    view, prelude = await feeds.read(_prelude, store, head, count, joining=after is None)
    subscription = await feeds.open(run_id, after=count - 1 if count else None)
    return _streaming(view, subscription, feeds.keepalive_s, prelude)


def _prelude(store: Store, head: RunHead, count: int, *, joining: bool) -> tuple[View, bytes]:
    """What goes before the event with the sequence `count`. Blocks."""
    standing = _standing(store, head, count, whole=joining)
    if not joining and not standing.sees_through():
        standing, joining = _standing(store, head, count, whole=True), True
    view = View(head.run_id, legal=_is_served(store, head.run_id), standing=standing)
    events_of = standing.joining if joining else standing.resuming
    return view, view.prelude(events_of(head.run_id, head.thread_id))


def _standing(store: Store, head: RunHead, count: int, *, whole: bool) -> Standing:
    """The state of a client after so many events; with the thread's messages and state only when `whole`."""
    standing = _after_earlier_runs(store, head) if whole else Standing()
    following = head.first
    while following < count:
        page = store.events(head.run_id, after=following - 1, limit=min(EVENTS_AT_ONCE, count - following))
        if not page:
            raise SeatrialError("not_found", f"the events of run {head.run_id!r} are gone")
        for sequence, data in page:
            standing.feed(data, lightly=not whole)
            following = sequence + 1
    return standing


def _after_earlier_runs(store: Store, head: RunHead) -> Standing:
    earlier: list[ServedRun] = []
    for run in store.thread_runs(head.thread_id):
        if run.run_id == head.run_id:
            history = Histories(store).of(head.thread_id, earlier)
            return Standing(history.messages, history.state)
        earlier.append(run)
    return Standing()  # of an experiment, where a thread says nothing about its runs


def _is_served(store: Store, run_id: str) -> bool:
    try:
        store.served_run(run_id)
    except SeatrialError as error:
        if error.code != "not_found":
            raise
        return False
    return True


def _streaming(view: View, subscription: Subscription, keepalive_s: float, prelude: bytes = b"") -> ASGIApp:
    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        frames = _frames(view, subscription, keepalive_s, prelude)
        await deliver(subscription, frames, b"text/event-stream; charset=utf-8", scope, receive, send)

    return stream


async def _frames(
    view: View, subscription: Subscription, keepalive_s: float, prelude: bytes
) -> AsyncGenerator[bytes, None]:
    if prelude:
        yield prelude

    def framed(block: Block) -> bytes:
        return b"".join([view.frames(*event) for event in enumerate(block.events, block.first)])

    async with aclosing(followed(subscription, keepalive_s, framed, lambda: _KEEPALIVE)) as following:
        async for frames in following:
            yield frames
    if subscription.status is not None:
        yield view.ending()
    elif subscription.interrupted:
        # A stream that ends is taken for a run that has ended, one that breaks is not.
        subscription.cut_off()


# An event that has these fields and no others, as it is encoded here. Anything else may be what clients refuse or warn
# of, and an attribution has to be held against what the client knows.
_PLAIN = re.compile(
    rb'\{"type":"(?:(?:TEXT|REASONING)_MESSAGE_CONTENT",(?:%b)?"messageId"|TOOL_CALL_ARGS",(?:%b)?"toolCallId")'
    rb':"%b","delta":"%b"\}' % (2 * (rb'"timestamp":[0-9]{1,15},',) + 2 * (rb'(?:[^"\\\x00-\x1f]|\\.)*+',))
)


class View:
    """What a client has received, as far as later events depend on it."""

    def __init__(self, run_id: str, *, legal: bool, standing: Standing | None = None) -> None:
        self._cursor = cursor_text(run_id, 0)[:-1].encode()
        self._legal = legal
        """Whether the log was verified when it was stored; else each event is verified here."""
        self._expander = Expander() if standing is None else standing.expander
        # One that has read the log so far: it knows what was opened under the ids that it made up.
        self._reader = EventReader() if standing is None else standing.reader
        self._client = Verifier()
        self._waiting = dict.fromkeys([] if standing is None else standing.waiting())
        """Tool calls without a result."""
        self._untold = bool(self._waiting)
        """Whether the client may have missed the start of one of them."""
        self._answered: set[str] = set()
        self._ended = False

    def prelude(self, events: Iterable[t.Event]) -> bytes:
        """Frames of events that the log does not have at this place."""
        taken = [self._taken(event) for event in events]
        return b"".join([b"data: %b\n\n" % encode_event(event) for event in taken if event is not None])

    def frames(self, sequence: int, data: bytes) -> bytes:
        """Frames of the stored event with this sequence; none for an event that the client cannot use."""
        if self._stays(data):
            return b"id: %b%d\ndata: %b\n\n" % (self._cursor, sequence, data)
        event = self._reader.read(data)
        self._reader.notes.clear()
        parts = self._expander.feed(event, sequence)
        if isinstance(parts, OrderViolation):
            return b""
        taken = [encode_event(part) for part in map(self._taken, parts) if part is not None]
        if not taken:
            return b""
        last = b"id: %b%d\ndata: %b\n\n" % (self._cursor, sequence, taken.pop())
        return b"".join([*[b"data: %b\n\n" % part for part in taken], last])

    def ending(self) -> bytes:
        """Frames for the end of the run: a log without a terminal event must not be read as a success."""
        if self._ended:
            return b""
        return self.prelude([t.RunError(message="the run ended without a terminal event", code="run_truncated")])

    def _stays(self, data: bytes) -> bool:
        """Whether the client can be given the event as it is stored."""
        return self._legal and not self._expander.lanes and _PLAIN.fullmatch(data) is not None

    def _taken(self, event: t.Event) -> t.Event | None:
        """The event as the client takes it; None when it would refuse it."""
        if is_void(event):
            return None
        event = conformant(event)
        if isinstance(event, t.RunFinished) and self._untold and self._waiting:
            self._name_waiting(event)
        if not self._passes(event):
            return None
        self._ended = isinstance(event, t.RunFinished | t.RunError)
        if isinstance(event, t.ToolCallStart) and event.tool_call_id not in self._answered:
            self._waiting[event.tool_call_id] = None
        elif isinstance(event, t.ToolCallResult):
            self._waiting.pop(event.tool_call_id, None)
            self._answered.add(event.tool_call_id)
        elif self._ended:
            self._waiting.clear()
            self._answered.clear()
            self._untold = False
        return event

    def _passes(self, event: t.Event) -> bool:
        violation = self._client.feed(event, 0)
        if violation is None:
            return True
        if violation.code != "attribution" or not isinstance(event, t.AgentEvent):
            return False
        # Who joined late may know less of who owns what than the agents did. An absent attribution never disagrees.
        event.subagent_run_id = UNSET
        if self._client.feed(event, 0) is None:
            return True
        if not isinstance(event, t.ToolCallStart):
            return False
        event.parent_message_id = UNSET
        return self._client.feed(event, 0) is None

    def _name_waiting(self, event: t.RunFinished) -> None:
        """Name the tool calls that wait for a result, because the client counts only those that it saw start."""
        if event.outcome is UNSET:
            event.outcome = t.SuccessOutcome()
        if isinstance(event.outcome, t.SuccessOutcome) and not event.outcome.pending_tool_call_ids:
            event.outcome.pending_tool_call_ids = list(self._waiting)
