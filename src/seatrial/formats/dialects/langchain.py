"""Messages of LangChain and LangGraph: `model_dump`, `messages_to_dict` and `dumps`.

| wire | transcript |
| --- | --- |
| `{type, content, ...}`, `{type, data: {...}}`, `{lc, type: constructor, id, kwargs}` | the message inside |
| `human` | user message |
| `ai`, `AIMessageChunk` | assistant message |
| `system`, `chat` with a role | what they say |
| `tool`, `function` | tool result; `status: error` is a failed one |
| `remove` | nothing: what was done stays done |
| `tool_calls`, `invalid_tool_calls` | tool calls, after the content, where the same ids are the same calls |
| `additional_kwargs`: `tool_calls`, `function_call` | tool calls, where they are not listed already |
| content blocks `tool_call`, `invalid_tool_call` | tool calls |
| content blocks `server_tool_call`, `server_tool_result` | tool call that the provider ran, and its result |
| content blocks of Anthropic, Bedrock, Responses | what they are there |
| `usage_metadata`, else `response_metadata` | token counts |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from seatrial.formats.chat.calls import Call, ListedCalls, nameless_note, read_call, set_arguments
from seatrial.formats.chat.content import ContentReader, Piece
from seatrial.formats.chat.hidden_calls import may_hold_call
from seatrial.formats.chat.notes import At, json_kind
from seatrial.formats.chat.parts import dropped_part, read_prompt, read_text
from seatrial.formats.chat.reader import TOOL_CALLS_INVALID, Chat
from seatrial.formats.chat.turn import ARGUMENTS_CUT, TurnEnding, end_turn, split_cached
from seatrial.formats.dialects import anthropic, bedrock, gemini, openai, responses
from seatrial.formats.dialects.responses import ITEM_WITHOUT_CALL
from seatrial.transcript import AssistantMessage, ReasoningBlock, StopReason, TextBlock, ToolCall, Transcript, pointer
from seatrial.transcript.arguments import parse_arguments
from seatrial.transcript.salvage import MESSAGE_DROPPED

FINISH_REASONS: Final = {
    **anthropic.STOP_REASONS,
    "stop": StopReason.END_TURN,
    "STOP": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "MAX_TOKENS": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
}
KINDS: Final = {
    **dict.fromkeys(("human", "HumanMessage", "HumanMessageChunk"), "human"),
    **dict.fromkeys(("ai", "AIMessage", "AIMessageChunk"), "ai"),
    **dict.fromkeys(("system", "SystemMessage", "SystemMessageChunk"), "system"),
    **dict.fromkeys(("tool", "ToolMessage", "ToolMessageChunk"), "tool"),
    **dict.fromkeys(("function", "FunctionMessage", "FunctionMessageChunk"), "function"),
    **dict.fromkeys(("chat", "ChatMessage", "ChatMessageChunk"), "chat"),
    **dict.fromkeys(("remove", "RemoveMessage"), "remove"),
}
_KEYS: Final = frozenset(
    {"type", "content", "id", "name", "role", "example", "additional_kwargs", "response_metadata", "tool_calls",
     "invalid_tool_calls", "tool_call_chunks", "usage_metadata", "tool_call_id", "status", "artifact", "chunk_position",
     "output_version", "lc_kwargs", "lc_namespace", "lc_serializable"}
)  # fmt: skip
_PLAIN: Final = frozenset(
    {"type", "id", "name", "role", "example", "tool_call_id", "status", "artifact", "chunk_position", "output_version",
     "lc_kwargs", "lc_namespace", "lc_serializable"}
)  # fmt: skip
"""Keys of the agent's messages that are not meant to hold a call."""
_WRAPPING_KEYS: Final = frozenset({"lc", "type", "id", "data", "kwargs", "name", "graph"})
"""Beside the message in one of the wrappings; `graph` is a drawing of how a thing is built."""
_CALL_LISTS: Final = ("tool_calls", "invalid_tool_calls")
_MORE_KEYS: Final = frozenset(
    {"tool_calls", "function_call", "tool_outputs", "reasoning", "reasoning_content", "refusal"}
)
_METADATA_KEYS: Final = frozenset(
    {"finish_reason", "stop_reason", "stopReason", "token_usage", "usage", "model_name", "model", "model_provider",
     "id", "system_fingerprint", "created_at", "done_reason", "stop_sequence", "output_version"}
)  # fmt: skip
_BLOCK_KEYS: Final = frozenset(
    {"type", "id", "name", "args", "index", "extras", "error", "tool_call_id", "status", "output", "arguments"}
)
_LISTED_KEYS: Final = (_BLOCK_KEYS | {"function"}) - {"output"}
_MOST_PARSED: Final = 4096
"""Characters of arguments that are parsed again with each fragment."""
_SILENCE: Final = {"type": "text", "text": ""}


