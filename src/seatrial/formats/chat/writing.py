"""Writing a transcript as chat messages, and finding what a format does not carry.

`written_message` writes the role-tagged messages that `seatrial.formats.chat.reader` reads. Thinking of both channels
goes into the `thinking` array, each under its own `type`; docs/decisions says why not into the content.

`losses` finds what is lost by reading back what was written, so that no difference goes unmentioned. The writers of
chat APIs, which cannot be read back one for one, note their losses as they write: the `lose_` functions.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import zip_longest
from typing import Any

from msgspec import UNSET

from seatrial._support import wire
from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.parts import read_raw_thought
from seatrial.formats.reading import Reading, why_partial
from seatrial.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    Note,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
    note_code,
)
from seatrial.transcript.arguments import detect_unparsed
from seatrial.transcript.pairing import OpenCalls

NOT_CARRIED = note_code(
    "not_carried", "The format has no place for this part of the transcript; it was left out.", "look"
)
CHANGED = note_code(
    "changed", "The format carries this part of the transcript in another form; it is read back differently.", "look"
)

_RUN_FIELDS = ("answer", "identity", "usage", "cost_usd", "duration_ms", "metadata")


def written_message(message: SystemMessage | UserMessage | AssistantMessage | ToolResultMessage) -> dict[str, Any]:
    """The message without its calls."""
    match message:
        case SystemMessage():
            return {"role": "system", "content": message.content}
        case UserMessage():
            content = message.content
            return {"role": "user", "content": content if isinstance(content, str) else _parts(content)}
        case AssistantMessage():
            written: dict[str, Any] = {"role": "assistant", "content": _assistant_content(message)}
            if thinking := _thinking(message):
                written["thinking"] = thinking
            return written
        case ToolResultMessage():
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": _result_content(message)}


def written_arguments(call: ToolCall) -> Any:
    """Arguments so that they read back as they are: text stands for JSON there, so text that is a value is quoted."""
    arguments = call.arguments
    if (unparsed := detect_unparsed(arguments)) is not None:
        return unparsed[1]
    return wire.encode(arguments).decode() if type(arguments) is str else arguments


def _assistant_content(message: AssistantMessage) -> str | list[TextBlock] | None:
    texts = [block for block in message.content if type(block) is TextBlock]
    if not texts:
        return None
    return texts[0].text if len(texts) == 1 and texts[0].text else texts


def _result_content(message: ToolResultMessage) -> str | list[Any] | None:
    content = message.content
    if not content:
        return None
    return content[0].text if len(content) == 1 and type(content[0]) is TextBlock else _parts(content)


def _thinking(message: AssistantMessage) -> list[Any]:
    entries: list[Any] = []
    for block in message.content:
        match block:
            case ThinkingBlock():
                entries.append({"type": "thought", "text": block.text})
            case ReasoningBlock():
                entries.append(block)
            case ReasoningDetailsBlock():
                # Details made by hand can be anything, and would break the document they are spliced into.
                entries.extend([raw for raw in block.details if read_raw_thought(raw) is not None])
    return entries


def _parts(blocks: list[TextBlock | ImageBlock]) -> list[Any]:
    return [_image_part(block) if isinstance(block, ImageBlock) else block for block in blocks]


def _image_part(block: ImageBlock) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "image_url", "image_url": {"url": block.source}}
    if block.media_type is not None:
        part["media_type"] = block.media_type
    if block.alt is not None:
        part["alt"] = block.alt
    return part


def losses(transcript: Transcript, read_back: Transcript, dropped: Collection[int] = ()) -> list[Note]:
    """What is missing from, or different in, the transcript that was read back; pointers go into the written one.

    `dropped` are the indices of messages that were not written; all others should come back one for one.
    """
    tally = NoteTally()
    left_out = frozenset(dropped)
    kept = [index for index in range(len(transcript.messages)) if index not in left_out]
    for index in sorted(left_out):
        tally.add(NOT_CARRIED, ("messages", index), "the whole message is left out")
    for position, after in zip_longest(kept, read_back.messages):
        if position is None:
            tally.add(CHANGED, ("messages",), "one message is read back as several")
            break
        _compare_messages(transcript.messages[position], after, ("messages", position), tally)
    if transcript.answer is None and read_back.answer is not None:
        tally.add(CHANGED, ("answer",), "the transcript names no answer; its last assistant text is given as one")
    else:
        _compare(transcript.answer, read_back.answer, ("answer",), tally)
    for field in ("identity", "usage", "cost_usd", "duration_ms"):
        _compare(getattr(transcript, field), getattr(read_back, field), (field,), tally)
    for key in sorted(transcript.metadata.keys() | read_back.metadata.keys()):
        # UNSET, because a key that says null is not the same as no key.
        _compare(transcript.metadata.get(key, UNSET), read_back.metadata.get(key, UNSET), ("metadata", key), tally)
    return tally.total()


def _compare_messages(before: Message, after: Message | None, at: At, tally: NoteTally) -> None:
    if before == after:
        return
    if type(before) is not type(after):
        tally.add(CHANGED, at, "the message is read back as one of another role")
        return
    for field in before.__struct_fields__:
        one, other = getattr(before, field), getattr(after, field)
        if type(one) is list and type(other) is list:
            _compare_blocks(one, other, (*at, field), tally)
        else:
            _compare(one, other, (*at, field), tally)


def _compare_blocks(before: list[Any], after: list[Any], at: At, tally: NoteTally) -> None:
    """One loss, at the first block that is read back differently."""
    if before == after:
        return
    if sorted(map(wire.encode, before)) == sorted(map(wire.encode, after)):
        tally.add(CHANGED, at, "the blocks are read back in another order", each="order")
        return
    first = next(index for index, (one, other) in enumerate(zip_longest(before, after)) if one != other)
    tally.add(CHANGED, (*at, first), "the content from this block on is read back differently")


def _compare(before: Any, after: Any, at: At, tally: NoteTally) -> None:
    if before == after:
        return
    field = str(at[-1])
    if after is None or after is UNSET or after is False or after == "":
        tally.add(NOT_CARRIED, at, f"{field} is not carried", each=field)
    else:
        tally.add(CHANGED, at, f"{field} is read back differently", each=field)


def lost_beside(reading: Reading, *, calls_carried: bool = False) -> list[Note]:
    """What a reading knows beside its transcript, and a format does not carry: facts of calls, that not all calls are
    known, and a trace. `calls_carried`: the format has a place for all but the trace."""
    tally = NoteTally()
    if not calls_carried:
        _lose_facts(reading, tally)
        if (why := why_partial(reading)) is not None:
            text = f"what is written reads as if all calls were in it; of this record that is not known: {why}"
            tally.add(NOT_CARRIED, (), text)
    if reading.trace is not None:
        calls = sum(event.type == "tool_call" for event in reading.trace)
        tally.add(NOT_CARRIED, ("trace",), f"the trace, with {calls} call(s), is not carried")
    elif reading.trace_ref is not None:
        tally.add(NOT_CARRIED, ("trace_ref",), "the trace that the record refers to is not carried")
    return tally.total()


def _lose_facts(reading: Reading, tally: NoteTally) -> None:
    messages = reading.transcript.messages
    ended = _endings(messages)
    for placed in reading.facts:
        if not 0 <= placed.message < len(messages):
            continue
        at: At = ("messages", placed.message)
        if isinstance(made := messages[placed.message], AssistantMessage):
            places = [index for index, block in enumerate(made.content) if type(block) is ToolCall]
            if placed.call >= len(places):
                continue
            at = (*at, "content", places[placed.call])
        facts, said = placed.facts, ended.get((placed.message, placed.call))
        if facts.status not in (None, said):
            tally.add(NOT_CARRIED, at, f"that the call's status is {facts.status!r} is not carried")
        if facts.executed_by != "agent":
            tally.add(NOT_CARRIED, at, f"that the {facts.executed_by} ran the call is not carried")
        if facts.actor is not None or facts.parent is not None:
            tally.add(NOT_CARRIED, at, "which agent made the call, or inside which other call, is not carried")
        for field in ("error", "started_at", "ended_at", "duration_ms"):
            if getattr(facts, field) is not None:
                tally.add(NOT_CARRIED, at, f"{field} of the call is not carried", each=field)


def _endings(messages: list[Message]) -> dict[tuple[int, int], str]:
    """How calls ended by their results, which tell no more than ok and error; for the places of calls and results."""
    ended: dict[tuple[int, int], str] = {}
    calls: OpenCalls[tuple[int, int]] = OpenCalls()
    for index, message in enumerate(messages):
        if type(message) is AssistantMessage:
            calls.add([(call.id, call.name, (index, number)) for number, call in enumerate(message.tool_calls())])
        elif type(message) is ToolResultMessage:
            ended[index, 0] = said = "error" if message.is_error else "ok"
            if (place := calls.take(message.tool_call_id, message.tool_name)) is not None:
                ended[place] = said
    return ended


def lose_field(tally: NoteTally, at: At, field: str) -> None:
    """Note that a field is not carried; every further one of that name is only counted."""
    tally.add(NOT_CARRIED, (*at, field), f"{field} is not carried", each=field)


def lose_block(tally: NoteTally, at: At, kind: str) -> None:
    """Note that a block, or a whole message, is not carried."""
    tally.add(NOT_CARRIED, at, f"{kind} is not carried")


def change(tally: NoteTally, at: At, how: str) -> None:
    """Note that something comes back in another form."""
    tally.add(CHANGED, at, how)


def lose_run_fields(transcript: Transcript, tally: NoteTally) -> None:
    """Note what the transcript says beside its messages."""
    for field in _RUN_FIELDS:
        if getattr(transcript, field) not in (None, {}):
            tally.add(NOT_CARRIED, (field,), f"the {field} of the run is not carried")


def lose_message_fields(message: Message, tally: NoteTally, at: At) -> None:
    """Note what a message says beside its content."""
    if message.timestamp is not None:
        lose_field(tally, at, "timestamp")
    if type(message) is AssistantMessage:
        if message.error_message is not None:
            lose_field(tally, at, "error_message")
        if message.usage is not None:
            lose_field(tally, at, "usage")
        if message.stop_reason is not (StopReason.TOOL_USE if message.tool_calls() else StopReason.END_TURN):
            lose_field(tally, at, "stop_reason")
    elif type(message) is ToolResultMessage:
        if message.narration is not None:
            lose_field(tally, at, "narration")
        if message.details is not None:
            lose_field(tally, at, "details")


def lose_image_fields(image: ImageBlock, tally: NoteTally, at: At) -> None:
    """Note what is said of an image beside its source. A data URL names its media type itself."""
    if image.media_type is not None and not image.source.startswith(f"data:{image.media_type};"):
        lose_field(tally, at, "media_type")
    if image.alt is not None:
        lose_field(tally, at, "alt")
