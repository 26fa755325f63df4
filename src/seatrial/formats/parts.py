"""Content: text, or an array of parts in the spellings of several providers.

| part | becomes |
| --- | --- |
| `text`, `input_text`, `output_text`, a part without a type that has `text`, a bare string | text |
| `refusal` | text |
| `image_url`, `input_image`, `image` (by URL, data URL, or Anthropic's `source` object) | image |
| `thinking`, `reasoning`, with nothing but their text | native reasoning |
| `thinking` with a signature, `redacted_thinking`, `reasoning.*` | native reasoning details, as sent |

Tool calls and results among the parts (`tool_use`, `tool_result`) belong to `seatrial.formats.chat`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from seatrial import wire
from seatrial.formats.keys import may_hold_call
from seatrial.transcript import (
    ImageBlock,
    Note,
    ReasoningBlock,
    ReasoningDetailsBlock,
    TextBlock,
    ThinkingBlock,
    Weight,
    note_code,
    pointer,
)
from seatrial.transcript.salvage import TEXT_FROM_JSON

CONTENT_DROPPED = note_code(
    "content_dropped",
    "A part of the content has no place in the transcript; it was dropped. An image or a file holds no call.",
    "serious",
)
CONTENT_JOINED = note_code("content_joined", "A system prompt in several parts was joined into one text.", "harmless")

At: TypeAlias = tuple[str | int, ...]
"""Where in the input something stands; made into a pointer only when there is something to say about it."""
Part: TypeAlias = TextBlock | ImageBlock | ReasoningBlock | ReasoningDetailsBlock
Thought: TypeAlias = ThinkingBlock | ReasoningBlock | ReasoningDetailsBlock

_TEXT_KEYS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_IMAGE_TYPES = frozenset({"image", "image_url", "input_image"})
_MEDIA = _IMAGE_TYPES | {
    "audio", "document", "file", "fileData", "inlineData", "input_audio", "input_file", "media", "video", "video_url",
}  # fmt: skip
"""Parts that hold no call, unless they look as if they did."""


def read_part(part: Any) -> Part | None:
    """The block that a part stands for, or None when there is none."""
    if type(part) is str:
        return TextBlock(part)
    if type(part) is not dict:
        return None
    kind = part.get("type", "text")
    if type(kind) is not str:
        return None
    if (key := _TEXT_KEYS.get(kind)) is not None:
        text = part.get(key)
        return TextBlock(text) if type(text) is str else None
    if kind in _IMAGE_TYPES:
        return _image(part)
    if kind in ("thinking", "reasoning"):
        text = part.get("text", part.get(kind))
        return ReasoningBlock(text) if type(text) is str and len(part) == 2 else _details(part)
    if kind == "redacted_thinking" or kind.startswith("reasoning."):
        return _details(part)
    return None


def read_thought(entry: Any) -> Thought | None:
    """The block that an entry of a `thinking` array stands for, or None when it is no object.

    Nothing but a text, and perhaps a type, is text: of the prompted channel when the type is `thought`. Whatever has
    more to it (a signature, encrypted data) is kept whole.
    """
    if type(entry) is not dict:
        return None
    text = entry.get("text")
    if type(text) is str:
        if len(entry) == 1:
            return ReasoningBlock(text)
        if len(entry) == 2 and type(kind := entry.get("type")) is str:
            return ThinkingBlock(text) if kind == "thought" else ReasoningBlock(text)
    return _details(entry)


def read_raw_thought(raw: msgspec.Raw) -> Thought | None:
    """The same for an entry as it was sent, so that what is kept whole keeps its bytes; None also if not UTF-8."""
    try:
        members = _decode_members(raw)
        if len(members) < 3 and "text" in members:
            block = read_thought(_decode(raw))
            if type(block) is not ReasoningDetailsBlock:
                return block
        str(raw, "utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    # A copy, because a raw value keeps the whole input that it was cut from.
    return ReasoningDetailsBlock([raw.copy()])


def read_blocks(content: Any, at: At, notes: list[Note]) -> list[TextBlock | ImageBlock]:
    """The text and the images of a user's or a tool's content."""
    if content is None:
        return []
    if type(content) is not list:
        return [TextBlock(read_text(content, at, notes))]
    blocks: list[TextBlock | ImageBlock] = []
    for index, part in enumerate(content):
        add_plain_part(part, (*at, index), blocks, notes)
    return blocks


def add_plain_part(part: Any, at: At, blocks: list[TextBlock | ImageBlock], notes: list[Note]) -> None:
    """Append the text or the image that a part is; anything else is dropped with a note."""
    block = read_part(part)
    if type(block) is TextBlock or type(block) is ImageBlock:
        blocks.append(block)
    else:
        notes.append(dropped_part(part, at))


def read_prompt(content: Any, at: At, notes: list[Note]) -> str:
    """The text of a system prompt, which has no parts in the transcript."""
    if content is None:
        return ""
    if type(content) is not list:
        return read_text(content, at, notes)
    texts: list[str] = []
    for index, part in enumerate(content):
        if type(block := read_part(part)) is TextBlock:
            texts.append(block.text)
        else:
            notes.append(dropped_part(part, (*at, index)))
    if len(texts) > 1:
        notes.append(Note(CONTENT_JOINED, pointer(*at), f"joined the {len(texts)} parts of a system prompt"))
    return "".join(texts)


def read_text(content: Any, at: At, notes: list[Note]) -> str:
    """The text itself; anything else as JSON text, with a note."""
    if type(content) is str:
        return content
    notes.append(Note(TEXT_FROM_JSON, pointer(*at), f"kept {json_kind(content)} as JSON text"))
    return wire.encode(content).decode()


def dropped_part(part: Any, at: At) -> Note:
    """The note for a part that found no place."""
    kind = part.get("type") if type(part) is dict else None
    if type(kind) is not str:
        return Note(CONTENT_DROPPED, pointer(*at), f"dropped a part that is {json_kind(part)}")
    weight: Weight = "look" if kind in _MEDIA and not may_hold_call("", part) else "serious"
    return Note(CONTENT_DROPPED, pointer(*at), f"dropped a part of the type {kind[:40]!r}", weight)


def json_kind(value: Any) -> str:
    """What a decoded JSON value is, with its article, for a sentence."""
    if value is None:
        return "null"
    return _KINDS.get(type(value), "a number")


def _details(value: dict[str, Any]) -> ReasoningDetailsBlock:
    return ReasoningDetailsBlock([msgspec.Raw(wire.encode(value))])


def _image(part: dict[str, Any]) -> ImageBlock | None:
    source = part.get("image_url", part.get("source", part.get("url")))
    media_type = part.get("media_type")
    if type(source) is dict:
        # {"url"} of OpenAI; {"type": "url", "url"} and {"type": "base64", "media_type", "data"} of Anthropic.
        media_type = source.get("media_type", media_type)
        data = source.get("data")
        if source.get("type") == "base64" and type(data) is str and type(media_type) is str:
            source = f"data:{media_type};base64,{data}"
        else:
            source = source.get("url")
    if type(source) is not str:
        return None
    alt = part.get("alt")
    return ImageBlock(source, media_type if type(media_type) is str else None, alt if type(alt) is str else None)


_KINDS: dict[type, str] = {dict: "an object", list: "an array", str: "text", bool: "true or false"}
_decode = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
