"""Bedrock Converse: messages, requests, responses and streams; messages of Strands agents. Read, not written.

A stream is read as the messages that its events add up to, among whatever messages stand between them.
"""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.documents import keep_rest, read_chat_document, read_entries, read_list, sniff_messages
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import STREAM_TRUNCATED, TurnEnding, end_turn
from seatrial.formats.dialects.anthropic import STOP_REASONS
from seatrial.formats.dialects.bedrock import MEMBERS, read_system
from seatrial.formats.reading import Reading
from seatrial.formats.sniffing import SURE, Members, Sample, Sniff, members_of, objects_of
from seatrial.transcript import StopReason, Transcript

FORMAT: Final = "bedrock"
_EXCEPTIONS: Final = frozenset(
    {"internalServerException", "modelStreamErrorException", "validationException", "throttlingException",
     "serviceUnavailableException"}
)  # fmt: skip
_EVENTS: Final = frozenset(
    {"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}
) | _EXCEPTIONS  # fmt: skip
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
    if document is not None and "stopReason" in document and "message" in (members_of(document.get("output")) or {}):
        return Sniff(SURE + 5, "a response with output and stopReason")
    return sample.surest(_sniff_event) or sniff_messages(sample, _sniff_message)


def _sniff_event(entry: Members) -> Sniff | None:
    kind = next(iter(entry), None) if len(entry) == 1 else None
    if kind in _EVENTS and members_of(entry[kind]) is not None:
        return Sniff(SURE + 5, f"an event {kind} of ConverseStream")
    return None


def _sniff_message(entry: Members) -> Sniff | None:
    if "role" not in entry:
        return None
    for part in objects_of(entry.get("content")):
        key = next((key for key in part if key in MEMBERS and key not in ("image", "document")), None)
        if key is not None and "type" not in part:
            return Sniff(SURE + 5, f"a content block {key}")
    return None


def read(data: bytes) -> Reading:
    """Read messages, a request with `messages`, a response with `output`, or the events of a stream."""
    expected = "a request with `messages`, or a response with `output.message`"
    return read_chat_document(data, FORMAT, _container, expected, _read_entries)


def _read_entries(found: list[Any], chat: Chat, run: Transcript) -> None:
    if not any(_event(entry) for entry in found):
        read_entries(found, _container, chat, run)
        return
    turn: _StreamedTurn | None = None
    # The stream of one response says nothing of other turns.
    starts = [_event(entry) for entry in found].count("messageStart")
    chat.is_single_turn = starts <= 1 and all(_event(entry) for entry in found)
    for index, entry in enumerate(found):
        kind = _event(entry)
        if kind is None:
            if turn is not None:
                turn.end(chat, run)
                turn = None
            read_entries([entry], _container, chat, run)
            continue
        if turn is None or kind == "messageStart":
            if turn is not None:
                turn.end(chat, run)
            turn = _StreamedTurn(index)
        turn.take(kind, entry[kind], chat, (index, kind))
    if turn is not None:
        turn.end(chat, run)


def _event(entry: Any) -> str | None:
    kind = next(iter(entry)) if type(entry) is dict and len(entry) == 1 else None
    return kind if kind in _EVENTS and type(entry[kind]) is dict else None


class _StreamedBlock:
    """A content block that arrives in events."""

    def __init__(self, block: dict[str, Any]) -> None:
        self.block = block
        self.fragments: list[str] = []
        """Its text, or its arguments."""

    def whole(self) -> dict[str, Any]:
        """The block as it would have come whole."""
        text = "".join(self.fragments)
        if type(use := self.block.get("toolUse")) is dict:
            use["input"] = text
        elif "text" in self.block:
            self.block["text"] = text
        return self.block


class _StreamedTurn:
    """A message that arrives in events."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._role: Any = "assistant"
        self._blocks: list[_StreamedBlock] = []
        self._open: dict[int | None, _StreamedBlock] = {}
        """By their number those that grow. Some models give none, or the same one again: a start begins a block."""
        self._stop_reason: Any = None
        self._usage: Any = None
        self._error: Any = None

    def take(self, kind: str, said: dict[str, Any], chat: Chat, at: At) -> None:
        """Take one event; an unknown delta is noted."""
        place = said.get("contentBlockIndex")
        place = place if type(place) is int else None
        if kind == "messageStart":
            self._role = said.get("role")
        elif kind == "contentBlockStart":
            start = said.get("start")
            self._begin(place, dict(start) if type(start) is dict else {})
        elif kind == "contentBlockDelta":
            delta = said.get("delta")
            for key, more in delta.items() if type(delta) is dict else ():
                self._add(place, key, more, chat, (*at, "delta"))
        elif kind == "contentBlockStop":
            self._open.pop(place, None)
        elif kind == "messageStop":
            self._stop_reason = said.get("stopReason")
        elif kind == "metadata":
            self._usage = said.get("usage")
        elif kind in _EXCEPTIONS:
            self._error = said

    def _begin(self, place: int | None, block: dict[str, Any]) -> _StreamedBlock:
        begun = self._open[place] = _StreamedBlock(block)
        self._blocks.append(begun)
        return begun

    def _growing(self, place: int | None, key: str) -> _StreamedBlock:
        """The block that a delta of this kind belongs to; one without a beginning begins with its first delta."""
        known = self._open.get(place)
        if known is None or (known.block and key not in known.block):
            return self._begin(place, {})
        return known

    def _add(self, place: int | None, key: str, more: Any, chat: Chat, at: At) -> None:
        if key == "text" and type(more) is str:
            grown = self._growing(place, key)
            grown.block.setdefault("text", "")
            grown.fragments.append(more)
        elif key == "toolUse" and type(more) is dict and type(more.get("input")) is str:
            grown = self._growing(place, key)
            grown.block.setdefault("toolUse", {})
            grown.fragments.append(more["input"])
        elif key == "reasoningContent" and type(more) is dict:
            block = self._growing(place, key).block
            thought = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})
            if type(text := more.get("text")) is str:
                thought.setdefault("reasoningText", {"text": ""})["text"] += text
            elif "signature" in more:
                thought.setdefault("reasoningText", {"text": ""})["signature"] = more["signature"]
            elif "redactedContent" in more:
                block["reasoningContent"] = {"redactedContent": more["redactedContent"]}
        else:
            chat.drop_key(key, more, at, agent=True)

    def end(self, chat: Chat, run: Transcript) -> None:
        """Read the message."""
        at = (self._index,)
        blocks = [block.whole() for block in self._blocks]
        if self._role == "user":
            chat.add_user(blocks, at)
            return
        message = chat.add_assistant(chat.pieces(blocks, at, agent=True), at)
        ending = TurnEnding(self._stop_reason, self._error, cut_off=self._stop_reason is None)
        end_turn(message, ending, _REASONS, run, chat.tally, at)
        if self._error is not None and ending.cut_off:
            chat.tally.add(STREAM_TRUNCATED, at, "the stream ended in an error")
        chat.add_usage(message, self._usage, at)


def _container(given: dict[str, Any], chat: Chat, run: Transcript, at: At) -> bool:
    output = given.get("output")
    said = output.get("message") if type(output) is dict else None
    if type(said) is dict:
        where = (*at, "output", "message")
        content = (*where, "content")
        message = chat.add_assistant(chat.pieces(said.get("content"), content, agent=True), content)
        chat.note_keys(said, frozenset({"role", "content"}), where, agent=True)
        end_turn(message, TurnEnding(given.get("stopReason")), _REASONS, run, chat.tally, (*at, "stopReason"))
        chat.add_usage(message, given.get("usage"), (*at, "usage"))
        keep_rest(given, frozenset({"output", "stopReason", "usage"}), chat, run, at)
        chat.is_single_turn = not at
        return True
    if "messages" not in given or "role" in given:
        return False
    if given.get("system") is not None:
        read_system(given["system"], chat, (*at, "system"))
    read_list(given["messages"], chat, (*at, "messages"))
    keep_rest(given, frozenset({"messages", "system"}), chat, run, at)
    return True
