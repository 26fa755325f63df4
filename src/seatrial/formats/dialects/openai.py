"""Role-tagged messages, as OpenAI's chat completions have them and most of the world after them.

| wire | transcript |
| --- | --- |
| `system`, `developer` | system message |
| `user` with text or parts | user message; its calls are the user's where they say so (`requestor`) |
| `assistant`, `ai`, `model`: `content` | text, and thinking where a hidden tag says so |
| `refusal`, `audio` with a transcript | text |
| `reasoning`, `reasoning_content`, `reasoning_details`, `thinking` | native reasoning, in front of the content |
| `tool_calls`, `toolCalls`, legacy `function_call` | tool calls, after the content |
| `tool`, `function`, `tool_result` | tool result |
| any other role | custom message that holds the original |

Also read here, because they differ in a key or two: `output_messages` (calls as `{tool, input, output}`, times),
messages of Inspect (`function` is the name, a failed result has an `error` object) and of tau2 (`requestor`,
`error: true`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET, Raw

from seatrial.formats.chat.calls import (
    CALL_NAMED_TWICE,
    Call,
    ListedCalls,
    nameless_note,
    read_call,
    read_call_facts,
)
from seatrial.formats.chat.content import NOT_LISTED, ContentReader, Piece
from seatrial.formats.chat.decoding import value
from seatrial.formats.chat.notes import At, NoteTally, json_kind, note_failure
from seatrial.formats.chat.parts import Thought, read_prompt, read_text, read_thought
from seatrial.formats.chat.reader import ROLE_READ_AS, TOOL_CALLS_INVALID, Chat
from seatrial.transcript import (
    AssistantMessage,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    note_code,
    pointer,
)
from seatrial.transcript.arguments import parse_arguments
from seatrial.transcript.failure import FAILURE_KEYS
from seatrial.transcript.salvage import ROLE_UNKNOWN

REFUSAL_READ_AS_TEXT = note_code(
    "refusal_read_as_text", "The model refused; what it said is kept as visible text.", "harmless"
)
AUDIO_READ_AS_TEXT = note_code(
    "audio_read_as_text", "The answer was spoken; its transcript is kept as visible text.", "harmless"
)
CUSTOM_TOOL_CALL = note_code(
    "custom_tool_call",
    "A call of a tool that takes free text was read as one with that text as its arguments.",
    "harmless",
)
THINKING_INVALID = note_code(
    "thinking_invalid", "A thinking entry is not an object; text was kept as reasoning.", "look"
)

ROLES: Final[Mapping[str, str]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
    "tool_result": "tool",
}
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_CUT: Final = ("length", "max_tokens")
_CALL_LISTS: Final = ("tool_calls", "toolCalls")
_ANY = frozenset(
    {"role", "content", "id", "index", "object", "type", "timestamp", "created", "created_at",
     "turn_idx", "source", "model"}
)  # fmt: skip
_CALLING = frozenset({"tool_calls", "toolCalls", "function_call"})
_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "system": _ANY | _CALLING,
    "user": _ANY | _CALLING,
    "tool": _ANY
    | _CALLING
    | FAILURE_KEYS
    | {"name", "tool_call_id", "toolCallId", "function", "tool_name", "toolName", "requestor"},
    "assistant": _ANY
    | _CALLING
    | {"refusal", "audio", "reasoning", "reasoning_content", "reasoning_details", "thinking", "usage", "cost",
       "finish_reason", "stop_reason", "thinking_blocks"},
}  # fmt: skip
_CALL_KEYS = frozenset(
    {"id", "call_id", "type", "index", "function", "custom", "name", "arguments", "args", "input", "tool", "output",
     "status", "error", "started_at", "startedAt", "start_time", "startTime", "timestamp", "ended_at", "endedAt",
     "end_time", "endTime", "duration_ms", "durationMs", "requestor", "view", "parse_error", "internal",
     *FAILURE_KEYS}
)  # fmt: skip
_THINKING = frozenset({"thinking_blocks", "reasoning", "reasoning_content", "reasoning_details", "thinking"})
_PLAIN = _ANY - {"role", "content"}
"""Keys of a message that are not meant to hold a call."""
_PLAIN_OF_ASSISTANT = _PLAIN | {"audio", "cost", "finish_reason", "stop_reason"}
_PLAIN_IN_CALL = _CALL_KEYS - {"function", "custom", "arguments", "args", "input", "output", "error", "view"}
_CUSTOM_KEYS = frozenset({"name", "input", "description"})
_FUNCTION_KEYS = frozenset({"name", "arguments", "parsed_arguments", "description"})


def fits(item: dict[str, Any]) -> int:
    """A role is all that these messages have in common."""
    role = item.get("role")
    return 1 if type(role) is str and role and "parts" not in item else 0


def read(item: dict[str, Any], chat: Chat, at: At) -> None:
    """Add the messages that one message stands for."""
    role = item["role"]
    known = ROLES.get(role)
    if known is not None and known != role:
        chat.tally.add(ROLE_READ_AS, (*at, "role"), f"read the role {role!r} as {known!r}", each=role)
    timestamp = chat.timestamp(item.get("timestamp"), (*at, "timestamp"))
    if known == "assistant":
        _read_assistant(item, chat, at, timestamp)
        return
    content = (*at, "content")
    if known == "tool":
        _read_result(item, chat, at, timestamp)
    elif known == "user":
        chat.add_user(item.get("content"), content, timestamp)
    elif known == "system":
        chat.add_system(read_prompt(item.get("content"), content, chat.tally.notes), timestamp)
    elif role == "custom" and type(kind := item.get("kind")) is str:
        chat.add_custom(kind, item.get("payload"), timestamp)
        return
    else:
        text = f"kept a message of the unknown role {role[:40]!r} as a custom one"
        chat.tally.add(ROLE_UNKNOWN, (*at, "role"), text, each=role)
        chat.add_custom(role, item, timestamp)
    if known is not None:
        chat.note_keys_of_message(item, _KNOWN[known], at, agent=False)
        chat.note_calls_in_known(item, _PLAIN, at)
    if not _CALLING.isdisjoint(item):
        _read_calls_of_others(item, known or role, chat, at)


def _read_calls_of_others(item: dict[str, Any], role: str, chat: Chat, at: At) -> None:
    pieces = _calls(item, chat, at)
    calls = [piece for piece in pieces if type(piece) is ToolCall]
    if not calls:
        return
    if role != "user" or not _are_requested_by_user(item):
        chat.add_calls_of_others(pieces, role, at)
        return
    # tau2: a simulated user has tools of its own.
    for call in calls:
        chat.set_facts(call, executed_by="user")
    chat.add(AssistantMessage([*calls], StopReason.TOOL_USE))
    chat.messages += [piece for piece in pieces if type(piece) is ToolResultMessage]


def _are_requested_by_user(item: dict[str, Any]) -> bool:
    """Whether every call says that it is the user's; without that, who made it is not known, and it counts."""
    entries = [entry for key in _CALL_LISTS if type(listed := item.get(key)) is list for entry in listed]
    return all(type(entry) is dict and entry.get("requestor") == "user" for entry in entries) and bool(entries)


