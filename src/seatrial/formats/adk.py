"""Google's Agent Development Kit: events of a run, and sessions with their events. Read, not written."""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.documents import keep_rest, read_chat_document, read_list, sniff_messages
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.reader import Chat
from seatrial.formats.dialects import adk
from seatrial.formats.reading import Reading
from seatrial.formats.sniffing import CERTAIN, Members, Sample, Sniff
from seatrial.transcript import Transcript

FORMAT: Final = "adk"


def sniff(sample: Sample) -> Sniff | None:
    """Events with an author and an invocation, alone or in a session."""
    return sniff_messages(sample, _sniff_event, ("events",))


def _sniff_event(entry: Members) -> Sniff | None:
    if "author" in entry and ("invocation_id" in entry or "invocationId" in entry):
        return Sniff(CERTAIN, "events with author and invocation_id")
    return None


def read(data: bytes) -> Reading:
    """Read an event, a list or lines of them, or a session with `events`."""
    return read_chat_document(data, FORMAT, _container, "a session with `events`")


def _container(given: dict[str, Any], chat: Chat, run: Transcript, at: At) -> bool:
    if "events" not in given or adk.fits(given):
        return False
    read_list(given["events"], chat, (*at, "events"))
    keep_rest(given, frozenset({"events"}), chat, run, at)
    return True
