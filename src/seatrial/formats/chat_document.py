"""Whole documents of chat messages: an array, lines of JSON, server-sent events, or an object that holds them.

The formats that share this reader differ in their objects: a `Container` knows those of its format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from seatrial.errors import SeatrialError
from seatrial.events.sse import SseParser
from seatrial.formats.chat import Chat
from seatrial.formats.decoding import decoded
from seatrial.formats.framing import open_document
from seatrial.formats.parts import At, json_kind
from seatrial.formats.reading import WAITS, WAITS_FOR_INPUT, Reading, single_turn
from seatrial.formats.reported_failure import note_failure
from seatrial.formats.sniffing import Members, Sample, Sniff, objects, surest
from seatrial.formats.tally import NoteTally
from seatrial.formats.turn import tell_run
from seatrial.transcript import Transcript, pointer
from seatrial.transcript.salvage import MESSAGE_DROPPED

_RESPONSES = frozenset({"final_response", "session_done", "output_messages", "outputMessages", "trace", "trace_ref"})
_CONTAINERS = 20
"""How many objects of a list are looked into for messages."""
_LEVELS = 10
"""How far into a document one value that cannot be held is kept apart from the others."""

Container: TypeAlias = Callable[[dict[str, Any], Chat, Transcript, At], bool]
"""Reads an object that holds messages, or says that it is none. Another one reads the entries of a list."""
Entries: TypeAlias = Callable[[list[Any], Chat, Transcript], None]


def read_chat_document(
    data: bytes, format: str, container: Container, expected: str, entries: Entries | None = None
) -> Reading:
    """Read a document of messages; `expected` says in an error what an object should have been."""
    tally = NoteTally(len(data))
    run = Transcript(messages=[], metadata={})
    chat = Chat(tally, run.messages)
    document = open_document(data, tally)
    if isinstance(document, dict):
        given = decoded(msgspec.Raw(data), tally, (), _LEVELS)
        if not container(given, chat, run, ()):
            _read_item(given, chat, expected)
            chat.is_single_turn = True
    else:
        found = [*_decoded(_frames(data) if document is None else document, tally)]
        if entries is not None:
            entries(found, chat, run)
        else:
            read_entries(found, container, chat, run)
    chat.close_turn()
    record_id = run.metadata.get("id")
    found_id = record_id if type(record_id) is str else None
    reading = Reading(format, run, tally.total(), id=found_id, calls=chat.facts)
    return single_turn(reading) if chat.is_single_turn else reading


def sniff_messages(
    sample: Sample, sniff: Callable[[Members], Sniff | None], keys: tuple[str, ...] = ("messages",)
) -> Sniff | None:
    """What the messages of a sample say, also those in its objects, unless these are responses with a name."""
    best = sample.surest(sniff)
    for entry in sample.entries[:_CONTAINERS]:
        if not _RESPONSES.isdisjoint(entry):
            return None
        for key in keys:
            found = surest(f"{key}: ", objects(entry.get(key)), sniff)
            if found is not None and (best is None or found.confidence > best.confidence):
                best = found
    return best


def read_entries(found: Iterable[Any], container: Container, chat: Chat, run: Transcript) -> None:
    """Read the entries of a list, each a message or an object that holds some.

    Objects of which each holds all messages so far, as states of a graph do, are one conversation.
    """
    before: list[Any] = []
    for index, entry in enumerate(found):
        if type(entry) is dict and type(messages := entry.get("messages")) is list:
            if before and "role" not in entry and messages[: len(before)] == before:
                chat.read_all(messages[len(before) :], (index, "messages"))
                keep_rest(entry, frozenset({"messages"}), chat, run, (index,))
                before = messages
                continue
            before = messages
        if type(entry) is not dict or not container(entry, chat, run, (index,)):
            chat.read(entry, (index,))


def read_list(given: Any, chat: Chat, at: At) -> None:
    """Read the array of messages that stands under a key."""
    if type(given) is not list:
        raise SeatrialError(
            "invalid_document", f"expected an array of messages, got {json_kind(given)}", pointer=pointer(*at)
        )
    chat.read_all(given, at)


def keep_rest(given: dict[str, Any], read: frozenset[str], chat: Chat, run: Transcript, at: At) -> None:
    """Keep what else an object says in the run's metadata."""
    if given.get("__interrupt__"):
        # How LangGraph says that a graph stopped to ask.
        chat.tally.add(WAITS_FOR_INPUT, (*at, "__interrupt__"), WAITS)
    note_failure({key: value for key, value in given.items() if key not in read}, chat.tally, at)
    for key, value in given.items():
        if key not in read and value is not None:
            tell_run(run, key, value, chat.tally, at)


def _read_item(given: Any, chat: Chat, expected: str) -> None:
    from seatrial.formats.dialects import find_dialect

    if type(given) is not dict or find_dialect(given) is None:
        raise SeatrialError("invalid_document", f"expected messages, or {expected}")
    chat.read(given, ())


def _frames(data: bytes) -> list[msgspec.Raw]:
    parser = SseParser()
    payloads = [frame.data for frame in [*parser.feed(data), *parser.close()]]
    return [msgspec.Raw(payload) for payload in payloads if payload.strip() != b"[DONE]"]


def _decoded(entries: Iterable[msgspec.Raw], tally: NoteTally) -> Iterable[Any]:
    for index, entry in enumerate(entries):
        try:
            yield decoded(entry, tally, (index,), _LEVELS)
        except SeatrialError as error:
            tally.add(MESSAGE_DROPPED, (index,), error.message, each="")
