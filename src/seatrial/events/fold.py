"""Events into what a client holds after them: messages, state, pending tool calls, interrupts (events.md B7)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from seatrial.events import agui_messages as agui
from seatrial.events import types as t
from seatrial.events.drafts import CallDraft, Draft, Origin
from seatrial.events.order import is_worse
from seatrial.events.patch import Patcher, copy_json
from seatrial.events.run_input import version_note
from seatrial.events.snapshots import CALL_REWRITTEN, MAX_REARRANGED, SnapshotMerger
from seatrial.events.violation import quoted
from seatrial.transcript import Note, Notes, note_code, pointer
from seatrial.transcript.arguments import read_arguments

UNKNOWN_MESSAGE = note_code(
    "unknown_message", "An event names a message that does not exist; it changes nothing.", "serious"
)
UNKNOWN_TOOL_CALL = note_code(
    "unknown_tool_call", "An event names a tool call that does not exist; it changes nothing.", "serious"
)
TEXT_INTO_ACTIVITY = note_code(
    "text_into_activity",
    "Text or reasoning is streamed under the id of an activity message; it was dropped.",
    "serious",
)
TOOL_CALL_RENAMED = note_code("tool_call_renamed", "A tool call is started again under another tool name.", "serious")
TOOL_CALL_RESTARTED = note_code(
    "tool_call_restarted",
    "A tool call is started again under its id. Clients take it for the same call; it may have been another one.",
    "serious",
)
PARENT_NOT_ASSISTANT = note_code(
    "parent_not_assistant",
    "The parent of a tool call is not an assistant message; the call got a message of its own.",
    "look",
)
PATCH_FAILED = note_code("patch_failed", "A patch does not apply; the state or activity stays as it was.", "look")
NOT_AN_ACTIVITY = note_code(
    "not_an_activity", "ACTIVITY_DELTA names a message of another kind; it changes nothing.", "look"
)
GIVEN_CALL_RESTARTED = note_code(
    "given_call_restarted",
    "An event starts a tool call under the id of one that the run started from; it is not known whether it was made.",
    "serious",
)
CALL_NOT_ENDED = note_code(
    "call_not_ended",
    "A tool call was started and not ended, and its arguments are not a whole JSON object: they were cut.",
    "serious",
)
CHUNK_NOT_EXPANDED = note_code(
    "chunk_not_expanded", "A chunk reached the fold; chunks have to be expanded first.", "serious"
)


class Folded(msgspec.Struct):
    """What the events add up to."""

    messages: list[agui.Message]
    state: Any
    pending: list[str]
    """Tool calls that wait for a result: those that the run named, else those it started and got no result for."""
    pending_interrupts: list[t.Interrupt]
    notes: list[Note]
    """What changed nothing; pointers are indices of events."""
    origins: list[Origin]
    """One for each message."""
    started: t.RunStarted | None
    """The last run's start."""
    terminal: t.RunFinished | t.RunError | None
    """The last run's end, the worst where it has several; None when it has not come."""
    error: str | None
    """Message of a RUN_ERROR that came before any message."""
    usage: list[t.TokenUsage]
    """Of all runs in the stream."""
    given_calls: dict[str, list[agui.ToolCall]]
    """By id: the tool calls that the run started from."""
    failed: set[tuple[str, int]]
    """The tool calls of which anything said that they failed: the id, and which one it is of those that share it."""
    ranks: dict[str, int]
    """By id: the places of the messages in the last MESSAGES_SNAPSHOT. Clients put new ones at the end, wherever they
    stand in it."""
    left_out: list[tuple[agui.Message, Origin]]
    """Calls, and their results, that a MESSAGES_SNAPSHOT left out: a client does not show them, but they were made."""


def fold(events: Iterable[t.Event], *, messages: Iterable[agui.Message] = (), state: Any = UNSET) -> Folded:
    """What the events, without chunks, make of these messages and this state. The messages are taken over."""
    folding = Folding(messages=messages, state=state)
    for index, event in enumerate(events):
        folding.feed(event, index)
    return folding.result()


