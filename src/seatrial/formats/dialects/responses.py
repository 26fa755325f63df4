"""Items of OpenAI's Responses API: what a turn says, thinks and calls stands in items of its own.

| item | transcript |
| --- | --- |
| `message` | what its role says |
| `reasoning` | native reasoning details: summaries, text, encrypted content |
| `function_call`, `custom_tool_call`, `computer_call`, calls of shells and patches | tool call |
| `..._output` | its result, paired by `call_id` |
| `mcp_call`, `web_search_call` and other hosted calls | tool call that the provider ran, with any result |
| `mcp_list_tools`, `mcp_approval_request`, `mcp_approval_response` | nothing: no call was made |

A request for an approval that nobody answered waits for input. One that was granted must have its call in the record;
one that was denied has none.

Items of the model that follow each other are one turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET

from seatrial.formats.chat.calls import Call, ListedCalls, nameless_note, set_arguments
from seatrial.formats.chat.content import ContentReader, Piece
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.parts import read_text
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import ARGUMENTS_CUT, CALL_MISSING, SUBAGENT_MISSING
from seatrial.formats.dialects import openai
from seatrial.formats.reading import WAITS, WAITS_FOR_INPUT
from seatrial.transcript import ToolCall, ToolResultMessage, note_code, pointer
from seatrial.transcript.failure import FAILURE_KEYS, Failure, find_failure, read_status, says_failed
from seatrial.transcript.reasoning import (
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningItem,
    ReasoningSummary,
    ReasoningText,
    from_items,
)
from seatrial.transcript.salvage import MESSAGE_DROPPED

ITEM_WITHOUT_CALL = note_code(
    "item_without_call", "An item lists tools, or asks for an approval; no call was made by it, and it was left out.",
    "harmless",
)  # fmt: skip

AGENT_AS_TOOL: Final = {"type": "agent_as_tool"}
"""What the OpenAI Agents SDK says, as `tool_origin`, of a tool that is an agent."""
_FORMAT: Final = ReasoningFormat.OPENAI_RESPONSES_V1
_ITEM: Final = frozenset({"type", "id", "status", "call_id", "created_by", "phase", "object"})


def fits(item: dict[str, Any]) -> int:
    """Items are known by their type; a message has the same type as Anthropic's."""
    kind = item.get("type")
    if type(kind) is not str:
        return 0
    if kind == "message":
        return 2 if type(item.get("role")) is str and "stop_reason" not in item else 0
    return 3 if kind in _READERS else 0


def read(item: dict[str, Any], chat: Chat, at: At) -> None:
    """Add what one item says."""
    _READERS[item["type"]](item, chat, at)


def _message(item: dict[str, Any], chat: Chat, at: At) -> None:
    if openai.ROLES.get(item["role"]) != "assistant":
        openai.read(item, chat, at)
        return
    chat.extend_turn(chat.pieces(item.get("content"), (*at, "content"), agent=True), at)
    chat.note_keys(item, _ITEM | {"role", "content"}, at, agent=True)


def _reasoning(item: dict[str, Any], chat: Chat, at: At) -> None:
    given_id = item.get("id")
    item_id = given_id if type(given_id) is str else None
    summaries = _texts(item.get("summary"), chat, (*at, "summary"))
    texts = _texts(item.get("content"), chat, (*at, "content"))
    items: list[ReasoningItem] = [ReasoningSummary(id=item_id, format=_FORMAT, summary=text) for text in summaries]
    items += [ReasoningText(id=item_id, format=_FORMAT, text=text) for text in texts]
    if type(data := item.get("encrypted_content")) is str:
        items.append(ReasoningEncrypted(id=item_id, format=_FORMAT, data=data))
    chat.note_keys(item, _ITEM | {"summary", "content", "encrypted_content"}, at, agent=True)
    chat.note_calls_in_known(item, frozenset({"summary", "content"}), at)
    chat.extend_turn([from_items(items)] if items else [], at)


