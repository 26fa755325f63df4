"""Documents of the chat completions API: messages, requests, responses and recorded streams.

OpenAI and OpenRouter share this reader. What the API says beside the messages becomes metadata of the run, `usage`
belongs to the assistant message of the response, and of several choices the first is read.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.errors import SeatrialError
from seatrial.formats.chat.decoding import decoded_message, drop_key, items, members, value
from seatrial.formats.chat.documents import decoded_items, open_document, read_plain_messages
from seatrial.formats.chat.hidden_calls import KEY_DROPPED
from seatrial.formats.chat.notes import At, NoteTally, note_failure
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import CHOICE_DROPPED, TurnEnding
from seatrial.formats.completions.stream import CHOICE, CompletionStream, end_completion, read_completion_usage
from seatrial.formats.reading import Reading, single_turn
from seatrial.formats.sniffing import (
    LIKELY,
    SURE,
    Members,
    Sample,
    Sniff,
    first_byte,
    members_of,
    objects_of,
    says_something,
    text_of,
)
from seatrial.transcript import Transcript
from seatrial.transcript.salvage import MESSAGE_DROPPED

_NOT_METADATA = frozenset({"id", "object", "messages", "choices", "usage", "error"})


def sniff_completion(sample: Sample, *, reasoning: bool) -> Sniff | None:
    """How sure a format is that a sample is a response or a stream of this API; `reasoning`: with native reasoning."""

    def sniff(entry: Members) -> Sniff | None:
        if "choices" not in entry:
            return None
        kind = text_of(entry, "object") or "choices"
        found = _reasoning_in(entry)
        if found is not None:
            return Sniff(SURE, f"{kind[:40]} with {found}") if reasoning else None
        return None if reasoning else Sniff(LIKELY, f"{kind[:40]} without reasoning")

    return sample.surest(sniff)


def _reasoning_in(entry: Members) -> str | None:
    if "provider" in entry:
        return "a provider"
    for choice in objects_of(entry["choices"]):
        for said in (members_of(choice.get("delta")), members_of(choice.get("message"))):
            for key in ("reasoning", "reasoning_details"):
                if said is not None and says_something(said.get(key)):
                    return key
    return None


def read_completions(data: bytes, stream: type[CompletionStream]) -> Reading:
    """Read whichever of the shapes the bytes hold; `stream` is the format's reader of streams."""
    tally = NoteTally(len(data))
    document = open_document(data, tally)
    if document is None:
        return stream(tally).read(data)
    entries = [msgspec.Raw(data)] if isinstance(document, dict) else document
    if entries and _is_chunk(entries[0], alone=len(entries) == 1):
        return stream(tally).read(entries)
    if isinstance(document, dict) and "role" not in document:
        return _read_object(document, stream.format, tally)
    return read_plain_messages(document, data, stream.format, tally)


def _is_chunk(entry: msgspec.Raw, *, alone: bool) -> bool:
    # What is found on the way is noted when the entry is read.
    document = members(entry, NoteTally(), ())
    choices = items(document["choices"], NoteTally(), ()) if document is not None and "choices" in document else None
    choice = members(choices[0], NoteTally(), ()) if choices else None
    if document is None or choice is None or "delta" not in choice:
        return False
    if text_of(document, "object") == "chat.completion.chunk" or first_byte(choice.get("message")) != b"{":
        return True
    # Some providers send a delta with every whole message, others with every chunk the message so far.
    return not alone and not says_something(choice.get("finish_reason"))


def _read_object(document: dict[str, msgspec.Raw], format: str, tally: NoteTally) -> Reading:
    messages = items(document["messages"], tally, ("messages",)) if "messages" in document else []
    if messages is None:
        raise SeatrialError("invalid_document", "expected an array of messages", pointer="/messages")
    if document.keys().isdisjoint(("messages", "choices", "error")):
        raise SeatrialError(
            "invalid_document",
            "expected messages, a request with `messages`, a response with `choices`, or a recorded stream",
        )
    said = {key: value(raw, tally, (key,)) for key, raw in document.items() if key not in ("messages", "choices")}
    metadata = {key: what for key, what in said.items() if what is not None and key not in _NOT_METADATA}
    run = Transcript(messages=[], metadata=metadata)
    chat = Chat(tally, run.messages)
    chat.read_all(decoded_items(messages, tally, ("messages",)), ("messages",))
    error, usage = said.get("error"), said.get("usage")
    note_failure({key: what for key, what in said.items() if key != "error"}, tally, of_run=True)
    if "choices" in document or error is not None:
        _read_response(document.get("choices"), TurnEnding(error=error), usage, chat, run)
    elif usage is not None and (taken := read_completion_usage(usage, tally, ("usage",))) is not None:
        run.usage, run.cost_usd = taken.tokens, taken.cost_usd
    record_id = said.get("id")
    found_id = record_id if type(record_id) is str else None
    reading = Reading(format, run, tally.total(), id=found_id, facts=chat.finish())
    return reading if "messages" in document else single_turn(reading)


def _note_delta(delta: Any, said: Any, tally: NoteTally, at: At) -> None:
    """Note a delta beside a whole message, which counts; serious when it says something else."""
    text = delta.get("content") if type(delta) is dict else delta
    if text and (type(said) is not dict or text != said.get("content")):
        tally.add(KEY_DROPPED, (*at, "delta"), "dropped a delta that is not what the message says", weight="serious")
    else:
        drop_key("delta", delta, tally, at)


def _read_response(data: msgspec.Raw | None, ending: TurnEnding, usage: Any, chat: Chat, run: Transcript) -> None:
    tally = chat.tally
    choices = (items(data, tally, ("choices",)) if data is not None else None) or []
    for index in range(1, len(choices)):
        tally.add(CHOICE_DROPPED, ("choices", index), "dropped another answer of the model", each="")
    at = ("choices", 0)
    choice = CHOICE.read(choices[0], tally, at) if choices else None
    said: Any = None
    if choice is not None:
        ending.stop_reason = choice.finish_reason
        ending.error = choice.error or ending.error
        drop_key("logprobs", choice.logprobs, tally, at)
        said = decoded_message(choice.message, tally, (*at, "message")) if choice.message else None
        if choice.delta:
            _note_delta(value(choice.delta, tally, (*at, "delta")), said, tally, at)
    if type(said) is not dict:
        if ending.error is None:
            tally.add(MESSAGE_DROPPED, at, "the response holds no message")
            return
        said = {}
    end_completion(chat.read_answer(said, (*at, "message")), ending, usage, run, tally, at)