def _read_assistant(item: dict[str, Any], chat: Chat, at: At, timestamp: int | None) -> None:
    pieces: list[Piece] = []
    if not _THINKING.isdisjoint(item):
        pieces += _thinking_blocks(item, chat, at)
        pieces += _reasoning(item, chat, at)
        pieces += _thinking(item.get("thinking"), chat, (*at, "thinking"))
    calls = [] if _CALLING.isdisjoint(item) else _calls(item, chat, at)
    content, listed = item.get("content"), NOT_LISTED
    if calls and type(content) is not str:  # a text cannot repeat them
        listed = ListedCalls([piece for piece in calls if type(piece) is ToolCall])
    pieces += chat.pieces(content, (*at, "content"), agent=True, listed=listed)
    if refusal := item.get("refusal"):
        chat.tally.add(REFUSAL_READ_AS_TEXT, (*at, "refusal"), "kept a refusal as visible text", each="")
        pieces.append(TextBlock(read_text(refusal, (*at, "refusal"), chat.tally.notes)))
        chat.note_calls_in("refusal", refusal, at)
    if (audio := item.get("audio")) is not None:
        pieces += _audio(audio, chat, (*at, "audio"))
    message = chat.add_assistant([*pieces, *calls], at, timestamp)
    chat.note_keys(item, _KNOWN["assistant"], at, agent=True)
    chat.note_calls_in_known(item, _PLAIN_OF_ASSISTANT, at)
    chat.add_usage(message, item.get("usage"), (*at, "usage"))
    if item.get("finish_reason") in _CUT or item.get("stop_reason") in _CUT:
        message.stop_reason = StopReason.MAX_TOKENS
    note_failure(item, chat.tally, at)


