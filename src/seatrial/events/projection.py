"""What a client of a stream holds, as our transcript.

| AG-UI | transcript |
| --- | --- |
| reasoning messages in front of an assistant message | `ReasoningBlock`s at its head; on their own, a message of their own |
| `encryptedValue` of reasoning, a tool call, an assistant message | `ReasoningDetailsBlock` with one `reasoning.encrypted` item of format `unknown` |
| text of an assistant message | `TextBlock`, and `ThinkingBlock` for what stands in hidden tags |
| tool calls | `ToolCall`; arguments that are not JSON are kept by `unparsed_arguments` |
| tool message | `ToolResultMessage`; `error` makes it an error |
| developer message | `SystemMessage`, with a note |
| activity | `CustomMessage` with the activity type as `kind` and the content as `payload` |
| RUN_ERROR, outcome `cancelled` | stop reason `error` or `aborted` of the message that the run ended in |
| `result` of RUN_FINISHED | the answer, when it is a string; else `metadata.result` |

Where `metadata.seatrial` says more (see `remainder`), that counts.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.drafts import Origin
from seatrial.events.fold import Folded
from seatrial.events.layout import (
    KEY,
    AssistantRemainder,
    CallRemainder,
    CustomRemainder,
    ImageRemainder,
    MessageRemainder,
    ReasoningRemainder,
    RunRemainder,
    ToolRemainder,
    UserRemainder,
    assistant_blocks,
    ignored,
    nothing,
    remainder,
    spoken,
    user_blocks,
)
from seatrial.events.snapshots import is_one_of
from seatrial.events.violation import quoted
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    Note,
    ReasoningBlock,
    ReasoningDetailsBlock,
    ReasoningEncrypted,
    ReasoningFormat,
    RunIdentity,
    StopReason,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    Usage,
    UserBlock,
    UserMessage,
    Weight,
    note_code,
    pointer,
)
from seatrial.transcript.arguments import arguments_note, encoded_twice_note, read_arguments
from seatrial.transcript.call_facts import CallFacts, PlacedFacts
from seatrial.transcript.pairing import OpenCalls, another_tool_note
from seatrial.transcript.thinking import UNCLOSED_THINKING_TAG

DEVELOPER_AS_SYSTEM = note_code("developer_as_system", "A developer message is read as a system message.", "harmless")
MESSAGE_NAME_DROPPED = note_code(
    "message_name_dropped", "A message has a name, for which a transcript has no field.", "harmless"
)
MESSAGE_METADATA_DROPPED = note_code(
    "message_metadata_dropped", "A message or tool call has metadata, for which a transcript has no field.", "look"
)
ENCRYPTED_VALUE_DROPPED = note_code(
    "encrypted_value_dropped", "A message that is not the assistant's has an encrypted value; it was dropped.", "look"
)
SUBAGENT_FLATTENED = note_code(
    "subagent_flattened",
    "Messages of subagents are among those of the agent, and are not marked as theirs.",
    "harmless",
)
MEDIA_PART_DROPPED = note_code(
    "media_part_dropped", "A content part is neither text nor an image with data or a URL; it was dropped.", "serious"
)
TOOL_NAME_UNKNOWN = note_code(
    "tool_name_unknown", "A tool result answers no known call, so its tool has no name.", "serious"
)

_R = TypeVar("_R", bound=msgspec.Struct)


def to_transcript(
    folded: Folded, notes: list[Note] | None = None, facts: list[PlacedFacts] | None = None
) -> Transcript:
    """The transcript of a fold; what it cannot hold is noted, with the index of the event as the pointer.

    `facts` gets what is known of calls beside it.
    """
    projection = _Projection(folded, [] if notes is None else notes)
    for message, origin in _with_left_out(folded):
        projection.take(message, origin)
    messages = projection.messages()
    if facts is not None and projection.facts:
        facts += _placed(messages, projection.facts)
    given = [index for index, message in enumerate(messages) if id(message) in projection.given]
    transcript = Transcript(messages=messages, usage=total_usage(folded.usage), given=given)
    started, terminal = folded.started, folded.terminal
    if started is not None and started.run_id:
        transcript.identity = identity_of(started)
    if terminal is None:
        return transcript
    transcript.metadata = {}
    if isinstance(terminal, t.RunError):
        if terminal.code is not UNSET:
            transcript.metadata["error_code"] = terminal.code
    elif type(terminal.result) is str:
        transcript.answer = terminal.result
    elif terminal.result is not UNSET:
        transcript.metadata["result"] = terminal.result
    for field, value in _fields(remainder(terminal.metadata, RunRemainder, -1, projection.notes)):
        if field != "partial":
            setattr(transcript, field, value)
    return transcript


def identity_of(started: t.RunStarted) -> RunIdentity:
    """The identity that a RUN_STARTED names."""
    return RunIdentity(
        run_id=started.run_id,
        parent_run_id=None if started.parent_run_id is UNSET else started.parent_run_id,
        conversation_id=started.thread_id,
    )


def total_usage(usages: Sequence[t.TokenUsage]) -> Usage | None:
    """The token counts of all models together; None when what one of them read or wrote is not known."""
    if not usages or any(usage.input_tokens is UNSET or usage.output_tokens is UNSET for usage in usages):
        return None
    read = sum(usage.input_tokens or 0 for usage in usages)
    cached = sum(usage.cached_input_tokens or 0 for usage in usages)
    stored = sum(usage.cache_write_input_tokens or 0 for usage in usages)
    # In AG-UI, as with most providers, the input tokens include those of the cache.
    apart = cached + stored if cached + stored <= read else 0
    return Usage(
        input_tokens=read - apart,
        output_tokens=sum(usage.output_tokens or 0 for usage in usages),
        cache_creation_input_tokens=stored,
        cache_read_input_tokens=cached,
    )


def _split(
    message: agui.Message, origin: Origin, given_calls: dict[str, list[agui.ToolCall]], counts: Counter[str]
) -> tuple[agui.Message | None, agui.Message | None]:
    """What was given of a message, and what came of the run: one of both, but for an assistant that was added to.

    `counts` are how many of the given calls of each id may be in it: a further one, or another one, came of the run.
    """
    calls = agui.tool_calls_of(message)
    known: list[agui.ToolCall] = []
    made: list[agui.ToolCall] = []
    used: Counter[str] = Counter()
    for call in calls:
        same = origin.given or call.id not in counts or is_one_of(call, given_calls[call.id])
        if same and used[call.id] < counts[call.id]:
            used[call.id] += 1
            known.append(call)
        else:
            made.append(call)
    if not isinstance(message, agui.AssistantMessage) or not (made or origin.continued is not None or not origin.given):
        return (message, None) if origin.given else (None, message)
    if len(made) == len(calls) and not origin.given:
        return None, message
    if origin.given:
        text = _plain(message.content)
        said = UNSET if origin.continued is None else text[origin.continued :]
        given = msgspec.structs.replace(message, content=text[: origin.continued], tool_calls=known)
        return given, agui.AssistantMessage(id=message.id, content=said, tool_calls=made)
    given = agui.AssistantMessage(id=message.id, tool_calls=known)
    if not made and not message.content:
        return given, None
    return given, msgspec.structs.replace(message, tool_calls=made)


_Pair: TypeAlias = tuple[agui.Message, Origin]


def _with_left_out(folded: Folded) -> list[_Pair]:
    """The messages in the order of the last snapshot, with what snapshots left out: calls, and results behind them."""
    taken = list(zip(folded.messages, folded.origins, strict=True))
    if folded.ranks:
        taken = _ranked(taken, folded.ranks)
    if not folded.left_out:
        return taken
    taken = _with_calls_left_out(taken, folded.left_out)
    callers = {call.id: at for at, (message, _) in enumerate(taken) for call in agui.tool_calls_of(message)}
    late: dict[str, list[_Pair]] = {}
    for message, origin in folded.left_out:
        if isinstance(message, agui.ToolMessage):
            late.setdefault(message.tool_call_id, []).append((message, origin))
    ordered: list[_Pair] = []
    for at, (message, origin) in enumerate(taken):
        ordered.append((message, origin))
        for call in agui.tool_calls_of(message):
            if callers[call.id] == at:
                ordered += late.pop(call.id, ())
    return [*ordered, *[pair for results in late.values() for pair in results]]


def _ranked(taken: list[_Pair], ranks: dict[str, int]) -> list[_Pair]:
    """The messages of the last snapshot in its order, each with the later results that stand behind it."""
    groups: list[list[_Pair]] = []
    for message, origin in taken:
        if groups and isinstance(message, agui.ToolMessage) and message.id not in ranks:
            groups[-1].append((message, origin))
        else:
            groups.append([(message, origin)])
    places = [at for at, group in enumerate(groups) if group[0][0].id in ranks]
    ordered = sorted([groups[at] for at in places], key=lambda group: ranks[group[0][0].id])
    for at, group in zip(places, ordered, strict=True):
        groups[at] = group
    return [pair for group in groups for pair in group]


def _with_calls_left_out(taken: list[_Pair], left_out: list[_Pair]) -> list[_Pair]:
    """The messages, and the calls that snapshots left out and that did not come back, before what came after them."""
    back = {call.id for message, _ in taken for call in agui.tool_calls_of(message)}
    last = {call.id: call for message, _ in left_out for call in agui.tool_calls_of(message)}
    waiting: deque[_Pair] = deque()
    for message, origin in sorted(left_out, key=lambda pair: pair[1].index):
        calls = [call for call in agui.tool_calls_of(message) if call.id not in back and last[call.id] is call]
        if calls:
            waiting.append((msgspec.structs.replace(message, tool_calls=calls), origin))
    merged: list[_Pair] = []
    for pair in taken:
        while waiting and pair[1].index > waiting[0][1].index:
            merged.append(waiting.popleft())
        merged.append(pair)
    return [*merged, *waiting]


def default_stop_reason(has_calls: bool) -> StopReason:
    """The stop reason of a message that ended well."""
    return _TOOL_USE if has_calls else _END_TURN


def encrypted_details(data: str, item_id: str | None = None) -> ReasoningDetailsBlock:
    """The block that stands for an `encryptedValue`."""
    item = ReasoningEncrypted(id=item_id, format=ReasoningFormat.UNKNOWN, data=data)
    return ReasoningDetailsBlock([msgspec.Raw(wire.encode(item))])


def image_block(part: agui.Part, at: int, notes: list[Note]) -> ImageBlock | None:
    """The image in an image part, or None."""
    source = part.get("source")
    if type(source) is not dict or type(source.get("value")) is not str:
        return None
    value, mime_type = source["value"], source.get("mimeType")
    mime_type = mime_type if type(mime_type) is str else None
    if source.get("type") == "data":
        image = ImageBlock(f"data:{mime_type or ''};base64,{value}", mime_type)
    elif source.get("type") == "url":
        image = ImageBlock(value, mime_type)
    else:
        return None
    for field, value in _fields(remainder(part.get("metadata"), ImageRemainder, at, notes)):
        setattr(image, field, value)
    return image


class _Projection:
    """The messages of a fold, one after the other."""

    def __init__(self, folded: Folded, notes: list[Note]) -> None:
        self.notes = notes
        self.given: set[int] = set()
        """Which of the messages were given, by identity."""
        self.facts: dict[int, CallFacts] = {}
        """What is known of calls and of results beside them, by identity."""
        self._given_calls = folded.given_calls
        self._counts = Counter({call_id: len(calls) for call_id, calls in self._given_calls.items()})
        pairs = zip(folded.messages, folded.origins, strict=True) if self._given_calls else ()
        self._not_covered = self._counts - Counter(
            [call.id for message, origin in pairs if origin.given for call in agui.tool_calls_of(message)]
        )
        """Given calls that are in no given message: some other message may have them."""
        self._failed_calls = folded.failed
        self._ranks = folded.ranks
        self._reasoning_given = False
        self._ended = folded.terminal is not None
        self._calls: OpenCalls[tuple[ToolCall, int]] = OpenCalls()
        """The calls so far, by their ids in the stream, each with which one it is of those that share its id."""
        self._sharing: Counter[str] = Counter()
        self._messages: list[Message] = []
        self._placed: list[tuple[int, Message]] = []
        """Messages that say at which index they stand."""
        self._reasoning: list[agui.ReasoningMessage] = []
        self._reasoning_origin: Origin | None = None
        self._subagents_noted = False
        if folded.error is not None:
            self._messages.append(_failed(folded.error))

    def take(self, message: agui.Message, origin: Origin) -> None:
        """Take the next message, of which a part may have been given and another done."""
        if self._given_calls or origin.given:
            counts = self._counts if origin.given else self._not_covered
            given, done = _split(message, origin, self._given_calls, counts)
            if given is not None:
                self._take_part(given, Origin(origin.index, origin.timestamp, given=True))
            if done is not None:
                self._take_part(done, msgspec.structs.replace(origin, given=False))
        else:
            self._take_part(message, origin)
        if origin.error_after is not None:
            self._flush_reasoning()
            self._messages.append(_failed(origin.error_after))

    def _take_part(self, message: agui.Message, origin: Origin) -> None:
        if origin.given != self._reasoning_given:
            self._flush_reasoning()
            self._reasoning_given = origin.given
        before, placed = len(self._messages), len(self._placed)
        self._take_whole(message, origin)
        if origin.given:
            made = [*self._messages[before:], *[late for _, late in self._placed[placed:]]]
            self.given.update(map(id, made))

    def _take_whole(self, message: agui.Message, origin: Origin) -> None:
        self._note_leftovers(message, origin)
        if isinstance(message, agui.ReasoningMessage):
            self._reasoning.append(message)
            if self._reasoning_origin is None or origin.error is not None or origin.aborted:
                self._reasoning_origin = origin
            if origin.error is not None or origin.aborted:
                self._flush_reasoning()
        elif isinstance(message, agui.AssistantMessage):
            self._messages.append(self._assistant(message, origin))
        else:
            self._flush_reasoning()
            if isinstance(message, agui.ToolMessage):
                self._tool(message, origin)
            else:
                self._messages.append(self._other(message, origin))

    def messages(self) -> list[Message]:
        self._flush_reasoning()
        return _merged(self._messages, self._placed)

    def _other(self, message: agui.Message, origin: Origin) -> Message:
        if isinstance(message, agui.UserMessage):
            return self._user(message, origin)
        if isinstance(message, agui.ActivityMessage):
            custom = self._remainder(message, CustomRemainder, origin)
            payload: Any = message.content
            if custom.wrapped and type(payload) is dict:
                payload = payload.get("value")
            return CustomMessage(message.activity_type, payload, _timestamp(custom, origin))
        if isinstance(message, agui.DeveloperMessage):
            self._note(DEVELOPER_AS_SYSTEM, origin, "a developer message is read as a system message")
        rest = self._remainder(message, MessageRemainder, origin)
        return SystemMessage(_plain(message.content), _timestamp(rest, origin))

    def _user(self, message: agui.UserMessage, origin: Origin) -> UserMessage:
        rest = self._remainder(message, UserRemainder, origin)
        content: str | list[UserBlock]
        if type(message.content) is list:
            content = self._blocks(message.content, origin)
        else:
            content = _plain(message.content)
            if rest.blocks is not None:
                blocks = user_blocks(content, rest.blocks)
                if blocks is None:
                    self.notes.append(ignored(origin.index, "its blocks do not fit the content"))
                else:
                    content = blocks
        return UserMessage(content, _timestamp(rest, origin))

    def _assistant(self, message: agui.AssistantMessage, origin: Origin) -> AssistantMessage:
        rest = self._remainder(message, AssistantRemainder, origin)
        content = _plain(message.content)
        reasoning = [self._reasoning_blocks(item, origin) for item in self._reasoning]
        self._reasoning, self._reasoning_origin = [], None
        calls: list[list[AssistantBlock]] = []
        turn: list[tuple[str, str, tuple[ToolCall, int]]] = []
        for call in agui.tool_calls_of(message):
            read = self._call(call, origin)
            calls.append(
                [read] if call.encrypted_value is UNSET else [encrypted_details(call.encrypted_value, read.id), read]
            )
            self._sharing[call.id] += 1
            turn.append((call.id, read.name, (read, self._sharing[call.id])))
        self._calls.add(turn)
        blocks: list[AssistantBlock] | None = None
        if rest.blocks is not None:
            blocks = assistant_blocks(content, reasoning, calls, rest.blocks)
            if blocks is None:
                self.notes.append(ignored(origin.index, "its blocks do not fit the content"))
        if blocks is None:
            said, unclosed = spoken(content)
            if unclosed:
                self._note(UNCLOSED_THINKING_TAG, origin, "the last thought has no closing tag; it is kept as thinking")
            blocks = [block for item in reasoning for block in item]
            blocks += said
            blocks += [block for call in calls for block in call]
        if message.encrypted_value is not UNSET:
            blocks.insert(0, encrypted_details(message.encrypted_value))
        stop_reason, error = self._end(origin, has_calls=bool(calls))
        return AssistantMessage(
            blocks,
            rest.stop_reason or stop_reason,
            error_message=error if rest.error_message is None else rest.error_message,
            timestamp=_timestamp(rest, origin),
            usage=rest.usage,
        )

    def _end(self, origin: Origin, *, has_calls: bool) -> tuple[StopReason, str | None]:
        if origin.error is not None:
            return StopReason.ERROR, origin.error
        if origin.aborted:
            return StopReason.ABORTED, None
        if origin.open and not self._ended:
            return StopReason.OTHER, None
        return default_stop_reason(has_calls), None

    def _call(self, call: agui.ToolCall, origin: Origin) -> ToolCall:
        rest = remainder(call.metadata, CallRemainder, origin.index, self.notes)
        arguments, not_json, encoded_twice = read_arguments(call.function.arguments, as_text=rest.text)
        if not_json or encoded_twice:
            name = call.function.name
            note = arguments_note(arguments, "", name) if not_json else encoded_twice_note("", name)
            self._note(note.code, origin, note.message, note.weight)
        if call.metadata is not UNSET and call.metadata.keys() - {KEY}:
            self._note(MESSAGE_METADATA_DROPPED, origin, f"metadata of tool call {quoted(call.id)}")
        read = ToolCall(call.id if rest.id is None else rest.id, call.function.name, arguments)
        if rest.facts is not None:
            self.facts[id(read)] = rest.facts
        return read

    def _reasoning_blocks(self, message: agui.ReasoningMessage, origin: Origin) -> list[AssistantBlock]:
        blocks: list[AssistantBlock] = []
        value = message.encrypted_value
        if message.content or value is UNSET:
            blocks.append(ReasoningBlock(message.content))
        if value is not UNSET:
            details = None
            if self._remainder(message, ReasoningRemainder, origin).details:
                try:
                    details = wire.decode(value.encode("utf-8", "replace"), _DETAILS)
                except SeatrialError as error:
                    self.notes.append(ignored(origin.index, error.message))
            blocks.append(encrypted_details(value) if details is None else ReasoningDetailsBlock(details))
        return blocks

    def _flush_reasoning(self) -> None:
        """Reasoning that no assistant message follows is a message of its own."""
        origin = self._reasoning_origin
        if origin is not None:
            self._messages.append(self._assistant(agui.AssistantMessage(id=""), origin))
            if self._reasoning_given:
                self.given.add(id(self._messages[-1]))

    def _tool(self, message: agui.ToolMessage, origin: Origin) -> None:
        rest = self._remainder(message, ToolRemainder, origin)
        call, which = self._calls.take(message.tool_call_id, rest.tool_name or agui.tool_of(message)) or (None, 1)
        name = rest.tool_name
        said = agui.tool_of(message)
        if call is not None and said is not None and said != call.name:
            note = another_tool_note("", said, call.name)
            self._note(note.code, origin, note.message)
        if name is None:
            name = "" if call is None else call.name
            if call is None:
                text = f"there is no tool call {quoted(message.tool_call_id)} before its result"
                self._note(TOOL_NAME_UNKNOWN, origin, text)
        call_id = rest.tool_call_id
        if call_id is None:
            call_id = message.tool_call_id if call is None else call.id
        content: list[UserBlock] = [TextBlock(_plain(message.content))]
        if type(message.content) is list:
            content = self._blocks(message.content, origin)
        result = ToolResultMessage(
            call_id,
            name,
            content,
            is_error=rest.is_error or (message.metadata is not UNSET and agui.is_marked_failed(message.metadata)),
            narration=rest.narration,
            details=rest.details,
            timestamp=_timestamp(rest, origin),
        )
        if rest.facts is not None or rest.in_doubt:
            self.facts[id(result)] = rest.facts or CallFacts(status="unknown")
        # A snapshot may say less of a result than was said before.
        if message.id in self._ranks and (message.tool_call_id, which) in self._failed_calls:
            result.is_error = True
        if message.error is not UNSET and message.error:
            result.is_error = True
            if not result.plain_text():
                result.content = [TextBlock(message.error)]
            elif result.details is None:
                result.details = {"error": message.error}
        if rest.position is None or rest.position < 0:
            self._messages.append(result)
        else:
            self._placed.append((rest.position, result))

    def _blocks(self, parts: list[agui.Part], origin: Origin) -> list[UserBlock]:
        blocks: list[UserBlock] = []
        for part in parts:
            kind = part.get("type")
            block: UserBlock | None = None
            if kind == "text" and type(part.get("text")) is str:
                block = TextBlock(part["text"])
            elif kind == "image":
                block = image_block(part, origin.index, self.notes)
            if block is None:
                self._note(MEDIA_PART_DROPPED, origin, f"a part of kind {quoted(kind)} was dropped")
            else:
                blocks.append(block)
        return blocks

    def _remainder(self, message: agui.Message, kind: type[_R], origin: Origin) -> _R:
        if message.metadata is UNSET:
            return nothing(kind)
        return remainder(message.metadata, kind, origin.index, self.notes)

    def _note_leftovers(self, message: agui.Message, origin: Origin) -> None:
        if message.metadata is not UNSET and message.metadata.keys() - {KEY}:
            self._note(MESSAGE_METADATA_DROPPED, origin, f"metadata of message {quoted(message.id)}")
        if message.subagent_run_id is not UNSET and not self._subagents_noted:
            self._subagents_noted = True
            self._note(SUBAGENT_FLATTENED, origin, f"the first is message {quoted(message.id)}")
        if isinstance(message, agui.ActivityMessage):
            return
        if message.name is not UNSET:
            self._note(MESSAGE_NAME_DROPPED, origin, f"name {quoted(message.name)} of message {quoted(message.id)}")
        if message.encrypted_value is not UNSET and not isinstance(
            message, agui.AssistantMessage | agui.ReasoningMessage
        ):
            self._note(ENCRYPTED_VALUE_DROPPED, origin, f"encrypted value of message {quoted(message.id)}")

    def _note(self, code: str, origin: Origin, message: str, weight: Weight | None = None) -> None:
        self.notes.append(Note(code, pointer(origin.index) if origin.index >= 0 else "", message, weight))


def _merged(messages: list[Message], placed: list[tuple[int, Message]]) -> list[Message]:
    """The messages, with those that say at which index they stand put there."""
    merged: list[Message] = []
    others = iter(messages)
    for index, message in sorted(placed, key=lambda entry: entry[0]):
        merged += islice(others, min(max(0, index - len(merged)), len(messages)))
        merged.append(message)
    return [*merged, *others]


def _placed(messages: list[Message], facts: dict[int, CallFacts]) -> Iterator[PlacedFacts]:
    for index, message in enumerate(messages):
        said = message.tool_calls() if isinstance(message, AssistantMessage) else [message]
        for number, item in enumerate(said):
            if (known := facts.get(id(item))) is not None:
                yield PlacedFacts(index, known, number)


def _failed(error: str) -> AssistantMessage:
    return AssistantMessage([], StopReason.ERROR, error_message=error)


def _timestamp(rest: MessageRemainder, origin: Origin) -> int | None:
    return origin.timestamp if rest.timestamp is None else rest.timestamp


def _plain(content: Any) -> str:
    return content if type(content) is str else ""


def _fields(rest: msgspec.Struct) -> list[tuple[str, Any]]:
    """The fields that a remainder sets."""
    defaults = type(rest)()
    names = rest.__struct_fields__
    return [(name, getattr(rest, name)) for name in names if getattr(rest, name) is not getattr(defaults, name)]


_DETAILS = msgspec.json.Decoder(list[msgspec.Raw])
# Looking a member up in its enumeration takes as long as making the message that it is for.
_TOOL_USE = StopReason.TOOL_USE
_END_TURN = StopReason.END_TURN
