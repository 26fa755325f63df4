"""Anthropic's messages: content blocks with calls and results among them.

| wire | transcript |
| --- | --- |
| `system` blocks | system messages, one for each block of text |
| `tool_result`, also in a `user` message | a tool result, in its place among the rest |
| `thinking` with a signature, `redacted_thinking` | native reasoning details |
| `thinking` without a signature | native reasoning text |
| `tool_use` | tool call |
| `server_tool_use`, `mcp_tool_use` | tool call that the provider ran |
| `tool_use` with a `tool_type` (Inspect) | the same, with its result |
| `web_search_tool_result` and its like, `mcp_tool_result` | the result of such a call |
"""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.calls import Call, ListedCalls, nameless_note, read_call
from seatrial.formats.chat.content import ContentReader, Piece
from seatrial.formats.chat.notes import At, json_kind
from seatrial.formats.chat.parts import dropped_part, read_part, read_text
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import TurnEnding, end_turn, is_count, other_counts, token_count
from seatrial.formats.dialects.responses import ITEM_WITHOUT_CALL
from seatrial.transcript import (
    ReasoningBlock,
    StopReason,
    TextBlock,
    ToolResultMessage,
    Transcript,
    Usage,
    pointer,
)
from seatrial.transcript.reasoning import ReasoningEncrypted, ReasoningFormat, ReasoningText, from_items
from seatrial.transcript.salvage import VALUE_DROPPED

STOP_REASONS: Final = {
    "end_turn": StopReason.END_TURN,
    "stop_sequence": StopReason.END_TURN,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
    "pause_turn": StopReason.MAX_TOKENS,  # so many rounds of server tools, and more to come in another response
}
_FORMAT: Final = ReasoningFormat.ANTHROPIC_CLAUDE_V1
_RESULT: Final = "_tool_result"
_ERROR: Final = "_tool_result_error"
SERVER_RESULTS: Final = tuple(
    f"{tool}{_RESULT}"
    for tool in ("web_search", "web_fetch", "code_execution", "bash_code_execution", "text_editor_code_execution",
                 "mcp", "tool_search", "advisor")
)  # fmt: skip
_KEYS: Final = frozenset({"role", "content", "stop_reason", "stop_sequence", "usage", "id", "type"})
_TEXT_KEYS: Final = frozenset({"type", "text"})
_COUNTS: Final = frozenset(Usage.__struct_fields__)
_CALL_KEYS: Final = frozenset({"type", "id", "name", "input", "caller", "server_name", "partial_json", "index"})
_INSPECT_KEYS: Final = frozenset({"type", "tool_type", "id", "name", "context", "arguments", "result", "error"})
_RESULT_KEYS: Final = frozenset({"type", "tool_use_id", "tool_call_id", "content", "is_error", "caller"})
_THINKING_KEYS: Final = frozenset({"type", "thinking", "signature", "data", "index"})


def fits(item: dict[str, Any]) -> int:
    """A message with blocks that only Anthropic has, or with its stop reason."""
    if item.get("role") not in ("user", "assistant", "system") or "parts" in item:
        return 0
    content = item.get("content")
    if type(content) is list:
        for part in content:
            if type(part) is dict and type(kind := part.get("type")) is str and kind in _OWN_PARTS:
                return 2
    return 2 if item.get("type") == "message" and "stop_reason" in item else 0


def read(item: dict[str, Any], chat: Chat, at: At) -> None:
    """Add the messages that one message stands for."""
    role, content = item["role"], (*at, "content")
    if role == "system":
        read_system(item.get("content"), chat, content)
    elif role == "user":
        chat.add_user(item.get("content"), content)
        chat.note_keys_of_message(item, _KEYS, at, agent=False)
    else:
        message = chat.add_assistant(chat.pieces(item.get("content"), content, agent=True), content)
        chat.note_keys(item, _KEYS, at, agent=True)
        if item.get("stop_reason") is not None:
            end_turn(message, TurnEnding(item["stop_reason"]), STOP_REASONS, Transcript(), chat.tally, at)
        if (usage := item.get("usage")) is not None:
            message.usage, rest = read_usage(usage, chat, (*at, "usage"))
            chat.note_missing_calls(message, usage, (*at, "usage"))
            chat.note_keys(rest, frozenset(), (*at, "usage"), agent=False)


