"""The events of a run's output: AG-UI's 31 types, each with the generic fields of the seed's OutputEvent.

Wire names are camelCase. A field that may be absent but never null is `UNSET` when absent; a field of any JSON
value is `UNSET` when absent, so that `null` stays a value. These types hold nothing but their fields: what else an
event was sent with is in its `sent`, which `event_reader` fills and `encode_event` writes.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

RunStatus = Literal["pending", "running", "input_required", "completed", "failed", "cancelled"]
"""The life of a run. One that `failed` has no answer, and its fault says whose doing that is; how it was judged is its
outcome."""
TERMINAL_STATUSES = frozenset({"completed", "failed", "cancelled"})

OpaqueId = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Sequence = Annotated[int, msgspec.Meta(ge=0)]
NonNegative = Annotated[int, msgspec.Meta(ge=0)]
EventTimestamp = Annotated[int, msgspec.Meta(ge=-(2**53 - 1), le=2**53 - 1)]

TextRole = Literal["developer", "system", "assistant", "user"]


class TokenUsage(msgspec.Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Token counts of one model in a run."""

    provider: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    input_tokens: NonNegative | UnsetType = UNSET
    output_tokens: NonNegative | UnsetType = UNSET
    total_tokens: NonNegative | UnsetType = UNSET
    reasoning_tokens: NonNegative | UnsetType = UNSET
    cached_input_tokens: NonNegative | UnsetType = UNSET
    cache_write_input_tokens: NonNegative | UnsetType = UNSET


