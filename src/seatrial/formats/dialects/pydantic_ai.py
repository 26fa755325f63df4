"""Messages of Pydantic AI: requests and responses, each a list of parts.

| `part_kind` | transcript |
| --- | --- |
| `system-prompt`, `instruction`, `instructions` of a request | system message |
| `user-prompt`, `retry-feedback` | user message |
| `text`, `speech` with a transcript | text |
| `thinking` | native reasoning text; with a signature, native reasoning details |
| `tool-call` | tool call |
| `tool-return` | tool result; every `outcome` but `success` is a failed one |
| `retry-prompt` | a failed tool result; where it names no tool, a user message |
| `builtin-tool-call`, `builtin-tool-return` | tool call that the provider ran, and its result |
| `file` | image, where it is one |
| changes of instructions, settings and tools | nothing: no call was made by them |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from seatrial.formats.chat.calls import Call, nameless_note, set_arguments
from seatrial.formats.chat.content import Piece
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.parts import dropped_part, read_text
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import TurnEnding, end_turn, note_discarded_call, split_cached
from seatrial.formats.dialects.responses import ITEM_WITHOUT_CALL
from seatrial.transcript import (
    ImageBlock,
    ReasoningBlock,
    StopReason,
    TextBlock,
    ToolResultMessage,
    Transcript,
    UserMessage,
    pointer,
)
from seatrial.transcript.failure import FAILURE_KEYS
from seatrial.transcript.reasoning import ReasoningEncrypted, ReasoningFormat, ReasoningText, from_items

FINISH_REASONS: Final = {
    "stop": StopReason.END_TURN,
    "content_filter": StopReason.OTHER,
    "length": StopReason.MAX_TOKENS,
    "tool_call": StopReason.TOOL_USE,
    "error": StopReason.ERROR,
}
_FORMATS: Final[Mapping[str, ReasoningFormat]] = {
    "anthropic": ReasoningFormat.ANTHROPIC_CLAUDE_V1,
    "bedrock": ReasoningFormat.ANTHROPIC_CLAUDE_V1,
    "google": ReasoningFormat.GOOGLE_GEMINI_V1,
    "openai": ReasoningFormat.OPENAI_RESPONSES_V1,
    "azure": ReasoningFormat.AZURE_OPENAI_RESPONSES_V1,
    "xai": ReasoningFormat.XAI_RESPONSES_V1,
}
_ABOUT: Final = frozenset(
    {"kind", "parts", "timestamp", "run_id", "conversation_id", "metadata", "state", "instructions", "model_name",
     "model_id", "provider_name", "provider_url", "canonical_system", "provider_details", "provider_response_id",
     "vendor_details", "vendor_id", "finish_reason", "usage", "history_digest", "workspace_ref"}
)  # fmt: skip
_PART: Final = frozenset(
    {"part_kind", "id", "provider_name", "provider_details", "timestamp", "citations", "content", "signature"}
)
_PROMPTS: Final = frozenset({"system-prompt", "instruction", "user-prompt", "retry-prompt", "retry-feedback"})
_PROMPT: Final = _PART | {"tool_name", "tool_call_id", "dynamic_ref", "name", "kind", "outcome"}
_CALL: Final = _PART | {"tool_name", "args", "tool_call_id", "tool_kind"}
_RESULT: Final = _CALL | FAILURE_KEYS | {"outcome", "retry", "metadata", "content_file_digests"}

PARTS: Final[dict[str, Any]] = {}


def fits(item: dict[str, Any]) -> int:
    """The only messages that are a request or a response, with parts."""
    return 3 if item.get("kind") in ("request", "response") and type(item.get("parts")) is list else 0


def read(item: dict[str, Any], chat: Chat, at: At) -> None:
    """Add the messages that one request or response stands for."""
    if item["kind"] == "request":
        _read_request(item, chat, at)
    else:
        _read_response(item, chat, at)


def _read_request(item: dict[str, Any], chat: Chat, at: At) -> None:
    if type(instructions := item.get("instructions")) is str and instructions != chat.prompt:
        # Every request of a run repeats its instructions.
        chat.add_system(instructions)
    for index, part in enumerate(item["parts"]):
        within = (*at, "parts", index)
        kind = part.get("part_kind") if type(part) is dict else None
        reader = _OF_REQUEST.get(kind) if type(kind) is str else None
        if reader is None:
            chat.tally.notes.append(dropped_part({"type": kind} if kind is not None else part, within))
        else:
            reader(part, chat, within)
            if kind in _PROMPTS:
                chat.note_keys_of_message(part, _PROMPT, within, agent=False)
    chat.note_keys_of_message(item, _ABOUT, at, agent=False)
    chat.note_calls_in_known(item, _ABOUT - {"parts"}, at)


def _system(part: dict[str, Any], chat: Chat, at: At) -> None:
    chat.add_system(read_text(part.get("content", ""), (*at, "content"), chat.tally.notes), _time(part, chat, at))


def _user(part: dict[str, Any], chat: Chat, at: At) -> None:
    content, within = part.get("content"), (*at, "content")
    if type(content) is not list:
        chat.add_user(content, within, _time(part, chat, at))
        return
    pieces: list[Piece] = []
    for index, entry in enumerate(content):
        pieces += _user_content(entry, chat, (*within, index))
    chat.add_user_pieces(pieces, within, _time(part, chat, at))


def _user_content(entry: Any, chat: Chat, at: At) -> list[Piece]:
    kind = entry.get("kind") if type(entry) is dict else None
    if type(entry) is str:
        return [TextBlock(entry)]
    if kind == "text-content" and type(text := entry.get("content")) is str:
        return [TextBlock(text)]
    if kind == "cache-point":
        return []
    if (image := _image(entry)) is not None:
        return [image]
    chat.tally.notes.append(dropped_part({"type": kind} if type(kind) is str else entry, at))
    return []


def _image(entry: Any) -> ImageBlock | None:
    if type(entry) is not dict:
        return None
    media_type, url, data = entry.get("media_type"), entry.get("url"), entry.get("data")
    given = media_type if type(media_type) is str else None
    if entry.get("kind") == "image-url" and type(url) is str:
        return ImageBlock(url, given)
    if entry.get("kind") == "binary" and given is not None and given.startswith("image/") and type(data) is str:
        return ImageBlock(f"data:{given};base64,{data}", given)
    return None


def _tool_return(part: dict[str, Any], chat: Chat, at: At) -> None:
    chat.add_result(_result(part, chat, at), at)


def _result(part: dict[str, Any], chat: Chat, at: At) -> ToolResultMessage:
    message = chat.result(part.get("tool_call_id"), part.get("tool_name"), at)
    chat.fill(message, part.get("content"), (*at, "content"))
    message.timestamp = _time(part, chat, at)
    chat.note_calls_in_result(part.get("metadata"), (*at, "metadata"))
    chat.note_keys_of_message(part, _RESULT, at, agent=False)
    outcome = part.get("outcome")
    if outcome is not None and outcome not in ("success", "failed", "denied", "interrupted", "retried"):
        outcome = "failed"
    chat.mark_failure(message, {**part, "outcome": outcome})
    return message


def _retry_prompt(part: dict[str, Any], chat: Chat, at: At) -> None:
    # There is always an id: where no tool was called, one that belongs to no call.
    if not part.get("tool_name") and not chat.has_call(part.get("tool_call_id")):
        _retry_feedback(part, chat, at)
        return
    message = chat.result(part.get("tool_call_id"), part.get("tool_name"), at)
    chat.fill(message, part.get("content"), (*at, "content"))
    message.timestamp = _time(part, chat, at)
    chat.mark_failure(message, {"outcome": "retried"})
    chat.add_result(message, at)


def _retry_feedback(part: dict[str, Any], chat: Chat, at: At) -> None:
    content = part.get("content", "")
    text = read_text(content, (*at, "content"), chat.tally.notes)
    chat.add(UserMessage(text, _time(part, chat, at)))


def _no_call(part: dict[str, Any], chat: Chat, at: At) -> None:
    kind = part["part_kind"]
    chat.tally.add(ITEM_WITHOUT_CALL, at, f"left out a part of the kind {kind}", each=kind)
    chat.note_calls_in_result(part, at)


_OF_REQUEST: Final[dict[str, Callable[[dict[str, Any], Chat, At], None]]] = {
    "system-prompt": _system,
    "instruction": _system,
    "user-prompt": _user,
    "tool-return": _tool_return,
    "builtin-tool-return": _tool_return,
    "retry-prompt": _retry_prompt,
    "retry-feedback": _retry_feedback,
    **dict.fromkeys(
        ("instruction-delta", "instruction-digest", "instruction-baseline", "tool-availability-delta",
         "capability-load-delta", "model-settings-delta"),
        _no_call,
    ),
}  # fmt: skip


def _read_response(item: dict[str, Any], chat: Chat, at: At) -> None:
    pieces: list[Piece] = []
    for index, part in enumerate(item["parts"]):
        within = (*at, "parts", index)
        kind = part.get("part_kind") if type(part) is dict else None
        reader = _OF_RESPONSE.get(kind) if type(kind) is str else None
        if reader is None:
            chat.tally.notes.append(dropped_part({"type": kind} if kind is not None else part, within))
        else:
            pieces += reader(part, item, chat, within)
    message = chat.add_assistant(pieces, (*at, "parts"), _time(item, chat, at))
    if item.get("finish_reason") is not None:
        end_turn(message, TurnEnding(item["finish_reason"]), FINISH_REASONS, Transcript(), chat.tally, at)
    details = item.get("provider_details")
    if type(details) is dict:
        # The provider's own word, where the library's says less.
        note_discarded_call(details.get("finish_reason"), chat.tally, (*at, "provider_details", "finish_reason"))
    usage = item.get("usage")
    if type(usage) is dict:
        # The older names are those of version 0.
        chat.add_usage(
            message,
            split_cached(
                usage.get("input_tokens", usage.get("request_tokens")),
                usage.get("output_tokens", usage.get("response_tokens")),
                read=usage.get("cache_read_tokens"),
                written=usage.get("cache_write_tokens"),
            ),
            (*at, "usage"),
        )
    chat.note_keys(item, _ABOUT, at, agent=True)
    chat.note_calls_in_known(item, _ABOUT - {"parts", "usage", "provider_details"}, at)


def _text(part: dict[str, Any], item: dict[str, Any], chat: Chat, at: At) -> list[Piece]:
    chat.note_keys(part, _PART, at, agent=True)
    chat.note_calls_in_known(part, _PART - {"provider_details", "citations"}, at)
    text = read_text(part.get("content", ""), (*at, "content"), chat.tally.notes)
    return [*_signature(part, None), *chat.spoken(text, at)]


def _speech(part: dict[str, Any], item: dict[str, Any], chat: Chat, at: At) -> list[Piece]:
    if type(transcript := part.get("transcript")) is str:
        return [TextBlock(transcript)]
    chat.tally.notes.append(dropped_part({**part, "type": "speech"}, at))
    return []


def _thinking(part: dict[str, Any], item: dict[str, Any], chat: Chat, at: At) -> list[Piece]:
    chat.note_keys(part, _PART, at, agent=True)
    chat.note_calls_in_known(part, _PART - {"provider_details", "citations"}, at)
    text = read_text(part.get("content", ""), (*at, "content"), chat.tally.notes)
    if type(signature := part.get("signature")) is not str:
        return [ReasoningBlock(text), *_signature(part, None)]
    provider = part.get("provider_name") or item.get("provider_name")
    word = provider.partition("-")[0] if type(provider) is str else ""
    given_id = part.get("id")
    known = ReasoningText(
        id=given_id if type(given_id) is str else None,
        format=_FORMATS.get(word, ReasoningFormat.UNKNOWN),
        text=text,
        signature=signature,
    )
    return [from_items([known])]


def _signature(part: dict[str, Any], call_id: str | None) -> list[Piece]:
    """Gemini signs its parts, whatever is in them."""
    details = part.get("provider_details")
    data = details.get("thought_signature") if type(details) is dict else None
    if type(data) is not str:
        return []
    return [from_items([ReasoningEncrypted(id=call_id, format=ReasoningFormat.GOOGLE_GEMINI_V1, data=data)])]


def _tool_call(part: dict[str, Any], item: dict[str, Any], chat: Chat, at: At) -> list[Piece]:
    name, call_id = part.get("tool_name"), part.get("tool_call_id")
    if type(name) is not str or not name:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return []
    call = Call(name, {}, call_id if type(call_id) is str and call_id else None)
    arguments = part.get("args")
    set_arguments(call, {} if arguments is None else arguments)
    chat.note_keys(part, _CALL, at, agent=True)
    chat.note_calls_in_known(part, _PART - {"provider_details", "citations"}, at)
    by_provider = part["part_kind"] == "builtin-tool-call"
    block = chat.call(call, at, executed_by="provider" if by_provider else "agent")
    return [*_signature(part, block.id), block]


def _builtin_return(part: dict[str, Any], item: dict[str, Any], chat: Chat, at: At) -> list[Piece]:
    return [_result(part, chat, at)]


def _file(part: dict[str, Any], item: dict[str, Any], chat: Chat, at: At) -> list[Piece]:
    chat.tally.notes.append(dropped_part({**part, "type": "file"}, at))
    return []


_OF_RESPONSE: Final[dict[str, Callable[[dict[str, Any], dict[str, Any], Chat, At], list[Piece]]]] = {
    "text": _text,
    "speech": _speech,
    "thinking": _thinking,
    "tool-call": _tool_call,
    "builtin-tool-call": _tool_call,
    "builtin-tool-return": _builtin_return,
    "file": _file,
}


def _time(said: dict[str, Any], chat: Chat, at: At) -> int | None:
    return chat.timestamp(said.get("timestamp"), (*at, "timestamp"))
