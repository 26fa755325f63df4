"""The messages of a transcript in the shape of the chat completions API.

An assistant message has one place for each channel, in a fixed order: native reasoning, content, tool calls. Its
content is a string where that reads back as the same blocks, else an array of text parts, one for each block.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

import msgspec

from seatrial._support import wire
from seatrial._support.nesting import is_too_deep
from seatrial.events.layout import Spoken
from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.parts import reads_back, texts_with_tags
from seatrial.formats.chat.writing import (
    change,
    lose_block,
    lose_field,
    lose_image_fields,
    lose_message_fields,
    lose_run_fields,
)
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    Message,
    Note,
    ReasoningBlock,
    ReasoningDetailsBlock,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)
from seatrial.transcript.arguments import detect_unparsed, parse_arguments


class CompletionDialect(msgspec.Struct, frozen=True):
    """Where the servers differ."""

    native_reasoning: bool
    """Whether messages have `reasoning` and `reasoning_details`."""
    images_in_results: bool
    """Whether tool results may hold images."""


def write_completions(transcript: Transcript, dialect: CompletionDialect) -> tuple[bytes, list[Note]]:
    """The messages as a JSON array, and what they do not carry."""
    tally = NoteTally()
    writer = _Writer(dialect, tally)
    written = [writer.write(message, ("messages", index)) for index, message in enumerate(transcript.messages)]
    lose_run_fields(transcript, tally)
    return wire.encode([message for message in written if message is not None]), tally.total()


class _Writer:
    """Writes messages one after the other; remembers the calls, whose results need no name."""

    def __init__(self, dialect: CompletionDialect, tally: NoteTally) -> None:
        self._dialect = dialect
        self._tally = tally
        self._names: dict[str, str] = {}

    def write(self, message: Message, at: At) -> dict[str, Any] | None:
        if isinstance(message, AssistantMessage):
            written = self._assistant(message, at)
        elif isinstance(message, ToolResultMessage):
            written = self._result(message, at)
        elif isinstance(message, UserMessage):
            content = message.content
            content = content if isinstance(content, str) else self._parts(content, at, images=True)
            written = {"role": "user", "content": content}
        elif isinstance(message, SystemMessage):
            written = {"role": "system", "content": message.content}
        else:
            lose_block(self._tally, at, "a custom message")
            return None
        lose_message_fields(message, self._tally, at)
        return written

    def _assistant(self, message: AssistantMessage, at: At) -> dict[str, Any]:
        at = (*at, "content")
        ranks = [_RANKS[type(block)] for block in message.content]
        if not self._dialect.native_reasoning:
            ranks = [rank for rank in ranks if rank >= _SPOKEN]
        if ranks != sorted(ranks):
            change(self._tally, at, "the order between reasoning, text and tool calls is not carried")
        spoken: list[tuple[At, Spoken]] = []
        calls: list[dict[str, Any]] = []
        reasoning: list[str] = []
        details: list[list[msgspec.Raw]] = []
        for index, block in enumerate(message.content):
            here = (*at, index)
            if isinstance(block, TextBlock | ThinkingBlock):
                spoken.append((here, block))
            elif isinstance(block, ToolCall):
                calls.append(self._call(block, here))
            elif not self._dialect.native_reasoning:
                lose_block(self._tally, here, "native reasoning")
            elif isinstance(block, ReasoningBlock):
                reasoning.append(block.text)
            else:
                details.append(self._details(block, here))
        # The API wants content or calls.
        written: dict[str, Any] = {"role": "assistant", "content": self._content(spoken) or (None if calls else "")}
        if reasoning:
            written["reasoning"] = "".join(reasoning)
            self._note_merged("reasoning", reasoning, at)
        if details:
            written["reasoning_details"] = [entry for entries in details for entry in entries]
            self._note_merged("reasoning_details", details, at)
        if calls:
            written["tool_calls"] = calls
        return written

    def _content(self, spoken: list[tuple[At, Spoken]]) -> str | list[dict[str, str]]:
        blocks = [block for _, block in spoken]
        texts = texts_with_tags(blocks)
        whole = "".join(texts)
        if whole and reads_back([whole], blocks):
            return whole
        for text, (at, block) in zip(texts, spoken, strict=True):
            if not reads_back([text], [block]):
                change(self._tally, at, "the text holds a thinking tag and is read back as something else")
        return [{"type": "text", "text": text} for text in texts]

    def _details(self, block: ReasoningDetailsBlock, at: At) -> list[msgspec.Raw]:
        kept: list[msgspec.Raw] = []
        for index, entry in enumerate(block.details):
            if _is_json(entry):
                kept.append(entry)
            else:
                lose_block(self._tally, (*at, "details", index), "a detail that is not JSON")
        return kept

    def _note_merged(self, kind: str, found: Sequence[Sized], at: At) -> None:
        if len(found) > 1:
            change(self._tally, at, f"{len(found)} blocks of {kind} become one")
        elif not found[0]:
            lose_block(self._tally, at, f"an empty block of {kind}")

    def _call(self, call: ToolCall, at: At) -> dict[str, Any]:
        self._names[call.id] = call.name
        for field in ("id", "name"):
            if not getattr(call, field):
                lose_field(self._tally, at, field)
        unparsed = detect_unparsed(call.arguments)
        if unparsed is None:
            arguments = wire.encode(call.arguments).decode()
        else:
            arguments = unparsed[1]
            if parse_arguments(arguments)[0] != call.arguments:
                change(self._tally, (*at, "arguments"), "only the text of unreadable arguments is carried")
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}

    def _result(self, message: ToolResultMessage, at: At) -> dict[str, Any]:
        written: dict[str, Any] = {"role": "tool", "tool_call_id": message.tool_call_id}
        if self._names.get(message.tool_call_id) != message.tool_name:
            written["name"] = message.tool_name
        content = message.content
        if len(content) == 1 and isinstance(content[0], TextBlock):
            written["content"] = content[0].text
        else:
            written["content"] = self._parts(content, at, images=self._dialect.images_in_results)
        if not message.tool_call_id:
            lose_field(self._tally, at, "tool_call_id")
        if message.is_error:
            lose_field(self._tally, at, "is_error")
        return written

    def _parts(self, blocks: Sequence[TextBlock | ImageBlock], at: At, *, images: bool) -> list[Any]:
        parts: list[Any] = []
        for index, block in enumerate(blocks):
            here = (*at, "content", index)
            if isinstance(block, TextBlock):
                parts.append(block)
            elif images:
                lose_image_fields(block, self._tally, here)
                parts.append({"type": "image_url", "image_url": {"url": block.source}})
            else:
                lose_block(self._tally, here, "an image in a tool result")
        return parts


def _is_json(entry: msgspec.Raw) -> bool:
    # Details that someone made by hand can be anything, and would break the document they are put into.
    if is_too_deep(entry):
        return False
    try:
        _RAW.decode(entry)
        str(entry, "utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


_RAW = msgspec.json.Decoder(msgspec.Raw)
_SPOKEN = 2
_RANKS: dict[type[AssistantBlock], int] = {
    ReasoningBlock: 0,
    ReasoningDetailsBlock: 1,
    TextBlock: _SPOKEN,
    ThinkingBlock: _SPOKEN,
    ToolCall: 3,
}
"""The order in which the places of a message are read."""