class Interrupt(msgspec.Struct, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Something that only a person can answer; the run ends and a new one resumes."""

    id: str
    reason: str
    message: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    response_schema: Any = UNSET
    expires_at: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    subagent_run_id: str | UnsetType = UNSET


class _Outcome(msgspec.Struct, tag_field="type", rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """How a run or a subagent ended."""


class SuccessOutcome(_Outcome, tag="success"):
    """The run ended well; tool calls named here wait for a result from the front end."""

    pending_tool_call_ids: list[str] | UnsetType = UNSET


class InterruptOutcome(_Outcome, tag="interrupt"):
    """The run ended to ask."""

    interrupts: Annotated[list[Interrupt], msgspec.Meta(min_length=1)]


class CancelledOutcome(_Outcome, tag="cancelled"):
    """The run was cancelled."""


class SuspendedOutcome(_Outcome, tag="suspended"):
    """A subagent waits for interrupts."""

    interrupt_ids: list[str] | UnsetType = UNSET


class SubagentSuccessOutcome(_Outcome, tag="success"):
    """A subagent ended well."""


RunOutcome: TypeAlias = SuccessOutcome | InterruptOutcome | CancelledOutcome
SubagentOutcome: TypeAlias = SubagentSuccessOutcome | SuspendedOutcome


class BaseEvent(
    msgspec.Struct,
    tag_field="type",
    rename="camel",
    omit_defaults=True,
    kw_only=True,
    forbid_unknown_fields=True,
    dict=True,
):
    """What every event may carry."""

    sent: ClassVar[dict[str, Any] | None] = None
    """The event as it was sent, where that says more than the fields, or something else; not a field itself."""

    timestamp: EventTimestamp | UnsetType = UNSET
    """AG-UI's numeric time; milliseconds in practice."""
    raw_event: Any = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    event_id: OpaqueId | UnsetType = UNSET
    """The producer's idempotency key for the append (seed)."""
    created_at: str | UnsetType = UNSET
    """RFC 3339 (seed)."""
    artifact_id: OpaqueId | UnsetType = UNSET
    """(seed)"""
    status: RunStatus | UnsetType = UNSET
    """(seed)"""


class AgentEvent(BaseEvent, kw_only=True, omit_defaults=True):
    """An event that a subagent may have caused; absent `subagent_run_id` means the parent agent."""

    subagent_run_id: str | UnsetType = UNSET
    thread_id: OpaqueId | UnsetType = UNSET
    """(seed)"""


class RunStarted(BaseEvent, tag="RUN_STARTED", kw_only=True):
    thread_id: str
    run_id: str
    protocol_version: str | UnsetType = UNSET
    parent_run_id: str | UnsetType = UNSET
    input: Any = UNSET


class RunFinished(BaseEvent, tag="RUN_FINISHED", kw_only=True):
    thread_id: str
    run_id: str
    result: Any = UNSET
    outcome: RunOutcome | UnsetType = UNSET
    usage: list[TokenUsage] | UnsetType = UNSET


class RunError(BaseEvent, tag="RUN_ERROR", kw_only=True):
    message: str
    code: str | UnsetType = UNSET
    usage: list[TokenUsage] | UnsetType = UNSET
    thread_id: OpaqueId | UnsetType = UNSET
    """(seed)"""


class StepStarted(AgentEvent, tag="STEP_STARTED", kw_only=True):
    step_name: str


class StepFinished(AgentEvent, tag="STEP_FINISHED", kw_only=True):
    step_name: str


class TextMessageStart(AgentEvent, tag="TEXT_MESSAGE_START", kw_only=True):
    message_id: str
    role: TextRole | UnsetType = UNSET
    """Absent means assistant."""
    name: str | UnsetType = UNSET


class TextMessageContent(AgentEvent, tag="TEXT_MESSAGE_CONTENT", kw_only=True):
    message_id: str
    delta: str
    """May be empty."""


class TextMessageEnd(AgentEvent, tag="TEXT_MESSAGE_END", kw_only=True):
    message_id: str


class TextMessageChunk(AgentEvent, tag="TEXT_MESSAGE_CHUNK", kw_only=True):
    message_id: str | UnsetType = UNSET
    role: TextRole | UnsetType = UNSET
    delta: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


class ToolCallStart(AgentEvent, tag="TOOL_CALL_START", kw_only=True):
    tool_call_id: str
    tool_call_name: str
    parent_message_id: str | UnsetType = UNSET


class ToolCallArgs(AgentEvent, tag="TOOL_CALL_ARGS", kw_only=True):
    tool_call_id: str
    delta: str


class ToolCallEnd(AgentEvent, tag="TOOL_CALL_END", kw_only=True):
    tool_call_id: str


class ToolCallChunk(AgentEvent, tag="TOOL_CALL_CHUNK", kw_only=True):
    tool_call_id: str | UnsetType = UNSET
    tool_call_name: str | UnsetType = UNSET
    parent_message_id: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class ToolCallResult(AgentEvent, tag="TOOL_CALL_RESULT", kw_only=True):
    message_id: str
    tool_call_id: str
    content: str | list[dict[str, Any]]
    """A string, or AG-UI content parts."""
    role: Literal["tool"] | UnsetType = UNSET


class StateSnapshot(AgentEvent, tag="STATE_SNAPSHOT", kw_only=True):
    snapshot: Any = UNSET
    """UNSET when nothing of what came is a state; the state then stays as it is."""


class StateDelta(AgentEvent, tag="STATE_DELTA", kw_only=True):
    delta: list[dict[str, Any]]
    """RFC 6902 operations."""


class MessagesSnapshot(BaseEvent, tag="MESSAGES_SNAPSHOT", kw_only=True):
    messages: list[dict[str, Any]] | UnsetType = UNSET
    """AG-UI messages, read by `seatrial.events.fold`. UNSET when what came is no list; the messages then stay."""
    thread_id: OpaqueId | UnsetType = UNSET
    """(seed)"""


class ActivitySnapshot(AgentEvent, tag="ACTIVITY_SNAPSHOT", kw_only=True):
    message_id: str
    activity_type: str
    content: dict[str, Any]
    replace: bool | UnsetType = UNSET
    """Absent means true."""


class ActivityDelta(AgentEvent, tag="ACTIVITY_DELTA", kw_only=True):
    message_id: str
    activity_type: str
    patch: list[dict[str, Any]]
    """RFC 6902 operations."""


class ReasoningStart(AgentEvent, tag="REASONING_START", kw_only=True):
    message_id: str
    """Names the span and nothing else."""


class ReasoningEnd(AgentEvent, tag="REASONING_END", kw_only=True):
    message_id: str


class ReasoningMessageStart(AgentEvent, tag="REASONING_MESSAGE_START", kw_only=True):
    message_id: str
    # A factory is never equal to a default, so msgspec writes the key always, as AG-UI demands.
    role: Literal["reasoning"] = msgspec.field(default_factory=lambda: "reasoning")


class ReasoningMessageContent(AgentEvent, tag="REASONING_MESSAGE_CONTENT", kw_only=True):
    message_id: str
    delta: str


class ReasoningMessageEnd(AgentEvent, tag="REASONING_MESSAGE_END", kw_only=True):
    message_id: str


class ReasoningMessageChunk(AgentEvent, tag="REASONING_MESSAGE_CHUNK", kw_only=True):
    message_id: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class ReasoningEncryptedValue(AgentEvent, tag="REASONING_ENCRYPTED_VALUE", kw_only=True):
    subtype: Literal["tool-call", "message"]
    entity_id: str
    encrypted_value: str


class SubagentStarted(BaseEvent, tag="SUBAGENT_STARTED", kw_only=True):
    subagent_run_id: str
    name: str
    description: str | UnsetType = UNSET
    parent_subagent_run_id: str | UnsetType = UNSET
    parent_tool_call_id: str | UnsetType = UNSET
    parent_message_id: str | UnsetType = UNSET


class SubagentFinished(BaseEvent, tag="SUBAGENT_FINISHED", kw_only=True):
    subagent_run_id: str
    result: Any = UNSET
    outcome: SubagentOutcome | UnsetType = UNSET


class SubagentError(BaseEvent, tag="SUBAGENT_ERROR", kw_only=True):
    subagent_run_id: str
    message: str
    code: str | UnsetType = UNSET


class RawEvent(AgentEvent, tag="RAW", kw_only=True):
    event: Any
    source: str | UnsetType = UNSET


class CustomEvent(AgentEvent, tag="CUSTOM", kw_only=True):
    name: str
    value: Any


Event: TypeAlias = (
    RunStarted
    | RunFinished
    | RunError
    | StepStarted
    | StepFinished
    | TextMessageStart
    | TextMessageContent
    | TextMessageEnd
    | TextMessageChunk
    | ToolCallStart
    | ToolCallArgs
    | ToolCallEnd
    | ToolCallChunk
    | ToolCallResult
    | StateSnapshot
    | StateDelta
    | MessagesSnapshot
    | ActivitySnapshot
    | ActivityDelta
    | ReasoningStart
    | ReasoningEnd
    | ReasoningMessageStart
    | ReasoningMessageContent
    | ReasoningMessageEnd
    | ReasoningMessageChunk
    | ReasoningEncryptedValue
    | SubagentStarted
    | SubagentFinished
    | SubagentError
    | RawEvent
    | CustomEvent
)
