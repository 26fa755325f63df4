"""What was said in a thread: the logs of its runs, folded one after the other.

A run's log is folded once. What came of it is kept for the next one, so that a conversation costs its length, not the
square of it. Events that retention has removed say nothing any more.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import msgspec
from msgspec import UNSET

from seatrial import wire
from seatrial.events import agui_messages as agui
from seatrial.events import replay
from seatrial.events.types import RunStarted
from seatrial.runs import ServedRun
from seatrial.server.stored_log import read_log
from seatrial.store import Store

THREADS = 256
"""How many conversations are remembered."""
MAX_BYTES = 64 << 20
"""How much of them."""


class History(msgspec.Struct):
    """A conversation so far."""

    messages: list[agui.Message]
    state: Any = UNSET


class _Known(msgspec.Struct):
    runs: int
    """How many runs of the thread it covers; all of them have ended."""
    last: str
    """The id of the last of those."""
    data: bytes
    """The `History`, encoded: what is folded on must not change what others hold."""


class Histories:
    """The conversations of a store. Every method blocks, and may be called from any thread."""

    def __init__(self, store: Store, *, threads: int = THREADS, max_bytes: int = MAX_BYTES) -> None:
        self._store = store
        self._threads = threads
        self._max_bytes = max_bytes
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def of(self, thread_id: str, runs: list[ServedRun]) -> History:
        """The conversation that these runs are, which are all runs of the thread in their order."""
        ended = [run.run_id for run in runs if run.ended_at is not None]
        with self._lock:
            known = self._known.get(thread_id)
        history, covered = History([]), 0
        if known is not None and known.runs <= len(ended) and ended[known.runs - 1] == known.last:
            history, covered = wire.decode(known.data, _DECODER), known.runs
        for run_id in ended[covered:]:
            history = self._after(history, run_id)
        if len(ended) > covered:
            self._remember(thread_id, _Known(len(ended), ended[-1], wire.encode(history)))
        for run in runs[len(ended) :]:
            history = self._after(history, run.run_id)
        return history

    def _after(self, history: History, run_id: str) -> History:
        events = read_log(self._store, run_id).events
        state = history.state
        if events and isinstance(events[0], RunStarted) and isinstance(events[0].input, dict):
            state = events[0].input.get("state", state)
        folded = replay(events, messages=history.messages, state=state).folded
        return History(folded.messages, folded.state if folded.state or state is not UNSET else UNSET)

    def _remember(self, thread_id: str, known: _Known) -> None:
        with self._lock:
            self._forget(thread_id)
            self._known[thread_id] = known
            self._bytes += len(known.data)
            while self._known and (len(self._known) > self._threads or self._bytes > self._max_bytes):
                self._forget(next(iter(self._known)))

    def _forget(self, thread_id: str) -> None:
        known = self._known.pop(thread_id, None)
        if known is not None:
            self._bytes -= len(known.data)


_DECODER = msgspec.json.Decoder(History)
