"""Messages of Bedrock's Converse API, which Strands agents keep as well: the key of a content block is its type.

| wire | transcript |
| --- | --- |
| `toolUse` | tool call; one that the provider ran where its `type` is `server_tool_use` |
| `toolResult` | tool result, in its place among the rest; `status: error` is a failed one |
| `reasoningContent`: `reasoningText` | native reasoning text; with a signature, native reasoning details |
| `reasoningContent`: `redactedContent` | native reasoning details |
| `text`, `citationsContent`, `guardContent` | text |
| `image` | image |
| `document`, `video`, `audio`, `searchResult` | nothing, with a note |
| `cachePoint` | nothing: it says nothing |
| `metadata.usage` (Strands) | token counts |
"""

from __future__ import annotations

from typing import Any, Final

from seatrial._support import wire
from seatrial.formats.chat.calls import Call, ListedCalls, nameless_note, set_arguments
from seatrial.formats.chat.content import NOT_LISTED, ContentReader, Piece
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.parts import dropped_part, read_text
from seatrial.formats.chat.reader import Chat
from seatrial.transcript import ImageBlock, ReasoningBlock, TextBlock, ToolResultBlock, pointer
from seatrial.transcript.reasoning import ReasoningEncrypted, ReasoningFormat, ReasoningText, from_items

# The only models of Bedrock that sign or encrypt their reasoning are Anthropic's.
_FORMAT: Final = ReasoningFormat.ANTHROPIC_CLAUDE_V1
_ROLES: Final = frozenset({"user", "assistant", "system"})
_KEYS: Final = frozenset({"role", "content", "metadata", "tracking_id", "id"})
_METADATA_KEYS: Final = frozenset({"usage", "metrics"})
_USE_KEYS: Final = frozenset({"toolUseId", "name", "input", "type", "reasoningSignature"})
_RESULT_KEYS: Final = frozenset({"toolUseId", "content", "status", "type"})

PARTS: Final[dict[str, Any]] = {}


def fits(item: dict[str, Any]) -> int:
    """A message with a block that no other API has, or with blocks of text that have no type."""
    role, content = item.get("role"), item.get("content")
    if type(role) is not str or role not in _ROLES or type(content) is not list:
        return 0
    untyped = [part for part in content if type(part) is dict and "type" not in part]
    if any(not MEMBERS.keys().isdisjoint(part) for part in untyped):
        return 3
    return 2 if untyped and len(untyped) == len(content) and all("text" in part for part in untyped) else 0


def read(item: dict[str, Any], chat: Chat, at: At) -> None:
    """Add the messages that one message stands for."""
    role, content = item["role"], (*at, "content")
    if role == "system":
        read_system(item["content"], chat, content)
    elif role == "user":
        chat.add_user(item["content"], content)
    else:
        message = chat.add_assistant(chat.pieces(item["content"], content, agent=True), content)
        metadata = item.get("metadata")
        if type(metadata) is dict:
            chat.add_usage(message, metadata.get("usage"), (*at, "metadata", "usage"))
            chat.note_keys(metadata, _METADATA_KEYS, (*at, "metadata"), agent=True)
        else:
            chat.note_calls_in("metadata", metadata, at)
    chat.note_keys_of_message(item, _KEYS, at, agent=role == "assistant")
    if role != "assistant":
        chat.note_calls_in("metadata", item.get("metadata"), at)


def read_system(content: Any, chat: Chat, at: At) -> None:
    """Add a prompt: text, or a message for each block of text."""
    for index, piece in enumerate(chat.pieces(content, at, agent=False)):
        if type(piece) is TextBlock:
            chat.add_system(piece.text)
        else:
            chat.tally.notes.append(dropped_part({"type": "other"}, (*at, index)))