def _thinking_blocks(item: dict[str, Any], chat: Chat, at: At) -> list[Piece]:
    """Anthropic's thoughts, as LiteLLM keeps them beside their text."""
    blocks, within = item.get("thinking_blocks"), (*at, "thinking_blocks")
    if not blocks:
        return []
    thoughts = [block for block in blocks if type(block) is dict] if type(blocks) is list else []
    if len(thoughts) < len(blocks) or any(thought.get("type") not in _THOUGHTS for thought in thoughts):
        chat.drop_key("thinking_blocks", blocks, at, agent=True)
        return []
    return chat.pieces(thoughts, within, agent=True)


def _reasoning(item: dict[str, Any], chat: Chat, at: At) -> list[Piece]:
    pieces: list[Piece] = []
    # Both names are in use for the one text, sometimes together.
    key = "reasoning" if item.get("reasoning") else "reasoning_content"
    if (given := item.get(key)) and given != _thought_of_blocks(item):
        pieces.append(ReasoningBlock(read_text(given, (*at, key), chat.tally.notes)))
        chat.note_calls_in(key, given, at)
        if key == "reasoning" and (more := item.get("reasoning_content")) != given:
            chat.drop_key("reasoning_content", more, at, agent=False)
    details = item.get("reasoning_details")
    if type(details) is list:
        if details:
            block = ReasoningDetailsBlock([entry if type(entry) is Raw else _raw(entry) for entry in details])
            chat.note_calls_in("reasoning_details", _values(block.details), at)
            pieces.append(block)
    else:
        chat.drop_key("reasoning_details", details, at, agent=True)
    return pieces


def _thought_of_blocks(item: dict[str, Any]) -> str | None:
    """The text of LiteLLM's thinking blocks, which it gives as `reasoning_content` as well."""
    blocks = item.get("thinking_blocks")
    texts = [block.get("thinking") for block in blocks if type(block) is dict] if type(blocks) is list else []
    return "".join([text for text in texts if type(text) is str]) or None


def _values(details: list[Raw]) -> list[Any]:
    return [value(raw, NoteTally(), ()) for raw in details]


def _raw(value: Any) -> Raw:
    from seatrial._support import wire

    return Raw(wire.encode(value))


def _thinking(entries: Any, chat: Chat, at: At) -> list[Piece]:
    if entries is None:
        return []
    pieces: list[Piece] = []
    for index, entry in enumerate(entries if type(entries) is list else [entries]):
        block = entry if isinstance(entry, Thought) else read_thought(entry)
        if block is not None:
            if type(block) is ReasoningDetailsBlock:
                chat.note_calls_in("thinking", _values(block.details), at[:-1])
            pieces.append(block)
            continue
        text = f"a thinking entry is {json_kind(entry)}, not an object"
        chat.tally.add(THINKING_INVALID, (*at, index), text)
        if type(entry) is str:
            pieces.append(ReasoningBlock(entry))
    return pieces


def _audio(audio: Any, chat: Chat, at: At) -> list[Piece]:
    transcript = audio.get("transcript") if type(audio) is dict else None
    if type(transcript) is not str or not transcript:
        return []
    chat.tally.add(AUDIO_READ_AS_TEXT, at, "kept the transcript of a spoken answer as visible text", each="")
    return [TextBlock(transcript)]


def _calls(item: dict[str, Any], chat: Chat, at: At) -> list[Piece]:
    """The calls beside the content, each followed by the result that came inside it."""
    found: list[Piece] = []
    for key in _CALL_LISTS:
        entries = item.get(key)
        if entries is None:
            continue
        if type(entries) is not list:
            chat.tally.add(TOOL_CALLS_INVALID, (*at, key), f"{key} is {json_kind(entries)}, not an array")
            continue
        listed = ListedCalls([piece for piece in found if type(piece) is ToolCall]) if found else NOT_LISTED
        for index, entry in enumerate(entries):
            place = (*at, key, index)
            if not chat.takes_piece(place):
                break
            found += read_call_entry(entry, chat, place, listed)
    if (function := _legacy_function(item.get("function_call"))) and not _is_among(function, found):
        found += read_call_entry({"function": function}, chat, (*at, "function_call"))
    return found


