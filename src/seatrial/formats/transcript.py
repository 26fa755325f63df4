"""The transcript's own JSON: an array of messages, or one message in each line.

An object that holds messages and what else is known of the run (`Transcript` as JSON) is read as well. It is written
where more is known of the calls than the messages can say, or that not all are known: under the key `seatrial`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, get_args

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import is_too_deep
from seatrial.errors import SeatrialError
from seatrial.events.layout import KEY
from seatrial.formats.chat.calls import TOOL_RESULT_UNPAIRED
from seatrial.formats.chat.hidden_calls import calls_in_metadata, may_hold_call
from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.writing import losses
from seatrial.formats.reading import Reading, Written, single_turn, was_partial, why_partial
from seatrial.formats.sniffing import CALL_KEYS, CERTAIN, Sample, Sniff, sniff_chat
from seatrial.transcript import (
    AssistantMessage,
    Message,
    Note,
    RunIdentity,
    ToolResultMessage,
    Transcript,
    Usage,
    pointer,
)
from seatrial.transcript.call_facts import PlacedFacts
from seatrial.transcript.document import encode_messages, read_messages
from seatrial.transcript.messages import AssistantBlock, UserBlock
from seatrial.transcript.pairing import OpenCalls, another_tool_note
from seatrial.transcript.salvage import VALUE_DROPPED

FORMAT: Final = "transcript"


class _Run(msgspec.Struct):
    """What stands beside the messages."""

    answer: str | None = None
    identity: RunIdentity | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    duration_ms: float | None = None
    metadata: dict[str, Any] = {}
    seatrial: _Known | None = None


class _Known(msgspec.Struct, omit_defaults=True):
    """What is known of the calls and not said in the messages."""

    facts: list[PlacedFacts] = []
    partial: str | None = None
    """Why not all calls are known."""


def sniff(sample: Sample) -> Sniff | None:
    """Messages with roles and blocks that only the transcript has."""
    if sample.document is not None and "messages" in sample.document and KEY in sample.document:
        return Sniff(CERTAIN, f"messages, and what is known of them under {KEY!r}")
    return sniff_chat(sample, FORMAT)


def read(data: bytes) -> Reading:
    """Read messages from an array, an object that holds one, a single message, or lines."""
    messages, notes = read_messages(data)
    run = _read_run(data, notes)
    _note_unread_keys(data, notes)
    _note_strays(messages, notes)
    notes += filter(
        None, [calls_in_metadata(key, value, "metadata", messages=messages) for key, value in run.metadata.items()]
    )
    transcript = Transcript(messages, run.answer, run.identity, run.usage, run.cost_usd, run.duration_ms, run.metadata)
    reading = Reading(FORMAT, transcript, notes)
    if run.seatrial is not None:
        reading.facts = run.seatrial.facts
        if run.seatrial.partial is not None:
            notes.append(was_partial(run.seatrial.partial, KEY, "partial"))
    return single_turn(reading) if _is_message(data) else reading


def write(transcript: Transcript) -> Written:
    """Write the messages as an array."""
    return Written(encode_messages(transcript.messages) + b"\n", _losses(transcript))


def write_reading(reading: Reading) -> Written:
    """The same; an object with the messages where more is known of their calls, or less than all."""
    known = _Known(reading.facts, why_partial(reading))
    written = write(reading.transcript)
    if known != _Known():
        written.data = wire.encode({"messages": msgspec.Raw(written.data.rstrip()), KEY: known}) + b"\n"
    return written


def _read_run(data: bytes, notes: list[Note]) -> _Run:
    try:
        given = {} if is_too_deep(data) else _MEMBERS.decode(data)
        if "messages" in given:
            unread = {key: wire.decode(bytes(given[key]), repairs=[]) for key in given.keys() - _READ}
            notes += filter(None, [calls_in_metadata(key, value) for key, value in unread.items()])
            return _RUN.decode(data)
    except msgspec.ValidationError as error:
        if data.lstrip()[:1] == b"{":
            problem = wire.invalid_document(error)
            notes.append(Note(VALUE_DROPPED, problem.pointer or "", f"nothing beside the messages: {problem.message}"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    return _Run()


def _is_message(data: bytes) -> bool:
    if data.lstrip()[:1] != b"{":
        return False
    return "role" in (wire.decode_sound(data, _MEMBERS) or ())


def _note_unread_keys(data: bytes, notes: list[Note]) -> None:
    """Note the keys of messages and blocks that the transcript does not have: a call may stand under one."""
    chat = Chat(NoteTally())
    for message, at in _entries(data):
        role = message.get("role")
        if type(role) is not str or role not in _MESSAGE_KEYS:
            continue  # kept whole, with a note
        _note_keys(message, _MESSAGE_KEYS[role], chat, at, agent=role == "assistant")
        content = message.get("content")
        for index, block in enumerate(content if type(content) is list else ()):
            if type(block) is dict and type(kind := block.get("type")) is str and kind in _BLOCK_KEYS:
                _note_keys(block, _BLOCK_KEYS[kind], chat, (*at, "content", index), agent=role == "assistant")
    notes += chat.tally.total()


def _note_strays(messages: list[Message], notes: list[Note]) -> None:
    """Note results of calls that are not here."""
    calls: OpenCalls[str] = OpenCalls()
    for index, message in enumerate(messages):
        if type(message) is AssistantMessage:
            calls.add([(call.id, call.name, call.name) for call in message.tool_calls()])
        elif type(message) is ToolResultMessage:
            at = pointer("messages", index)
            tool = calls.take(message.tool_call_id, message.tool_name or None)
            if tool is None:
                text = f"no call with the id {message.tool_call_id[:60]!r} came before this result"
                notes.append(Note(TOOL_RESULT_UNPAIRED, at, text))
            elif message.tool_name not in ("", tool):
                notes.append(another_tool_note(at, message.tool_name, tool))


def _note_keys(item: dict[str, Any], known: frozenset[str], chat: Chat, at: At, *, agent: bool) -> None:
    for key in item.keys() - known:
        # A call is one also where it is written as text.
        value = [item[key]] if key in CALL_KEYS and item[key] else item[key]
        chat.drop_key(key, value, at, agent=agent or may_hold_call(key, value))


def _entries(data: bytes) -> Iterator[tuple[dict[str, Any], At]]:
    """The messages in the bytes, as they are, and where they stand."""
    try:
        document = wire.decode(data, repairs=[])
    except SeatrialError:
        for number, line in enumerate(data.split(b"\n")):
            try:
                document = wire.decode(line, repairs=[])
            except SeatrialError:
                continue  # noted where the messages are read
            if type(document) is dict:
                yield document, (number,)
        return
    at: At = ()
    if type(document) is dict:
        if "role" in document:
            yield document, ()
            return
        document, at = document.get("messages"), ("messages",)
    for index, entry in enumerate(document if type(document) is list else ()):
        if type(entry) is dict:
            yield entry, (*at, index)


def _keys(structs: Iterable[type[msgspec.Struct]]) -> dict[str, frozenset[str]]:
    """The keys that each of these structs has, by its tag."""
    configs = [(struct, struct.__struct_config__) for struct in structs]
    return {
        str(config.tag): frozenset({str(config.tag_field), *struct.__struct_encode_fields__})
        for struct, config in configs
    }


def _losses(transcript: Transcript) -> list[Note]:
    """What the run knows and its messages do not say."""
    said = Transcript(transcript.messages)
    if transcript.answer == said.final_text():
        said.answer = transcript.answer
    if transcript.usage == _usage_of_messages(transcript):
        said.usage = transcript.usage
    return losses(transcript, said)


def _usage_of_messages(transcript: Transcript) -> Usage | None:
    given = [message.usage for message in transcript.messages if type(message) is AssistantMessage and message.usage]
    if not given:
        return None
    return Usage(*[sum([getattr(usage, field) for usage in given]) for field in Usage.__struct_fields__])


_MESSAGE_KEYS = _keys(get_args(Message))
_BLOCK_KEYS = _keys({*get_args(AssistantBlock), *get_args(UserBlock)})
_READ = frozenset({"messages", *_Run.__struct_encode_fields__})
_RUN = msgspec.json.Decoder(_Run)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
