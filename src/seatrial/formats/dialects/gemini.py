"""Contents of Google's Gemini API, in camel case (the API) or snake case (its Python package).

| wire | transcript |
| --- | --- |
| `user`, `function` | user message; `functionResponse` parts are tool results, in their place |
| `model` | assistant message |
| `functionCall` | tool call; without ids, results go to the oldest call of their name |
| `functionResponse` | tool result; an `error` in its `response`, as Google asks for, is a failed one |
| `executableCode`, `codeExecutionResult` | a call of `code_execution` that the provider ran, and its result |
| `toolCall`, `toolResponse` | a call of another tool that the provider ran, and its result |
| `thought: true` | native reasoning text; with a signature, native reasoning details |
| `thoughtSignature` on any other part | native reasoning details in front of it |
| `inlineData`, `fileData` | image, where it is one |

A content without a role is the model's if there is a call or a thought in it, and the user's otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from seatrial._support import wire
from seatrial.formats.chat.calls import Call, ListedCalls, nameless_note, set_arguments
from seatrial.formats.chat.content import ContentReader, Piece
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.parts import dropped_part, read_text
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import ARGUMENTS_CUT, split_cached
from seatrial.transcript import AssistantMessage, ImageBlock, ReasoningBlock, StopReason, TextBlock, ToolCall, pointer
from seatrial.transcript.failure import FAILURE_KEYS
from seatrial.transcript.reasoning import ReasoningEncrypted, ReasoningFormat, ReasoningText, from_items
from seatrial.transcript.salvage import ROLE_UNKNOWN

_FORMAT: Final = ReasoningFormat.GOOGLE_GEMINI_V1
_KEYS: Final = frozenset({"role", "parts"})
_CODE: Final = "code_execution"
STOP_REASONS: Final = {
    "STOP": StopReason.END_TURN,
    "MAX_TOKENS": StopReason.MAX_TOKENS,
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS",
                     "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE"), StopReason.ERROR),
    **dict.fromkeys(("SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
                     "IMAGE_SAFETY", "NO_IMAGE", "MODEL_ARMOR"), StopReason.OTHER),
}  # fmt: skip
"""Why turns end, in Google's words."""
_OUTCOMES: Final = {2: "failed", 3: "deadline_exceeded"}
_OF_MODEL: Final = frozenset(
    {"functionCall", "function_call", "executableCode", "executable_code", "toolCall", "tool_call", "thought"}
)

PARTS: Final[dict[str, Any]] = {}


def fits(item: dict[str, Any]) -> int:
    """An object with `parts` that have no type."""
    if "parts" not in item or "kind" in item or "content" in item or "type" in item:
        return 0
    parts, role = item["parts"], item.get("role")
    if role is not None and type(role) is not str:
        return 0
    if type(parts) is not list:
        return 2 if type(parts) is dict and not MEMBERS.keys().isdisjoint(parts) else 0
    if any(type(part) is dict and type(part.get("type")) is str for part in parts):
        return 0
    return 2 if role is not None or any(type(part) is dict for part in parts) else 0


def read(item: dict[str, Any], chat: Chat, at: At) -> None:
    """Add the messages that one content stands for."""
    given, role = item["parts"], item.get("role")
    parts = given if type(given) is list else [given]
    if role is None:
        by_model = any(type(part) is dict and not _OF_MODEL.isdisjoint(part) for part in parts)
        role = "model" if by_model else "user"
    within = (*at, "parts")
    if role in ("model", "assistant"):
        chat.add_assistant(chat.pieces(parts, within, agent=True), within)
    elif role in ("user", "function", "tool"):
        chat.add_user_pieces(chat.pieces(parts, within, agent=False), within)
    elif role == "system":
        pieces = chat.pieces(parts, within, agent=False)
        chat.add_system("".join([piece.text for piece in pieces if type(piece) is TextBlock]))
        chat.add_calls_of_others(pieces, role, within)
    else:
        text = f"kept a message of the unknown role {role[:40]!r} as a custom one"
        chat.tally.add(ROLE_UNKNOWN, (*at, "role"), text, each=role)
        chat.add_custom(role, item)
        return
    chat.note_keys_of_message(item, _KEYS, at, agent=role in ("model", "assistant"))


def prompt_text(content: Any, chat: Chat, at: At) -> str:
    """The text of a system instruction: text, a content, or parts."""
    parts = content.get("parts", content) if type(content) is dict else content
    texts: list[str] = []
    for index, part in enumerate(parts if type(parts) is list else [parts]):
        text = part.get("text") if type(part) is dict else part
        if type(text) is str:
            texts.append(text)
            if type(part) is dict:
                chat.note_calls_in_known(part, frozenset(part), (*at, index))
        else:
            chat.tally.notes.append(dropped_part(part, (*at, index)))
    return "".join(texts)


