"""AG-UI's event stream, recorded: server-sent events, one event per line, or an array of events.

Written as server-sent events of bare events, which every AG-UI client takes; the `id` of a frame, which clients
ignore, is its cursor.
"""

from __future__ import annotations

from msgspec import UNSET

from seatrial.events import Event, cursor_text, encode_event, encode_sse, read_log, replay, to_transcript, unfold
from seatrial.events.ending import StreamEnding
from seatrial.events.expand import Expander
from seatrial.events.types import InterruptOutcome, MessagesSnapshot, RunFinished, ToolCallChunk, ToolCallStart
from seatrial.events.unfold import MAX_ID
from seatrial.events.violation import OrderViolation
from seatrial.formats.calls import TOOL_CALL_DROPPED_NO_NAME
from seatrial.formats.reading import WAITS, WAITS_FOR_INPUT, Reading, Written
from seatrial.formats.sniffing import SURE, Members, Sample, Sniff, text_of
from seatrial.formats.tally import NoteTally
from seatrial.formats.unseen import calls_in_events, note_calls_in_metadata
from seatrial.transcript import CustomMessage, ImageBlock, Note, Notes, Transcript, UserMessage, note_code, pointer

NAME = "agui"

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
    return read_events(data, NAME)


def write(transcript: Transcript) -> Written:
    """A run that has the transcript as its result. Nothing is lost when it is read here; see the losses for others."""
    thread_id, run_id = ids(transcript)
    events = unfold(transcript, thread_id=thread_id, run_id=run_id)
    frames = [
        encode_sse(encode_event(event), id=cursor_text(run_id, sequence)) for sequence, event in enumerate(events)
    ]
    return Written(b"".join(frames), hidden(transcript))


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
    unfit = Notes()
    transcript = to_transcript(result.folded, unfit)
    unseen = calls_in_events(events, transcript)
    reading = Reading(format, transcript, [*notes, *unfit, *unseen], id=run_id, events=events)
    return note_calls_in_metadata(reading)


def _lost_calls(events: list[Event]) -> list[Note]:
    """Notes on the calls of which nobody knows what was called, and on pieces of calls that belong to none."""
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
