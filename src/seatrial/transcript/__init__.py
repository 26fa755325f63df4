"""What was said and done: messages, blocks, reasoning, usage, identity, the thinking-tag filter, tools.

The functions on single reasoning items are in `reasoning`, arguments that were not JSON in `arguments`. Tools have
modules of their own, which only those load who define or run them: `tool`, `tool_result`, `typed_tool`, `tool_schema`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.transcript.document import (
        MessageLine,
        decode_messages,
        encode_lines,
        encode_messages,
        iter_messages,
        read_messages,
    )
    from seatrial.transcript.history import NormalizedIds, UniqueToolCallIds, normalize_tool_call_ids
    from seatrial.transcript.identity import AgentContext, RunIdentity
    from seatrial.transcript.messages import (
        AssistantBlock,
        AssistantMessage,
        CustomMessage,
        ImageBlock,
        Message,
        ReasoningBlock,
        ReasoningDetailsBlock,
        StopReason,
        SystemMessage,
        TextBlock,
        ThinkingBlock,
        ToolCall,
        ToolResultBlock,
        ToolResultMessage,
        Usage,
        UserBlock,
        UserMessage,
        assistant_content,
        text_content,
    )
    from seatrial.transcript.note import NOTE_CODES, Note, NoteCode, Notes, Weight, note_code, pointer, repair_notes
    from seatrial.transcript.reasoning import (
        MissingSignatures,
        OpenRouterReasoningCodec,
        ReasoningCodec,
        ReasoningEncrypted,
        ReasoningFormat,
        ReasoningItem,
        ReasoningSummary,
        ReasoningText,
        ReplayAudit,
        ReplayContract,
        audit_replay,
    )
    from seatrial.transcript.thinking import (
        ThinkingFilter,
        split_thinking,
        strip_thinking_tags,
        survives_weaving,
        weave_thought,
    )
    from seatrial.transcript.transcript import Transcript

__all__ = [
    "NOTE_CODES",
    "AgentContext",
    "AssistantBlock",
    "AssistantMessage",
    "CustomMessage",
    "ImageBlock",
    "Message",
    "MessageLine",
    "MissingSignatures",
    "NormalizedIds",
    "Note",
    "NoteCode",
    "Notes",
    "OpenRouterReasoningCodec",
    "ReasoningBlock",
    "ReasoningCodec",
    "ReasoningDetailsBlock",
    "ReasoningEncrypted",
    "ReasoningFormat",
    "ReasoningItem",
    "ReasoningSummary",
    "ReasoningText",
    "ReplayAudit",
    "ReplayContract",
    "RunIdentity",
    "StopReason",
    "SystemMessage",
    "TextBlock",
    "ThinkingBlock",
    "ThinkingFilter",
    "ToolCall",
    "ToolResultBlock",
    "ToolResultMessage",
    "Transcript",
    "UniqueToolCallIds",
    "Usage",
    "UserBlock",
    "UserMessage",
    "Weight",
    "assistant_content",
    "audit_replay",
    "decode_messages",
    "encode_lines",
    "encode_messages",
    "iter_messages",
    "normalize_tool_call_ids",
    "note_code",
    "pointer",
    "read_messages",
    "repair_notes",
    "split_thinking",
    "strip_thinking_tags",
    "survives_weaving",
    "text_content",
    "weave_thought",
]

__getattr__ = attach(
    __name__,
    {
        "document": (
            "MessageLine",
            "decode_messages",
            "encode_lines",
            "encode_messages",
            "iter_messages",
            "read_messages",
        ),
        "history": (
            "NormalizedIds",
            "UniqueToolCallIds",
            "normalize_tool_call_ids",
        ),
        "identity": (
            "AgentContext",
            "RunIdentity",
        ),
        "messages": (
            "AssistantBlock",
            "AssistantMessage",
            "CustomMessage",
            "ImageBlock",
            "Message",
            "ReasoningBlock",
            "ReasoningDetailsBlock",
            "StopReason",
            "SystemMessage",
            "TextBlock",
            "ThinkingBlock",
            "ToolCall",
            "ToolResultBlock",
            "ToolResultMessage",
            "Usage",
            "UserBlock",
            "UserMessage",
            "assistant_content",
            "text_content",
        ),
        "note": (
            "NOTE_CODES",
            "Note",
            "NoteCode",
            "Notes",
            "Weight",
            "note_code",
            "pointer",
            "repair_notes",
        ),
        "reasoning": (
            "MissingSignatures",
            "OpenRouterReasoningCodec",
            "ReasoningCodec",
            "ReasoningEncrypted",
            "ReasoningFormat",
            "ReasoningItem",
            "ReasoningSummary",
            "ReasoningText",
            "ReplayAudit",
            "ReplayContract",
            "audit_replay",
        ),
        "thinking": (
            "ThinkingFilter",
            "split_thinking",
            "strip_thinking_tags",
            "survives_weaving",
            "weave_thought",
        ),
        "transcript": ("Transcript",),
    },
)
