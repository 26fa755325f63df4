"""Messages of a transcript as role-tagged chat messages: what `seatrial.formats.chat` reads, written.

Thinking of both channels goes into the `thinking` array, each under its own `type`; why not into the
content is told in docs/decisions. Whatever cannot be written is left out here; `seatrial.formats.loss` finds it.
"""

from __future__ import annotations

from typing import Any

from seatrial import wire
from seatrial.formats.parts import read_raw_thought
from seatrial.transcript import (
    AssistantMessage,
    ImageBlock,
    ReasoningBlock,
    ReasoningDetailsBlock,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from seatrial.transcript.arguments import detect_unparsed


def written_message(message: SystemMessage | UserMessage | AssistantMessage | ToolResultMessage) -> dict[str, Any]:
    """The message without its calls."""
    match message:
        case SystemMessage():
            return {"role": "system", "content": message.content}
        case UserMessage():
            content = message.content
            return {"role": "user", "content": content if isinstance(content, str) else _parts(content)}
        case AssistantMessage():
            written: dict[str, Any] = {"role": "assistant", "content": _assistant_content(message)}
            if thinking := _thinking(message):
                written["thinking"] = thinking
            return written
        case ToolResultMessage():
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": _result_content(message)}


def written_arguments(call: ToolCall) -> Any:
    """Arguments so that they read back as they are: text stands for JSON there, so text that is a value is quoted."""
    arguments = call.arguments
    if (unparsed := detect_unparsed(arguments)) is not None:
        return unparsed[1]
    return wire.encode(arguments).decode() if type(arguments) is str else arguments


def _assistant_content(message: AssistantMessage) -> str | list[TextBlock] | None:
    texts = [block for block in message.content if type(block) is TextBlock]
    if not texts:
        return None
    return texts[0].text if len(texts) == 1 and texts[0].text else texts


def _result_content(message: ToolResultMessage) -> str | list[Any] | None:
    content = message.content
    if not content:
        return None
    return content[0].text if len(content) == 1 and type(content[0]) is TextBlock else _parts(content)


def _thinking(message: AssistantMessage) -> list[Any]:
    entries: list[Any] = []
    for block in message.content:
        match block:
            case ThinkingBlock():
                entries.append({"type": "thought", "text": block.text})
            case ReasoningBlock():
                entries.append(block)
            case ReasoningDetailsBlock():
                # Details made by hand can be anything, and would break the document they are spliced into.
                entries.extend([raw for raw in block.details if read_raw_thought(raw) is not None])
    return entries


def _parts(blocks: list[TextBlock | ImageBlock]) -> list[Any]:
    return [_image_part(block) if isinstance(block, ImageBlock) else block for block in blocks]


def _image_part(block: ImageBlock) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "image_url", "image_url": {"url": block.source}}
    if block.media_type is not None:
        part["media_type"] = block.media_type
    if block.alt is not None:
        part["alt"] = block.alt
    return part
