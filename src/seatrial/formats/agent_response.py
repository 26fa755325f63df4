"""The body that a customer-hosted agent returns: `{final_response, messages?, metadata?, trace?, trace_ref?}`.

Sound bodies are decoded straight into the structs below and turned into a transcript in one pass. What those structs
do not fit goes the careful way, through `seatrial.formats.chat`, with the same result where both can read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.formats.call_facts import CallFacts
from seatrial.formats.calls import encoded_twice_note, generated_id, generated_id_note, inside_text, nameless_note
from seatrial.formats.chat import MESSAGES_INVALID, MESSAGES_MISSING, Chat, add_block
from seatrial.formats.chat_writing import written_arguments, written_message
from seatrial.formats.decoding import decoded, decoded_messages
from seatrial.formats.keys import KEY_DROPPED, calls_in_metadata, may_hold_call
from seatrial.formats.limits import excess, most_pieces, note_answer_only
from seatrial.formats.loss import losses
from seatrial.formats.parts import json_kind, read_raw_thought
from seatrial.formats.reading import Reading, Written
from seatrial.formats.reported_failure import note_failure
from seatrial.formats.shape import members, take_first
from seatrial.formats.sniffing import SURE, Members, Sample, Sniff, first_byte
from seatrial.formats.tally import NoteTally
from seatrial.formats.trace import TRACE_REF_KEYS, read_trace, read_trace_ref
from seatrial.formats.usage import read_usage
from seatrial.formats.weaving import note_unclosed, visible
from seatrial.nesting import MAX_DEPTH, is_too_deep
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    CustomMessage,
    Message,
    Note,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultBlock,
    ToolResultMessage,
    Transcript,
    Usage,
    UserMessage,
    Weight,
    note_code,
    pointer,
)
from seatrial.transcript.arguments import arguments_note, may_have_key_twice, parse_arguments
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


# Nothing but the keys that are read: with any other, the careful way decides whether it may hold a call.


class _Function(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    name: str = ""
    arguments: Any = UNSET


class _Call(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A tool call, flat or nested; the same keys as `read_call` takes, but for `tool`."""

    id: str | None = None
    name: str | None = None
    arguments: Any = UNSET
    input: Any = UNSET
    function: _Function | None = None
    type: str | None = None


