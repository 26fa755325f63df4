"""The AG-UI view of a run: bare events as SSE, for clients that know nothing of sequences (events.md B8, B12)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import UNSET

from seatrial.api import CreateRun, RunInput, check_chosen_id
from seatrial.errors import SeatrialError
from seatrial.events import encode_sse_comment, read_run_input
from seatrial.runs import RunHead, ServedRun
from seatrial.server.delivery import deliver
from seatrial.server.feed import Feeds
from seatrial.server.history import Histories
from seatrial.server.prelude import Standing
from seatrial.server.service import RunService
from seatrial.server.subscription import Subscription
from seatrial.server.view import View
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
        # The same answers to the same interrupts. Who sent them twice may have some of what came of them.
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
    tell = standing.joining if joining else standing.resuming
    return view, view.prelude(tell(head.run_id, head.thread_id))


def _standing(store: Store, head: RunHead, count: int, *, whole: bool) -> Standing:
    """How things stand behind so many events; with what the thread and the messages say, only when whole."""
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
    now = asyncio.get_running_loop().time
    if prelude:
        yield prelude
    quiet_until = now() + keepalive_s
    while True:
        try:
            block = await subscription.take(quiet_until)
            if block is None:
                break
            frames = b"".join([view.frames(*event) for event in enumerate(block.events, block.first)])
            if not frames and now() >= quiet_until:
                frames = _KEEPALIVE
        except TimeoutError:
            frames = _KEEPALIVE
        if frames:
            yield frames
            quiet_until = now() + keepalive_s
    if subscription.status is not None:
        yield view.ending()
    elif subscription.interrupted:
        # A stream that ends is taken for a run that has ended, one that breaks is not.
        subscription.cut_off()