def read_usage(given: Any, chat: Chat, at: At) -> tuple[Usage | None, dict[str, Any]]:
    """The counts, and those that have no field of their own."""
    if type(given) is not dict:
        chat.tally.add(VALUE_DROPPED, at, f"expected an object of token counts, got {json_kind(given)}")
        return None, {}
    counts = [token_count(given, key, chat.tally, at) for key in Usage.__struct_fields__]
    whole = is_count(given.get("input_tokens")) and is_count(given.get("output_tokens"))
    return Usage(*counts) if whole else None, other_counts(given, _COUNTS)


def read_system(content: Any, chat: Chat, at: At) -> None:
    """Add a prompt: text, or a message for each block of text."""
    if type(content) is list:
        for index, block in enumerate(content):
            if type(text := read_part(block)) is TextBlock:
                chat.add_system(text.text)
                if type(block) is dict:
                    chat.note_keys_of_message(block, _TEXT_KEYS, (*at, index), agent=False)
            else:
                chat.tally.notes.append(dropped_part(block, (*at, index)))
    elif content is not None:
        chat.add_system(read_text(content, at, chat.tally.notes))


def _thinking(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    chat.note_keys(part, _THINKING_KEYS, at, agent=True)
    chat.note_calls_in_known(part, _THINKING_KEYS, at)
    text, signature = part.get("thinking", part.get("text")), part.get("signature")
    if type(text) is list:  # Mistral's, of which each is a part
        thoughts = [read_part(thought) for thought in text]
        if all(type(thought) is TextBlock for thought in thoughts):
            text = "".join([thought.text for thought in thoughts if type(thought) is TextBlock])
    if type(text) is not str:
        chat.tally.notes.append(dropped_part(part, at))
        return []
    if type(signature) is not str:
        return [ReasoningBlock(text)]
    return [from_items([ReasoningText(format=_FORMAT, text=text, signature=signature)])]


def _redacted(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    chat.note_keys(part, _THINKING_KEYS, at, agent=True)
    data = part.get("data")
    if type(data) is not str:
        chat.tally.notes.append(dropped_part(part, at))
        return []
    return [from_items([ReasoningEncrypted(format=_FORMAT, data=data)])]


def _tool_use(part: dict[str, Any], chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    call = read_call(part)
    if call is None:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return []
    if listed.repeats(call):
        return []
    if "tool_type" in part:
        return _tool_use_of_inspect(part, call, chat, at)
    chat.note_keys(part, _CALL_KEYS, at, agent=True)
    chat.note_calls_in_known(part, _CALL_KEYS - {"input"}, at)
    by_agent = part["type"] == "tool_use"
    return [chat.call(call, at, executed_by="agent" if by_agent else "provider")]


def _tool_use_of_inspect(part: dict[str, Any], call: Call, chat: ContentReader, at: At) -> list[Piece]:
    """A tool that the provider ran, with its result inside, as Inspect keeps it."""
    chat.note_keys(part, _INSPECT_KEYS, at, agent=True)
    if call.name == "mcp_list_tools":
        chat.tally.add(ITEM_WITHOUT_CALL, at, "left out a list of tools", each=call.name)
        return []
    block = chat.call(call, at, answered=True, executed_by="provider")
    result = chat.inside_result(block, part.get("result"), (*at, "result"))
    chat.mark_failure(result, {"error": part.get("error")})
    return [block, result]


def _tool_result(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    message = chat.result(part.get("tool_use_id", part.get("tool_call_id")), None, at)
    content = part.get("content")
    chat.fill_blocks(message, content, (*at, "content"))
    chat.note_keys_of_message(part, _RESULT_KEYS, at, agent=False)
    chat.mark_failure(message, part)
    return [message]


def _server_result(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    """The result of a tool that the provider ran: whatever it is, kept as the value that it is."""
    message: ToolResultMessage = chat.result(part.get("tool_use_id"), None, at)
    content = part.get("content")
    chat.fill(message, content, (*at, "content"))
    chat.note_keys_of_message(part, _RESULT_KEYS, at, agent=False)
    said = content if type(content) is dict else {}
    failed = dict(part)
    if type(kind := said.get("type")) is str and kind.endswith(_ERROR):
        failed["error"] = said.get("error_code") or kind
    elif type(code := said.get("return_code")) is int:
        failed["return_code"] = code
    chat.mark_failure(message, failed)
    return [message]


PARTS: Final[dict[str, Any]] = {
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "server_tool_use": _tool_use,
    "mcp_tool_use": _tool_use,
    "tool_result": _tool_result,
    **dict.fromkeys(SERVER_RESULTS, _server_result),
}
_OWN_PARTS = frozenset(PARTS)