def either(value: Any, camel: str) -> Any:
    """The value under a key, in camel case or in snake case; None when there is neither."""
    if type(value) is not dict:
        return None
    found = value.get(camel)
    return value.get(_SNAKE[camel]) if found is None else found


def add_usage(message: AssistantMessage, usage: Any, chat: Chat, at: At) -> None:
    """Give a turn the counts of its `usageMetadata`."""
    if usage is None:
        return
    if type(usage) is not dict:
        chat.add_usage(message, read_text(usage, at, chat.tally.notes), at)
        return
    read = _sum(either(usage, "promptTokenCount"), either(usage, "toolUsePromptTokenCount"))
    written = _sum(either(usage, "candidatesTokenCount"), either(usage, "thoughtsTokenCount"))
    total = either(usage, "totalTokenCount")
    counts = split_cached(
        # A count of 0 is left out: one that is missing is 0 only if the total says so.
        _missing_is_zero(read, total, written),
        _missing_is_zero(written, total, read),
        read=either(usage, "cachedContentTokenCount"),
    )
    chat.add_usage(message, counts, at)


def _sum(*counts: Any) -> int | None:
    known = [count for count in counts if type(count) is int]
    return sum(known) if known else None


def _missing_is_zero(count: int | None, total: Any, other: int | None) -> int | None:
    return 0 if count is None and other is not None and total == other else count