class _SignedThought(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The usual entry of `thinking`: nothing but texts, so that no call can be in it."""

    type: str
    text: str
    signature: str


class _Text(msgspec.Struct, tag_field="type", tag="text", gc=False, forbid_unknown_fields=True):
    text: str


class _System(msgspec.Struct, tag_field="role", tag="system", gc=False, forbid_unknown_fields=True):
    content: str
    id: str | None = None


class _User(msgspec.Struct, tag_field="role", tag="user", gc=False, forbid_unknown_fields=True):
    content: str | list[_Text]
    id: str | None = None


class _Assistant(msgspec.Struct, tag_field="role", tag="assistant", gc=False, forbid_unknown_fields=True):
    content: str | list[_Text] | None = None
    tool_calls: list[_Call] | None = None
    thinking: list[msgspec.Raw] | None = None
    id: str | None = None


class _Tool(msgspec.Struct, tag_field="role", tag="tool", gc=False, forbid_unknown_fields=True):
    tool_call_id: str
    content: str | list[_Text]
    id: str | None = None
    name: str | None = None


class _Body(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    final_response: str
    messages: list[_System | _User | _Assistant | _Tool]
    metadata: dict[str, Any] | None = None


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
    body = wire.decode_sound(data, _BODY)
    reading = None if body is None else _converted(body, most_pieces(len(data)))
    return _read_carefully(data) if reading is None else reading


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


def _converted(body: _Body, most: int) -> Reading | None:
    """The reading of a sound body; None when something in it needs the careful way."""
    if not _is_visible(body.final_response) or len(body.messages) > most // 4:
        return None
    left = most
    notes: list[Note] = []
    messages: list[Message] = []
    names: dict[str, str] = {}
    for message in body.messages:
        if type(message) is _Tool:
            name = names.get(message.tool_call_id)
            if name is None:
                return None
            content = message.content
            blocks_of: list[ToolResultBlock] = (
                [TextBlock(content)] if isinstance(content, str) else [TextBlock(part.text) for part in content]
            )
            messages.append(ToolResultMessage(message.tool_call_id, name, blocks_of, False))
        elif type(message) is _Assistant:
            blocks: list[AssistantBlock] = []
            left -= len(message.tool_calls or ()) + len(message.thinking or ())
            if left < 0 or (message.thinking and not _add_thinking(blocks, message.thinking)):
                return None
            said = message.content
            if isinstance(said, str):
                if "<" in said:
                    return None  # a hidden tag, perhaps
                if said:
                    blocks.append(TextBlock(said))
            elif said is not None:
                if any("<" in part.text for part in said):
                    return None
                blocks += [TextBlock(part.text) for part in said]
            if message.tool_calls and _add_calls(blocks, message.tool_calls, len(messages), names, notes):
                messages.append(AssistantMessage(blocks, _TOOL_USE))
            else:
                messages.append(AssistantMessage(blocks, _END_TURN))
        elif type(message) is _User:
            asked = message.content
            messages.append(UserMessage(asked if isinstance(asked, str) else [TextBlock(part.text) for part in asked]))
        elif type(message) is _System:
            messages.append(SystemMessage(message.content))
    return _reading(body.final_response, messages, body.metadata or {}, notes)


def _add_thinking(blocks: list[AssistantBlock], thinking: list[msgspec.Raw]) -> bool:
    for raw in thinking:
        try:
            _SIGNED_THOUGHT.decode(raw)
        except (msgspec.DecodeError, UnicodeError):
            block = read_raw_thought(raw)
        else:
            # A copy, because a raw value keeps the whole input that it was cut from.
            add_block(blocks, ReasoningDetailsBlock([raw.copy()]))
            continue
        if block is None:
            return False
        if type(block) is ReasoningDetailsBlock:
            try:
                if may_hold_call("", [*map(_decode, block.details)]):
                    return False
            except (msgspec.DecodeError, UnicodeError):
                pass  # a number that nothing can hold: kept as it was sent
        add_block(blocks, block)
    return True


def _add_calls(
    blocks: list[AssistantBlock], calls: list[_Call], message: int, names: dict[str, str], notes: list[Note]
) -> bool:
    """Append the calls that have a name; whether there is one."""
    before = len(blocks)
    for index, call in enumerate(calls):
        name, arguments = call.name, call.arguments
        if arguments is UNSET:
            arguments = call.input
        if call.function is not None and (call.function.name or not name):
            name = call.function.name
            if call.function.arguments is not UNSET:
                arguments = call.function.arguments
        if not name:
            notes.append(nameless_note(f"/messages/{message}/tool_calls/{index}"))
            continue
        if type(arguments) is str:
            try:
                if len(arguments) > MAX_DEPTH and is_too_deep(arguments):
                    raise msgspec.DecodeError  # kept as text
                decoded = _decode(arguments)
                if type(decoded) is dict and may_have_key_twice(arguments, decoded):
                    raise msgspec.DecodeError  # looked at with care
                arguments = decoded
                if type(arguments) is str:
                    arguments = inside_text(arguments)
                    if type(arguments) is dict:
                        notes.append(encoded_twice_note(f"/messages/{message}/tool_calls/{index}", name, arguments))
            except (msgspec.DecodeError, UnicodeError):
                arguments, not_json = parse_arguments(arguments)
                if not_json:
                    notes.append(arguments_note(arguments, f"/messages/{message}/tool_calls/{index}", name))
        elif arguments is UNSET:
            arguments = {}
        call_id = call.id
        if not call_id:
            call_id = generated_id((message, index))
            notes.append(generated_id_note(f"/messages/{message}/tool_calls/{index}", name, call_id))
        names[call_id] = name
        blocks.append(ToolCall(call_id, name, arguments))
    return len(blocks) > before


def _reading(answer: str, messages: list[Message], metadata: dict[str, Any], notes: list[Note]) -> Reading:
    if len(answer) > LONG_FINAL_RESPONSE:
        text = f"it has {len(answer):,} characters; all are graded, and only some are shown"
        notes.append(Note(FINAL_RESPONSE_TRUNCATED, "/final_response", text))
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
    counts = [_is_count(read, _INPUT_TOKENS, notes), _is_count(written, _OUTPUT_TOKENS, notes)]
    # Half a count would be shown, and judged, as a whole one: it stays among the metadata.
    if all(counts):
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
    facts: dict[str, CallFacts] = {}
    entries = decoded_messages(given["messages"], tally, ("messages",)) if "messages" in given else None
    if isinstance(entries, Iterator):
        chat = Chat(tally)
        chat.read_all(entries, ("messages",))
        messages, facts = chat.messages, chat.facts
    else:
        if entries is None:
            tally.add(MESSAGES_MISSING, ("messages",), "there are no messages; the answer is used instead")
        else:
            tally.add(MESSAGES_INVALID, ("messages",), f"expected an array, got {json_kind(entries)}")
        messages = [AssistantMessage([TextBlock(answer)], _END_TURN)] if answer else []
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
    note_failure(beside, tally)
    usage = _usage(given, tally)
    reading = _reading(answer, messages, metadata or {}, tally.total())
    reading.transcript.usage = reading.transcript.usage or usage
    reading.answer_only = answer_only
    reading.calls = facts
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
    if type(answer) is str and _is_visible(answer):
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
    answer = _answer({"final_response": text}, tally.notes)
    messages: list[Message] = [AssistantMessage([TextBlock(answer)], _END_TURN)] if answer else []
    reading = _reading(answer, messages, {}, tally.total())
    reading.answer_only = True
    return reading


def _note_unread(key: str, value: Any, tally: NoteTally) -> None:
    """Note a key beside the messages that nobody reads: serious when what stands under it looks like calls."""
    if value is None or value == [] or value == {}:
        return
    weight: Weight = "serious" if may_hold_call(key, value) else "harmless"
    tally.add(KEY_DROPPED, (key,), f"dropped the key {key[:100]!r}", weight=weight)


def _is_visible(text: str) -> bool:
    """Whether there is anything to see in a text: not only white space, and not only what thinking tags hide."""
    return bool(visible(text).strip())


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


_BODY = msgspec.json.Decoder(_Body)
_MARKS = msgspec.json.Decoder(_Marks)
_SIGNED_THOUGHT = msgspec.json.Decoder(_SignedThought)
_ANSWER = msgspec.json.Decoder(_Answer)
_decode = msgspec.json.Decoder().decode
# Looking a member up in its enumeration takes as long as making the message that it is for.
_TOOL_USE = StopReason.TOOL_USE
_END_TURN = StopReason.END_TURN
