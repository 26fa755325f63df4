"""The conversation of a thread: what its runs said so far, and the request that continues it with an agent.

A run's log is folded once. The result is kept for the next run, so that a conversation costs its length, not the square
of it. Events that retention has removed are not part of it any more, which is noted on the runs that continue it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial.api import CreateRun
from seatrial.errors import SeatrialError
from seatrial.events import agui_messages as agui
from seatrial.events import replay
from seatrial.events.run_input import PROTOCOL_VERSION, RunAgentInput
from seatrial.events.types import RunStarted
from seatrial.runs import Case, ServedRun
from seatrial.server.stored_log import read_log
from seatrial.store import Store
from seatrial.transcript import Note, note_code

HISTORY_EXPIRED = note_code(
    "history_expired",
    "Retention has deleted events of earlier runs of the thread: the agent was sent the conversation without them.",
    "look",
)


def read_messages(request: CreateRun, run_id: str, notes: list[Note]) -> list[agui.Message]:
    """The messages of a request, each with an id. Raises `SeatrialError` for one that is none of AG-UI's."""
    given = [
        message if type(message.get("id")) is str else {**message, "id": f"{run_id}-input-{index}"}
        for index, message in enumerate(request.input.messages)
    ]
    messages = agui.read_messages(given, ("input", "messages"), notes)
    for note in notes:
        if note.code == agui.AGUI_MESSAGE_DROPPED:
            raise SeatrialError("invalid_request", f"AG-UI has no such message: {note.message}", pointer=note.pointer)
    return messages


def run_input(request: CreateRun, run_id: str, thread_id: str, messages: list[agui.Message]) -> RunAgentInput:
    """What is asked for, with these messages."""
    given = request.input
    return RunAgentInput(
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=PROTOCOL_VERSION,
        state=given.state,
        messages=[msgspec.to_builtins(message) for message in messages],
        tools=given.tools,
        context=given.context,
        forwarded_props=given.forwarded_props,
        resume=UNSET if request.resume is None else request.resume,
    )


def with_history(given: RunAgentInput, history: History) -> RunAgentInput:
    """The same with the whole conversation, and with the fields that agents expect always to be there."""
    state = history.state if given.state is UNSET else given.state
    return msgspec.structs.replace(
        given,
        messages=[msgspec.to_builtins(message) for message in history.messages],
        state={} if state is UNSET else state,
        forwarded_props={} if given.forwarded_props is UNSET else given.forwarded_props,
    )


def case_of(run_id: str, messages: list[agui.Message], state: Any = UNSET) -> Case:
    """A conversation as a case: the last word of the user is the instruction, and the state is the input."""
    instruction = ""
    last = messages[-1] if messages else None
    if isinstance(last, agui.UserMessage):
        instruction = _text(last.content)
        messages = messages[:-1]
    plain = {} if state is UNSET or state is None else state if isinstance(state, dict) else {"state": state}
    earlier = [shown for message in messages if (shown := _openai_message(message)) is not None]
    return Case(id=run_id, instruction=instruction, input=plain, messages=earlier)


def _openai_message(message: agui.Message) -> dict[str, Any] | None:
    """A message in OpenAI's shape; None for what has no place there."""
    if isinstance(message, agui.ActivityMessage | agui.ReasoningMessage):
        return None
    shown: dict[str, Any] = {"role": type(message).__struct_config__.tag}
    if message.name is not UNSET:
        shown["name"] = message.name
    if isinstance(message, agui.AssistantMessage):
        shown["content"] = None if message.content is UNSET else message.content
        if message.tool_calls is not UNSET and message.tool_calls:
            shown["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in message.tool_calls
            ]
        return shown
    if isinstance(message, agui.ToolMessage):
        shown["tool_call_id"] = message.tool_call_id
    content = message.content
    shown["content"] = content if isinstance(content, str) else [_openai_part(part) for part in content]
    return shown


def _openai_part(part: agui.Part) -> agui.Part:
    source = part.get("source")
    if part.get("type") != "image" or not isinstance(source, dict) or not isinstance(source.get("value"), str):
        return part
    url = source["value"]
    if source.get("type") == "data":
        url = f"data:{source.get('mimeType') or ''};base64,{url}"
    return {"type": "image_url", "image_url": {"url": url}}


def _text(content: str | list[agui.Part]) -> str:
    if isinstance(content, str):
        return content
    return "".join([part["text"] for part in content if isinstance(part.get("text"), str)])


THREADS = 256
"""How many conversations are remembered."""
MAX_BYTES = 64 << 20
"""How much of them."""


class History(msgspec.Struct):
    """A conversation so far."""

    messages: list[agui.Message]
    state: Any = UNSET
    expired: int = 0
    """How many of its runs retention has deleted events of: what they said is not all here."""


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
        log = read_log(self._store, run_id)
        events, expired = log.events, history.expired + (log.first > 0)
        state = history.state
        if events and isinstance(events[0], RunStarted) and isinstance(events[0].input, dict):
            state = events[0].input.get("state", state)
        folded = replay(events, messages=history.messages, state=state).folded
        return History(folded.messages, folded.state if folded.state or state is not UNSET else UNSET, expired)

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
