"""Content: text, or an array of parts in the spellings of several providers.

| part | becomes |
| --- | --- |
| `text`, `input_text`, `output_text`, a part without a type that has `text`, a bare string | text |
| `refusal` | text |
| `image_url`, `input_image`, `image` (by URL, data URL, or Anthropic's `source` object) | image |
| `thinking`, `reasoning`, with nothing but their text | native reasoning |
| `thinking` with a signature, `redacted_thinking`, `reasoning.*` | native reasoning details, as sent |

Prompted thinking inside visible text is taken out on reading, and put back as `<thought>` tags on writing. Tool calls
and results among the parts (`tool_use`, `tool_result`) belong to the dialects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from seatrial._support import wire
from seatrial.events.layout import Spoken
from seatrial.formats.chat.hidden_calls import may_hold_call
from seatrial.formats.chat.limits import MOST_PIECES
from seatrial.formats.chat.notes import At, NoteTally, json_kind
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
from seatrial.transcript.thinking import UNCLOSED_THINKING_TAG, split_thinking, weave_thought

CONTENT_DROPPED = note_code(
    "content_dropped",
    "A part of the content has no place in the transcript; it was dropped. An image or a file holds no call.",
    "serious",
)
CONTENT_JOINED = note_code("content_joined", "A system prompt in several parts was joined into one text.", "harmless")

THOUGHTS_MERGED = note_code(
    "thoughts_merged",
    "A text has very many thinking tags; the thoughts past a limit are kept as one, and so is the text between them.",
    "look",
)

Part: TypeAlias = TextBlock | ImageBlock | ReasoningBlock | ReasoningDetailsBlock
Thought: TypeAlias = ThinkingBlock | ReasoningBlock | ReasoningDetailsBlock
_TEXT_KEYS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_IMAGE_TYPES = frozenset({"image", "image_url", "input_image"})
_MEDIA = _IMAGE_TYPES | {
    "audio", "document", "file", "fileData", "inlineData", "input_audio", "input_file", "media", "video", "video_url",
}  # fmt: skip
"""Parts that hold no call, unless they look as if they did."""

_SPOKEN_KINDS: tuple[type[TextBlock], type[ThinkingBlock]] = (TextBlock, ThinkingBlock)


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
    """The block that an entry of a `thinking` array stands for, or None when it is not an object.

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


_decode = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def split_thoughts(text: str, tally: NoteTally, at: At, most: int = MOST_PIECES) -> list[Spoken]:
    """The visible text and the thoughts in it, in order; nothing for the empty string.

    Those past `most` are two at most: all of that text, and all of those thoughts.
    """
    if "<" not in text:
        return [TextBlock(text)] if text else []
    blocks, unclosed = split_thinking(text)
    if unclosed is not None:
        tally.add(UNCLOSED_THINKING_TAG, at, "the last thought has no closing tag; it is kept as thinking")
        blocks.append(ThinkingBlock(unclosed))
    if len(blocks) > most + len(_SPOKEN_KINDS):
        rest = blocks[most:]
        del blocks[most:]
        text = f"more than {most:,} texts and thoughts; the others are one text and one thought"
        tally.add(THOUGHTS_MERGED, at, text, each="")
        for kind in _SPOKEN_KINDS:
            if texts := [block.text for block in rest if type(block) is kind]:
                blocks.append(kind("".join(texts)))
    return blocks


def visible(text: str) -> str:
    """What of a text is to be seen: all of it, less the thoughts that its tags hide."""
    if "<" not in text:
        return text
    blocks, unclosed = split_thinking(text)
    if unclosed is None and all(type(block) is TextBlock for block in blocks):
        return text
    return "".join([block.text for block in blocks if type(block) is TextBlock]).strip()


def has_visible_text(text: str) -> bool:
    """Whether there is anything to see in a text: not only white space, and not only what thinking tags hide."""
    return bool(visible(text).strip())


def note_unclosed(text: str, at: At) -> list[Note]:
    """The note for an answer of which a tag without an end hides the rest."""
    if "<" not in text or split_thinking(text)[1] is None:
        return []
    return [Note(UNCLOSED_THINKING_TAG, pointer(*at), "the last thought has no closing tag; it is not in the answer")]


def split_thoughts_of_part(text: str, tally: NoteTally, at: At, most: int = MOST_PIECES) -> list[Spoken]:
    """The same for a text that is a part of its own: empty, it is still there."""
    return split_thoughts(text, tally, at, most) or [TextBlock("")]


def texts_with_tags(blocks: Sequence[Spoken]) -> list[str]:
    """One text for each block: the visible text itself, a thought in its tag."""
    return [block.text if type(block) is TextBlock else weave_thought(block.text) for block in blocks]


def reads_back(texts: Sequence[str], blocks: Sequence[Spoken]) -> bool:
    """Whether these texts, each a part of its own, are read as exactly these blocks."""
    if all("<" not in text for text in texts):
        return len(texts) == len(blocks) and all(type(block) is TextBlock for block in blocks)
    found: list[Spoken] = []
    for text in texts:
        found += split_thoughts_of_part(text, NoteTally(), ())
    return found == list(blocks)
