"""UI message streams of Vercel's AI SDK: chunks gathered into a UIMessage, then read like one that came whole.

A message without `finish`, and without the `[DONE]` that a server sends after it, was cut off: its turn ends in an
error. Another `start` begins the next message of a recording.
"""

from __future__ import annotations

from typing import Any, Final

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.formats.framing import StreamReader
from seatrial.formats.parts import At
from seatrial.formats.tally import NoteTally
from seatrial.formats.turn import STREAM_TRUNCATED, TurnEnding, end_turn
from seatrial.transcript import AssistantMessage, StopReason

_REASONS: Final = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "tool-calls": StopReason.TOOL_USE,
    "content-filter": StopReason.OTHER,
    "error": StopReason.ERROR,
    "other": StopReason.OTHER,
    "unknown": StopReason.OTHER,
}
_TEXTS: Final = ("text", "reasoning")
_TOOL_KEYS: Final = ("toolName", "input", "errorText", "output", "preliminary", "providerExecuted", "title")
_STATES: Final = {
    "tool-input-start": "input-streaming",
    "tool-input-available": "input-available",
    "tool-input-error": "output-error",
    "tool-output-available": "output-available",
    "tool-output-error": "output-error",
    "tool-output-denied": "output-denied",
    "tool-approval-request": "approval-requested",
}
_WHOLE: Final = frozenset({"source-url", "source-document", "file", "reasoning-file", "custom"})
CHUNK_TYPES: Final = frozenset(
    {"start", "finish", "start-step", "finish-step", "abort", "message-metadata", "tool-input-delta",
     "tool-approval-response", *_STATES, *_WHOLE,
     *(f"{kind}-{at}" for kind in _TEXTS for at in ("start", "delta", "end"))}
) - {"file"}  # fmt: skip
"""The types by which a stream is known; `file` is also that of a part, and `error` of much else."""


class VercelStream(StreamReader):
    """Reads the chunks of a UI message stream."""

    format = "vercel"

    def __init__(self, tally: NoteTally | None = None) -> None:
        super().__init__(tally)
        self._messages = 0
        self._begin()

    def _begin(self) -> None:
        self._under_way = False
        self._ended = False
        self._parts: list[dict[str, Any]] = []
        self._open: dict[tuple[str, str], dict[str, Any]] = {}
        """Parts whose text is on its way, as a list of fragments, by kind and id."""
        self._tools: dict[str, dict[str, Any]] = {}
        self._arguments: dict[str, list[str]] = {}
        self._metadata: dict[str, Any] = {}
        self._error: Any = None
        self._reason: Any = None
        self._aborted = False

    def _take(self, payload: bytes, at: At) -> None:
        if payload.strip() == b"[DONE]":
            self._ended = True
            self._end_message()
            return
        chunk = wire.decode(payload, repairs=[])
        kind = chunk.get("type") if type(chunk) is dict else None
        if type(kind) is not str:
            raise SeatrialError("invalid_document", "expected a chunk with a type")
        if kind == "start" and self._under_way:
            self._end_message()
        self._under_way = True
        prefix, _, what = kind.rpartition("-")
        if prefix in _TEXTS and what in ("start", "delta", "end"):
            self._take_text(prefix, what, chunk)
        elif kind in _STATES or kind in ("tool-input-delta", "tool-approval-response"):
            self._take_tool(kind, chunk)
        elif kind == "start-step":
            self._parts.append({"type": "step-start"})
        elif kind in _WHOLE or kind.startswith("data-"):
            self._parts.append(chunk)
        elif kind in ("start", "finish", "message-metadata", "finish-step"):
            self._take_metadata(kind, chunk)
        elif kind == "abort":
            self._ended = self._aborted = True
        elif kind == "error":
            self._error = chunk.get("errorText") or "the stream reports an error"
        else:
            raise SeatrialError("invalid_document", f"unknown chunk type {kind[:100]!r}")

    def _take_metadata(self, kind: str, chunk: dict[str, Any]) -> None:
        if type(metadata := chunk.get("messageMetadata")) is dict:
            self._metadata.update(metadata)
        if self._id is None and type(message_id := chunk.get("messageId")) is str:
            self._id = message_id
        if kind == "finish":
            self._ended = True
            self._reason = chunk.get("finishReason")

    def _take_text(self, kind: str, what: str, chunk: dict[str, Any]) -> None:
        key = (kind, _text(chunk, "id"))
        if what == "end":
            self._open.pop(key, None)
            return
        if what == "start" or key not in self._open:
            self._open[key] = {"type": kind, "text": []}
            self._parts.append(self._open[key])
        part = self._open[key]
        if what == "delta":
            part["text"].append(_text(chunk, "delta"))
        if kind == "reasoning" and (metadata := chunk.get("providerMetadata")):
            part["providerMetadata"] = metadata

    def _take_tool(self, kind: str, chunk: dict[str, Any]) -> None:
        call_id = chunk.get("toolCallId")
        if kind == "tool-approval-response" and call_id is None:
            return
        if type(call_id) is not str:
            raise SeatrialError("invalid_document", "expected a chunk with a toolCallId")
        part = self._tools.get(call_id)
        if part is None:
            # A result whose call is not in this stream stays without a name, which is noted when it is read.
            part = self._tools[call_id] = {"type": "dynamic-tool", "toolName": "", "toolCallId": call_id}
            self._parts.append(part)
        if kind == "tool-input-delta":
            self._arguments.setdefault(call_id, []).append(_text(chunk, "inputTextDelta"))
            return
        for key in _TOOL_KEYS:
            if key in chunk:
                part[key] = chunk[key]
        if kind == "tool-approval-response":
            part["approval"] = {"approved": chunk.get("approved"), "reason": chunk.get("reason")}
            part["state"] = "approval-responded"
        else:
            part["state"] = _STATES[kind]

    def _end(self) -> None:
        self._end_message()

    def _end_message(self) -> None:
        if not self._under_way:
            return
        for part in self._parts:
            if type(fragments := part.get("text")) is list:
                part["text"] = "".join(fragments)
        for call_id, part in self._tools.items():
            if "input" not in part and call_id in self._arguments:
                part["rawInput"] = "".join(self._arguments[call_id])
        at: At = (self._messages,) if self._messages else ()
        self._messages += 1
        before = len(self._run.messages)
        self._chat.read({"role": "assistant", "parts": self._parts, "metadata": self._metadata}, at)
        # The turn that ended is the last one that this message brought.
        message = next(found for found in reversed(self._run.messages[before:]) if type(found) is AssistantMessage)
        if self._aborted and self._error is None:
            message.stop_reason = StopReason.ABORTED
            self._tally.add(STREAM_TRUNCATED, at, "the turn was aborted")
        elif self._error is not None or not self._ended or self._reason is not None:
            ending = TurnEnding(self._reason, self._error, cut_off=not self._ended)
            end_turn(message, ending, _REASONS, self._run, self._tally, at)
        self._begin()


def _text(chunk: dict[str, Any], key: str) -> str:
    found = chunk.get(key)
    if type(found) is not str:
        raise SeatrialError("invalid_document", f"expected a chunk with {key}")
    return found