def fits(item: dict[str, Any]) -> int:
    """A message with a `type` for a role, or one of the wrappings."""
    return 3 if _unwrapped(item) is not None else 0


def read(item: dict[str, Any], chat: Chat, at: At) -> None:
    """Add the messages that one message stands for."""
    found = _unwrapped(item)
    if found is None:
        return
    kind, said, inside = found
    where = (*at, inside) if inside else at
    if inside:
        chat.note_keys_of_message(item, _WRAPPING_KEYS, at, agent=kind == "ai")
    content = (*where, "content")
    if kind == "chat":
        openai.read({"role": "user", **said}, chat, where)
    elif kind == "remove":
        chat.tally.add(ITEM_WITHOUT_CALL, at, "left out a request to remove a message", each="remove")
        chat.note_keys_of_message(said, _PLAIN, where, agent=True)
    elif kind == "ai":
        _read_ai(said, chat, where)
        chat.note_keys(said, _KEYS, where, agent=True)
        chat.note_calls_in_known(said, _PLAIN, where)
        for key in ("additional_kwargs", "response_metadata"):
            if type(listed := said.get(key)) is list:
                chat.note_calls_in(key, listed, where)
    else:
        if kind == "human":
            chat.add_user(said.get("content"), content)
        elif kind == "system":
            chat.add_system(read_prompt(said.get("content"), content, chat.tally.notes))
        else:
            _read_result(said, chat, where, by_name=kind == "function")
        chat.note_keys_of_message(said, _KEYS, where, agent=False)
        _read_calls_of_others(said, kind, chat, where)


def _read_calls_of_others(said: dict[str, Any], kind: str, chat: Chat, at: At) -> None:
    """Calls of a message that is not the model's: they count all the same."""
    more, where = said.get("additional_kwargs"), (*at, "additional_kwargs")
    listed = [call for key in _CALL_LISTS for call in _listed(said, chat, at, key)]
    if type(more) is dict:
        known = ListedCalls([call for call, _ in listed])
        found = _listed(more, chat, where, "tool_calls")
        if (function := more.get("function_call")) is not None:
            found += _listed({"function_call": [{"function": function}]}, chat, where, "function_call")
        listed += [(call, place) for call, place in found if not known.repeats(call, by_shape=True)]
        unread = {key: value for key, value in more.items() if key not in ("tool_calls", "function_call")}
        chat.note_calls_in("additional_kwargs", unread, at)
    chat.note_calls_in("response_metadata", said.get("response_metadata"), at)
    chat.add_calls_of_others([chat.call(call, place) for call, place in listed], kind, at)


def _unwrapped(item: dict[str, Any]) -> tuple[str, dict[str, Any], str] | None:
    """What kind of message this is, what it says, and under which key of the item that stands."""
    kind = item.get("type")
    if type(kind) is not str:
        return None
    if kind == "constructor" and "lc" in item:
        path, kwargs = item.get("id"), item.get("kwargs")
        name = path[-1] if type(path) is list and path else None
        known = KINDS.get(name) if type(name) is str else None
        return (known, kwargs, "kwargs") if known is not None and type(kwargs) is dict else None
    known = KINDS.get(kind)
    if known is None:
        return None
    if type(data := item.get("data")) is dict and "content" not in item:
        return known, data, "data"
    if known == "remove":
        return (known, item, "") if "id" in item else None
    if "content" not in item or ("role" in item and known != "chat"):
        return None
    return known, item, ""


def merged_chunks(found: list[Any]) -> list[Any]:
    """The entries of a list, with the chunks of one message, which follow each other, as that message."""
    entries: list[Any] = []
    for entry in found:
        last: Any = entries[-1] if entries else None
        if is_chunk(entry) and is_chunk(last) and entry.get("id") == last.get("id"):
            entries[-1] = _merged(last, entry)
        else:
            entries.append(entry)
    return [_whole(entry) if is_chunk(entry) else entry for entry in entries]


