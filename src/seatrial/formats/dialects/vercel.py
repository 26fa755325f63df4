"""Messages of Vercel's AI SDK: UIMessages (what a chat page keeps) and ModelMessages (what a model gets).

| wire | transcript |
| --- | --- |
| UIMessage of the assistant | an assistant message for each of its steps, tool results after the step |
| `tool-NAME`, `dynamic-tool`, `toolInvocations` (version 4) | tool call, and its result by its `state` |
| state `output-error`, `output-denied`, or an approval that was refused | failed tool result |
| state `input-streaming`, `partial-call` | tool call whose arguments were cut, with a note |
| `providerExecuted: true` | the provider ran it |
| `tool-call`, `tool-result` of ModelMessages | tool call, tool result |
| `output` of a `tool-result`: `error-text`, `error-json`, `execution-denied` | failed tool result |
| `reasoning` | native reasoning |
| `source-url`, `source-document`, `data-*`, approvals | nothing: no call was made by them |
| `file` | image, where it is one |
| `metadata` with `usage` or `totalUsage` | token counts |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import UNSET, Raw

from seatrial._support import wire
from seatrial.formats.chat.calls import CALL_NAMED_TWICE, Call, ListedCalls, nameless_note, set_arguments
from seatrial.formats.chat.content import NOT_LISTED, ContentReader, Piece
from seatrial.formats.chat.hidden_calls import may_hold_call
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.parts import CONTENT_DROPPED, dropped_part, read_prompt, read_text
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import ARGUMENTS_CUT, split_cached
from seatrial.formats.dialects.responses import ITEM_WITHOUT_CALL
from seatrial.formats.reading import WAITS, WAITS_FOR_INPUT
from seatrial.transcript import (
    AssistantMessage,
    ImageBlock,
    ReasoningBlock,
    ReasoningDetailsBlock,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Weight,
    pointer,
)
from seatrial.transcript.failure import FAILURE_KEYS, find_failure
from seatrial.transcript.salvage import ROLE_UNKNOWN, VALUE_DROPPED

_UI_KEYS: Final = frozenset(
    {"id", "role", "parts", "metadata", "content", "createdAt", "toolInvocations", "reasoning", "revisionId"}
)
_UI_PLAIN: Final = frozenset({"id", "createdAt", "reasoning", "revisionId"})
_MODEL_KEYS: Final = frozenset({"role", "content", "providerOptions", "id", "createdAt", "metadata"})
_CALL_KEYS: Final = FAILURE_KEYS | frozenset(
    {"type", "toolCallId", "toolName", "input", "args", "rawInput", "inputEncoding", "output", "result", "errorText",
     "state", "title", "dynamic", "preliminary", "approval", "providerExecuted", "providerOptions", "providerMetadata",
     "callProviderMetadata", "resultProviderMetadata", "toolMetadata", "step", "isError", "error", "invalid",
     "experimental_content"}
)  # fmt: skip
_OUTPUT_KEYS: Final = frozenset({"type", "value", "providerOptions"})
_STEP_KEYS: Final = frozenset({"type"})
_STATES: Final = frozenset(
    {"input-streaming", "input-available", "approval-requested", "approval-responded", "output-available",
     "output-error", "output-denied", "partial-call", "call", "result"}
)  # fmt: skip
_COUNTS: Final = frozenset({"usage", "totalUsage"})
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})


def fits(item: dict[str, Any]) -> int:
    """A message with typed parts, with tool invocations, or with parts that only ModelMessages have."""
    role = item.get("role")
    if type(role) is not str:
        return 0
    if "toolInvocations" in item:
        return 3
    if "parts" in item:
        return 2 if type(item["parts"]) is list else 1
    content = item.get("content")
    if type(content) is list:
        for part in content:
            if type(part) is dict and type(kind := part.get("type")) is str and kind in OWN_PARTS:
                return 3
    return 0


def read(item: dict[str, Any], chat: Chat, at: At) -> None:
    """Add the messages that one message stands for."""
    role = item["role"]
    if role not in _ROLES:
        text = f"kept a message of the unknown role {role[:40]!r} as a custom one"
        chat.tally.add(ROLE_UNKNOWN, (*at, "role"), text, each=role)
        chat.add_custom(role, item)
    elif "parts" in item or "toolInvocations" in item:
        _read_ui_message(item, chat, at)
    else:
        _read_model_message(item, chat, at)


def _read_model_message(item: dict[str, Any], chat: Chat, at: At) -> None:
    role, content = item["role"], (*at, "content")
    if role == "assistant":
        message = chat.add_assistant(chat.pieces(item["content"], content, agent=True), content)
        _read_metadata(item, message, chat, at)
    elif role == "system":
        chat.add_system(read_prompt(item["content"], content, chat.tally.notes))
    else:
        chat.add_user_pieces(chat.pieces(item["content"], content, agent=False), content)
    chat.note_keys_of_message(item, _MODEL_KEYS, at, agent=role == "assistant")
    if role != "assistant":
        chat.note_calls_in("metadata", item.get("metadata"), at)


def _read_ui_message(item: dict[str, Any], chat: Chat, at: At) -> None:
    role, parts = item["role"], item.get("parts")
    within: At = (*at, "parts")
    if type(parts) is not list or not parts:
        # Version 3 had text and tool invocations, version 4 both of these and parts.
        if "parts" in item and type(parts) is not list:
            chat.tally.add(VALUE_DROPPED, within, "expected an array of parts", weight="serious")
        parts, within = _parts_of_old(item), at
    elif type(content := item.get("content")) is list or type(content) is dict:
        chat.drop_key("content", content, at, agent=role == "assistant" or may_hold_call("content", content))
    steps: list[list[Piece]] = [[]]
    for index, part in enumerate(parts):
        if type(part) is dict and part.get("type") == "step-start":
            steps.append([])
            chat.note_keys_of_message(part, _STEP_KEYS, (*within, index), agent=role == "assistant")
        else:
            steps[-1] += _ui_part(part, chat, (*within, index), agent=role == "assistant")
    if role == "assistant":
        message = None
        for step in [step for step in steps if step] or [[]]:
            message = chat.add_assistant(step, within)
        _read_invocations(item, [piece for step in steps for piece in step if type(piece) is ToolCall], chat, at)
        if message is not None:
            _read_metadata(item, message, chat, at)
    else:
        said = [piece for step in steps for piece in step]
        if role == "system":
            for piece in said:
                if type(piece) is TextBlock:
                    chat.add_system(piece.text)
            chat.add_calls_of_others(said, role, within)
        else:
            chat.add_user_pieces(said, within)
        _read_invocations(item, [piece for piece in said if type(piece) is ToolCall], chat, at)
    chat.note_keys_of_message(item, _UI_KEYS, at, agent=role == "assistant")
    chat.note_calls_in_known(item, _UI_PLAIN if role == "assistant" else _UI_PLAIN | {"metadata"}, at)


def _parts_of_old(item: dict[str, Any]) -> list[Any]:
    content = item.get("content")
    parts: list[Any] = []
    if type(reasoning := item.get("reasoning")) is str and reasoning:
        parts.append({"type": "reasoning", "text": reasoning})
    if type(content) is list:
        parts += content
    elif content:
        parts.append({"type": "text", "text": content})
    return parts


def _read_invocations(item: dict[str, Any], made: list[ToolCall], chat: Chat, at: At) -> None:
    """Tool invocations beside the content, unless they are among the parts as well."""
    entries, within = item.get("toolInvocations"), (*at, "toolInvocations")
    if entries is None:
        return
    listed = ListedCalls(made)
    pieces: list[Piece] = []
    for index, entry in enumerate(entries if type(entries) is list else [entries]):
        pieces += _invocation(entry, chat, (*within, index), listed)
    if item["role"] == "assistant" and any(type(piece) is ToolCall for piece in pieces):
        chat.add_assistant(pieces, within)
    else:
        chat.add_calls_of_others(pieces, item["role"], within)


def _ui_part(part: Any, chat: Chat, at: At, *, agent: bool) -> Iterable[Piece]:
    kind = part.get("type") if type(part) is dict else None
    if type(kind) is not str:
        return chat.part_pieces(part, at, agent=agent)
    if kind == "tool-invocation" and "toolInvocation" in part:
        return _invocation(part["toolInvocation"], chat, (*at, "toolInvocation"))
    if kind == "dynamic-tool" or (kind.startswith("tool-") and kind not in OWN_PARTS):
        return _invocation(part, chat, at)
    if kind in OWN_PARTS and "state" in part and "toolName" not in part:
        return _invocation(part, chat, at)  # a tool that is called `call`, or `result`
    if kind.startswith(("data-", "source-")) or kind in ("source", "custom"):
        _leave_out(part, kind, chat, at)
        return []
    if kind == "reasoning":
        return _reasoning(part, chat, at)
    return chat.part_pieces(part, at, agent=agent)


def _leave_out(part: dict[str, Any], kind: str, chat: Chat, at: At) -> None:
    """Sources and data of a page hold no calls, unless they look as if they did."""
    weight: Weight = "serious" if may_hold_call("", part) else "harmless"
    each = f"{kind[:40]} {weight}"
    chat.tally.add(CONTENT_DROPPED, at, f"dropped a part of the type {kind[:40]!r}", each=each, weight=weight)


def _invocation(given: Any, chat: ContentReader, at: At, listed: ListedCalls = NOT_LISTED) -> list[Piece]:
    """A call with its result inside, by its state; the result alone of a call that is listed already."""
    call = _call(given, chat, at)
    if call is None:
        return []
    state, approval = given.get("state"), given.get("approval")
    refused = type(approval) is dict and approval.get("approved") is False
    output = given.get("output", given.get("result", UNSET))
    failed: dict[str, Any] = {**given, "state": None}
    if state in ("output-error", "output-denied"):
        failed["state"] = state
    elif refused:
        failed["state"] = "output-denied"
    if state in ("output-denied", "approval-responded") and refused:
        failed["error"] = approval.get("reason")
    answered = output is not UNSET or state == "output-available" or find_failure(failed) is not None
    if state in ("input-streaming", "partial-call"):
        chat.tally.add(ARGUMENTS_CUT, at, f"the arguments for {call.name[:40]!r} were still on their way")
    elif state == "approval-requested":
        chat.tally.add(WAITS_FOR_INPUT, (*at, "state"), WAITS, each="")
    elif state is not None and (type(state) is not str or state not in _STATES):
        chat.tally.add(VALUE_DROPPED, (*at, "state"), "a tool call is in an unknown state", weight="serious")
    if listed.repeats(call):
        if not answered:
            return []
        again = ToolResultMessage(call.id or "", call.name, [])
        chat.fill(again, None if output is UNSET else output, (*at, "output"))
        chat.mark_failure(again, failed)
        return [again]
    block = _called(call, given, chat, at, answered=answered)
    if not answered:
        return [block]
    result = chat.inside_result(block, None if output is UNSET else output, (*at, "output"))
    chat.mark_failure(result, failed)
    return [block, result]


def _call(given: Any, chat: ContentReader, at: At) -> Call | None:
    name = given.get("toolName") if type(given) is dict else None
    kind = given.get("type") if type(given) is dict else None
    if type(kind) is str and kind.startswith("tool-"):
        other = kind.removeprefix("tool-")
        if name is None:
            name = other
        elif name != other and kind not in OWN_PARTS and kind != "tool-invocation":
            chat.tally.add(CALL_NAMED_TWICE, at, f"its type says {other[:40]!r}, and its `toolName` {str(name)[:40]!r}")
    if type(name) is not str or not name or type(given) is not dict:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return None
    call_id = given.get("toolCallId")
    call = Call(name, {}, call_id if type(call_id) is str and call_id else None)
    arguments = next((given[key] for key in ("input", "args", "rawInput") if given.get(key) is not None), UNSET)
    set_arguments(call, arguments)
    return call


def _called(call: Call, given: dict[str, Any], chat: ContentReader, at: At, *, answered: bool = False) -> ToolCall:
    chat.note_keys(given, _CALL_KEYS, at, agent=True)
    by_provider = given.get("providerExecuted") is True
    return chat.call(call, at, answered=answered, executed_by="provider" if by_provider else "agent")


def _tool_call(part: dict[str, Any], chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    if type(part.get("toolName")) is not str:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return []
    if "output" in part or "result" in part:
        return _invocation(part, chat, at, listed)
    call = _call(part, chat, at)
    if call is None or listed.repeats(call):
        return []
    return [_called(call, part, chat, at)]


def _tool_result(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    message = chat.result(part.get("toolCallId"), part.get("toolName"), at)
    output = part.get("output", part.get("result"))
    failed = dict(part)
    if type(output) is dict:
        kind = output.get("type")
        if kind == "execution-denied":
            failed["status"] = "denied"
            output = output.get("reason")
        elif kind in ("text", "json", "error-text", "error-json", "content") and "value" in output:
            chat.note_keys_of_message(output, _OUTPUT_KEYS, (*at, "output"), agent=False)
            output = output["value"]
        failed["isError"] = failed.get("isError") or kind in ("error-text", "error-json")
    chat.fill(message, output, (*at, "output"))
    chat.note_calls_in_result(part.get("experimental_content"), (*at, "experimental_content"))
    chat.note_keys_of_message(part, _CALL_KEYS, at, agent=False)
    chat.mark_failure(message, failed)
    return [message]


def _tool_error(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    """A failed call among the contents of a step."""
    message = chat.result(part.get("toolCallId"), part.get("toolName"), at)
    chat.mark_failure(message, {"error": part.get("error"), "isError": True})
    chat.note_keys_of_message(part, _CALL_KEYS, at, agent=False)
    return [message]


def _approval(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    kind = part["type"]
    chat.tally.add(ITEM_WITHOUT_CALL, at, f"left out a part of the type {kind}", each=kind)
    approval_id = part.get("approvalId")
    if kind == "tool-approval-request":
        chat.tally.add_unless_settled(approval_id if type(approval_id) is str else None, WAITS_FOR_INPUT, at, WAITS)
    else:
        chat.tally.settle(approval_id)
    asked = part.get("toolCall")
    if type(asked) is not dict:
        chat.note_calls_in("toolCall", asked, at)
        return []
    call = _call(asked, chat, (*at, "toolCall"))
    if call is None or chat.has_made(call):
        return []
    return [_called(call, asked, chat, (*at, "toolCall"))]


def _reasoning(part: dict[str, Any], chat: Chat, at: At) -> list[Piece]:
    if any(part.get(key) for key in ("providerMetadata", "providerOptions", "details")):
        # What providers sign or encrypt is beside the text, and is kept with it.
        chat.note_calls_in_known(part, frozenset(part) - {"providerMetadata", "providerOptions"}, at)
        return [ReasoningDetailsBlock([Raw(wire.encode(part))])]
    text = part.get("text", part.get("reasoning"))  # `reasoning` in version 4
    chat.note_calls_in_known(part, frozenset(part), at)
    return [ReasoningBlock(read_text("" if text is None else text, at, chat.tally.notes))]


def _file(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    media_type = part.get("mediaType", part.get("mimeType"))
    source = part.get("url", part.get("data"))
    if type(media_type) is str and media_type.startswith("image/") and type(source) is str:
        is_url = source.startswith(("data:", "http:", "https:", "blob:"))
        return [ImageBlock(source if is_url else f"data:{media_type};base64,{source}", media_type)]
    chat.tally.notes.append(dropped_part(part, at))
    return []


def _read_metadata(item: dict[str, Any], message: AssistantMessage, chat: Chat, at: At) -> None:
    """What a page keeps beside a message is its own affair; token counts are often among it."""
    metadata = item.get("metadata")
    if type(metadata) is not dict:
        chat.note_calls_in("metadata", metadata, at)
        return
    for key in ("totalUsage", "usage"):
        if type(usage := metadata.get(key)) is dict:
            chat.add_usage(message, read_usage(usage), (*at, "metadata", key))
            break
    if may_hold_call("metadata", {key: value for key, value in metadata.items() if key not in _COUNTS}):
        chat.drop_key("metadata", metadata, at, agent=True)


def read_usage(usage: dict[str, Any]) -> dict[str, int] | None:
    """The counts of the SDK, of which the input includes what was cached."""
    details = usage.get("inputTokenDetails")
    if type(details) is not dict:
        details = {}
    return split_cached(
        usage.get("inputTokens", usage.get("promptTokens")),
        usage.get("outputTokens", usage.get("completionTokens")),
        read=details.get("cacheReadTokens", usage.get("cachedInputTokens")),
        written=details.get("cacheWriteTokens"),
    )


PARTS: Final[dict[str, Any]] = {
    "tool-call": _tool_call,
    "tool-result": _tool_result,
    "tool-error": _tool_error,
    "tool-approval-request": _approval,
    "tool-approval-response": _approval,
    "file": _file,
}
OWN_PARTS: Final = frozenset(PARTS) - {"file"}
