"""Calls that a reader did not read: under keys that it does not know, and among the metadata.

A key that was left out must not hide a call. So an unknown key with an object or an array under a message of the agent
is a serious note, unless it is in `KEYS_WITHOUT_CALLS` and nothing under it is written like a call. Once a record is
read, its metadata is looked through, whatever its format; and so are its bytes, for keys that occur twice in an object:
readers keep the last, and what stood under the first is lost without a word from the decoder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from seatrial._support import wire
from seatrial._support.repeated_keys import repeated_keys
from seatrial.errors import SeatrialError
from seatrial.formats.chat.calls import canonical
from seatrial.formats.chat.limits import excess
from seatrial.formats.chat.notes import NoteTally
from seatrial.formats.reading import Reading
from seatrial.transcript.arguments import parse_arguments, read_arguments
from seatrial.transcript.messages import AssistantMessage, Message, ToolCall
from seatrial.transcript.note import Note, note_code, pointer

KEY_DROPPED = note_code(
    "key_dropped",
    "A key has no place in the transcript; it was dropped. Serious where a call of the agent's may stand under it.",
    "harmless",
)
CALLS_IN_METADATA = note_code(
    "calls_in_metadata",
    "Metadata of the record looks like tool calls; it was not read.",
    "serious",
)

CALLS_IN_RESULT = note_code(
    "calls_in_result",
    "A tool's result holds what is written like a call; it was kept as a result, and not read as a call.",
    "serious",
)

CALLS_IN_ARGUMENTS = note_code(
    "calls_in_arguments",
    "The arguments of a call hold other calls, as those of a tool that runs several at once do; they were not read as "
    "calls.",
    "serious",
)
KEY_TWICE_IN_OBJECT = note_code(
    "key_twice_in_object", "An object of the record has a key twice; the last one counts, the first is lost.", "serious"
)

KEYS_WITHOUT_CALLS: Final = frozenset(
    {
        "__gemini_function_call_thought_signatures__",
        "annotations",
        "avgLogprobs",
        "cacheControl",
        "cachePoint",
        "cache_control",
        "citationMetadata",
        "citation_metadata",
        "citations",
        "context_management",
        "experimental_attachments",
        "generationInfo",
        "generation_info",
        "groundingMetadata",
        "grounding_metadata",
        "logprobs",
        "logprobsResult",
        "parsed",
        "performanceConfig",
        "promptFeedback",
        "prompt_filter_results",
        "content_filter_results",
        "providerMetadata",
        "providerOptions",
        "provider_details",
        "provider_specific_fields",
        "safetyRatings",
        "safety_ratings",
        "service_tier",
        "tags",
        "token_ids",
        "tokens",
        "top_logprobs",
        "urlContextMetadata",
        "url_context_metadata",
        "usage",
        "usageMetadata",
        "usage_metadata",
    }
)
"""Keys that are known to hold no call, whatever looks a little like one there: only what is written like a call, as in
`holds_written_call`, is one. LiteLLM keeps the calls that it made itself under `provider_specific_fields`."""
_DEFINITIONS: Final = frozenset(
    {
        "functions",
        "parallel_tool_calls",
        "toolChoice",
        "toolConfig",
        "tool_choice",
        "tool_config",
        "tools",
    }
)
"""What a model is offered, in requests and in the responses that repeat them: no call was made by it."""
KEYS_OF_CALLS: Final = frozenset(
    {
        "functionCall",
        "functionCalls",
        "function_call",
        "function_calls",
        "invalid_tool_calls",
        "server_tool_use",
        "toolCall",
        "toolCalls",
        "toolInvocation",
        "toolInvocations",
        "toolUse",
        "tool_call",
        "tool_calls",
        "tool_use",
        "tool_uses",
    }
)
"""Keys that dialects give their calls: they mean nothing else, in a record, in a result or in a text."""
_KEYS_OF_RESULTS: Final = frozenset({"functionResponse", "function_response", "toolResult", "tool_result"})
"""Keys that dialects give the results of calls: one that names its tool says that this was called."""
_NAMES_OF_CALLS: Final = KEYS_OF_CALLS | {
    "action",
    "actions",
    "arguments",
    "call_id",
    "calls",
    "intermediate_steps",
    "tool",
    "toolCallId",
    "toolName",
    "tool_call_id",
    "tool_input",
    "tool_name",
    "tools_called",
    "tools_used",
    "trajectory",
}
_HOSTED_CALLS: Final = frozenset(
    {
        "apply_patch_call",
        "code_interpreter_call",
        "computer_call",
        "file_search_call",
        "image_generation_call",
        "local_shell_call",
        "shell_call",
        "tool_search_call",
        "web_search_call",
    }
)
"""Items of the Responses API that are calls without a name."""
_ARGUMENTS: Final = frozenset({"args", "arguments", "input", "tool_input"})
NAMES_OF_TOOLS: Final = ("name", "tool", "function", "tool_name", "toolName", "recipient_name")
_CALL_TYPE_ENDINGS: Final = ("_call", "toolcall", "tool_use", "tooluse", "tool_result", "_call_output")
_NOT_TOOLS: Final = frozenset({"phone_call", "video_call", "voice_call"})
"""What people have with each other ends in `_call` as well."""
_SCHEMA_KEYS: Final = frozenset({"type", "anyOf", "allOf", "oneOf", "$ref", "enum"})
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
_OF_DEFINITIONS: Final = frozenset({"type", "args", "arguments", "function", *_SCHEMAS})
"""Keys of a tool that is offered, once they are known to hold no call."""
_OF_FRAGMENTS: Final = frozenset({"index", "id", "type", "function", "name", "arguments", "args", "error"})
_SETTINGS: Final = frozenset({"max_tokens", "temperature", "top_p"})
_SAYS_NOTHING: tuple[Any, ...] = (None, "", [], {}, 0)
_IDS: Final = ("id", "call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id")
_ARGUMENTS_OF_CALLS: Final = ("arguments", "args", "input", "tool_input", "toolInput", "parameters")
_BATCHES: Final = KEYS_OF_CALLS | {"calls", "invocations"}
"""Arguments by which one call makes others."""
_MAX_LOOKED_AT: Final = 20_000

_SHOWN: Final = 3


class KnownCalls:
    """The calls that were read elsewhere: to repeat one of them is to add nothing."""

    def __init__(
        self,
        names: Mapping[str, str],
        made: Iterable[ToolCall] = (),
        again: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """`names` are the names of the calls by id, `again` all names of ids that several calls have. What has no id
        repeats one of `made` by its name and arguments."""
        self.names = names
        self._again = again or {}
        self._made: dict[str, set[bytes]] = {}
        for call in made:
            self._made.setdefault(call.name, set()).add(canonical(call.arguments))

    @classmethod
    def of(cls, calls: Iterable[ToolCall], made: Iterable[ToolCall] = ()) -> KnownCalls:
        """These calls, by id; what has no id may repeat one of `made`."""
        names: dict[str, str] = {}
        again: dict[str, set[str]] = {}
        for call in calls:
            if call.id in names:
                again.setdefault(call.id, {names[call.id]}).add(call.name)
            names[call.id] = call.name
        return cls(names, made, again)

    def __bool__(self) -> bool:
        return bool(self.names or self._made)

    def is_one_of(self, call_id: str, names: Collection[str]) -> bool:
        """Whether a call of that id has one of these names."""
        return self.names[call_id] in names or any(name in names for name in self._again.get(call_id, ()))

    def has_made(self, name: str, given: Mapping[str, Any]) -> bool:
        """Whether a call of that name was made with the arguments that an object has; with any, when it has none."""
        arguments = next((given[key] for key in _ARGUMENTS_OF_CALLS if given.get(key) is not None), None)
        if type(arguments) is str:
            arguments, _, _ = read_arguments(arguments)
        return name in self._made and (arguments is None or canonical(arguments) in self._made[name])


_NONE_KNOWN: Final = KnownCalls({})


def may_hold_call(key: str, value: Any, known: Mapping[str, str] | KnownCalls = _NONE_KNOWN) -> bool:
    """Whether something that nobody read looks as if there were a call in it. Looks at a bounded part of it.

    `known` are the calls that were read elsewhere, or their names by id: to repeat those is to add nothing.
    """
    if not isinstance(known, KnownCalls):
        known = KnownCalls(known)
    if type(value) is str:
        return _text_may_hold_call(key, value, known)
    if type(value) is not dict and type(value) is not list:
        return False
    if not value:
        return False
    if key in _NAMES_OF_CALLS and not _are_known(value, known) and not _are_defined(value):
        return True
    waiting: list[Any] = [value]
    for _ in range(_MAX_LOOKED_AT):
        if not waiting:
            return False
        found = waiting.pop()
        if type(found) is dict:
            if _is_schema(found) or _is_known(found, known):
                continue  # what a tool takes, not what it was given
            if _looks_like_call(found, known):
                return True
            for name, item in found.items():
                if type(item) is dict or type(item) is list:
                    if name not in KEYS_WITHOUT_CALLS:
                        waiting.append(item)
                    elif holds_written_call(item, known):
                        return True
        elif type(found) is list:
            waiting += [item for item in found[:_MAX_LOOKED_AT] if type(item) is dict or type(item) is list]
    return True


def _text_may_hold_call(key: str, text: str, known: KnownCalls) -> bool:
    """The same for a text: a column of a database often has JSON in it. An answer that is JSON may have actions and
    inputs of its own, so that elsewhere than under the names of calls only what is written like one counts."""
    if text.lstrip()[:1] in ("{", "["):
        opened, not_json = parse_arguments(text)
        if not not_json:
            return may_hold_call(key, opened, known) if key in _NAMES_OF_CALLS else holds_written_call(opened, known)
    return key in KEYS_OF_CALLS and bool(text.strip())


def may_hold_call_under(key: str, value: Any, known: KnownCalls = _NONE_KNOWN) -> bool:
    """The same for what stands under a key that was left out: some are known to hold no call."""
    return holds_written_call(value, known) if key in KEYS_WITHOUT_CALLS else may_hold_call(key, value, known)


def holds_written_call(value: Any, known: KnownCalls) -> bool:
    """Whether something in a value is written like a call in one of the dialects, and not under a known id.

    Stricter than `may_hold_call`: for data, as results of tools are, which may have names, actions and inputs of its
    own.
    """
    waiting: list[Any] = [value]
    while waiting:
        found = waiting.pop()
        if type(found) is dict:
            if _is_written_call(found, known):
                return True
            waiting += [item for item in found.values() if type(item) is dict or type(item) is list]
        elif type(found) is list:
            waiting += [item for item in found if type(item) is dict or type(item) is list]
    return False


def calls_in_arguments(calls: Iterable[tuple[str, Any]], *at: str | int) -> list[Note]:
    """A note for the first of these calls, which are names with arguments, that calls other tools by its arguments.

    Models write one call with several others in it (`multi_tool_use.parallel`, batch tools). Where whoever ran them
    lists them as well, they are known.
    """
    for index, (name, arguments) in enumerate(calls):
        if type(arguments) is not dict or _BATCHES.isdisjoint(arguments):
            continue
        made = KnownCalls.of((), [ToolCall("", other, given) for other, given in calls])
        for key in _BATCHES.intersection(arguments):
            listed = arguments[key] if type(arguments[key]) is list else [arguments[key]]
            if any(type(item) is dict and _is_unknown_call(item, made) for item in listed):
                text = f"the arguments of {name[:40]!r} hold calls of other tools"
                return [Note(CALLS_IN_ARGUMENTS, pointer(*at, index, "arguments", key), text)]
    return []


def _is_unknown_call(value: dict[str, Any], made: KnownCalls) -> bool:
    if type(name := value.get("recipient_name")) is str:
        value = {**value, "recipient_name": name.removeprefix("functions.")}
    named = _named(value)
    return _has_name(value) and any(key in named for key in _ARGUMENTS_OF_CALLS) and not _is_known(value, made)


def _is_written_call(value: dict[str, Any], known: KnownCalls) -> bool:
    for key in KEYS_OF_CALLS.intersection(value):
        listed = value[key] if type(value[key]) is list else [value[key]]
        if any(type(item) is dict and _has_name(item) and not _is_known(item, known) for item in listed):
            return True
    if type(code := value.get("executableCode", value.get("executable_code"))) is dict and "code" in code:
        return True
    # Vercel's invocations, and calls of `output_messages`: neither has a type.
    invoked = _has_text(value, "toolCallId") and _has_text(value, "toolName")
    if (invoked or (_has_text(value, "tool") and not _ARGUMENTS.isdisjoint(value))) and not _is_known(value, known):
        return True
    kind = value.get("type", value.get("part_kind"))  # Pydantic AI's
    if type(kind) is not str or _is_known(value, known):
        return False
    if kind in _HOSTED_CALLS or (kind.startswith("tool-") and "toolCallId" in value):
        return True
    if kind == "function":  # with parameters in place of arguments, it is a tool that can be called
        return _has_name(value) and "arguments" in _named(value)
    return _is_call_type(kind) and _has_name(value) and not _ARGUMENTS.isdisjoint(_named(value))


def _has_text(value: dict[str, Any], key: str) -> bool:
    return type(text := value.get(key)) is str and bool(text)


def _has_name(value: dict[str, Any]) -> bool:
    named = _named(value)
    return any(type(named.get(key)) is str and named[key] for key in NAMES_OF_TOOLS)


def calls_in_metadata(key: str, value: Any, *at: str | int, messages: Iterable[Message] = ()) -> Note | None:
    """The note for a key beside the messages that is kept as metadata, when it looks like calls that they lack."""
    if key in _DEFINITIONS and _are_offered(value):
        return None
    if key not in _DEFINITIONS and not may_hold_call_under(key, value):
        return None
    calls = [call for message in messages if type(message) is AssistantMessage for call in message.tool_calls()]
    known = KnownCalls.of(calls)
    if calls and (_are_known(value, known) if key in _DEFINITIONS else not may_hold_call_under(key, value, known)):
        return None
    return Note(CALLS_IN_METADATA, pointer(*at, key), "this looks like tool calls, but was not read")


def _looks_like_call(value: dict[str, Any], known: KnownCalls) -> bool:
    """Whether an object itself, not what is inside it, looks like a call or says that there was one."""
    for key in _NAMES_OF_CALLS.intersection(value):
        found = value[key]
        if found not in _SAYS_NOTHING and not _are_known(found, known) and not _are_defined(found):
            return True
    for key in _KEYS_OF_RESULTS.intersection(value):
        if type(result := value[key]) is dict and _has_name(result) and not _is_known_result(result, known):
            return True
    if type(kind := value.get("type")) is str and _is_call_type(kind):
        # What is said of the call may stand one level further inside.
        return not any(type(inside) is dict and _is_known(inside, known) for inside in value.values())
    if type(event := value.get("event")) is str and event.startswith("on_tool_"):
        return True  # LangChain's events
    if not any(type(value.get(key)) is str for key in NAMES_OF_TOOLS):
        return False
    if not _ARGUMENTS.isdisjoint(value):
        return True
    parameters = value.get("parameters")
    return type(parameters) is dict and not (
        _is_schema(parameters) or "description" in value or not _SETTINGS.isdisjoint(parameters)
    )


def _is_known_result(result: dict[str, Any], known: KnownCalls) -> bool:
    return _is_known(result, known) or any(known.has_made(str(result.get(key)), {}) for key in NAMES_OF_TOOLS)


def _are_known(value: Any, known: KnownCalls) -> bool:
    items = value if type(value) is list else [value]
    return bool(known) and all(type(item) is dict and _is_known(item, known) for item in items)


def _is_known(value: dict[str, Any], known: KnownCalls) -> bool:
    """Whether this is, or belongs to, a call that was read elsewhere; one of another name is another call."""
    if not known:
        return False
    named = _named(value)
    names = [name for key in NAMES_OF_TOOLS if type(name := named.get(key)) is str and name]
    ids = [found for key in _IDS if type(found := value.get(key)) is str and found]
    for call_id in ids:
        if call_id in known.names:
            return not names or known.is_one_of(call_id, names)
    if not names:
        # A piece of a call in a stream, of which the first says what it belongs to.
        return not ids and not _ARGUMENTS.isdisjoint(named) and _OF_FRAGMENTS.issuperset(value)
    if type(event := value.get("event")) is str and event.startswith("on_tool_"):
        return any(known.has_made(name, {}) for name in names)
    return any(known.has_made(name, named) for name in names) and _looks_like_call(value, _NONE_KNOWN)


def _are_defined(value: Any) -> bool:
    """Whether these are tools with what they take: somebody wrote down what may be called, under any name."""
    return type(value) is list and all(type(item) is dict and _is_defined(item) for item in value)


def _is_defined(tool: dict[str, Any]) -> bool:
    named = _named(tool)
    schemas = [named[key] for key in _SCHEMAS if type(named.get(key)) is dict]
    return any(map(_is_schema, schemas)) and not any(key in named for key in _ARGUMENTS)


def _are_offered(value: Any) -> bool:
    """Whether what stands under a key for definitions is that; a tool with arguments is a call."""
    if type(value) is list:
        return all(type(item) is not dict or _is_offered(item) for item in value)
    return not may_hold_call("", value)


def _is_offered(tool: dict[str, Any]) -> bool:
    named = _named(tool)
    described = "description" in named
    if any(key in named and not (_holds_schemas(named[key]) and (named[key] or described)) for key in _ARGUMENTS):
        return False
    parameters = named.get("parameters")
    if type(parameters) is dict and not (_is_schema(parameters) or _holds_schemas(parameters)):
        return described or not parameters
    return not may_hold_call("", {key: inside for key, inside in tool.items() if key not in _OF_DEFINITIONS})


def _named(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    return function if type(function) is dict else tool


def _holds_schemas(arguments: Any) -> bool:
    """Whether arguments are what a tool takes: each is described, and none is given."""
    return type(arguments) is dict and all(
        type(item) is dict and not _SCHEMA_KEYS.isdisjoint(item) for item in arguments.values()
    )


def _is_call_type(kind: str) -> bool:
    kind = kind.lower().replace("-", "_")
    return kind not in _NOT_TOOLS and (
        kind.endswith(_CALL_TYPE_ENDINGS) or kind.startswith("tool_") or kind == "dynamic_tool"
    )


def _is_schema(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return type(value.get("properties")) is dict or (type(kind) is str and kind.lower() == "object")


def note_unseen(data: bytes, reading: Reading) -> Reading:
    """The reading, with notes for all that its reader did not see."""
    return note_repeated_keys(data, note_calls_in_metadata(reading))


def note_calls_in_metadata(reading: Reading) -> Reading:
    """The reading, with a note for everything beside its messages that looks like calls."""
    if not any(note.code == CALLS_IN_METADATA for note in reading.notes):
        run = reading.transcript
        found = [calls_in_metadata(key, value, messages=run.messages) for key, value in run.metadata.items()]
        reading.notes += [note for note in found if note is not None]
    return reading


def note_repeated_keys(data: bytes, reading: Reading) -> Reading:
    """The reading, with a note for keys that occur twice in an object of its record: a document, lines or events."""
    if any(note.code == KEY_TWICE_IN_OBJECT for note in reading.notes):
        return reading
    if excess(data) is not None:
        return (
            reading  # nothing but its answer was read, and its reader has looked for a second one: `note_other_answer`
        )
    repeated = repeated_keys(data)
    if repeated is None:
        lines = [repeated_keys(line.removeprefix(b"data:")) for line in data.splitlines()]
        repeated = [*dict.fromkeys([key for keys in lines for key in keys or ()])]
    if repeated:
        reading.notes.append(_twice(repeated))
    return reading


def _twice(repeated: list[str]) -> Note:
    names = ", ".join([repr(name[:40]) for name in repeated[:_SHOWN]])
    return Note(KEY_TWICE_IN_OBJECT, "", f"{names} {'occurs' if len(repeated) == 1 else 'occur'} twice in one object")


def note_other_answer(data: bytes, key: str, answer: str, tally: NoteTally) -> None:
    """Note when the outermost object has a key besides with another value than this answer, its last one.

    For records of which nothing else is read. The values of the others are not opened: a decoder looks at a field each
    time that it occurs, and this one takes nothing but the answer.
    """
    same = msgspec.defstruct("Same", [(key, Enum("Answer", {"given": answer}))])
    try:
        wire.decode(data, msgspec.json.Decoder(same), [])
    except SeatrialError:
        tally.notes.append(_twice([key]))
