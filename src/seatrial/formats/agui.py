"""AG-UI's event stream, recorded: server-sent events, one event per line, or an array of events.

Written as server-sent events of bare events, which every AG-UI client takes; the `id` of a frame, which clients
ignore, is its cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import UNSET

from seatrial.events import Event, cursor_text, encode_event, encode_sse, read_log, replay, to_transcript, unfold
from seatrial.events.codec import stands_in
from seatrial.events.expand import Expander
from seatrial.events.layout import KEY, RunRemainder, remainder
from seatrial.events.order import StreamEnding, Terminal
from seatrial.events.types import (
    ActivityDelta,
    ActivitySnapshot,
    CustomEvent,
    InterruptOutcome,
    MessagesSnapshot,
    RawEvent,
    RunError,
    RunFinished,
    StateDelta,
    StateSnapshot,
    SuccessOutcome,
    ToolCallChunk,
    ToolCallStart,
)
from seatrial.events.unfold import MAX_ID
from seatrial.events.violation import OrderViolation
from seatrial.formats.chat.calls import TOOL_CALL_DROPPED_NO_NAME
from seatrial.formats.chat.hidden_calls import KnownCalls, may_hold_call, note_calls_in_metadata
from seatrial.formats.chat.notes import At, NoteTally, note_failure
from seatrial.formats.chat.text_calls import writes_call
from seatrial.formats.reading import WAITS, WAITS_FOR_INPUT, Reading, Written, was_partial, why_partial
from seatrial.formats.sniffing import SURE, Members, Sample, Sniff, text_of
from seatrial.transcript import CustomMessage, ImageBlock, Note, Notes, Transcript, UserMessage, note_code, pointer
from seatrial.transcript.arguments import parse_arguments
from seatrial.transcript.call_facts import PlacedFacts
from seatrial.transcript.messages import AssistantMessage, Message, ToolCall

FORMAT = "agui"

EVENT_ORDER_VIOLATION = note_code(
    "event_order_violation",
    "An event is not allowed at its position; clients stop there, this reader does not. Serious for a part of a call.",
    "look",
)
ONLY_SEATRIAL_READS = note_code(
    "only_seatrial_reads",
    "The format has no field for it: it travels in metadata that other clients ignore.",
    "harmless",
)

CALLS_IN_EVENT = note_code(
    "calls_in_event",
    "An event that is not for calls (RAW, CUSTOM, a state, an activity, RUN_FINISHED) describes one that no other "
    "event has.",
    "serious",
)

_FORECAST: Final = frozenset({"state_key", "stateKey", "tool", "tool_argument", "toolArgument"})
_OPEN: Final = (RawEvent, CustomEvent, StateSnapshot, StateDelta, ActivitySnapshot, ActivityDelta)


def sniff(sample: Sample) -> Sniff | None:
    """Events have a type in capital letters."""
    return sample.surest(_sniff_event)


def _sniff_event(entry: Members) -> Sniff | None:
    kind = text_of(entry, "type")
    if kind is None or not kind.isupper() or kind in ("KEEPALIVE", "TERMINAL"):
        return None
    return Sniff(SURE, f"an event of the AG-UI type {kind[:40]}")


def read(data: bytes) -> Reading:
    """The transcript that the events add up to."""
    return read_events(data, FORMAT)


def write(transcript: Transcript) -> Written:
    """A run that has the transcript as its result. Nothing is lost when it is read here; see the losses for others."""
    return write_reading(Reading(FORMAT, transcript, []))


def write_reading(reading: Reading) -> Written:
    """The same, with what is known of the calls."""
    run_id, _, events = unfolded(reading)
    frames = [
        encode_sse(encode_event(event), id=cursor_text(run_id, sequence)) for sequence, event in enumerate(events)
    ]
    return Written(b"".join(frames), hidden(reading.transcript))


def unfolded(reading: Reading) -> tuple[str, str, list[Event]]:
    """The ids of the run and its thread, and the events that have all that was read but a trace."""
    thread_id, run_id = ids(reading.transcript)
    events = unfold(
        reading.transcript, thread_id=thread_id, run_id=run_id, facts=reading.facts, partial=why_partial(reading)
    )
    return run_id, thread_id, events


def read_events(data: bytes, format: str) -> Reading:
    """A recorded stream of either view as a transcript."""
    log = read_log(data)
    return reading_of(log.events, log.notes, format, log.run_id)


def reading_of(events: list[Event], read_notes: list[Note], format: str, run_id: str | None) -> Reading:
    """What events add up to; the notes are those that reading them gave."""
    result = replay(events)
    notes = [*read_notes, *result.notes, *_lost_calls(events)]
    if result.violation is not None:
        violation = result.violation
        message = f"{violation.message} ({violation.code})"
        notes.append(Note(EVENT_ORDER_VIOLATION, pointer(violation.index), message))
    ending = StreamEnding()
    for event in events:
        ending.take(event)
    end, index = ending.last, ending.index
    if index is not None and isinstance(end, RunFinished) and isinstance(end.outcome, InterruptOutcome):
        notes.append(Note(WAITS_FOR_INPUT, pointer(index), WAITS))
    if index is not None and end is not None:
        notes += notes_on_end(end, (index,))
    notes += _partial(events)
    unfit = Notes()
    facts: list[PlacedFacts] = []
    transcript = to_transcript(result.folded, unfit, facts)
    unseen = calls_in_events(events, transcript)
    reading = Reading(format, transcript, [*notes, *unfit, *unseen], id=run_id, events=events, facts=facts)
    return note_calls_in_metadata(reading)


def _partial(events: list[Event]) -> Iterator[Note]:
    """Notes on the ends of runs that say that not all calls are known."""
    for index, event in enumerate(events):
        if isinstance(event, RunFinished | RunError) and event.metadata is not UNSET:
            why = remainder(event.metadata, RunRemainder, index, []).partial
            if why is not None:
                yield was_partial(why, index)


def notes_on_end(end: Terminal, at: At) -> list[Note]:
    """What the result of a run that finished says of its end: it may have failed all the same."""
    ended = NoteTally()
    if isinstance(end, RunFinished) and type(end.result) is dict:
        note_failure(end.result, ended, (*at, "result"), of_run=True)
    return ended.total()


def _lost_calls(events: list[Event]) -> list[Note]:
    """Notes on calls without a name, and on pieces of calls that belong to no call."""
    tally = NoteTally()
    expander = Expander()
    for index, event in enumerate(events):
        expanded = expander.feed(event, index)
        if isinstance(event, ToolCallChunk) and isinstance(expanded, OrderViolation):
            nameless = expanded.code == "chunk_without_name"
            code = TOOL_CALL_DROPPED_NO_NAME if nameless else EVENT_ORDER_VIOLATION
            tally.add(code, (index,), expanded.message, each=expanded.code, weight="serious")
        elif isinstance(event, ToolCallStart | ToolCallChunk):
            name = event.tool_call_name
            if name is not UNSET and not name.strip():
                tally.add(TOOL_CALL_DROPPED_NO_NAME, (index,), f"{event.tool_call_id!r} calls a tool without a name")
        elif isinstance(event, MessagesSnapshot) and _calls_without_name(event):
            text = "a message calls a tool without a name"
            tally.add(TOOL_CALL_DROPPED_NO_NAME, (index, "messages"), text, each="")
    return tally.total()


def _calls_without_name(snapshot: MessagesSnapshot) -> bool:
    for message in [] if snapshot.messages is UNSET else snapshot.messages:
        calls = message.get("toolCalls")
        functions = [call.get("function") for call in calls if type(call) is dict] if type(calls) is list else []
        names = [function.get("name") for function in functions if type(function) is dict]
        if any(type(name) is str and not name.strip() for name in names):
            return True
    return False


def ids(transcript: Transcript) -> tuple[str, str]:
    """Thread and run id to write under: the transcript's own where they can be ids."""
    identity = transcript.identity
    thread_id = identity.conversation_id if identity is not None else None
    run_id = identity.run_id if identity is not None else None
    return (
        thread_id if thread_id is not None and 1 <= len(thread_id) <= MAX_ID else "thread-1",
        run_id if run_id is not None and 1 <= len(run_id) <= MAX_ID else "run-1",
    )