def _legacy_function(function: Any) -> Any:
    """The object of a legacy call, which some write as JSON text."""
    if type(function) is str and function.lstrip().startswith("{"):
        return parse_arguments(function)[0]  # without a name, it is noted as a call that has none
    return function


def _is_among(function: Any, found: list[Piece]) -> bool:
    """Whether a legacy call is one of the list: some write the same call both ways."""
    call = read_call({"function": function})
    return call is not None and any(
        type(piece) is ToolCall and (piece.name, piece.arguments) == (call.name, call.arguments) for piece in found
    )


def read_call_entry(entry: Any, chat: ContentReader, at: At, listed: ListedCalls = NOT_LISTED) -> list[Piece]:
    """The call that an entry of a list of calls is, and the result inside it; nothing, with a note, without a name.

    Of a call that is listed already, only what this entry says of it besides.
    """
    call = read_call(entry) or _custom_call(entry, chat, at)
    if call is None:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return []
    chat.note_keys(entry, _CALL_KEYS, at, agent=True)
    if type(function := entry.get("function")) is dict:
        chat.note_keys(function, _FUNCTION_KEYS, (*at, "function"), agent=True)
    chat.note_calls_in_known(entry, _PLAIN_IN_CALL, at)
    for key in ("tool", "function"):
        if type(other := entry.get(key)) is str and other and other != call.name:
            chat.tally.add(CALL_NAMED_TWICE, at, f"read as {call.name[:40]!r}, but its `{key}` is {other[:40]!r}")
    answered = call.output is not UNSET
    known = listed.find(call)
    repeated = known is not None
    block = known if type(known) is ToolCall else chat.call(call, at, answered=answered)
    facts = read_call_facts(entry)
    if facts is not None:
        chat.set_facts(block, **{field: getattr(facts, field) for field in _FACT_FIELDS})
    if not answered and not (facts is not None and facts.status in ("error", "timeout")):
        return [] if repeated else [block]
    # A call that is said to have failed has a result, which the transcript shows as such.
    result = chat.inside_result(block, call.output if answered else None, (*at, "output"))
    chat.mark_failure(result, entry)
    return [result] if repeated else [block, result]


def _custom_call(entry: Any, chat: ContentReader, at: At) -> Call | None:
    if type(entry) is not dict or type(custom := entry.get("custom")) is not dict:
        return None
    call = read_call({"name": custom.get("name"), "input": custom.get("input"), "id": entry.get("id")})
    chat.note_keys(custom, _CUSTOM_KEYS, (*at, "custom"), agent=True)
    if call is not None:
        # Free text, even where it looks like JSON.
        call.arguments, call.not_json = custom.get("input"), False
        chat.tally.add(CUSTOM_TOOL_CALL, at, f"a call of the custom tool {call.name[:100]!r}", each="")
    return call


def _read_result(item: dict[str, Any], chat: Chat, at: At, timestamp: int | None) -> None:
    call_id = item.get("tool_call_id") or item.get("toolCallId")
    # OpenAI's legacy `function` messages have a name and no id.
    message = chat.result(call_id, _name(item), at, by_name=item["role"] == "function")
    content = item.get("content")
    chat.fill_blocks(message, content, (*at, "content"))
    message.timestamp = timestamp
    if type(content) is dict:
        message.details = content
    chat.mark_failure(message, item)
    chat.add_result(message, at)


def _name(item: dict[str, Any]) -> str | None:
    for key in _NAME_KEYS:
        if type(found := item.get(key)) is str and found:
            return found
    return None


def _refusal(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    chat.tally.add(REFUSAL_READ_AS_TEXT, at, "kept a refusal as visible text", each="")
    return [TextBlock(read_text(part.get("refusal", ""), (*at, "refusal"), chat.tally.notes))]


def _call_part(part: dict[str, Any], chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    return read_call_entry(part, chat, at, listed)


PARTS: Final[dict[str, Any]] = {"refusal": _refusal, "tool_call": _call_part}
_NAME_KEYS: Final = ("name", "function", "tool_name", "toolName")
_FACT_FIELDS: Final = ("started_at", "ended_at", "duration_ms", "status", "error")
