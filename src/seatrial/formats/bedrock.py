"""Bedrock Converse: messages, requests and responses; messages of Strands agents. Read, not written."""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat import Chat
from seatrial.formats.chat_document import keep_rest, read_chat_document, read_list, sniff_messages
from seatrial.formats.dialects.anthropic import STOP_REASONS
from seatrial.formats.dialects.bedrock import MEMBERS, read_system
from seatrial.formats.parts import At
from seatrial.formats.reading import Reading
from seatrial.formats.sniffing import SURE, Members, Sample, Sniff, members, objects
from seatrial.formats.turn import Ending, end_turn
from seatrial.transcript import StopReason, Transcript

FORMAT: Final = "bedrock"
_REASONS: Final = {
    **STOP_REASONS,
    "guardrail_intervened": StopReason.OTHER,
    "content_filtered": StopReason.OTHER,
    "malformed_tool_use": StopReason.ERROR,
    "malformed_model_output": StopReason.ERROR,
}


def sniff(sample: Sample) -> Sniff | None:
    """Content blocks that are named by their key, or a response with an output message."""
    document = sample.document
    if document is not None and "stopReason" in document and "message" in (members(document.get("output")) or {}):
        return Sniff(SURE + 5, "a response with output and stopReason")
    return sniff_messages(sample, _sniff_message)


def _sniff_message(entry: Members) -> Sniff | None:
    if "role" not in entry:
        return None
    for part in objects(entry.get("content")):
        key = next((key for key in part if key in MEMBERS and key not in ("image", "document")), None)
        if key is not None and "type" not in part:
            return Sniff(SURE + 5, f"a content block {key}")
    return None


def read(data: bytes) -> Reading:
    """Read messages, a request with `messages`, or a response with `output`."""
    expected = "a request with `messages`, or a response with `output.message`"
    return read_chat_document(data, FORMAT, _container, expected)


def _container(given: dict[str, Any], chat: Chat, run: Transcript, at: At) -> bool:
    output = given.get("output")
    said = output.get("message") if type(output) is dict else None
    if type(said) is dict:
        where = (*at, "output", "message")
        content = (*where, "content")
        message = chat.add_assistant(chat.pieces(said.get("content"), content, agent=True), content)
        chat.note_keys(said, frozenset({"role", "content"}), where, agent=True)
        end_turn(message, Ending(given.get("stopReason")), _REASONS, run, chat.tally, (*at, "stopReason"))
        chat.add_usage(message, given.get("usage"), (*at, "usage"))
        keep_rest(given, frozenset({"output", "stopReason", "usage"}), chat, run, at)
        return True
    if "messages" not in given or "role" in given:
        return False
    if given.get("system") is not None:
        read_system(given["system"], chat, (*at, "system"))
    read_list(given["messages"], chat, (*at, "messages"))
    keep_rest(given, frozenset({"messages", "system"}), chat, run, at)
    return True