def hidden(transcript: Transcript) -> list[Note]:
    """What other clients than ours do not show."""
    notes = []
    for index, message in enumerate(transcript.messages):
        at = pointer("messages", index)
        if isinstance(message, UserMessage) and type(message.content) is list:
            images = sum(isinstance(block, ImageBlock) for block in message.content)
            if images:
                notes.append(Note(ONLY_SEATRIAL_READS, at, f"{images} image(s): no event streams an image of a user"))
        elif isinstance(message, CustomMessage):
            notes.append(Note(ONLY_SEATRIAL_READS, at, "a custom message is an activity, which few clients know"))
    return notes


def calls_in_events(events: Iterable[Event], transcript: Transcript) -> list[Note]:
    """Notes on events that describe calls other than those of the transcript, which the events add up to.

    Many integrations send what their framework says beside what AG-UI has events for. To repeat a call, by its id or by
    its name and arguments, is to add nothing.
    """
    known = KnownCalls.of(_calls(transcript.messages), _calls(transcript.done()))
    tally = NoteTally()
    for index, event in enumerate(events):
        if isinstance(event, RunFinished) and isinstance(event.outcome, SuccessOutcome):
            pending = event.outcome.pending_tool_call_ids
            for call_id in () if pending is UNSET else pending:
                if call_id not in known.names:
                    text = f"the call {call_id[:40]!r} is said to wait for a result, and no event has it"
                    tally.add(CALLS_IN_EVENT, (index, "outcome"), text, each="pending")
        for field, key, value in _payloads(event):
            if _holds_call(key, value, known):
                kind = str(type(event).__struct_config__.tag)
                text = f"what {kind} has under {field!r} looks like a call that no other event has"
                tally.add(CALLS_IN_EVENT, (index, field), text, each=f"{kind} {field}")
    return tally.total()