def _block(part: dict[str, Any], chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    """A block has one key, but one that has more hides nothing."""
    pieces: list[Piece] = []
    for key, value in part.items():
        reader = _READERS.get(key)
        if reader is None:
            chat.drop_key(key, value, at, agent=True)
        else:
            pieces += reader(value, chat, (*at, key), listed)
            if key not in _CALLING:
                chat.note_calls_in(key, value, at)
    return pieces


def _text(text: Any, chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    return [TextBlock(read_text(text, at, chat.tally.notes))]


def _tool_use(use: Any, chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    name = use.get("name") if type(use) is dict else None
    if type(name) is not str or not name:
        chat.tally.notes.append(nameless_note(pointer(*at)))
        return []
    call_id = use.get("toolUseId")
    call = Call(name, {}, call_id if type(call_id) is str and call_id else None)
    set_arguments(call, use.get("input", {}))
    if listed.repeats(call):
        return []
    chat.note_keys(use, _USE_KEYS, at, agent=True)
    by_provider = use.get("type") == "server_tool_use"
    block = chat.call(call, at, executed_by="provider" if by_provider else "agent")
    signature = use.get("reasoningSignature")
    if type(signature) is not str:
        return [block]
    # Strands keeps the signature of Gemini models beside the call that they made.
    signed = ReasoningEncrypted(id=block.id, format=ReasoningFormat.GOOGLE_GEMINI_V1, data=signature)
    return [from_items([signed]), block]


def _tool_result(result: Any, chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    if type(result) is not dict:
        chat.tally.notes.append(dropped_part(result, at))
        return []
    message = chat.result(result.get("toolUseId"), None, at)
    content = result.get("content")
    if type(content) is list:
        chat.note_calls_in_result(content, (*at, "content"))
        message.content = [_result_block(part, chat, (*at, "content", index)) for index, part in enumerate(content)]
        values = [part["json"] for part in content if type(part) is dict and "json" in part]
        if len(values) == len(content) == 1:
            message.details = values[0]
    elif content is not None:
        chat.fill(message, content, (*at, "content"))
    chat.note_keys_of_message(result, _RESULT_KEYS, at, agent=False)
    chat.mark_failure(message, result)
    return [message]


def _result_block(part: Any, chat: ContentReader, at: At) -> ToolResultBlock:
    if type(part) is dict:
        if type(text := part.get("text")) is str:
            return TextBlock(text)
        if "json" in part:
            return TextBlock(wire.encode(part["json"]).decode())
        if (image := _read_image(part.get("image"))) is not None:
            return image
    return TextBlock(wire.encode(part).decode())


def read_reasoning(content: Any, chat: ContentReader, at: At, _: ListedCalls = NOT_LISTED) -> list[Piece]:
    """Reasoning in words, signed or not, and reasoning that only the provider can read."""
    given = content if type(content) is dict else {}
    said = given.get("reasoningText")
    text = said.get("text") if type(said) is dict else None
    signature = said.get("signature") if type(said) is dict else None
    redacted = _bytes(given.get("redactedContent"))
    pieces: list[Piece] = []
    if type(text) is str:
        if type(signature) is str:
            pieces.append(from_items([ReasoningText(format=_FORMAT, text=text, signature=signature)]))
        else:
            pieces.append(ReasoningBlock(text))
    if redacted is not None:
        pieces.append(from_items([ReasoningEncrypted(format=_FORMAT, data=redacted)]))
    if not pieces:
        chat.tally.notes.append(dropped_part({"type": "reasoningContent"}, at))
    return pieces


def _citations(content: Any, chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    texts = content.get("content") if type(content) is dict else None
    return _plain_texts(texts if type(texts) is list else [content], chat, at)


def _guarded(content: Any, chat: ContentReader, at: At, listed: ListedCalls) -> list[Piece]:
    given = content if type(content) is dict else {}
    if type(given.get("image")) is dict:
        return _image(given["image"], chat, (*at, "image"), listed)
    return _plain_texts([given.get("text")], chat, at)


def _plain_texts(entries: list[Any], chat: ContentReader, at: At) -> list[Piece]:
    pieces: list[Piece] = []
    for entry in entries:
        text = entry.get("text") if type(entry) is dict else entry
        if type(text) is str:
            pieces.append(TextBlock(text))
        else:
            chat.tally.notes.append(dropped_part(entry, at))
    return pieces


def _image(image: Any, chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    if (block := _read_image(image)) is not None:
        return [block]
    chat.tally.notes.append(dropped_part({"type": "image", "source": image}, at))
    return []


def _read_image(image: Any) -> ImageBlock | None:
    source = image.get("source") if type(image) is dict else None
    if type(source) is not dict:
        return None
    format = image.get("format")
    media_type = f"image/{format}" if type(format) is str else None
    if (data := _bytes(source.get("bytes"))) is not None:
        return ImageBlock(f"data:{media_type or 'image/png'};base64,{data}", media_type)
    location = source.get("s3Location") or source.get("location")
    uri = location.get("uri") if type(location) is dict else None
    return ImageBlock(uri, media_type) if type(uri) is str else None


def _bytes(value: Any) -> str | None:
    """Bytes are base64 in JSON; Strands marks them as such."""
    found = value.get("data") if type(value) is dict else value
    return found if type(found) is str else None


def _media(value: Any, chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    chat.tally.notes.append(dropped_part({"type": str(at[-1]), "source": value}, at))
    return []


def _nothing(value: Any, chat: ContentReader, at: At, _: ListedCalls) -> list[Piece]:
    return []


_READERS: Final = {
    "text": _text,
    "toolUse": _tool_use,
    "toolResult": _tool_result,
    "reasoningContent": read_reasoning,
    "citationsContent": _citations,
    "guardContent": _guarded,
    "image": _image,
    "document": _media,
    "video": _media,
    "audio": _media,
    "searchResult": _media,
    "cachePoint": _nothing,
}
_CALLING: Final = frozenset({"toolUse", "toolResult", "cachePoint"})
MEMBERS: Final[dict[str, Any]] = {key: _block for key in _READERS if key != "text"}
