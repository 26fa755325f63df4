"""The provider response: one JSON object with `text`, `output_messages` and perhaps an explicit `trace`.

snake_case is what is written; camelCase is read as well. Trace and messages are both kept: comparing them, and
choosing, is up to `seatrial.trajectory`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.chat.calls import PlacedFacts
from seatrial.formats.chat.decoding import KEY_REPEATED, decoded, decoded_messages, members, take_first
from seatrial.formats.chat.hidden_calls import calls_in_metadata, note_calls_in_metadata, note_other_answer
from seatrial.formats.chat.limits import excess, note_answer_only
from seatrial.formats.chat.notes import NoteTally, json_kind, note_failure
from seatrial.formats.chat.parts import note_unclosed, read_text, split_thoughts_of_part, visible
from seatrial.formats.chat.reader import MESSAGES_INVALID, MESSAGES_MISSING, Chat
from seatrial.formats.chat.turn import read_usage
from seatrial.formats.chat.writing import losses, written_arguments, written_message
from seatrial.formats.reading import Reading, Written, earlier_turns
from seatrial.formats.sniffing import HINT, SURE, Members, Sample, Sniff, first_byte
from seatrial.formats.trace import TRACE_REF_KEYS, read_trace, read_trace_ref
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    CustomMessage,
    Message,
    Note,
    ReasoningBlock,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    Usage,
    note_code,
    pointer,
)
from seatrial.transcript.note import repair_notes
from seatrial.transcript.salvage import VALUE_DROPPED

ANSWER_MISSING = note_code("answer_missing", "There is no text, and no assistant message with text: no answer.", "look")
OUTPUT_READ_AS_TEXT = note_code(
    "output_read_as_text", "`output` is text where messages belong; it was read as the answer.", "look"
)
KEY_MISSPELLED = note_code(
    "key_misspelled", "A key that means nothing looks like one that does; it was kept as metadata.", "serious"
)

FORMAT: Final = "output-messages"
_MESSAGES = ("output_messages", "outputMessages", "output")
_USAGE = ("token_usage", "tokenUsage", "usage")
_COST = ("cost_usd", "costUsd")
_DURATION = ("duration_ms", "durationMs")
_KNOWN = (
    "id",
    "text",
    "reasoning",
    "raw",
    "trace",
    "metadata",
    *_MESSAGES,
    *TRACE_REF_KEYS,
    *_USAGE,
    *_COST,
    *_DURATION,
)


def sniff(sample: Sample) -> Sniff | None:
    """Messages, or a trace, under one of the names that they have."""
    return sample.surest(_sniff_body)


def _sniff_body(entry: Members) -> Sniff | None:
    for key in ("output_messages", "outputMessages", "trace", "trace_ref", "traceRef"):
        if key in entry and "final_response" not in entry:
            return Sniff(SURE + 5, f"a top-level key {key}")
    if first_byte(entry.get("output")) == b"[" and "object" not in entry and "type" not in entry:
        return Sniff(SURE, "a top-level array output")
    if "text" in entry and "role" not in entry and "type" not in entry:
        return Sniff(HINT, "a top-level key text")
    return None


def read(data: bytes) -> Reading:
    """Read a provider response.

    Raises `SeatrialError` when it is not a JSON object, or one in which nothing is an answer, a message or a trace.
    """
    if (much := excess(data)) is not None:
        return _read_answer(data, much)
    tally = NoteTally(len(data))
    given = members(data, tally, ())
    if given is None:
        raise SeatrialError("invalid_document", "a provider response is an object, and this is something else")
    if bytes(given.get("object", b"")) == b'"response"':
        # The Responses API calls its items `output`, too, and says more about them.
        from seatrial.formats import responses

        return note_calls_in_metadata(responses.read(data))
    if "stopReason" in given and bytes(given.get("output", b"")).startswith(b"{"):
        # So does Bedrock Converse, for an object with one message.
        from seatrial.formats import bedrock

        return note_calls_in_metadata(bedrock.read(data))
    # Under a second name they are not read as messages.
    listed = next((key for key in _MESSAGES if key in given and bytes(given[key]) != b"null"), None)
    body = {key: (decoded_messages if key == listed else decoded)(given[key], tally, (key,)) for key in given}
    return read_object(body, tally)


def read_object(body: dict[str, Any], tally: NoteTally | None = None) -> Reading:
    """Read a provider response that is decoded already."""
    tally = NoteTally() if tally is None else tally
    notes = tally.notes
    rest = dict(body)
    text = rest.pop("text", None)
    trace = rest.pop("trace", None)
    key, entries = take_first(rest, _MESSAGES, notes)
    if key == "output":
        notes += earlier_turns(body)
    ref_key, trace_ref = take_first(rest, TRACE_REF_KEYS, notes)
    if text is None and entries is None and trace is None and trace_ref is None:
        raise SeatrialError(
            "invalid_document",
            "a provider response has a text, output_messages, a trace or a trace_ref, but this object has none of them",
            hint=", ".join([f"{key} looks like {meant}" for key, meant in _misspelled(rest)]) or None,
        )
    if text is None and type(entries) is str:
        notes.append(Note(OUTPUT_READ_AS_TEXT, pointer(key), "read as the answer"))
        text, entries = entries, None
    if type(text) is dict and "format" in text and entries is not None:
        # A whole response of the Responses API: there, `text` is a setting, and never the answer.
        rest["text"], text = text, None
    answer = None if text is None else read_text(text, ("text",), notes)
    if answer is not None:
        notes += note_unclosed(answer, ("text",))
        answer = visible(answer)
    facts: list[PlacedFacts] = []
    listed = isinstance(entries, list | Iterator)
    if listed:
        chat = Chat(tally)
        chat.read_all(entries, (key,))
        messages, facts = chat.messages, chat.finish()
    else:
        messages = _stand_in(key, entries, answer, rest, notes)
    record_id = _id(rest, notes)
    trace_ref = read_trace_ref(trace_ref, notes, at=(ref_key,))
    transcript = Transcript(
        messages,
        answer,
        usage=_usage(rest, notes),
        cost_usd=_amount(rest, _COST, notes),
        duration_ms=_amount(rest, _DURATION, notes),
    )
    transcript.metadata = _metadata(rest, messages, notes)
    if not transcript.final_text():
        notes.append(Note(ANSWER_MISSING, "", "there is no answer"))
    events = None if trace is None else read_trace(trace, notes, at=("trace",))
    return Reading(
        FORMAT,
        transcript,
        tally.total(),
        id=record_id,
        trace=events,
        trace_ref=trace_ref,
        facts=facts,
        answer_only=not listed,
    )


class _Answer(msgspec.Struct):
    """What is read of a response that has more in it than is read."""

    text: msgspec.Raw = msgspec.Raw()


def _read_answer(data: bytes, much: str) -> Reading:
    tally = NoteTally()
    try:
        found = wire.decode(data, _ANSWER, []).text
    except SeatrialError as error:
        if error.code != "invalid_document":
            raise
        found = msgspec.Raw()
    answer = decoded(found, tally, ("text",)) if first_byte(found) == b'"' else None
    if not answer:
        raise SeatrialError("too_large", f"the record has {much}, and no `text` that is the answer")
    note_answer_only(tally, much)
    note_other_answer(data, "text", answer, tally)
    return _text_alone(answer, tally)


def read_text_output(data: bytes) -> Reading:
    """Read output that is plain text: all of it is the answer. For agents that promise no JSON."""
    if not data or data.isspace():
        raise SeatrialError("empty_input", "the output is empty")
    try:
        text, repairs = data.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        text, repairs = wire.repaired_text(data).removeprefix("\ufeff"), repair_notes(["invalid_utf8_replaced"])
    tally = NoteTally()
    tally.notes += repairs
    return _text_alone(text, tally)


def _text_alone(text: str, tally: NoteTally) -> Reading:
    """The reading of an answer beside which nothing is known."""
    blocks = split_thoughts_of_part(text, tally, ())
    transcript = Transcript([AssistantMessage([*blocks], StopReason.END_TURN)], visible(text))
    return Reading(FORMAT, transcript, tally.total(), answer_only=True)


def write(transcript: Transcript, record_id: str | None = None) -> Written:
    """Write a transcript as a provider response; with an id, as a line of a batch."""
    body: dict[str, Any] = {} if record_id is None else {"id": record_id}
    if transcript.answer is not None:
        body["text"] = transcript.answer
    body["output_messages"] = _written_messages(transcript.messages)
    if transcript.usage is not None:
        body["token_usage"] = transcript.usage
    if transcript.cost_usd is not None:
        body["cost_usd"] = transcript.cost_usd
    if transcript.duration_ms is not None:
        body["duration_ms"] = transcript.duration_ms
    if transcript.metadata:
        body["metadata"] = transcript.metadata
    data = wire.encode(body)
    if record_id is not None:
        # A raw newline can only come from white space inside reasoning details, where a blank means the same.
        data = data.replace(b"\n", b" ")
    return Written(data + b"\n", losses(transcript, read(data).transcript))


def _written_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    results = Counter([message.tool_call_id for message in messages if type(message) is ToolResultMessage])
    written: list[dict[str, Any]] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if isinstance(message, CustomMessage):
            entry: dict[str, Any] = {"role": "custom", "kind": message.kind, "payload": message.payload}
        else:
            entry = written_message(message)
        if isinstance(message, AssistantMessage) and (calls := message.tool_calls()):
            outputs, position = _outputs(calls, messages, position, results)
            entry["tool_calls"] = [_written_call(call, output) for call, output in zip(calls, outputs, strict=True)]
        elif isinstance(message, ToolResultMessage):
            entry["name"] = message.tool_name
            if message.is_error:
                entry["is_error"] = True
        if message.timestamp is not None:
            entry["timestamp"] = message.timestamp
        written.append(entry)
    return written


def _outputs(
    calls: list[ToolCall], messages: Sequence[Message], position: int, results: Counter[str]
) -> tuple[list[Any], int]:
    """The results that can stand inside their calls, and the position of the first message that cannot.

    Those are the results right behind the calls and in their order, as long as they are nothing but a text or a value.
    """
    outputs: list[Any] = [UNSET] * len(calls)
    call = 0
    while position < len(messages):
        message = messages[position]
        output = _output(message)
        if not isinstance(message, ToolResultMessage) or output is UNSET or results[message.tool_call_id] > 1:
            break
        while call < len(calls) and calls[call].id != message.tool_call_id:
            call += 1
        if call == len(calls) or calls[call].name != message.tool_name:
            break
        outputs[call] = output
        call += 1
        position += 1
    return outputs, position


def _output(message: Message) -> Any:
    """The result as a plain value; UNSET when there is more to it."""
    if type(message) is not ToolResultMessage or message.is_error:
        return UNSET
    if message.narration is not None or message.timestamp is not None:
        return UNSET
    content, details = message.content, message.details
    if not content:
        return None if details is None else UNSET
    if len(content) > 1 or not isinstance(content[0], TextBlock):
        return UNSET
    if details is None:
        return content[0].text
    # A value is read as itself and as its JSON text; text would be read as text alone.
    return details if type(details) is not str and wire.encode(details).decode() == content[0].text else UNSET


def _written_call(call: ToolCall, output: Any) -> dict[str, Any]:
    written = {"id": call.id, "tool": call.name, "input": written_arguments(call)}
    if output is not UNSET:
        written["output"] = output
    return written


def _stand_in(key: str, entries: Any, answer: str | None, rest: dict[str, Any], notes: list[Note]) -> list[Message]:
    """One assistant message in place of messages that are not there."""
    if entries is None:
        notes.append(Note(MESSAGES_MISSING, pointer(key), "there are no messages; the answer is used instead"))
    else:
        notes.append(Note(MESSAGES_INVALID, pointer(key), f"expected an array, got {json_kind(entries)}"))
    blocks: list[AssistantBlock] = []
    if type(reasoning := rest.get("reasoning")) is str and reasoning:
        blocks.append(ReasoningBlock(rest.pop("reasoning")))
    if answer:
        blocks.append(TextBlock(answer))
    return [AssistantMessage(blocks, StopReason.END_TURN)] if blocks else []


def _id(rest: dict[str, Any], notes: list[Note]) -> str | None:
    record_id = rest.pop("id", None)
    if record_id is None or type(record_id) is str:
        return record_id
    if type(record_id) is int:
        return str(record_id)
    notes.append(_dropped("id", "text or an integer", record_id))
    return None


def _usage(rest: dict[str, Any], notes: list[Note]) -> Usage | None:
    key, value = take_first(rest, _USAGE, notes)
    if value is None:
        return None
    usage = read_usage(value)
    if usage is None:
        notes.append(_dropped(key, "token counts", value))
    return usage


def _amount(rest: dict[str, Any], keys: tuple[str, ...], notes: list[Note]) -> float | None:
    key, value = take_first(rest, keys, notes)
    if value is None or ((type(value) is float or type(value) is int) and value >= 0):
        return value
    notes.append(_dropped(key, "a number", value))
    return None


def _dropped(key: str, expected: str, value: Any) -> Note:
    return Note(VALUE_DROPPED, pointer(key), f"expected {expected}, got {json_kind(value)}")


def _metadata(rest: dict[str, Any], messages: list[Message], notes: list[Note]) -> dict[str, Any]:
    """Everything that has no field of its own, with the `metadata` object opened up."""
    given = rest.pop("metadata", None)
    failed = NoteTally()
    note_failure(rest, failed, of_run=True)
    notes += failed.total()
    notes += filter(None, [calls_in_metadata(key, value, messages=messages) for key, value in rest.items()])
    notes += [Note(KEY_MISSPELLED, pointer(key), f"is {meant} meant?") for key, meant in _misspelled(rest)]
    if given is None:
        return rest
    if type(given) is not dict:
        if note := calls_in_metadata("metadata", given, messages=messages):
            notes.append(note)
        rest["metadata"] = given
        return rest
    found = [calls_in_metadata(key, value, "metadata", messages=messages) for key, value in given.items()]
    notes += filter(None, found)
    notes += [
        Note(KEY_REPEATED, pointer(key), "the metadata has this key as well, and it is used from there")
        for key in rest
        if key in given
    ]
    return {**rest, **given}


def _misspelled(rest: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys that mean nothing but look like one that does, and that one."""
    # Nobody misspells more than that, and comparing is slow.
    for key in islice(rest, 20):
        if key not in _KNOWN and len(key) < 40:
            import difflib

            for meant in difflib.get_close_matches(key, _KNOWN, n=1, cutoff=0.8):
                yield key, meant


_ANSWER = msgspec.json.Decoder(_Answer)