def is_chunk(entry: Any) -> bool:
    """Whether this is a piece of a message that a model streams."""
    return type(entry) is dict and entry.get("type") == "AIMessageChunk" and type(entry.get("content")) in (str, list)


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two chunks as one. What is said twice is kept twice, so that nothing is lost."""
    merged = dict(one)
    for key, value in other.items():
        known = one.get(key)
        if key == "content" and is_chunk(one) and is_chunk(other) and type(known) is not type(value):
            merged[key] = [part for part in (*_content_parts(known), *_content_parts(value)) if part != _SILENCE]
        elif type(known) is list and type(value) is list:
            merged[key] = [*known, *value]
        elif key == "content" and type(known) is str and type(value) is str:
            merged[key] = known + value
        elif type(known) is dict and type(value) is dict and key != "usage_metadata":
            merged[key] = _merged(known, value)
        elif value is not None:
            merged[key] = value
    return merged


def _content_parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if type(content) is str else content


def _whole(chunk: dict[str, Any]) -> dict[str, Any]:
    """A message out of chunks, with its calls put together out of their fragments."""
    fragments = chunk.get("tool_call_chunks")
    if type(fragments) is not list or not fragments or any(type(piece) is not dict for piece in fragments):
        return chunk
    whole: list[dict[str, Any]] = []
    growing: dict[int | str | None, dict[str, Any]] = {}
    for piece in fragments:
        index, call_id = piece.get("index"), piece.get("id")
        index = index if type(index) is int or type(index) is str else None
        call_id = call_id if type(call_id) is str and call_id else None
        call = growing.get(index)
        if call is None or _begins_another(piece, call_id, call):
            call = growing[index] = {"name": None, "args": "", "id": None, "type": "tool_call"}
            whole.append(call)
        call["name"] = call["name"] or piece.get("name")
        call["id"] = call["id"] or call_id
        if type(text := piece.get("args")) is str:
            call["args"] += text
    names = {call["id"]: call["name"] for call in whole}
    merged = {**chunk, "tool_call_chunks": []}
    # The calls of single chunks are guesses at what their fragments will be.
    for key in ("tool_calls", "invalid_tool_calls"):
        merged[key] = _not_among(names, chunk.get(key))
    if type(more := chunk.get("additional_kwargs")) is dict and "tool_calls" in more:
        merged["additional_kwargs"] = {**more, "tool_calls": _not_among(names, more["tool_calls"])}
    merged["tool_calls"] = [*whole, *merged["tool_calls"]]
    if type(content := chunk.get("content")) is list:
        merged["content"] = _without_fragments(content, whole)
    return merged


def _without_fragments(content: list[Any], calls: list[dict[str, Any]]) -> list[Any]:
    """A content less the arguments of these calls, which Anthropic's models leave in it in pieces as well."""
    pieces = [part for part in content if type(part) is dict and part.get("type") == "input_json_delta"]
    texts = [text for part in pieces if type(text := part.get("partial_json", part.get("input"))) is str]
    if len(texts) < len(pieces) or "".join(texts) != "".join([call["args"] for call in calls]):
        return content
    return [part for part in content if part not in pieces]


def _begins_another(piece: dict[str, Any], call_id: str | None, call: dict[str, Any]) -> bool:
    """Whether a fragment is of another call than the one that grows at its index."""
    if call_id and call["id"] and call_id != call["id"]:
        return True  # some providers number all calls alike
    name = piece.get("name")
    if not name or not call["name"]:
        return False
    # Some repeat the name in every fragment; but arguments that are whole do not grow.
    known, more = call["args"], piece.get("args")
    if name != call["name"] or type(more) is not str:
        return bool(name != call["name"])
    if not (known.endswith("}") and more.startswith("{")):
        return False
    return len(known) > _MOST_PARSED or not parse_arguments(known)[1]


def _not_among(names: dict[Any, Any], entries: Any) -> list[Any]:
    """The calls of a list that are not those of these ids and names, nor fragments without a name."""
    found = entries if type(entries) is list else [] if entries is None else [entries]
    return [
        entry
        for entry in found
        if type(entry) is not dict
        or type(call_id := entry.get("id")) not in (str, type(None))
        or _is_another(call_id, read_call(entry), names)
    ]


def _is_another(call_id: Any, call: Call | None, names: dict[Any, Any]) -> bool:
    if call_id not in names:
        return bool(call_id) or call is not None
    return call is not None and call.name != names[call_id]


def _read_result(said: dict[str, Any], chat: Chat, at: At, *, by_name: bool) -> None:
    message = chat.result(said.get("tool_call_id"), said.get("name"), at, by_name=by_name)
    chat.fill_blocks(message, said.get("content"), (*at, "content"))
    if (artifact := said.get("artifact")) is not None:
        message.details = artifact
        chat.note_calls_in_result(artifact, (*at, "artifact"))
    chat.mark_failure(message, said)
    chat.add_result(message, at)


