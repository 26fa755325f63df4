"""A transcript as events: a legal run whose fold is that transcript, exactly.

The events say in AG-UI's own terms what those can say, so that any client shows a sensible conversation; what is
left travels in `metadata.seatrial` (see `remainder`, and `layout` for blocks and prompted thinking):

| transcript | events |
| --- | --- |
| system, user and assistant messages | TEXT_MESSAGE_*; user images in metadata only, because no event streams them |
| reasoning, reasoning details | REASONING_MESSAGE_* in front of the message; details as its REASONING_ENCRYPTED_VALUE |
| tool calls and results | TOOL_CALL_*; an id that is empty, longer than 256 characters or taken gets another one |
| custom messages | ACTIVITY_SNAPSHOT with the kind as its type |
| a last message that ended in an error, or was aborted | RUN_ERROR, or RUN_FINISHED with outcome `cancelled` |
| answer, usage | `result` and `usage` of RUN_FINISHED |
| what is known of a call beside it: when it ran, how it ended, who ran it | metadata of the call, or of its result |
| that not all calls are known | metadata of the event that ends the run |
| given messages at the head | `input.messages` of RUN_STARTED; the indices of others in metadata |
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.fold import fold
from seatrial.events.layout import (
    AssistantParts,
    AssistantRemainder,
    CallRemainder,
    CustomRemainder,
    ImageRemainder,
    MessageRemainder,
    ReasoningRemainder,
    RunRemainder,
    ToolRemainder,
    UserRemainder,
    as_metadata,
    assistant_layout,
    user_text,
)
from seatrial.events.projection import default_stop_reason, encrypted_details, identity_of, image_block, total_usage
from seatrial.events.run_input import PROTOCOL_VERSION
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultBlock,
    ToolResultMessage,
    Transcript,
    Usage,
    UserMessage,
)
from seatrial.transcript.arguments import detect_unparsed, inside_text, parse_arguments
from seatrial.transcript.call_facts import CallFacts, PlacedFacts
from seatrial.transcript.pairing import OpenCalls

MAX_ID = 256
_MAX_SAFE = 2**53 - 1
_ABORTED = StopReason.ABORTED  # which it takes long to look up


def unfold(
    transcript: Transcript,
    *,
    thread_id: str,
    run_id: str,
    timestamp: int | UnsetType = UNSET,
    facts: Iterable[PlacedFacts] = (),
    partial: str | None = None,
) -> list[t.Event]:
    """A run of the agent whose fold is the transcript. Ids have 1 to 256 characters.

    `timestamp` is for the events that the transcript has none for; `facts` are those of its calls; `partial` says why
    not all calls of the run are in it.
    """
    identity = transcript.identity
    parent = UNSET if identity is None or identity.parent_run_id is None else identity.parent_run_id
    started = t.RunStarted(
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=PROTOCOL_VERSION,
        parent_run_id=parent,
        timestamp=timestamp,
    )
    unfolding = _Unfolding(transcript, run_id, timestamp, facts)
    head = _given_head(transcript)
    if head:
        unfolding.give(transcript.messages[:head])
        given = msgspec.to_builtins(fold(unfolding.events).messages)
        started.input = {"threadId": thread_id, "runId": run_id, "messages": given}
        unfolding.events = []
    unfolding.events.append(started)
    unfolding.take(transcript.messages[head:], head)
    unfolding.events.append(_end(transcript, started, head, partial))
    return unfolding.events


def _given_head(transcript: Transcript) -> int:
    """How many messages at the head of a transcript were given."""
    return next((at for at, index in enumerate(transcript.given) if at != index), len(transcript.given))


class _Unfolding:
    """The events so far, and the ids in them."""

    def __init__(
        self, transcript: Transcript, run_id: str, timestamp: int | UnsetType, facts: Iterable[PlacedFacts]
    ) -> None:
        self.events: list[t.Event] = []
        self._now = timestamp
        # Long run ids are cut so that the ids made of them stay within the limit.
        self._prefix = run_id[:200]
        self._messages = transcript.messages
        self._facts = {(placed.message, placed.call): placed.facts for placed in facts}
        self._calls: OpenCalls[_Call] = OpenCalls()
        self._used: set[str] = set()
        self._generated = 0
        self._giving = False
        """Whether the messages at hand are given ones, for which there are no events."""
        self._head = ""
        """Id of the last message that is no tool result: only behind that one does the next result come last."""

    def give(self, messages: list[Message]) -> None:
        self._giving = True
        self.take(messages)
        self._giving = False

    def take(self, messages: list[Message], start: int = 0) -> None:
        prefix, last = self._prefix, len(self._messages) - 1
        for position, message in enumerate(messages, start):
            message_id = f"{prefix}-m{position}"
            if type(message) is AssistantMessage:
                self._assistant(message, message_id, position, is_last=position == last)
            elif type(message) is ToolResultMessage:
                self._result(message, message_id, position)
            elif type(message) is UserMessage:
                self._user(message, message_id)
            elif type(message) is SystemMessage:
                self._text(message_id, "system", message.content, message, None)
            elif type(message) is CustomMessage:
                self._custom(message, message_id)
            else:
                raise TypeError(f"a {type(message).__name__} is no message")

    def _text(
        self,
        message_id: str,
        role: t.TextRole,
        content: str,
        message: SystemMessage | UserMessage | AssistantMessage,
        rest: MessageRemainder | None,
    ) -> None:
        now = begun = self._now
        if message.timestamp is not None:
            rest = MessageRemainder() if rest is None else rest
            begun = _timestamp(message, rest, now, self._giving)
        metadata = UNSET if rest is None else as_metadata(rest)
        self._head = message_id
        events = self.events
        events.append(t.TextMessageStart(message_id=message_id, role=role, timestamp=begun))
        if content:
            events.append(t.TextMessageContent(message_id=message_id, delta=content, timestamp=now))
        events.append(t.TextMessageEnd(message_id=message_id, metadata=metadata, timestamp=now))

    def _user(self, message: UserMessage, message_id: str) -> None:
        if isinstance(message.content, str):
            self._text(message_id, "user", message.content, message, None)
        else:
            text, layout = user_text(message.content)
            self._text(message_id, "user", text, message, UserRemainder(blocks=layout))

    def _assistant(self, message: AssistantMessage, message_id: str, position: int, *, is_last: bool) -> None:
        parts = AssistantParts(message.content)
        for index, (text, details) in enumerate(parts.reasoning):
            self._reasoning(f"{message_id}-r{index}", text, details)
        rest: AssistantRemainder | None = None
        as_usual = message.stop_reason is default_stop_reason(bool(parts.calls))
        if not (as_usual and parts.is_plain and message.usage is None and message.error_message is None):
            rest = AssistantRemainder(usage=message.usage)
            if not parts.is_plain:
                rest.blocks = assistant_layout(message.content)
            # How the run ends says how its last message ended.
            if not (is_last and (_failed(message) or _aborted(message))):
                rest.error_message = message.error_message
                if not as_usual:
                    rest.stop_reason = message.stop_reason
        self._text(message_id, "assistant", parts.text, message, rest)
        if parts.calls:
            facts = [self._facts.get((position, number)) for number in range(len(parts.calls))]
            self._calls.add(
                [
                    (call.id, call.name, self._call(call, message_id, said))
                    for call, said in zip(parts.calls, facts, strict=True)
                ]
            )

    def _reasoning(self, message_id: str, text: ReasoningBlock | None, details: ReasoningDetailsBlock | None) -> None:
        value, marked = _encrypted(details) if details is not None else (UNSET, False)
        now = self._now
        self.events.append(t.ReasoningMessageStart(message_id=message_id, timestamp=now))
        if text is not None and text.text:
            self.events.append(t.ReasoningMessageContent(message_id=message_id, delta=text.text, timestamp=now))
        metadata = as_metadata(ReasoningRemainder(details=marked))
        self.events.append(t.ReasoningMessageEnd(message_id=message_id, metadata=metadata, timestamp=now))
        if value is not UNSET:
            self.events.append(
                t.ReasoningEncryptedValue(subtype="message", entity_id=message_id, encrypted_value=value, timestamp=now)
            )

    def _call(self, call: ToolCall, message_id: str, facts: CallFacts | None) -> _Call:
        wire_id = call.id
        if not 1 <= len(wire_id) <= MAX_ID or wire_id in self._used:
            wire_id = self._new_id()
        self._used.add(wire_id)
        rest = CallRemainder(None if wire_id == call.id else call.id, _looks_encoded(call.arguments), facts)
        metadata = as_metadata(rest)
        text = _argument_text(call.arguments)
        now = self._now
        self.events += [
            t.ToolCallStart(
                tool_call_id=wire_id,
                tool_call_name=call.name,
                parent_message_id=message_id,
                metadata=metadata,
                timestamp=now,
            ),
            t.ToolCallArgs(tool_call_id=wire_id, delta=text, timestamp=now),
            t.ToolCallEnd(tool_call_id=wire_id, timestamp=now),
        ]
        return _Call(wire_id, call.name, message_id)

    @cached_property
    def _taken(self) -> set[str]:
        """Every id in the transcript; hardly ever asked for."""
        assistants = [message for message in self._messages if isinstance(message, AssistantMessage)]
        return {call.id for message in assistants for call in message.tool_calls()}

    def _new_id(self) -> str:
        while True:
            self._generated += 1
            made = f"{self._prefix}-c{self._generated}"
            if made not in self._taken and made not in self._used:
                return made

    def _result(self, message: ToolResultMessage, message_id: str, position: int) -> None:
        rest = ToolRemainder(is_error=message.is_error, narration=message.narration, details=message.details)
        rest.facts = self._facts.get((position, 0))
        call = self._calls.take(message.tool_call_id, message.tool_name)
        if call is not None:
            wire_id = call.wire_id
            if message.tool_name != call.name:
                rest.tool_name = message.tool_name
            if call.message_id != self._head:
                rest.position = position
        else:
            rest.tool_name = message.tool_name
            wire_id = message.tool_call_id
            if not 1 <= len(wire_id) <= MAX_ID or wire_id in self._used:
                wire_id = self._new_id()
                rest.tool_call_id = message.tool_call_id
        self.events.append(
            t.ToolCallResult(
                message_id=message_id,
                tool_call_id=wire_id,
                content=_result_content(message.content),
                timestamp=_timestamp(message, rest, self._now, self._giving),
                metadata=as_metadata(rest),
            )
        )

    def _custom(self, message: CustomMessage, message_id: str) -> None:
        self._head = message_id
        rest = CustomRemainder(wrapped=type(message.payload) is not dict)
        self.events.append(
            t.ActivitySnapshot(
                message_id=message_id,
                activity_type=message.kind,
                content={"value": message.payload} if rest.wrapped else message.payload,
                timestamp=_timestamp(message, rest, self._now, self._giving),
                metadata=as_metadata(rest),
            )
        )


class _Call(msgspec.Struct):
    wire_id: str
    name: str
    message_id: str
    """Of the message that made it."""


def _end(transcript: Transcript, started: t.RunStarted, head: int, partial: str | None) -> t.RunFinished | t.RunError:
    """The event that ends the run, with all that is to be said of the whole of it."""
    rest = RunRemainder(cost_usd=transcript.cost_usd, duration_ms=transcript.duration_ms, partial=partial)
    if len(transcript.given) > head:
        rest.given = transcript.given
    if transcript.metadata:
        rest.metadata = transcript.metadata
    identity = transcript.identity
    if identity is None or identity != identity_of(started):
        rest.identity = identity
    usage: list[t.TokenUsage] | UnsetType = UNSET
    if transcript.usage is not None:
        usage = [_token_usage(transcript.usage)]
        if total_usage(usage) != transcript.usage:
            usage = UNSET
            rest.usage = transcript.usage
    last = transcript.messages[-1] if transcript.messages else None
    if isinstance(last, AssistantMessage) and _failed(last):
        rest.answer = transcript.answer
        return t.RunError(
            message=last.error_message or "", usage=usage, metadata=as_metadata(rest), timestamp=started.timestamp
        )
    outcome: t.RunOutcome | UnsetType = UNSET
    result: Any = UNSET
    if isinstance(last, AssistantMessage) and _aborted(last):
        outcome = t.CancelledOutcome()
        rest.answer = transcript.answer
    elif transcript.answer is not None:
        result = transcript.answer
    return t.RunFinished(
        thread_id=started.thread_id,
        run_id=started.run_id,
        result=result,
        outcome=outcome,
        usage=usage,
        metadata=as_metadata(rest),
        timestamp=started.timestamp,
    )


def _failed(message: AssistantMessage) -> bool:
    return message.error_message is not None and message.stop_reason is StopReason.ERROR


def _aborted(message: AssistantMessage) -> bool:
    return message.error_message is None and message.stop_reason is _ABORTED


def _timestamp(message: Message, rest: MessageRemainder, now: int | UnsetType, given: bool) -> int | UnsetType:
    """The timestamp of the event; one that an event cannot have, or of a given message, goes into the remainder."""
    if message.timestamp is None:
        return now
    if message.timestamp <= _MAX_SAFE and not given:
        return message.timestamp
    rest.timestamp = message.timestamp
    return now


def _token_usage(usage: Usage) -> t.TokenUsage:
    return t.TokenUsage(
        input_tokens=_count(usage.total_input),
        output_tokens=_count(usage.output_tokens),
        cached_input_tokens=_count(usage.cache_read_input_tokens) or UNSET,
        cache_write_input_tokens=_count(usage.cache_creation_input_tokens) or UNSET,
    )


def _count(tokens: int) -> int:
    return min(max(0, tokens), _MAX_SAFE)


def _argument_text(arguments: Any) -> str:
    """The arguments as JSON text; the text as the model sent it, where that was not JSON."""
    unparsed = detect_unparsed(arguments)
    if unparsed is not None and parse_arguments(unparsed[1])[0] == arguments:
        return unparsed[1]
    return wire.encode(arguments).decode()


def _looks_encoded(arguments: Any) -> bool:
    """Whether arguments that are a text would be read as an object that was encoded twice."""
    return type(arguments) is str and type(inside_text(arguments)) is not str


def _encrypted(block: ReasoningDetailsBlock) -> tuple[str, bool]:
    """The `encryptedValue` for details, and whether it has to be marked as the whole of them."""
    if len(block.details) == 1:
        item = _opaque_item(block.details[0])
        if item is not None and encrypted_details(item) == block:
            return item, False
    text = b"[" + b",".join([bytes(detail) for detail in block.details]) + b"]"
    return text.decode("utf-8", "replace"), True


def _opaque_item(detail: msgspec.Raw) -> str | None:
    try:
        value = wire.decode(bytes(detail))
    except SeatrialError:
        return None
    data = value.get("data") if type(value) is dict else None
    return data if type(data) is str else None


def _result_content(blocks: list[ToolResultBlock]) -> str | list[agui.Part]:
    """One text as a string, anything else as parts."""
    if len(blocks) == 1 and type(blocks[0]) is TextBlock:
        return blocks[0].text
    return [
        {"type": "text", "text": block.text} if isinstance(block, TextBlock) else _image_part(block) for block in blocks
    ]


def _image_part(image: ImageBlock) -> agui.Part:
    head, comma, value = image.source.partition(",")
    source: dict[str, Any]
    if comma and head.startswith("data:") and head.endswith(";base64"):
        source = {"type": "data", "value": value, "mimeType": head[len("data:") : -len(";base64")]}
    else:
        source = {"type": "url", "value": image.source}
        if image.media_type is not None:
            source["mimeType"] = image.media_type
    part: agui.Part = {"type": "image", "source": source}
    plain = image_block(part, 0, [])
    rest = ImageRemainder(alt=image.alt)
    if plain is None or plain.media_type != image.media_type:
        rest.media_type = image.media_type
    metadata = as_metadata(rest)
    if metadata is not UNSET:
        part["metadata"] = metadata
    return part
