"""OpenAI's Responses API: items, whole responses, requests, and recorded streams.

A stream repeats an item when it is added, as it grows and when it is done: the response that ends the stream counts,
with every item that was done and is not in it. What began and never turns up again is noted, since it may have been a
call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.formats.chat.decoding import decoded, members, value
from seatrial.formats.chat.documents import FRAME_DROPPED, StreamReader, open_document, read_plain_messages
from seatrial.formats.chat.notes import At, NoteTally, json_kind
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import STREAM_TRUNCATED, TurnEnding, end_turn, note_cut_arguments, read_usage
from seatrial.formats.dialects.responses import ITEM_TYPES
from seatrial.formats.reading import Reading, earlier_turns, single_turn
from seatrial.formats.sniffing import CERTAIN, LIKELY, SURE, Members, Sample, Sniff, objects_of, text_of
from seatrial.transcript import AssistantMessage, StopReason, Transcript
from seatrial.transcript.salvage import MESSAGE_DROPPED, VALUE_DROPPED

FORMAT: Final = "responses"
_SAYS_NOTHING: Final = frozenset({"keepalive", "ping"})
_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_READ: Final = frozenset({"id", "object", "output", "input", "usage", "error", "instructions", "status"})
_REASONS: Final = {"max_output_tokens": StopReason.MAX_TOKENS}
_WITHOUT_CALL: Final = frozenset({"message", "reasoning"})
_CALL_EVENT: Final = re.compile(
    r"response\.((?:function|custom_tool|mcp|code_interpreter|web_search|file_search|image_generation|local_shell|shell"
    r"|apply_patch|computer|tool_search)_call)(?:_[a-z_]+)?\.[a-z_]+"
)
_OTHER_EVENT: Final = re.compile(
    r"response\.(?:in_progress|queued|content_part\.(?:added|done)|output_text\.annotation\.added"
    r"|(?:output_text|refusal|reasoning|reasoning_text|reasoning_summary|reasoning_summary_text|audio|audio\.transcript)"
    r"\.(?:delta|done)|reasoning_summary_part\.(?:added|done)|mcp_list_tools\.[a-z_]+)"
)


def sniff(sample: Sample) -> Sniff | None:
    """A response says so itself; its items and the events of its streams have types of their own."""
    document = sample.document
    if document is not None:
        if text_of(document, "object") == "response":
            return Sniff(CERTAIN, "an object of the kind response")
        for key in ("output", "input"):
            if any(_sniff_item(item) is not None for item in objects_of(document.get(key))):
                return Sniff(SURE + 3, f"items of a response under {key}")
    return sample.surest(_sniff_item)


def _sniff_item(entry: Members) -> Sniff | None:
    kind = text_of(entry, "type")
    if kind is None:
        return None
    if kind.startswith("response.") and ("sequence_number" in entry or "response" in entry or "item" in entry):
        return Sniff(CERTAIN, f"a stream event of the type {kind[:40]}")
    if kind == "message":
        parts = {text_of(part, "type") for part in objects_of(entry.get("content"))}
        mine = "role" in entry and ("status" in entry or not parts.isdisjoint(("input_text", "output_text")))
        return Sniff(LIKELY + 5, "an item of the type message") if mine else None
    if kind == "reasoning":
        return Sniff(SURE + 3, "an item of the type reasoning") if "summary" in entry else None
    return Sniff(SURE + 3, f"an item of the type {kind}") if kind in ITEM_TYPES else None


def read(data: bytes) -> Reading:
    """Read items as an array or as lines, a response, a request with `input`, or a stream."""
    tally = NoteTally(len(data))
    document = open_document(data, tally)
    if document is None:
        return ResponsesStream(tally).read(data)
    if isinstance(document, list):
        if document and _is_event(document[0]):
            return ResponsesStream(tally).read(document)
        return read_plain_messages(document, data, FORMAT, tally)
    if _is_event(msgspec.Raw(data)):
        return ResponsesStream(tally).read(data)
    body = {key: decoded(raw, tally, (key,)) for key, raw in document.items()}
    if "type" in body and "output" not in body and "input" not in body:
        body = {"output": [body]}
    if type(body.get("output")) is not list and "input" not in body:
        raise SeatrialError(
            "invalid_document", "expected items, a response with `output`, a request with `input`, or a recorded stream"
        )
    run = Transcript(messages=[], metadata={})
    chat = Chat(tally, run.messages)
    record_id = read_response(body, chat, run)
    reading = Reading(FORMAT, run, tally.total(), id=record_id, facts=chat.finish())
    return reading if type(body.get("input")) is list else single_turn(reading)


def _is_event(entry: msgspec.Raw) -> bool:
    # What is found on the way is noted when the entry is read.
    event = members(entry, NoteTally(), ())
    kind = value(event["type"], NoteTally(), ()) if event is not None and "type" in event else None
    return type(kind) is str and kind.startswith("response.")


def read_response(body: dict[str, Any], chat: Chat, run: Transcript, at: At = ()) -> str | None:
    """Add what a response, or a request, says; returns its id."""
    tally = chat.tally
    if type(instructions := body.get("instructions")) is str and instructions:
        chat.add_system(instructions)
    given = body.get("input")
    if type(given) is str:
        chat.add_user(given, (*at, "input"))
    elif type(given) is list:
        chat.read_all(given, (*at, "input"))
    tally.notes += earlier_turns(body, chat.turns, at)
    before = len(chat.messages)
    output = body.get("output")
    if type(output) is list:
        chat.read_all(output, (*at, "output"))
    elif output is not None:
        tally.add(MESSAGE_DROPPED, (*at, "output"), f"expected an array of items, got {json_kind(output)}")
    for key, what in body.items():
        if key not in _READ and what not in (None, [], {}):
            run.metadata.setdefault(key, what)
    turn = next((m for m in reversed(chat.messages[before:]) if type(m) is AssistantMessage), None)
    usage = body.get("usage")
    counts = None if usage is None else read_usage(usage)
    if usage is not None and counts is None:
        tally.add(VALUE_DROPPED, (*at, "usage"), "expected an object of token counts")
    if turn is not None:
        turn.usage = counts
        _end(turn, body, run, tally, at)
    else:
        run.usage = counts
    record_id = body.get("id")
    if type(record_id) is not str:
        return None
    chat.turns.add(record_id)
    return record_id


def _end(turn: AssistantMessage, body: dict[str, Any], run: Transcript, tally: NoteTally, at: At) -> None:
    status = body.get("status")
    if status == "failed" or body.get("error"):
        end_turn(turn, TurnEnding(error=body.get("error") or "the response failed"), {}, run, tally, at)
    elif status == "cancelled":
        turn.stop_reason = StopReason.ABORTED
        tally.add(STREAM_TRUNCATED, (*at, "status"), "the response was cancelled before it was done")
    elif status == "incomplete":
        details = body.get("incomplete_details")
        reason = details.get("reason") if type(details) is dict else None
        turn.stop_reason = _REASONS.get(reason, StopReason.OTHER) if type(reason) is str else StopReason.OTHER
        note_cut_arguments(turn, tally, at)
        tally.add(STREAM_TRUNCATED, (*at, "status"), "the response is incomplete")
    elif status in ("in_progress", "queued"):
        tally.add(STREAM_TRUNCATED, (*at, "status"), f"the response was still {status} when it was recorded")


class ResponsesStream(StreamReader):
    """Reads `response.*` events."""

    format = FORMAT

    def __init__(self, tally: NoteTally | None = None) -> None:
        super().__init__(tally)
        self._output = ResponseOutput()
        self._said: dict[str, Any] = {}
        self._under_way = False

    def _take(self, payload: bytes, at: At) -> None:
        if payload == b"[DONE]":
            return
        event = members(payload, self._tally, at)
        kind = value(event["type"], self._tally, at) if event is not None and "type" in event else None
        if event is None or type(kind) is not str:
            raise SeatrialError("invalid_document", "expected an event with a type")
        if kind in _SAYS_NOTHING or carries_no_call(kind):
            return
        if kind == "error":
            self._under_way = True
            self._said["error"] = value(event.get("message", msgspec.Raw(b'"error"')), self._tally, at)
            return
        if kind in _LAST:
            response = decoded(event["response"], self._tally, (*at, "response")) if "response" in event else None
            if type(response) is not dict:
                raise SeatrialError("invalid_document", "expected the response that ended")
            self._end_response(response, (*at, "response"))
        elif kind == "response.created":
            self._end()
            response = decoded(event["response"], self._tally, (*at, "response")) if "response" in event else None
            self._said = response if type(response) is dict else {}
            self._under_way = True
        else:
            self._take_item(kind, event, at)
            self._under_way = True

    def _take_item(self, kind: str, event: dict[str, msgspec.Raw], at: At) -> None:
        given = value(event["output_index"], self._tally, at) if "output_index" in event else None
        index = given if type(given) is int else None
        call = call_of_event(kind)
        if call is not None:
            item_id = value(event["item_id"], self._tally, at) if "item_id" in event else None
            self._output.begin({"type": call, "id": item_id}, index)
        elif kind in ("response.output_item.added", "response.output_item.done") and "item" in event:
            item = decoded(event["item"], self._tally, (*at, "item"))
            if kind == "response.output_item.done":
                self._output.finish(item, index)
            else:
                self._output.begin(item, index)
        else:
            raise SeatrialError("invalid_document", f"unknown event type {kind[:100]!r}, or an event without its item")

    def _end(self) -> None:
        """The stream broke off: what was done is kept, and what had only begun is missing."""
        if self._under_way:
            at: At = (self._responses,) if self._responses else ()
            self._end_response({**self._said, "output": [], "status": "in_progress"}, at)

    def _end_response(self, response: dict[str, Any], at: At) -> None:
        self._responses += 1
        output, lost = self._output.whole(response.get("output"))
        for begun in lost:
            what = f"an item of the type {begun.type[:40]}" if begun.type else "an item"
            place = () if begun.index is None else (begun.index,)
            self._tally.add(FRAME_DROPPED, (*at, "output", *place), f"{what} had begun and was never done")
        record_id = read_response({**response, "output": output}, self._chat, self._run, at)
        self._id = self._id or record_id
        self._output, self._said, self._under_way = ResponseOutput(), {}, False


def call_of_event(kind: str) -> str | None:
    """The type of the call whose progress events of this type report."""
    found = _CALL_EVENT.fullmatch(kind)
    return None if found is None else found[1]


def carries_no_call(kind: str) -> bool:
    """Whether events of this type carry pieces of text, or report that the response is in progress."""
    return _OTHER_EVENT.fullmatch(kind) is not None


class Begun(msgspec.Struct, frozen=True):
    """What an event says of an item that is not done yet."""

    type: str | None
    name: str | None = None
    index: int | None = None
    id: str | None = None


class ResponseOutput:
    """Collects the items of one response."""

    def __init__(self) -> None:
        self._begun: dict[Begun, None] = {}
        self._done: list[tuple[int | None, Any]] = []

    def begin(self, item: Any, index: int | None) -> None:
        """An item was added to the output, or a call is under way."""
        given = item if type(item) is dict else {}
        self._begun[Begun(_text(given, "type"), _text(given, "name"), index, _text(given, "id"))] = None

    def finish(self, item: Any, index: int | None) -> None:
        """An item was done."""
        self._done.append((index, item))

    def whole(self, output: Any) -> tuple[Any, list[Begun]]:
        """The output as the last event gives it with all that was done, and what had begun and is not among it."""
        if not self._done and not self._begun:
            return output, []
        items = list(output) if type(output) is list else []
        missing = self._missing(items)
        items_at = {index: item for index, item in self._done if index is not None}
        # In the order of their places; what has none comes last.
        first = 0
        for index, item in sorted(missing, key=lambda pair: (pair[0] is None, pair[0] or 0)):
            place = len(items) if index is None else min(max(index, first), len(items))
            items.insert(place, item)
            first = place + 1
        ids = {found for item in items for found in _ids(item)}
        types = {_text(item, "type") for item in items if type(item) is dict}
        lost = []
        for begun in self._begun:
            if begun.id is not None and begun.id in ids:
                continue
            if begun.index is not None:
                places = [items_at.get(begun.index), items[begun.index] if 0 <= begun.index < len(items) else None]
                if any(_may_be(begun, item) for item in places):
                    continue
            elif begun.id is None and begun.type in types:
                continue
            lost.append(begun)
        return items, lost

    def _missing(self, items: list[Any]) -> list[tuple[int | None, Any]]:
        """What was done and is not in the list: the same id or the same words are the same item."""
        places: dict[tuple[str, ...], list[int]] = {}
        for place, item in enumerate(items):
            for key in _keys(item):
                places.setdefault(key, []).append(place)
        taken: set[int] = set()
        left = self._done
        for rank in ("id", "words"):
            unmatched = []
            for index, item in left:
                free = (at for key in _keys(item) if key[0] == rank for at in _free(places.get(key, []), taken))
                if (found := next(free, None)) is None:
                    unmatched.append((index, item))
                else:
                    taken.add(found)
            left = unmatched
        # An item that was done twice is one; words that the last event has otherwise are in it as they should be.
        missing: dict[tuple[str, ...] | int, tuple[int | None, Any]] = {}
        known = {key for place in taken for key in _keys(items[place]) if key[0] == "id"}
        for index, item in left:
            keys = [key for key in _keys(item) if key[0] == "id"]
            if any(key in known for key in keys):
                continue
            if index is not None and 0 <= index < len(items) and index not in taken and _same_kind(items[index], item):
                continue
            missing[keys[0] if keys else len(missing)] = (index, item)
        return list(missing.values())


def _keys(item: Any) -> Iterator[tuple[str, ...]]:
    if type(item) is not dict:
        yield ("words", wire.encode(item).decode())
        return
    kind, name = _text(item, "type") or "", _text(item, "name") or ""
    for found in _ids(item):
        yield ("id", kind, name, found)
    words = {key: what for key, what in item.items() if key not in ("id", "call_id", "status")}
    yield ("words", wire.encode(words).decode())


def _ids(item: Any) -> list[str]:
    given = item if type(item) is dict else {}
    return [found for key in ("id", "call_id") if (found := _text(given, key)) is not None]


def _free(places: list[int], taken: set[int]) -> Iterator[int]:
    while places and places[0] in taken:
        places.pop(0)
    yield from places[:1]


def _same_kind(item: Any, other: Any) -> bool:
    if type(item) is not dict or type(other) is not dict:
        return False
    kind = _text(item, "type")
    return kind in _WITHOUT_CALL and kind == _text(other, "type")


def _may_be(begun: Begun, item: Any) -> bool:
    if type(item) is not dict or begun.type not in (None, item.get("type")):
        return False
    return begun.name in (None, item.get("name"))


def _text(given: dict[str, Any], key: str) -> str | None:
    found = given.get(key)
    return found if type(found) is str and found else None