def _read_ai(said: dict[str, Any], chat: Chat, at: At) -> None:
    chat.close_turn()
    listed = [call for key in _CALL_LISTS for call in _listed(said, chat, at, key)]
    known = ListedCalls([call for call, _ in listed])
    message = chat.extend_turn([], at)
    _read_kwargs_before(said, chat, at)
    _read_content(said.get("content"), known, chat, (*at, "content"))
    for call, where in listed:
        chat.extend_turn([chat.call(call, where)], where)
    _read_kwargs_after(said, known, chat, at)
    chat.close_turn()
    _read_ending(said, message, chat, at)


def _listed(said: dict[str, Any], chat: Chat, at: At, key: str) -> list[tuple[Call, At]]:
    entries = said.get(key)
    if entries is None:
        return []
    if type(entries) is not list:
        chat.tally.add(TOOL_CALLS_INVALID, (*at, key), f"{key} is {json_kind(entries)}, not an array")
        return []
    found: list[tuple[Call, At]] = []
    for index, entry in enumerate(entries):
        where = (*at, key, index)
        call = read_call(entry)
        if call is None:
            chat.tally.notes.append(nameless_note(pointer(*where)))
        else:
            chat.note_keys(entry, _LISTED_KEYS, where, agent=True)
            found.append((call, where))
    return found


def _read_content(content: Any, listed: ListedCalls, chat: Chat, at: At) -> None:
    if type(content) is not list:
        chat.extend_turn(chat.pieces(content, at, agent=True, listed=listed), at)
        return
    for index, part in enumerate(content):
        where = (*at, index)
        if not _is_responses_item(part):
            chat.extend_turn(chat.part_pieces(part, where, agent=True, listed=listed), where)
        elif (call := read_call({**part, "id": part.get("call_id")})) is None or not listed.repeats(call):
            responses.read(part, chat, where)


def _is_responses_item(part: Any) -> bool:
    """Blocks that are items of the Responses API, as its models are read into a content."""
    if type(part) is not dict or responses.fits(part) < 3:
        return False
    return part["type"] != "reasoning" or "summary" in part or "encrypted_content" in part


def _read_kwargs_before(said: dict[str, Any], chat: Chat, at: At) -> None:
    more, where = said.get("additional_kwargs"), (*at, "additional_kwargs")
    if type(more) is not dict:
        return
    if type(text := more.get("reasoning_content")) is str and text:
        chat.extend_turn([ReasoningBlock(text)], at)
    chat.note_calls_in("reasoning", more.get("reasoning"), where)
    if type(reasoning := more.get("reasoning")) is dict:
        responses.read({**reasoning, "type": "reasoning"}, chat, (*where, "reasoning"))
    elif type(reasoning) is str and reasoning:
        chat.extend_turn([ReasoningBlock(reasoning)], at)
    if type(refusal := more.get("refusal")) is str and refusal:
        chat.tally.add(openai.REFUSAL_READ_AS_TEXT, where, "kept what the model said in refusing", each="")
        chat.extend_turn([TextBlock(refusal)], at)


def _read_kwargs_after(said: dict[str, Any], listed: ListedCalls, chat: Chat, at: At) -> None:
    more, where = said.get("additional_kwargs"), (*at, "additional_kwargs")
    if type(more) is dict:
        for call, place in _listed(more, chat, where, "tool_calls"):
            if not listed.repeats(call, by_shape=True):
                chat.extend_turn([chat.call(call, place)], place)
        if (function := more.get("function_call")) is not None:
            legacy = read_call({"function": function})
            if legacy is None:
                chat.tally.notes.append(nameless_note(pointer(*where, "function_call")))
            elif not listed.repeats(legacy, by_shape=True):
                place = (*where, "function_call")
                chat.extend_turn([chat.call(legacy, place)], place)
        outputs = more.get("tool_outputs")
        for index, item in enumerate(outputs if type(outputs) is list else []):
            place = (*where, "tool_outputs", index)
            if _is_responses_item(item):
                responses.read(item, chat, place)
            else:
                chat.tally.add(MESSAGE_DROPPED, place, "expected an item of a hosted tool")
        chat.note_keys(more, _MORE_KEYS, where, agent=True)
    chunks = said.get("tool_call_chunks")
    for index, chunk in enumerate(chunks if type(chunks) is list else []):
        part = read_call(chunk)
        if part is None or not listed.repeats(part, by_shape=True):
            # A fragment: the rest of the call is in other chunks of the stream.
            text = "a fragment of a tool call stands alone"
            chat.tally.add(ARGUMENTS_CUT, (*at, "tool_call_chunks", index), text, each="chunk")


