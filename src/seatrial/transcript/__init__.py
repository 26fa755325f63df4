"""What was said and done: messages, blocks, reasoning, usage, identity, the thinking-tag filter, tools.

The functions on single reasoning items are in `reasoning`, arguments that were not JSON in `arguments`. Tools have
modules of their own, `tool` and `typed_tool`, which only those load that define or run them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.transcript.document import MessageLine as MessageLine
    from seatrial.transcript.document import decode_messages as decode_messages
    from seatrial.transcript.document import encode_lines as encode_lines
    from seatrial.transcript.document import encode_messages as encode_messages
    from seatrial.transcript.document import iter_messages as iter_messages
    from seatrial.transcript.document import read_messages as read_messages
    from seatrial.transcript.history import NormalizedIds as NormalizedIds
    from seatrial.transcript.history import UniqueToolCallIds as UniqueToolCallIds
    from seatrial.transcript.history import normalize_tool_call_ids as normalize_tool_call_ids
    from seatrial.transcript.identity import AgentContext as AgentContext
    from seatrial.transcript.identity import RunIdentity as RunIdentity
    from seatrial.transcript.messages import AssistantBlock as AssistantBlock
    from seatrial.transcript.messages import AssistantMessage as AssistantMessage
    from seatrial.transcript.messages import CustomMessage as CustomMessage
    from seatrial.transcript.messages import ImageBlock as ImageBlock
    from seatrial.transcript.messages import Message as Message
    from seatrial.transcript.messages import ReasoningBlock as ReasoningBlock
    from seatrial.transcript.messages import ReasoningDetailsBlock as ReasoningDetailsBlock
    from seatrial.transcript.messages import StopReason as StopReason
    from seatrial.transcript.messages import SystemMessage as SystemMessage
    from seatrial.transcript.messages import TextBlock as TextBlock
    from seatrial.transcript.messages import ThinkingBlock as ThinkingBlock
    from seatrial.transcript.messages import ToolCall as ToolCall
    from seatrial.transcript.messages import ToolResultBlock as ToolResultBlock
    from seatrial.transcript.messages import ToolResultMessage as ToolResultMessage
    from seatrial.transcript.messages import Usage as Usage
    from seatrial.transcript.messages import UserBlock as UserBlock
    from seatrial.transcript.messages import UserMessage as UserMessage
    from seatrial.transcript.messages import assistant_content as assistant_content
    from seatrial.transcript.messages import text_content as text_content
    from seatrial.transcript.note import NOTE_CODES as NOTE_CODES
    from seatrial.transcript.note import Note as Note
    from seatrial.transcript.note import NoteCode as NoteCode
    from seatrial.transcript.note import Notes as Notes
    from seatrial.transcript.note import Weight as Weight
    from seatrial.transcript.note import note_code as note_code
    from seatrial.transcript.note import pointer as pointer
    from seatrial.transcript.note import repair_notes as repair_notes
    from seatrial.transcript.reasoning import MissingSignatures as MissingSignatures
    from seatrial.transcript.reasoning import OpenRouterReasoningCodec as OpenRouterReasoningCodec
    from seatrial.transcript.reasoning import ReasoningCodec as ReasoningCodec
    from seatrial.transcript.reasoning import ReasoningEncrypted as ReasoningEncrypted
    from seatrial.transcript.reasoning import ReasoningFormat as ReasoningFormat
    from seatrial.transcript.reasoning import ReasoningItem as ReasoningItem
    from seatrial.transcript.reasoning import ReasoningSummary as ReasoningSummary
    from seatrial.transcript.reasoning import ReasoningText as ReasoningText
    from seatrial.transcript.reasoning import ReplayAudit as ReplayAudit
    from seatrial.transcript.reasoning import ReplayContract as ReplayContract
    from seatrial.transcript.reasoning import audit_replay as audit_replay
    from seatrial.transcript.thinking import ThinkingFilter as ThinkingFilter
    from seatrial.transcript.thinking import split_thinking as split_thinking
    from seatrial.transcript.thinking import strip_thinking_tags as strip_thinking_tags
    from seatrial.transcript.thinking import survives_weaving as survives_weaving
    from seatrial.transcript.thinking import weave_thought as weave_thought
    from seatrial.transcript.transcript import Transcript as Transcript

__getattr__, __all__ = attach(
    __name__,
    {
        "document": "MessageLine decode_messages encode_lines encode_messages iter_messages read_messages",
        "history": "NormalizedIds UniqueToolCallIds normalize_tool_call_ids",
        "identity": "AgentContext RunIdentity",
        "messages": (
            "AssistantBlock AssistantMessage CustomMessage ImageBlock Message ReasoningBlock "
            "ReasoningDetailsBlock StopReason SystemMessage TextBlock ThinkingBlock ToolCall ToolResultBlock "
            "ToolResultMessage Usage UserBlock UserMessage assistant_content text_content"
        ),
        "note": "NOTE_CODES Note NoteCode Notes Weight note_code pointer repair_notes",
        "reasoning": (
            "MissingSignatures OpenRouterReasoningCodec ReasoningCodec ReasoningEncrypted ReasoningFormat "
            "ReasoningItem ReasoningSummary ReasoningText ReplayAudit ReplayContract audit_replay"
        ),
        "thinking": "ThinkingFilter split_thinking strip_thinking_tags survives_weaving weave_thought",
        "transcript": "Transcript",
    },
)