def _texts(entries: Any, chat: Chat, at: At) -> list[str]:
    if entries is None:
        return []
    texts = []
    for index, entry in enumerate(entries if type(entries) is list else [entries]):
        text = entry.get("text") if type(entry) is dict else entry
        texts.append(read_text(text, (*at, index), chat.tally.notes))
    return texts


def _read_call(
    item: dict[str, Any], name_key: str | None, keys: tuple[str, ...], ids: tuple[str, str], chat: ContentReader, at: At
) -> Call | None:
    """The call of an item: `arguments` are read as such, `input` is free text, any other keys make an object."""
    name = item.get(name_key) if name_key is not None else item["type"].removesuffix("_call")
    if type(name) is not str or not name:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return None
    call_id = item.get(ids[0]) or item.get(ids[1])
    call = Call(name, UNSET, call_id if type(call_id) is str and call_id else None)
    if keys == ("arguments",):
        set_arguments(call, item.get("arguments", UNSET))
    elif keys == ("input",):
        call.arguments = item.get("input")  # even where it looks like JSON
    else:
        call.arguments = {key: item[key] for key in keys if item.get(key) is not None}
    return call


def _call_part(part: dict[str, Any], chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    """An item among the parts of a message, as LangChain's conversion to OpenAI's messages leaves it there."""
    call = _read_call(part, "name", _ARGUMENTS_OF[part["type"]], ("call_id", "id"), chat, at)
    if call is None or listed.repeats(call):
        return []
    chat.note_keys(part, _ITEM | _CALL_KEYS | {*_ARGUMENTS_OF[part["type"]]}, at, agent=True)
    return [chat.call(call, at)]


def _call(name_key: str | None, keys: tuple[str, ...]) -> Callable[[dict[str, Any], Chat, At], None]:
    """A reader of calls whose result is another item."""

    def read_item(item: dict[str, Any], chat: Chat, at: At) -> None:
        call = _read_call(item, name_key, keys, ("call_id", "id"), chat, at)
        if call is None:
            return
        origin = item.get("tool_origin")
        if type(origin) is dict and origin.get("type") == AGENT_AS_TOOL["type"]:
            text = f"{call.name[:40]!r} is an agent: what it called is not among the items of the one that called it"
            chat.tally.add(SUBAGENT_MISSING, at, text, each=call.name)
        if item.get("status") == "incomplete":
            chat.tally.add(ARGUMENTS_CUT, at, f"the call of {call.name[:40]!r} was cut off")
        chat.extend_turn([chat.call(call, at)], at)
        chat.note_keys(item, _ITEM | _CALL_KEYS | set(keys), at, agent=True)

    return read_item


def _output(item: dict[str, Any], chat: Chat, at: At) -> None:
    message = chat.result(item.get("call_id") or item.get("id"), None, at)
    output = item.get("output")
    chat.fill(message, output, (*at, "output"))
    chat.mark_failure(message, item)
    # A shell says how each command ended.
    for entry in output if type(output) is list else []:
        outcome = entry.get("outcome") if type(entry) is dict else None
        if type(outcome) is dict:
            failed = {"status": "timeout"} if outcome.get("type") == "timeout" else outcome
            chat.mark_failure(message, failed)
    chat.note_keys_of_message(item, _ITEM | FAILURE_KEYS | {"output"}, at, agent=False)
    chat.add_result(message, at)


def _hosted(
    name_key: str | None, arguments: tuple[str, ...], results: tuple[str, ...]
) -> Callable[[dict[str, Any], Chat, At], None]:
    """A reader of calls that the provider ran, which have their result inside, or none at all."""

    def read_item(item: dict[str, Any], chat: Chat, at: At) -> None:
        call = _read_call(item, name_key, arguments, ("id", "call_id"), chat, at)
        if call is None:
            return
        chat.tally.settle(item.get("approval_request_id"))
        block = chat.call(call, at, answered=True, executed_by="provider")
        chat.note_keys(item, _ITEM | _CALL_KEYS | {*arguments, *results, "error"}, at, agent=True)
        result = _hosted_result(item, block, results, chat, at)
        chat.extend_turn([block] if result is None else [block, result], at)

    return read_item


def _hosted_result(
    item: dict[str, Any], call: ToolCall, keys: tuple[str, ...], chat: Chat, at: At
) -> ToolResultMessage | None:
    failure: Failure | None = find_failure(item) if says_failed(item) else None
    output = next((item[key] for key in keys if item.get(key) is not None), None)
    if failure is None and output is None:
        # The provider keeps the result to itself, and says how the call ended.
        if (status := read_status(item.get("status"))) is not None:
            chat.set_facts(call, status=status)
        return None
    result = chat.inside_result(call, output, at)
    chat.mark_failure(result, item)
    return result


def _without_call(item: dict[str, Any], chat: Chat, at: At) -> None:
    kind = item["type"]
    chat.tally.add(ITEM_WITHOUT_CALL, at, f"left out an item of the type {kind}", each=kind)
    chat.note_calls_in_result({key: value for key, value in item.items() if key != "type"}, at)


def _approval_request(item: dict[str, Any], chat: Chat, at: At) -> None:
    request_id = item.get("id")
    chat.tally.add_unless_settled(request_id if type(request_id) is str else None, WAITS_FOR_INPUT, at, WAITS)
    _without_call(item, chat, at)


def _approval_response(item: dict[str, Any], chat: Chat, at: At) -> None:
    asked = item.get("approval_request_id")
    chat.tally.settle(asked)
    if item.get("approve") is not False:
        text = "a call was approved, and is not in the record: it may have been made"
        chat.tally.add_unless_settled(asked if type(asked) is str else None, CALL_MISSING, at, text)
    _without_call(item, chat, at)


def _elsewhere(item: dict[str, Any], chat: Chat, at: At) -> None:
    kind = item["type"]
    text = f"an item of the type {kind} stands for items that are not here"
    chat.tally.add(MESSAGE_DROPPED, at, text, each=kind)


_CALL_KEYS = frozenset({"name", "namespace", "server_label", "approval_request_id", "pending_safety_checks", "caller",
                        "max_output_length", "environment", "tool_origin"})  # fmt: skip
_ARGUMENTS_OF: Final = {"function_call": ("arguments",), "custom_tool_call": ("input",)}
_READERS: Final[dict[str, Callable[[dict[str, Any], Chat, At], None]]] = {
    "message": _message,
    "reasoning": _reasoning,
    **{kind: _call("name", keys) for kind, keys in _ARGUMENTS_OF.items()},
    "local_shell_call": _call(None, ("action",)),
    "shell_call": _call(None, ("action",)),
    "apply_patch_call": _call(None, ("operation",)),
    "computer_call": _call(None, ("action", "actions")),
    "tool_search_call": _hosted(None, ("arguments",), ("output",)),
    "web_search_call": _hosted(None, ("action",), ("results",)),
    "file_search_call": _hosted(None, ("queries",), ("results",)),
    "code_interpreter_call": _hosted(None, ("code", "container_id"), ("outputs",)),
    "image_generation_call": _hosted(None, ("revised_prompt", "prompt"), ("result",)),
    "mcp_call": _hosted("name", ("arguments",), ("output",)),
    "mcp_list_tools": _without_call,
    "mcp_approval_request": _approval_request,
    "mcp_approval_response": _approval_response,
    "tool_search_output": _without_call,
    "item_reference": _elsewhere,
    "compaction": _elsewhere,
    "compaction_summary": _elsewhere,
    **dict.fromkeys(
        (
            "function_call_output",
            "custom_tool_call_output",
            "local_shell_call_output",
            "shell_call_output",
            "apply_patch_call_output",
            "computer_call_output",
        ),
        _output,
    ),
}
PARTS: Final[dict[str, Any]] = dict.fromkeys(_ARGUMENTS_OF, _call_part)
ITEM_TYPES: Final = frozenset(_READERS)
"""The types by which items are known."""