class Folding(SnapshotMerger):
    """The messages and the state on the way."""

    def __init__(
        self,
        *,
        messages: Iterable[agui.Message] = (),
        state: Any = UNSET,
        rearrange_limit: int = MAX_REARRANGED,
    ) -> None:
        super().__init__(messages, rearrange_limit)
        self.applies: dict[type, Callable[[Any, int], None]] = {
            t.RunStarted: self._run_started,
            t.RunFinished: self._run_finished,
            t.RunError: self._run_error,
            t.StepStarted: self._nothing,
            t.StepFinished: self._nothing,
            t.TextMessageStart: self._text_start,
            t.TextMessageContent: self._content,
            t.TextMessageEnd: self._text_end,
            t.TextMessageChunk: self._chunk,
            t.ToolCallStart: self._tool_start,
            t.ToolCallArgs: self._tool_args,
            t.ToolCallEnd: self._tool_end,
            t.ToolCallChunk: self._chunk,
            t.ToolCallResult: self._tool_result,
            t.StateSnapshot: self._state_snapshot,
            t.StateDelta: self._state_delta,
            t.MessagesSnapshot: self._messages_snapshot,
            t.ActivitySnapshot: self._activity_snapshot,
            t.ActivityDelta: self._activity_delta,
            t.ReasoningStart: self._nothing,
            t.ReasoningEnd: self._nothing,
            t.ReasoningMessageStart: self._text_start,
            t.ReasoningMessageContent: self._content,
            t.ReasoningMessageEnd: self._text_end,
            t.ReasoningMessageChunk: self._chunk,
            t.ReasoningEncryptedValue: self._encrypted_value,
            t.SubagentStarted: self._nothing,
            t.SubagentFinished: self._nothing,
            t.SubagentError: self._nothing,
            t.RawEvent: self._nothing,
            t.CustomEvent: self._nothing,
        }
        """By type: what an event with this index does. `feed` is the safe way to it."""
        self._fed = 0
        self._patcher = Patcher()
        self._state: Any = {} if state is UNSET else state
        self._owns_state = False
        self._interrupts: list[t.Interrupt] = []
        self._started: t.RunStarted | None = None
        self._terminal: t.RunFinished | t.RunError | None = None
        self._error: str | None = None
        self._usage: list[t.TokenUsage] = []
        self._run_index = -1
        self._run_calls: dict[str, None] = {}
        self._answered: set[str] = set()
        self._open_calls: dict[str, int] = {}
        """By id: the event that started a call which has not ended."""

    def feed(self, event: t.Event, index: int | None = None) -> None:
        """Apply one event. Without an index, events are counted."""
        if index is None:
            index = self._fed
        self._fed += 1
        self.applies[type(event)](event, index)

    def result(self) -> Folded:
        """What the events add up to. The messages are shared with the folding: feeding it more may change them."""
        drafts = self.drafts.in_order()
        named: list[str] | UnsetType = UNSET
        if isinstance(self._terminal, t.RunFinished) and isinstance(self._terminal.outcome, t.SuccessOutcome):
            named = self._terminal.outcome.pending_tool_call_ids
        messages = [draft.finish() for draft in drafts]
        # A result that only a snapshot brought is one, too.
        answered = {message.tool_call_id for message in messages if isinstance(message, agui.ToolMessage)}
        answered |= self._answered
        return Folded(
            messages=messages,
            state=self._state,
            pending=list(named) if named else [call for call in self._run_calls if call not in answered],
            pending_interrupts=self._interrupts,
            notes=[*self.notes, *self._cut_calls()],
            origins=[draft.origin for draft in drafts],
            started=self._started,
            terminal=self._terminal,
            error=self._error,
            usage=self._usage,
            given_calls=self._given_calls,
            failed=self._failed,
            ranks=self._ranks,
            left_out=self._left_out,
        )

    def _cut_calls(self) -> list[Note]:
        """Notes on the calls that have not ended, and whose arguments are not all there."""
        notes = Notes()
        for call_id, index in self._open_calls.items():
            known = self.drafts.calls.get(call_id)
            text = "" if known is None else "".join(known.parts)
            # Nothing can follow a whole object. Nothing at all means no arguments only where the call has ended.
            arguments, not_json, _ = read_arguments(text)
            if not text.strip() or not_json or type(arguments) is not dict:
                message = f"tool call {quoted(call_id)} has no end, so its arguments are not known"
                notes.append(Note(CALL_NOT_ENDED, pointer(index), message))
        return notes

    # The run

    def _nothing(self, event: t.BaseEvent, index: int) -> None:
        pass

    def _chunk(self, event: t.BaseEvent, index: int) -> None:
        self._note(CHUNK_NOT_EXPANDED, index, "expand the events first")

    def _run_started(self, event: t.RunStarted, index: int) -> None:
        self._started = event
        self._terminal = None
        self._run_index = index
        self._run_calls = {}
        self._answered = set()
        if event.protocol_version is not UNSET:
            self.notes += version_note(event.protocol_version, pointer(index, "protocolVersion"))
        if type(event.input) is dict and event.input.get("messages") is not None:
            place = (index, "input", "messages")
            for message in agui.read_messages(event.input["messages"], place, self.notes):
                if message.id not in self.drafts.by_id:
                    self.drafts.append(self._give(message))

    def _run_finished(self, event: t.RunFinished, index: int) -> None:
        self._ended(event)
        if self._terminal is event:
            self._interrupts = event.outcome.interrupts if isinstance(event.outcome, t.InterruptOutcome) else []
        last = self.drafts.last()
        if isinstance(event.outcome, t.CancelledOutcome) and last is not None and self._is_of_this_run(last):
            last.origin.aborted = True

    def _run_error(self, event: t.RunError, index: int) -> None:
        self._ended(event)
        last = self.drafts.last()
        if last is None:
            self._error = event.message
        elif self._is_of_this_run(last):
            last.origin.error = event.message
        else:
            last.origin.error_after = event.message

    def _ended(self, event: t.RunFinished | t.RunError) -> None:
        if self._terminal is None or is_worse(event, self._terminal):
            self._terminal = event
        if event.usage is not UNSET:
            self._usage += event.usage

    def _is_of_this_run(self, draft: Draft) -> bool:
        """Whether the agent was saying this in the run that now ends."""
        said = isinstance(draft.message, agui.AssistantMessage | agui.ReasoningMessage)
        return said and draft.origin.index > self._run_index

    # Text and reasoning

    def _text_start(self, event: t.TextMessageStart | t.ReasoningMessageStart, index: int) -> None:
        draft = self.drafts.by_id.get(event.message_id)
        if draft is None:
            parts: list[str] = []
            draft = Draft(_new_message(event), Origin(index, _moment(event), True), parts)
            self.drafts.append(draft)
            self.drafts.writers[event.message_id] = parts.append
        elif isinstance(draft.message, agui.ActivityMessage):
            self._note(TEXT_INTO_ACTIVITY, index, f"message {quoted(event.message_id)} is an activity")
            return
        else:
            draft.origin.open = True
            if draft.origin.given and draft.origin.continued is None:
                content = draft.finish().content
                draft.origin.continued = len(content) if type(content) is str else 0
        if event.metadata is not UNSET:
            _merge(draft.message, event.metadata)

    def _content(self, event: t.TextMessageContent | t.ReasoningMessageContent, index: int) -> None:
        message_id = event.message_id
        write = self.drafts.writers.get(message_id)
        if write is None:
            draft = self._growing(message_id, index)
            if draft is None:
                return
            write = self.drafts.writers[message_id] = draft.writer()
        write(event.delta)
        if event.metadata is not UNSET:
            _merge(self.drafts.by_id[message_id].message, event.metadata)

    def _growing(self, message_id: str, index: int) -> Draft | None:
        draft = self.drafts.by_id.get(message_id)
        if draft is None:
            self._note(UNKNOWN_MESSAGE, index, f"there is no message {quoted(message_id)}")
        elif isinstance(draft.message, agui.ActivityMessage):
            self._note(TEXT_INTO_ACTIVITY, index, f"message {quoted(message_id)} is an activity")
        else:
            return draft
        return None

    def _text_end(self, event: t.TextMessageEnd | t.ReasoningMessageEnd, index: int) -> None:
        draft = self._growing(event.message_id, index)
        if draft is not None:
            draft.origin.open = False
            if event.metadata is not UNSET:
                _merge(draft.message, event.metadata)

    # Tool calls

    def _tool_start(self, event: t.ToolCallStart, index: int) -> None:
        self._run_calls[event.tool_call_id] = None
        self._open_calls[event.tool_call_id] = index
        known = self.drafts.calls.get(event.tool_call_id)
        if event.tool_call_id in self._given_calls:
            self._note(GIVEN_CALL_RESTARTED, index, f"tool call {quoted(event.tool_call_id)} was there before the run")
        if known is None:
            known = self._new_call(event, index)
        elif known.call.function.name != event.tool_call_name:
            former, name = known.call.function.name, event.tool_call_name
            self._note(TOOL_CALL_RENAMED, index, f"the tool {quoted(former)} is now {quoted(name)}")
            known.call.function.name = name
        elif event.tool_call_id not in self._given_calls:
            self._note(TOOL_CALL_RESTARTED, index, f"tool call {quoted(event.tool_call_id)} is started again")
        if event.metadata is not UNSET:
            _merge(known.call, event.metadata)

    def _new_call(self, event: t.ToolCallStart, index: int) -> CallDraft:
        call_id, parent, drafts = event.tool_call_id, event.parent_message_id, self.drafts
        if call_id in self._calls_left_out:
            self._note(CALL_REWRITTEN, index, f"tool call {quoted(call_id)} starts again, after a snapshot left it out")
        owner = drafts.by_id.get(parent) if parent is not UNSET and parent else None
        call = agui.ToolCall(call_id, agui.FunctionCall(event.tool_call_name, ""))
        if owner is not None and isinstance(owner.message, agui.AssistantMessage):
            if owner.message.tool_calls is UNSET:
                owner.message.tool_calls = []
            owner.message.tool_calls.append(call)
        else:
            message = agui.AssistantMessage(id=call_id, tool_calls=[call])
            if owner is not None:
                self._note(PARENT_NOT_ASSISTANT, index, f"message {quoted(parent)} is not an assistant's")
            elif parent is not UNSET and parent:
                message.id = parent
            if message.id not in drafts.by_id:
                message.subagent_run_id = event.subagent_run_id
            owner = Draft(message, Origin(index, _moment(event)))
            drafts.append(owner)
        grown = drafts.add_call(owner, call)
        drafts.argument_writers[call_id] = grown.parts.append
        return grown

    def _tool_args(self, event: t.ToolCallArgs, index: int) -> None:
        call_id = event.tool_call_id
        write = self.drafts.argument_writers.get(call_id)
        if write is None:
            known = self._known_call(call_id, index)
            if known is None:
                return
            write = self.drafts.argument_writers[call_id] = known.parts.append
        write(event.delta)
        if event.metadata is not UNSET:
            _merge(self.drafts.calls[call_id].call, event.metadata)

    def _tool_end(self, event: t.ToolCallEnd, index: int) -> None:
        self._open_calls.pop(event.tool_call_id, None)
        known = self._known_call(event.tool_call_id, index)
        if known is not None and event.metadata is not UNSET:
            _merge(known.call, event.metadata)

    def _known_call(self, call_id: str, index: int) -> CallDraft | None:
        known = self.drafts.calls.get(call_id)
        if known is None:
            self._note(UNKNOWN_TOOL_CALL, index, f"there is no tool call {quoted(call_id)}")
        return known

    def _tool_result(self, event: t.ToolCallResult, index: int) -> None:
        self._answered.add(event.tool_call_id)
        content = event.content
        if type(content) is list:
            content = agui.upgraded_parts(content, (index, "content"), self.notes)
        message = agui.ToolMessage(
            id=event.message_id,
            tool_call_id=event.tool_call_id,
            content=content,
            subagent_run_id=event.subagent_run_id,
        )
        if (metadata := agui.mark_status(event.metadata, event.status)) is not UNSET:
            _merge(message, metadata)
        self._note_failure(message, self._sharing[message.tool_call_id])
        self.drafts.append_result(Draft(message, Origin(index, _moment(event))), event.tool_call_id)

    def _encrypted_value(self, event: t.ReasoningEncryptedValue, index: int) -> None:
        if event.subtype == "tool-call":
            call = self._known_call(event.entity_id, index)
            if call is not None:
                call.call.encrypted_value = event.encrypted_value
            return
        draft = self._growing(event.entity_id, index)
        if draft is not None:
            draft.message.encrypted_value = event.encrypted_value  # type: ignore[union-attr]  # it is no activity

    # State

    def _state_snapshot(self, event: t.StateSnapshot, index: int) -> None:
        if event.snapshot is UNSET:
            return
        self._state = event.snapshot
        self._owns_state = False

    def _state_delta(self, event: t.StateDelta, index: int) -> None:
        if not self._owns_state:
            self._state = copy_json(self._state)
            self._owns_state = True
        self._state, problem = self._patcher.apply(self._state, event.delta)
        if problem is not None:
            self._note(PATCH_FAILED, index, problem)

    # Activities

    def _activity_snapshot(self, event: t.ActivitySnapshot, index: int) -> None:
        draft = self.drafts.by_id.get(event.message_id)
        replaces = event.replace is not False
        if draft is not None and isinstance(draft.message, agui.ActivityMessage):
            if replaces:
                # A new message with the old metadata: the old one may stand in a second place, and stays there.
                metadata = draft.message.metadata
                draft.message = _activity(event)
                draft.message.metadata = dict(metadata) if metadata is not UNSET else UNSET
                draft.owns_content = False
        elif draft is None or replaces:
            made = Draft(_activity(event), Origin(index, _moment(event)))
            if draft is None:
                self.drafts.append(made)
            elif not self._may_rearrange(self.drafts.size, index):
                return
            else:
                draft.finish()  # it may stand in a second place, and stays there
                self.drafts.arrange([made if other is draft else other for other in self.drafts.in_order()])
            draft = made
        else:
            return
        if event.metadata is not UNSET:
            _merge(draft.message, event.metadata)

    def _activity_delta(self, event: t.ActivityDelta, index: int) -> None:
        draft = self.drafts.by_id.get(event.message_id)
        if draft is None:
            self._note(UNKNOWN_MESSAGE, index, f"there is no message {quoted(event.message_id)}")
            return
        message = draft.message
        if not isinstance(message, agui.ActivityMessage):
            self._note(NOT_AN_ACTIVITY, index, f"message {quoted(event.message_id)} is no activity")
            return
        # Metadata does not depend on whether the patch applies.
        if event.metadata is not UNSET:
            _merge(message, event.metadata)
        if not draft.owns_content:
            # A message of its own too, because the old one may stand in a second place.
            message = draft.message = copy.copy(message)
            message.content = copy_json(message.content)
            draft.owns_content = True
        message.content, problem = self._patcher.apply(message.content, event.patch)
        if problem is None:
            message.activity_type = event.activity_type
        else:
            self._note(PATCH_FAILED, index, problem)