def read_part(part: dict[str, Any], chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    """A part has one kind of data, but one that has more hides nothing."""
    signature = either(part, "thoughtSignature")
    if type(signature) is not str:
        signature = None
    pieces: list[Piece] = []
    text = part.get("text")
    thought = part.get("thought")
    if thought is not None and thought is not False:
        said = text if text is not None else (thought if type(thought) is str else "")
        pieces += _thought(read_text(said, at, chat.tally.notes), signature)
        signature = None
    elif text is not None:
        pieces += chat.spoken(read_text(text, at, chat.tally.notes), at)
    for key, reader in _READERS.items():
        for spelling, given in _given(part, key):
            pieces += reader(given, chat, (*at, spelling), listed)
    chat.note_keys(part, _PART_KEYS, at, agent=True)
    chat.note_calls_in_known(part, _PART_KEYS - _CALLING, at)
    if signature is not None:
        call_id = next((piece.id for piece in pieces if type(piece) is ToolCall), None)
        pieces.insert(0, from_items([ReasoningEncrypted(id=call_id, format=_FORMAT, data=signature)]))
    return pieces


def _given(part: dict[str, Any], camel: str) -> Iterator[tuple[str, Any]]:
    """What stands under a key in either case; the same in both is there once."""
    found = part.get(camel)
    if found is not None:
        yield camel, found
    other = part.get(_SNAKE[camel])
    if other is not None and (found is None or wire.encode(other) != wire.encode(found)):
        yield _SNAKE[camel], other


def _thought(text: str, signature: str | None) -> list[Piece]:
    if signature is None:
        return [ReasoningBlock(text)]
    return [from_items([ReasoningText(format=_FORMAT, text=text, signature=signature)])]


def _call(
    given: Any, name: Any, arguments: Any, chat: ContentReader, at: At, listed: ListedCalls, **facts: Any
) -> list[Piece]:
    if type(name) is not str or not name:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return []
    call_id = given.get("id")
    call = Call(name, {}, call_id if type(call_id) is str and call_id else None)
    set_arguments(call, {} if arguments is None else arguments)
    return [] if listed.repeats(call) else [chat.call(call, at, **facts)]


def _function_call(given: Any, chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    if type(given) is not dict:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return []
    if either(given, "willContinue") is True or either(given, "partialArgs"):
        chat.tally.add(ARGUMENTS_CUT, at, "the arguments of a call were not all there yet")
    chat.note_keys(given, _FUNCTION_CALL_KEYS, at, agent=True)
    return _call(given, given.get("name"), given.get("args"), chat, at, listed)


def _function_response(given: Any, chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    if type(given) is not dict:
        chat.tally.notes.append(dropped_part(given, at))
        return []
    message = chat.result(given.get("id"), given.get("name"), at, by_name=True)
    response = given.get("response")
    chat.fill(message, response, (*at, "response"))
    chat.note_calls_in_result(given.get("parts"), (*at, "parts"))
    chat.note_keys_of_message(given, _FUNCTION_RESPONSE_KEYS, at, agent=False)
    chat.mark_failure(message, given, response)
    return [message]


def _executable_code(given: Any, chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    code = given if type(given) is dict else {"code": given}
    arguments = {key: value for key, value in code.items() if key != "id"}
    return _call(code, _CODE, arguments, chat, at, listed, executed_by="provider")


def _code_result(given: Any, chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    said = given if type(given) is dict else {"output": given}
    message = chat.result(said.get("id"), _CODE, at, by_name=True)
    chat.fill(message, said.get("output"), (*at, "output"))
    chat.note_keys_of_message(said, _CODE_RESULT_KEYS, at, agent=False)
    outcome = said.get("outcome")
    word = _OUTCOMES.get(outcome) if type(outcome) is int else outcome
    chat.mark_failure(
        message, {**said, "outcome": word.lower().removeprefix("outcome_") if type(word) is str else None}
    )
    return [message]


def _tool_call(given: Any, chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    if type(given) is not dict:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return []
    return _call(given, _tool_name(given), given.get("args"), chat, at, listed, executed_by="provider")


def _tool_response(given: Any, chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    if type(given) is not dict:
        chat.tally.notes.append(dropped_part(given, at))
        return []
    message = chat.result(given.get("id"), _tool_name(given), at, by_name=True)
    response = given.get("response")
    chat.fill(message, response, (*at, "response"))
    chat.note_keys_of_message(given, _TOOL_RESPONSE_KEYS, at, agent=False)
    chat.mark_failure(message, given, response)
    return [message]


def _tool_name(given: dict[str, Any]) -> str | None:
    kind = either(given, "toolType")
    return kind.lower() if type(kind) is str else None


def _inline_data(given: Any, chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    media_type, data = either(given, "mimeType"), given.get("data") if type(given) is dict else None
    if type(media_type) is str and media_type.startswith("image/") and type(data) is str:
        return [ImageBlock(f"data:{media_type};base64,{data}", media_type)]
    chat.tally.notes.append(dropped_part({"type": "inlineData", "source": given}, at))
    return []


def _file_data(given: Any, chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    media_type, uri = either(given, "mimeType"), either(given, "fileUri")
    if type(media_type) is str and media_type.startswith("image/") and type(uri) is str:
        return [ImageBlock(uri, media_type)]
    chat.tally.notes.append(dropped_part({"type": "fileData", "source": given}, at))
    return []


_READERS: Final = {
    "functionCall": _function_call,
    "functionResponse": _function_response,
    "executableCode": _executable_code,
    "codeExecutionResult": _code_result,
    "toolCall": _tool_call,
    "toolResponse": _tool_response,
    "inlineData": _inline_data,
    "fileData": _file_data,
}
_SNAKE: Final = {
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "executableCode": "executable_code",
    "codeExecutionResult": "code_execution_result",
    "toolCall": "tool_call",
    "toolResponse": "tool_response",
    "toolType": "tool_type",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "fileUri": "file_uri",
    "mimeType": "mime_type",
    "thoughtSignature": "thought_signature",
    "willContinue": "will_continue",
    "partialArgs": "partial_args",
    "systemInstruction": "system_instruction",
    "usageMetadata": "usage_metadata",
    "finishReason": "finish_reason",
    "promptTokenCount": "prompt_token_count",
    "candidatesTokenCount": "candidates_token_count",
    "thoughtsTokenCount": "thoughts_token_count",
    "toolUsePromptTokenCount": "tool_use_prompt_token_count",
    "cachedContentTokenCount": "cached_content_token_count",
    "totalTokenCount": "total_token_count",
    "automaticFunctionCallingHistory": "automatic_function_calling_history",
    "responseId": "response_id",
}
_BOTH: Final = frozenset({*_READERS, *(_SNAKE[key] for key in _READERS)})
_CALLING: Final = _BOTH - {"inlineData", "inline_data", "fileData", "file_data"}
_PART_KEYS: Final = _BOTH | {
    "text", "thought", "thoughtSignature", "thought_signature", "videoMetadata", "video_metadata", "mediaResolution",
    "media_resolution", "partMetadata", "part_metadata", "speechMetadata", "speech_metadata", "audioTranscription",
    "audio_transcription", "mediaProcessing", "media_processing",
}  # fmt: skip
_FUNCTION_CALL_KEYS: Final = frozenset(
    {"id", "name", "args", "partialArgs", "partial_args", "willContinue", "will_continue"}
)
_FUNCTION_RESPONSE_KEYS: Final = FAILURE_KEYS | {
    "id", "name", "response", "willContinue", "will_continue", "scheduling", "parts",
}  # fmt: skip
_CODE_RESULT_KEYS: Final = FAILURE_KEYS | {"id", "output", "outcome"}
_TOOL_RESPONSE_KEYS: Final = FAILURE_KEYS | {"id", "response", "toolType", "tool_type"}
# `function_call` and `tool_call` stand in parts of no other API that have no `type`.
MEMBERS: Final[dict[str, Any]] = dict.fromkeys((*_BOTH, "thought", "thoughtSignature", "thought_signature"), read_part)