def _read_ending(said: dict[str, Any], message: AssistantMessage, chat: Chat, at: At) -> None:
    metadata, where = said.get("response_metadata"), (*at, "response_metadata")
    about: dict[str, Any] = metadata if type(metadata) is dict else {}
    reason = about.get("finish_reason") or about.get("stop_reason") or about.get("stopReason")
    if reason is not None:
        end_turn(message, TurnEnding(reason), FINISH_REASONS, Transcript(), chat.tally, where)
    usage = said.get("usage_metadata")
    if type(usage) is dict:
        chat.note_missing_calls(message, about.get("usage"), (*where, "usage"))
        details = usage.get("input_token_details")
        if type(details) is not dict:
            details = {}
        counts = split_cached(
            usage.get("input_tokens"),
            usage.get("output_tokens"),
            read=details.get("cache_read"),
            written=details.get("cache_creation"),
        )
        chat.add_usage(message, counts, (*at, "usage_metadata"))
    else:
        chat.add_usage(message, about.get("token_usage") or about.get("usage"), where)
    for key, value in about.items():
        if key not in _METADATA_KEYS:
            chat.drop_key(key, value, where, agent=may_hold_call(key, value))


def _call_block(part: dict[str, Any], chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    """A standard content block that is a call, whole or a fragment of a stream."""
    call = read_call(part)
    if call is None:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return []
    kind: str = part["type"]
    if kind.endswith("_chunk"):
        set_arguments(call, part.get("args") or "")
        if call.not_json:
            chat.tally.add(ARGUMENTS_CUT, at, f"the arguments for {call.name[:40]!r} were cut off")
    if listed.repeats(call):
        return []
    chat.note_keys(part, _BLOCK_KEYS, at, agent=True)
    block: ToolCall = chat.call(call, at, executed_by="provider" if kind.startswith("server_") else "agent")
    return [block]


def _server_result(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    message = chat.result(part.get("tool_call_id"), None, at)
    chat.fill(message, part.get("output"), (*at, "output"))
    chat.note_keys_of_message(part, _BLOCK_KEYS, at, agent=False)
    chat.mark_failure(message, part)
    return [message]


def _reasoning_content(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    """Bedrock's reasoning, as LangChain's models of it keep it."""
    said = part.get("reasoning_content")
    if type(said) is not dict:
        chat.tally.notes.append(dropped_part(part, at))
        return []
    return bedrock.read_reasoning({"reasoningText": said, **said}, chat, at)


def _code(part: dict[str, Any], chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    """Code that Gemini ran, and what it printed, as LangChain's models of it keep them."""
    if part["type"] == "executable_code":
        inside = {"id": part.get("id"), "code": part.get("executable_code"), "language": part.get("language")}
        return gemini.read_part({"executableCode": inside}, chat, at, listed)
    result = {"id": part.get("tool_call_id"), "output": part.get("code_execution_result")}
    result["outcome"] = part.get("outcome")
    return gemini.read_part({"codeExecutionResult": result}, chat, at, listed)


def _plain_text(part: dict[str, Any], chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    if type(text := part.get("text")) is str:
        return [TextBlock(read_text(text, at, chat.tally.notes))]
    chat.tally.notes.append(dropped_part(part, at))
    return []


def _non_standard(part: dict[str, Any], chat: ContentReader, at: At, listed: ListedCalls) -> Iterable[Piece]:
    """A block of the provider's own inside a standard one."""
    value = part.get("value")
    if type(value) is dict and value.get("type") == "non_standard":
        chat.tally.notes.append(dropped_part(part, at))
        return []
    return chat.part_pieces(value, (*at, "value"), agent=True, listed=listed)


PARTS: Final[dict[str, Any]] = {
    **dict.fromkeys(
        ("tool_call", "tool_call_chunk", "invalid_tool_call", "server_tool_call", "server_tool_call_chunk"), _call_block
    ),
    "server_tool_result": _server_result,
    "text-plain": _plain_text,
    "non_standard": _non_standard,
    "reasoning_content": _reasoning_content,
    "executable_code": _code,
    "code_execution_result": _code,
}
