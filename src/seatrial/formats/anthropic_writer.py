"""The messages of a transcript as a request to the Anthropic API.

Prompts at the head go to `system`, later ones stay among the messages. Tool results that follow each other are
blocks of one user message, which comes right after the calls: a user message between calls and their results comes
after the results.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from seatrial._support import wire
from seatrial.events.layout import Spoken
from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.parts import reads_back, texts_with_tags
from seatrial.formats.chat.writing import (
    change,
    lose_block,
    lose_field,
    lose_image_fields,
    lose_message_fields,
    lose_run_fields,
)
from seatrial.formats.reading import Written
from seatrial.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    ReasoningDetailsBlock,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)
from seatrial.transcript.reasoning import (
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningText,
    from_items,
    from_openrouter_value,
)

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
_FORMAT = ReasoningFormat.ANTHROPIC_CLAUDE_V1


def write_request(transcript: Transcript) -> Written:
    """The request, and what it does not carry."""
    tally = NoteTally()
    writer = _Writer(tally)
    for index, message in enumerate(transcript.messages):
        writer.write(message, ("messages", index))
    lose_run_fields(transcript, tally)
    return Written(wire.encode(writer.request()), tally.total())


class _Writer:
    """Writes messages one after the other; remembers the calls that wait for their results."""

    def __init__(self, tally: NoteTally) -> None:
        self._tally = tally
        self._system: list[str] = []
        self._messages: list[dict[str, Any]] = []
        self._names: dict[str, str] = {}
        self._called: set[str] = set()
        """Ids of the calls of the last assistant message."""
        self._turn = 0
        """How many messages there were after it."""
        self._results: dict[str, Any] | None = None
        """The message since then that holds tool results."""

    def request(self) -> dict[str, Any]:
        if not self._system:
            return {"messages": self._messages}
        system = self._system[0] if len(self._system) == 1 else [TextBlock(text) for text in self._system]
        return {"system": system, "messages": self._messages}

    def write(self, message: Message, at: At) -> None:
        if isinstance(message, AssistantMessage):
            self._add("assistant", self._assistant(message, (*at, "content")))
            self._called = {call.id for call in message.tool_calls()}
            self._turn, self._results = len(self._messages), None
        elif isinstance(message, ToolResultMessage):
            self._add_result(message, at)
        elif isinstance(message, UserMessage):
            content = message.content
            self._add("user", content if isinstance(content, str) else self._parts(content, (*at, "content")))
        elif isinstance(message, SystemMessage):
            if self._messages:
                self._add("system", message.content)
            else:
                self._system.append(message.content)
        else:
            lose_block(self._tally, at, "a custom message")
            return
        lose_message_fields(message, self._tally, at)

    def _add(self, role: str, content: Any) -> None:
        self._messages.append({"role": role, "content": content})

    def _assistant(self, message: AssistantMessage, at: At) -> list[Any]:
        blocks: list[Any] = []
        after_details = False
        signed = _signed_texts(message)
        for index, block in enumerate(message.content):
            here = (*at, index)
            if isinstance(block, ReasoningDetailsBlock):
                thoughts = self._thoughts(block, here)
                if after_details and thoughts:
                    change(self._tally, here, "details that follow each other become one block")
                blocks += thoughts
                after_details = after_details or bool(thoughts)
                continue
            after_details = False
            if isinstance(block, ToolCall):
                blocks.append(self._call(block, here))
            elif isinstance(block, ReasoningBlock):
                if block.text in signed:
                    # Some providers send a text both plain and signed; here the signed one is the whole of it.
                    lose_block(self._tally, here, "reasoning that stands in the signed details too")
                else:
                    blocks.append({"type": "thinking", "thinking": block.text})
            else:
                blocks.append(self._spoken(block, here))
        return blocks

    def _spoken(self, block: Spoken, at: At) -> TextBlock:
        texts = texts_with_tags([block])
        if not reads_back(texts, [block]):
            change(self._tally, at, "the text holds a thinking tag and is read back as something else")
        return TextBlock(texts[0])

    def _thoughts(self, block: ReasoningDetailsBlock, at: At) -> list[dict[str, Any]]:
        if not block.details:
            lose_block(self._tally, at, "an empty block of reasoning_details")
        thoughts: list[dict[str, Any]] = []
        for index, entry in enumerate(block.details):
            here = (*at, "details", index)
            item = from_openrouter_value(entry)
            same: ReasoningText | ReasoningEncrypted
            if isinstance(item, ReasoningText) and item.format is _FORMAT and item.signature is not None:
                same = ReasoningText(format=_FORMAT, text=item.text, signature=item.signature)
                thoughts.append({"type": "thinking", "thinking": item.text, "signature": item.signature})
            elif isinstance(item, ReasoningEncrypted) and item.format is _FORMAT:
                same = ReasoningEncrypted(format=_FORMAT, data=item.data)
                thoughts.append({"type": "redacted_thinking", "data": item.data})
            else:
                lose_block(self._tally, here, "a reasoning detail that is not signed by this provider")
                continue
            if from_items([same]).details[0] != entry:
                change(self._tally, here, "only the text and the signature of a reasoning detail are carried")
        return thoughts

    def _call(self, call: ToolCall, at: At) -> dict[str, Any]:
        self._names[call.id] = call.name
        for field in ("id", "name"):
            if not getattr(call, field):
                lose_field(self._tally, at, field)
        arguments = call.arguments
        if type(arguments) is str:
            # A string stands for JSON text when it is read; so one that is meant goes as JSON text of itself.
            arguments = wire.encode(arguments).decode()
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}

    def _add_result(self, message: ToolResultMessage, at: At) -> None:
        block = self._result(message, at)
        between = len(self._messages) > self._turn and self._messages[-1] is not self._results
        if between and message.tool_call_id in self._called:
            # The API wants the results right after the calls.
            change(self._tally, at, "the result is moved in front of the messages between it and its call")
            if self._results is None:
                self._results = {"role": "user", "content": []}
                self._messages.insert(self._turn, self._results)
        elif between or self._results is None:
            self._results = {"role": "user", "content": []}
            self._messages.append(self._results)
        self._results["content"].append(block)

    def _result(self, message: ToolResultMessage, at: At) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.tool_call_id}
        if not message.tool_call_id:
            lose_field(self._tally, at, "tool_call_id")
        if self._names.get(message.tool_call_id) != message.tool_name:
            lose_field(self._tally, at, "tool_name")
        content = message.content
        if len(content) == 1 and isinstance(content[0], TextBlock):
            block["content"] = content[0].text
        elif content:
            block["content"] = self._parts(content, (*at, "content"))
        if message.is_error:
            block["is_error"] = True
        return block

    def _parts(self, blocks: Sequence[TextBlock | ImageBlock], at: At) -> list[Any]:
        return [
            self._image(block, (*at, index)) if isinstance(block, ImageBlock) else block
            for index, block in enumerate(blocks)
        ]

    def _image(self, image: ImageBlock, at: At) -> dict[str, Any]:
        lose_image_fields(image, self._tally, at)
        match = _DATA_URL.fullmatch(image.source)
        if match is None:
            return {"type": "image", "source": {"type": "url", "url": image.source}}
        return {"type": "image", "source": {"type": "base64", "media_type": match[1], "data": match[2]}}


def _signed_texts(message: AssistantMessage) -> frozenset[str]:
    """The texts of the details that go back as signed thinking."""
    items = [from_openrouter_value(entry) for entry in message.reasoning_details_values()]
    return frozenset(
        item.text
        for item in items
        if isinstance(item, ReasoningText) and item.format is _FORMAT and item.signature is not None
    )
