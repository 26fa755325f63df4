"""The body that a customer-hosted agent returns: `{final_response, messages?, metadata?, trace?, trace_ref?}`.

Well-formed bodies take a fast path (`seatrial.formats.agent_response_fast`). All others are read carefully here, key by
key and message by message, with the same result where both can read a body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.agent_response_fast import read_well_formed
from seatrial.formats.chat.calls import PlacedFacts
from seatrial.formats.chat.decoding import decoded, decoded_messages, members, take_first
from seatrial.formats.chat.hidden_calls import KEY_DROPPED, calls_in_metadata, may_hold_call, note_other_answer
from seatrial.formats.chat.limits import excess, note_answer_only
from seatrial.formats.chat.notes import NoteTally, json_kind, note_failure
from seatrial.formats.chat.parts import has_visible_text, note_unclosed, visible
from seatrial.formats.chat.reader import MESSAGES_INVALID, MESSAGES_MISSING, Chat
from seatrial.formats.chat.turn import read_usage
from seatrial.formats.chat.writing import losses, written_arguments, written_message
from seatrial.formats.reading import Reading, Written
from seatrial.formats.sniffing import SURE, Members, Sample, Sniff, first_byte
from seatrial.formats.trace import TRACE_REF_KEYS, read_trace, read_trace_ref
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    Message,
    Note,
    StopReason,
    TextBlock,
    ToolResultMessage,
    Transcript,
    Usage,
    Weight,
    note_code,
    pointer,
)
from seatrial.transcript.salvage import VALUE_DROPPED

FINAL_RESPONSE_MISSING = note_code("final_response_missing", "There is no final_response, or it is empty.", "look")
FINAL_RESPONSE_TRUNCATED = note_code(
    "final_response_truncated",
    "The final_response is longer than 50,000 characters: all of it is graded, but it is not shown whole.",
    "look",
)
METADATA_INVALID = note_code("metadata_invalid", "The metadata is not an object; it was ignored.", "look")
METADATA_NOT_UNDERSTOOD = note_code(
    "metadata_not_understood",
    "A metadata value is not of the kind its key promises; it stays among the metadata.",
    "look",
)

FORMAT: Final = "agent-response"
LONG_FINAL_RESPONSE = 50_000
"""Code points. A longer answer is noted, and kept: a check of a part of it would say what is not true of the whole."""
_KEYS = ("final_response", "message", "session_done", "metadata")
_USAGE = ("usage", "token_usage", "tokenUsage")
_READ = frozenset({*_KEYS, *_USAGE, "messages"})
# Metadata that the transcript has fields for.
_INPUT_TOKENS = "total_input_tokens"
_OUTPUT_TOKENS = "total_output_tokens"
_RUNTIME = "agent_runtime_ms"
_COST = "cost_usd"


class _Marks(msgspec.Struct):
    """The keys that give an agent response away."""

    final_response: msgspec.Raw | UnsetType = UNSET
    session_done: msgspec.Raw | UnsetType = UNSET
    message: msgspec.Raw | UnsetType = UNSET


def sniff(sample: Sample) -> Sniff | None:
    """The answer is under a key of its own."""
    return sample.surest(_sniff_body)


def _sniff_body(entry: Members) -> Sniff | None:
    if "final_response" in entry:
        return Sniff(SURE + 10, "a top-level key final_response")
    if "session_done" in entry and "message" in entry:
        return Sniff(SURE, "the keys message and session_done of a turn")
    return None


def is_agent_response(data: bytes) -> bool:
    """Whether bytes are one object that has the keys of an agent response, whatever else is beside them."""
    try:
        keys = wire.decode(data, _MARKS, [])
    except SeatrialError:
        return False
    return keys.final_response is not UNSET or (keys.session_done is not UNSET and keys.message is not UNSET)


def read(data: bytes) -> Reading:
    """Read an agent response.

    Raises `SeatrialError` when the body is not a JSON object; everything else is a reading with notes. Without a usable
    `final_response` there is the note `final_response_missing`, and what that means is the contract's to say.
    """
    if (much := excess(data)) is not None:
        return _read_answer(data, much)
    found = read_well_formed(data)
    return (
        _read_carefully(data) if found is None else _reading(found.answer, found.messages, found.metadata, found.notes)
    )


def write(transcript: Transcript) -> Written:
    """Write a transcript as an agent response that is valid under the published schema."""
    messages: list[dict[str, Any]] = []
    dropped: list[int] = []
    called: set[str] = set()
    for index, message in enumerate(transcript.messages):
        if isinstance(message, CustomMessage):
            # The schema has four roles, and none for these.
            dropped.append(index)
            continue
        written = written_message(message)
        if isinstance(message, AssistantMessage) and (calls := message.tool_calls()):
            called.update([call.id for call in calls])
            written["tool_calls"] = [
                {"id": call.id, "name": call.name, "arguments": written_arguments(call)} for call in calls
            ]
        elif isinstance(message, ToolResultMessage) and message.tool_call_id not in called:
            # The reader takes a result's name from its call; there is none.
            written["name"] = message.tool_name
        messages.append(written)
    answer = transcript.final_text() if transcript.answer is None else transcript.answer
    body: dict[str, Any] = {"final_response": answer or "", "messages": messages}
    if metadata := _written_metadata(transcript):
        body["metadata"] = metadata
    data = wire.encode(body)
    return Written(data, losses(transcript, read(data).transcript, dropped))


def _reading(answer: str, messages: list[Message], metadata: dict[str, Any], notes: list[Note]) -> Reading:
    if len(answer) > LONG_FINAL_RESPONSE:
        text = f"it has {len(answer):,} characters; all are graded, and only some are shown"
        notes.append(Note(FINAL_RESPONSE_TRUNCATED, "/final_response", text))
    if "<" in answer:  # a thinking tag, perhaps
        notes += note_unclosed(answer, ("final_response",))
        answer = visible(answer)
    transcript = Transcript(messages, answer, None, None, None, None, metadata)
    if metadata:
        _lift(transcript, notes)
        for key, what in metadata.items():
            if note := calls_in_metadata(key, what, "metadata", messages=messages):
                notes.append(note)
    return Reading(FORMAT, transcript, notes)


def _lift(transcript: Transcript, notes: list[Note]) -> None:
    """Move what the transcript has fields for out of the metadata."""
    metadata = transcript.metadata
    read, written = metadata.get(_INPUT_TOKENS), metadata.get(_OUTPUT_TOKENS)
    both = _is_count(read, _INPUT_TOKENS, notes)
    both = _is_count(written, _OUTPUT_TOKENS, notes) and both
    # Half a count would be shown, and judged, as a whole one: it stays among the metadata.
    if both:
        transcript.usage = Usage(metadata.pop(_INPUT_TOKENS), metadata.pop(_OUTPUT_TOKENS))
    if (runtime := metadata.get(_RUNTIME)) is not None:
        if type(runtime) is float or type(runtime) is int:
            transcript.duration_ms = metadata.pop(_RUNTIME)
        else:
            notes.append(_not_understood(_RUNTIME, runtime))
    if (cost := metadata.get(_COST)) is not None:
        if (type(cost) is float or type(cost) is int) and 0 <= cost < 2**63:
            transcript.cost_usd = metadata.pop(_COST)
        else:
            notes.append(_not_understood(_COST, cost, "an amount that is not negative"))


def _is_count(value: Any, key: str, notes: list[Note]) -> bool:
    if type(value) is int and 0 <= value < 2**63:
        return True
    if value is not None:
        notes.append(_not_understood(key, value, "a number of tokens that is not negative"))
    return False


def _not_understood(key: str, value: Any, expected: str = "a number of 64 bits") -> Note:
    return Note(METADATA_NOT_UNDERSTOOD, pointer("metadata", key), f"expected {expected}, got {json_kind(value)}")


def _read_carefully(data: bytes) -> Reading:
    tally = NoteTally(len(data))
    given = members(data, tally, ())
    if given is None:
        raise SeatrialError(
            "invalid_document",
            "an agent response is an object, and this is something else",
            hint='the least that will do is {"final_response": "..."}',
        )
    body = {key: decoded(given[key], tally, (key,)) for key in _KEYS if key in given}
    answer = _answer(body, tally.notes)
    answer_only = False
    facts: list[PlacedFacts] = []
    entries = decoded_messages(given["messages"], tally, ("messages",)) if "messages" in given else None
    if isinstance(entries, Iterator):
        chat = Chat(tally)
        chat.read_all(entries, ("messages",))
        messages, facts = chat.messages, chat.finish()
    else:
        if entries is None:
            tally.add(MESSAGES_MISSING, ("messages",), "there are no messages; the answer is used instead")
        else:
            tally.add(MESSAGES_INVALID, ("messages",), f"expected an array, got {json_kind(entries)}")
        messages = [AssistantMessage([TextBlock(answer)], StopReason.END_TURN)] if answer else []
        answer_only = True
    metadata = body.get("metadata")
    if metadata is not None and type(metadata) is not dict:
        tally.add(METADATA_INVALID, ("metadata",), f"expected an object, got {json_kind(metadata)}")
        metadata = None
    beside = {key: decoded(raw, tally, (key,)) for key, raw in given.items() if key not in _READ}
    trace = beside.pop("trace", None)
    ref_key, trace_ref = take_first(beside, TRACE_REF_KEYS, tally.notes)
    events = None if trace is None else read_trace(trace, tally.notes, at=("trace",))
    trace_ref = read_trace_ref(trace_ref, tally.notes, at=(ref_key,))
    for key, what in beside.items():
        _note_unread(key, what, tally)
    note_failure(beside, tally, of_run=True)
    usage = _usage(given, tally)
    reading = _reading(answer, messages, metadata or {}, tally.total())
    reading.transcript.usage = reading.transcript.usage or usage
    reading.answer_only = answer_only
    reading.facts = facts
    reading.trace, reading.trace_ref = events, trace_ref
    return reading


def _usage(given: dict[str, msgspec.Raw], tally: NoteTally) -> Usage | None:
    """The counts beside the answer, by any of their names; those of the metadata count first."""
    for key in _USAGE:
        if key in given and (value := decoded(given[key], tally, (key,))) is not None:
            if (usage := read_usage(value)) is not None:
                return usage
            tally.add(VALUE_DROPPED, (key,), f"expected token counts, got {json_kind(value)}")
    return None


def _answer(body: dict[str, Any], notes: list[Note]) -> str:
    # A turn of a conversation may be answered with {message, session_done} instead.
    key = "message" if "session_done" in body and "final_response" not in body else "final_response"
    answer = body.get(key)
    if type(answer) is str and has_visible_text(answer):
        return answer
    got = "no visible text" if type(answer) is str else json_kind(answer) if key in body else "nothing"
    notes.append(Note(FINAL_RESPONSE_MISSING, pointer(key), f"expected a text that is not empty, got {got}"))
    return ""


class _Answer(msgspec.Struct):
    """What is read of a body that has more in it than is read."""

    final_response: msgspec.Raw = msgspec.Raw(b"null")


def _read_answer(data: bytes, much: str) -> Reading:
    tally = NoteTally()
    note_answer_only(tally, much)
    found = wire.decode(data, _ANSWER, []).final_response
    text = decoded(found, tally, ("final_response",)) if first_byte(found) == b'"' else None
    if text is not None:
        note_other_answer(data, "final_response", text, tally)
    answer = _answer({"final_response": text}, tally.notes)
    messages: list[Message] = [AssistantMessage([TextBlock(answer)], StopReason.END_TURN)] if answer else []
    reading = _reading(answer, messages, {}, tally.total())
    reading.answer_only = True
    return reading


def _note_unread(key: str, value: Any, tally: NoteTally) -> None:
    """Note a key beside the messages that nobody reads: serious when what stands under it looks like calls."""
    if value is None or value == [] or value == {}:
        return
    weight: Weight = "serious" if may_hold_call(key, value) else "harmless"
    tally.add(KEY_DROPPED, (key,), f"dropped the key {key[:100]!r}", weight=weight)


def _written_metadata(transcript: Transcript) -> dict[str, Any]:
    metadata = dict(transcript.metadata)
    if transcript.usage is not None:
        metadata[_INPUT_TOKENS] = transcript.usage.input_tokens
        metadata[_OUTPUT_TOKENS] = transcript.usage.output_tokens
    if transcript.duration_ms is not None:
        metadata[_RUNTIME] = transcript.duration_ms
    if transcript.cost_usd is not None:
        metadata[_COST] = transcript.cost_usd
    return metadata


_MARKS = msgspec.json.Decoder(_Marks)
_ANSWER = msgspec.json.Decoder(_Answer)
