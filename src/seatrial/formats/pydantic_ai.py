"""Pydantic AI: messages of an agent's run, as `all_messages_json` and `new_messages_json` write them. Not written."""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.documents import keep_rest, read_chat_document, read_list, sniff_messages
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.reader import Chat
from seatrial.formats.reading import Reading
from seatrial.formats.sniffing import SURE, Members, Sample, Sniff, text_of
from seatrial.transcript import Transcript

FORMAT: Final = "pydantic-ai"
_ALL: Final = ("messages", "all_messages")
_PARTLY: Final = ("message_history", "new_messages")
"""What a run started from, and what it added."""


def sniff(sample: Sample) -> Sniff | None:
    """The only messages that are a request or a response, with parts."""
    return sniff_messages(sample, _sniff_message, (*_ALL, *_PARTLY))


def _sniff_message(entry: Members) -> Sniff | None:
    kind = text_of(entry, "kind") if "parts" in entry else None
    return Sniff(SURE + 5, f"a message of the kind {kind}") if kind in ("request", "response") else None


def read(data: bytes) -> Reading:
    """Read messages, or an object that has them as `messages`, `all_messages`, `new_messages` or `message_history`."""
    return read_chat_document(data, FORMAT, _container, "an object with `messages`")


def _container(given: dict[str, Any], chat: Chat, run: Transcript, at: At) -> bool:
    if "parts" in given:
        return False
    found = next(([key] for key in _ALL if key in given), [key for key in _PARTLY if key in given])
    for key in found:
        before = len(run.messages)
        read_list(given[key], chat, (*at, key))
        if key == "message_history" and len(found) > 1:
            run.given = list(range(before, len(run.messages)))  # what the run started from
    if found:
        # The messages of a run's parts are among all of its messages.
        keep_rest(given, frozenset({*_ALL, *_PARTLY}), chat, run, at)
    return bool(found)
