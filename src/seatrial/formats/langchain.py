"""LangChain and LangGraph: messages, states, and recorded updates of a graph. Read, not written."""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.documents import keep_rest, read_chat_document, read_list, sniff_messages
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.reader import Chat
from seatrial.formats.dialects.langchain import KINDS, is_chunk, merged_chunks
from seatrial.formats.reading import Reading
from seatrial.formats.sniffing import SURE, Members, Sample, Sniff, members_of, objects_of, surest, text_of
from seatrial.transcript import Transcript

FORMAT: Final = "langchain"


def sniff(sample: Sample) -> Sniff | None:
    """Messages with a type for a role, as they are or wrapped; also those of a state and of a graph's updates."""
    for entry in sample.entries[:1]:
        inside = [found for raw in entry.values() if (found := members_of(raw)) is not None and "messages" in found]
        for update in inside if "type" not in entry and "role" not in entry else []:
            if (update_of := surest("an update: ", objects_of(update["messages"]), _sniff_message)) is not None:
                return update_of
    return sniff_messages(sample, _sniff_message)


def _sniff_message(entry: Members) -> Sniff | None:
    kind = text_of(entry, "type")
    if kind == "constructor" and "lc" in entry and "kwargs" in entry:
        return Sniff(SURE + 5, "a constructor of LangChain")
    if kind not in KINDS or "role" in entry:
        return None
    if "content" in entry or "data" in entry:
        return Sniff(SURE + 5, f"a message of the type {kind}")
    return None


def read(data: bytes) -> Reading:
    """Read messages, a state with `messages`, or states and updates that a graph streamed."""
    expected = "a state with `messages`"
    return read_chat_document(data, FORMAT, _container, expected, _read_entries)


def _container(given: dict[str, Any], chat: Chat, run: Transcript, at: At) -> bool:
    if "messages" in given and "type" not in given:
        read_list(given["messages"], chat, (*at, "messages"))
        keep_rest(given, frozenset({"messages"}), chat, run, at)
        return True
    for key in ("values", "output"):
        inside = given.get(key)
        if type(inside) is dict and type(inside.get("messages")) is list and "type" not in given:
            read_list(inside["messages"], chat, (*at, key, "messages"))
            keep_rest(inside, frozenset({"messages"}), chat, run, (*at, key))
            keep_rest(given, frozenset({key}), chat, run, at)
            return True
    return False


def _read_entries(found: list[Any], chat: Chat, run: Transcript) -> None:
    """Messages; or states, of which each repeats the one before, and updates, which a node of the graph adds.

    A message that came before, by its id and by what it says, or at the head of the state before, is the same one. One
    that differs stands beside the first: what was done stays done, also when a graph rewrites it.
    """
    items: list[tuple[Any, At]] = []
    places: dict[str, int] = {}
    before: list[Any] = []
    merged = merged_chunks(found)
    # One turn that a model streamed says nothing of others.
    chat.is_single_turn = len(merged) == 1 and is_chunk(merged[0])
    for index, entry in enumerate(merged):
        messages = _messages(entry, (index,), chat, run)
        if type(entry) is dict and type(state := entry.get("messages")) is list and "type" not in entry:
            if before and state[: len(before)] == before:
                del messages[: len(before)]  # they need no ids to be the same
            before = state
        for item, at in messages:
            message_id = _id(item)
            known = places.get(message_id) if message_id is not None else None
            if known is not None and items[known][0] == item:
                continue
            if message_id is not None:
                places[message_id] = len(items)
            items.append((item, at))
    for item, at in items:
        chat.read(item, at)


def _messages(entry: Any, at: At, chat: Chat, run: Transcript) -> list[tuple[Any, At]]:
    """The messages in an entry: of a state, of the updates of nodes, or the entry itself."""
    if type(entry) is not dict or "type" in entry or "role" in entry:
        return [(entry, at)]
    if type(messages := entry.get("messages")) is list:
        keep_rest(entry, frozenset({"messages"}), chat, run, at)
        return [(message, (*at, "messages", index)) for index, message in enumerate(messages)]
    updates = {key: update for key, update in entry.items() if type(update) is dict and "messages" in update}
    if not updates:
        return [(entry, at)]
    keep_rest(entry, frozenset(updates), chat, run, at)
    found: list[tuple[Any, At]] = []
    for key, update in updates.items():
        messages = update["messages"]
        keep_rest(update, frozenset({"messages"}), chat, run, (*at, key))
        for index, message in enumerate(messages if type(messages) is list else [messages]):
            found.append((message, (*at, key, "messages", index)))
    return found


def _id(item: Any) -> str | None:
    if type(item) is not dict:
        return None
    inside = item.get("kwargs", item.get("data")) if "content" not in item else item
    found = inside.get("id") if type(inside) is dict else None
    return found if type(found) is str and found else None