def _holds_call(key: str, value: Any, known: KnownCalls) -> bool:
    """Whether a payload describes a call, also in JSON text: as a whole, or as one of its members."""
    opened = _opened(value)
    if type(opened) is dict:
        opened = {name: _opened(item) for name, item in opened.items()}
    if type(opened) is str:
        return writes_call(opened, known)
    return may_hold_call(key, opened, known)


def _opened(value: Any) -> Any:
    """The object or array that a text is the JSON of; else the value itself."""
    if type(value) is not str or value.lstrip()[:1] not in ("{", "["):
        return value
    opened, not_json = parse_arguments(value)
    return value if not_json else opened


def _payloads(event: Event) -> Iterator[tuple[str, str, Any]]:
    """What an event has in which anything may stand: the field, the key that names it, and the value."""
    if event.raw_event is not UNSET:
        yield "rawEvent", "", event.raw_event
    if event.metadata is not UNSET:
        yield "metadata", "", {key: value for key, value in event.metadata.items() if key != KEY}
    if type(event) not in _OPEN:  # as almost always
        return
    if isinstance(event, RawEvent):
        if not stands_in(event):  # which is noted as what it is
            yield "event", "", event.event
    elif isinstance(event, CustomEvent):
        if not _is_forecast(event):
            yield "value", event.name, event.value
    elif isinstance(event, StateSnapshot):
        yield "snapshot", "", event.snapshot
    elif isinstance(event, StateDelta):
        yield from (("delta", _last(operation), operation.get("value")) for operation in event.delta)
    elif isinstance(event, ActivitySnapshot):
        yield "content", event.activity_type, event.content
    elif isinstance(event, ActivityDelta):
        yield from (("patch", _last(operation), operation.get("value")) for operation in event.patch)


def _is_forecast(event: CustomEvent) -> bool:
    """Whether this says which argument of which tool will become which part of the state, as integrations send it."""
    value = event.value if event.name == "PredictState" else None
    return type(value) is list and all(type(item) is dict and _FORECAST.issuperset(item) for item in value)


def _last(operation: dict[str, Any]) -> str:
    """The key that an operation writes to; that of the list, where it adds to one."""
    path = operation.get("path")
    parts = [part for part in (path.split("/") if type(path) is str else []) if not part.isdecimal() and part != "-"]
    return parts[-1] if parts else ""


def _calls(messages: Iterable[Message]) -> list[ToolCall]:
    return [call for message in messages if type(message) is AssistantMessage for call in message.tool_calls()]