def _activity(event: t.ActivitySnapshot) -> agui.ActivityMessage:
    return agui.ActivityMessage(
        id=event.message_id,
        activity_type=event.activity_type,
        content=event.content,
        subagent_run_id=event.subagent_run_id,
    )


def _new_message(event: t.TextMessageStart | t.ReasoningMessageStart) -> agui.Message:
    message: agui.TextMessage
    if isinstance(event, t.ReasoningMessageStart):
        message = agui.ReasoningMessage(id=event.message_id, content="")
    else:
        message = _TEXT_MESSAGES["assistant" if event.role is UNSET else event.role](id=event.message_id, content="")
        if event.name is not UNSET:
            message.name = event.name
    if event.subagent_run_id is not UNSET:
        message.subagent_run_id = event.subagent_run_id
    return message


_TEXT_MESSAGES: dict[str, type[agui.DeveloperMessage | agui.SystemMessage | agui.AssistantMessage | agui.UserMessage]]
_TEXT_MESSAGES = {
    "developer": agui.DeveloperMessage,
    "system": agui.SystemMessage,
    "assistant": agui.AssistantMessage,
    "user": agui.UserMessage,
}


def _moment(event: t.BaseEvent) -> int | None:
    """When an event happened, in milliseconds: AG-UI's number, else the seed's RFC 3339 text."""
    if event.timestamp is not UNSET:
        return event.timestamp if event.timestamp >= 0 else None
    if event.created_at is UNSET:
        return None
    from datetime import UTC, datetime  # few streams have this field

    try:
        moment = datetime.fromisoformat(event.created_at)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        milliseconds = round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return milliseconds if milliseconds >= 0 else None


def _merge(target: agui.Message | agui.ToolCall, metadata: dict[str, Any]) -> None:
    """Shallow, the last write of a key wins. A copy at first, because the metadata belongs to its event."""
    if target.metadata is UNSET:
        target.metadata = dict(metadata)
    else:
        target.metadata.update(metadata)
