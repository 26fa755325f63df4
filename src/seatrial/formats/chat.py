"""A list of chat items, each in the dialect that it is written in, read into the transcript's messages.

A *dialect* (`seatrial.formats.dialects`) knows one way of writing messages down: it says how sure it is that an item is
one of its own, and reads it with what this module offers. One list may hold several, and is read in one pass and in
order, so that results find their calls whoever wrote them.

What cannot be read gets a note. Dropping something that may be, or hold, a call is a serious one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from seatrial import wire
from seatrial.events.layout import Spoken
from seatrial.formats.call_facts import CallFacts, ExecutedBy
from seatrial.formats.calls import Call, encoded_twice_note, generated_id, generated_id_note, read_call
from seatrial.formats.keys import KEY_DROPPED, KEYS_WITHOUT_CALLS, may_hold_call
from seatrial.formats.limits import most_pieces, note_cut
from seatrial.formats.pairing import Pairing
from seatrial.formats.parts import At, dropped_part, json_kind, read_part, read_text
from seatrial.formats.tally import NoteTally
from seatrial.formats.weaving import unweave, unweave_part
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    Note,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultBlock,
    ToolResultMessage,
    Usage,
    UserBlock,
    UserMessage,
    Weight,
    note_code,
    pointer,
)
from seatrial.transcript.arguments import arguments_note
from seatrial.transcript.failure import find_failure
from seatrial.transcript.salvage import CONTENT_RESHAPED, MAX_TIMESTAMP, MESSAGE_DROPPED, VALUE_DROPPED

MESSAGES_MISSING = note_code(
    "messages_missing", "The source has no messages; one assistant message with the answer is used instead.", "harmless"
)
MESSAGES_INVALID = note_code("messages_invalid", "The messages are not an array; they were ignored.", "serious")
MESSAGE_DROPPED_NO_ROLE = note_code(
    "message_dropped_no_role", "A message has no role; it was dropped, the rest stays.", "serious"
)
MESSAGE_OF_ANOTHER_FORMAT = note_code(
    "message_of_another_format",
    "An entry among the messages belongs to a format that is recognised and not read; it was dropped.",
    "serious",
)
ROLE_READ_AS = note_code("role_read_as", "A role with another name was read as the one it means.", "harmless")
TOOL_CALLS_INVALID = note_code("tool_calls_invalid", "The tool calls are not an array; they were ignored.", "serious")
CALLS_OUTSIDE_ASSISTANT = note_code(
    "calls_outside_assistant",
    "A message of another role has tool calls; they follow it as an assistant message.",
    "look",
)
TOOL_RESULT_REPEATED = note_code(
    "tool_result_repeated",
    "A result came inside its call and again as a message; if they are equal, one is kept.",
    "look",
)
Piece: TypeAlias = AssistantBlock | ImageBlock | ToolResultMessage
"""What a part of a message's content comes to."""

_NO_CALLS: Mapping[str, str] = {}
_SAYS_NOTHING: tuple[Any, ...] = (None, "", [], {}, False, 0)


def messages_from_objects(
    messages: Iterable[Any],
    notes: list[Note],
    *,
    at: At = (),
    facts: dict[str, CallFacts] | None = None,
    size: int | None = None,
) -> list[Message]:
    """Messages of a list that is decoded already; what was dropped or guessed is noted.

    What is said of calls beyond the transcript's fields goes to `facts`, by call id; `size` is that of the record.
    """
    tally = NoteTally(size)
    chat = Chat(tally)
    chat.read_all(messages, at)
    notes += tally.total()
    if facts is not None:
        facts.update(chat.facts)
    return chat.messages


class Chat:
    """The messages of one conversation so far. Dialects add to it."""

    def __init__(self, tally: NoteTally, messages: list[Message] | None = None) -> None:
        self.messages: list[Message] = [] if messages is None else messages
        self.tally = tally
        self.facts: dict[str, CallFacts] = {}
        """What is known of calls beyond the transcript's fields, by call id."""
        self.turns: set[str] = set()
        """Ids of the turns so far, where a dialect has them."""
        self.prompt: str | None = None
        """The latest prompt, where a dialect repeats it in every request."""
        self.is_single_turn = False
        """Whether all that is read is one response of a model, or one message."""
        self._pairing = Pairing()
        self._turn: AssistantMessage | None = None
        self._turn_calls = False
        """The turn that further items may belong to, where a dialect writes a turn in several items."""
        self._after_turn: list[ToolResultMessage] = []
        """Results that came inside the items of that turn."""
        self._pieces_read = 0
        self._most_pieces = most_pieces(tally.size)
        self._thoughts_left = self._most_pieces
        """How many more pieces thinking tags may make of texts."""
        self._inside: dict[str, ToolResultMessage] = {}
        """Results that came inside their calls, by id."""

    def read_all(self, items: Iterable[Any], at: At = ()) -> None:
        """Read a whole list."""
        for index, item in enumerate(items):
            if not self.takes_piece((*at, index)):
                break
            self.read(item, (*at, index))
        self.close_turn()

    def read(self, item: Any, at: At) -> None:
        """Append the messages that one item stands for."""
        # Here, because dialects need this module.
        from seatrial.formats.dialects import find_dialect

        if type(item) is not dict:
            self.tally.add(MESSAGE_DROPPED, at, f"expected a message, got {json_kind(item)}")
            return
        dialect = find_dialect(item)
        if dialect is not None:
            dialect.read(item, self, at)
            return
        from seatrial.formats.foreign import recognise_item

        if (name := recognise_item(item)) is not None:
            message = f"this is {name}, which Seatrial does not read as a message"
            self.tally.add(MESSAGE_OF_ANOTHER_FORMAT, at, message)
        elif type(item.get("type")) is str:
            kind = item["type"][:40]
            self.tally.add(MESSAGE_DROPPED, at, f"dropped an entry of the unknown type {kind!r}")
        else:
            self.tally.add(MESSAGE_DROPPED_NO_ROLE, at, "dropped a message without a role")

    def read_answer(self, said: dict[str, Any], at: At) -> AssistantMessage:
        """Append the message of a model's response, which is the assistant's whatever role it names."""
        self.read({**said, "role": "assistant"}, at)
        return next(message for message in reversed(self.messages) if type(message) is AssistantMessage)

    # Whole messages

    def add(self, message: Message) -> None:
        """Append a message; a turn that was open ends before it."""
        self.close_turn()
        self.messages.append(message)

    def add_assistant(self, pieces: Iterable[Piece], at: At, timestamp: int | None = None) -> AssistantMessage:
        """Append a turn of the agent; results among the pieces follow it. Its calls say why it stopped."""
        blocks, results = self._apart(pieces, at)
        message = AssistantMessage(blocks, _stop_reason(blocks), None, timestamp)
        self.add(message)
        self.messages += results
        return message

    def extend_turn(self, pieces: Iterable[Piece], at: At) -> AssistantMessage:
        """Add to the open turn of the agent, or begin one: for dialects that write a turn in several items."""
        blocks, results = self._apart(pieces, at)
        if self._turn is None:
            self.close_turn()
            self._turn = AssistantMessage([], StopReason.END_TURN)
            self.messages.append(self._turn)
            self._turn_calls = False
        for block in blocks:
            add_block(self._turn.content, block)
            # Not by looking at all blocks again: a turn may come in very many items.
            self._turn_calls = self._turn_calls or type(block) is ToolCall
        self._turn.stop_reason = StopReason.TOOL_USE if self._turn_calls else StopReason.END_TURN
        self._after_turn += results
        return self._turn

    def close_turn(self) -> None:
        """The open turn is over: what its own calls brought follows it."""
        self._turn = None
        if self._after_turn:
            self.messages += self._after_turn
            self._after_turn = []

    def add_user(self, content: Any, at: At, timestamp: int | None = None) -> None:
        """Append what the user said. Tool results among its parts become messages of their own, in their place."""
        if type(content) is not list:
            text = "" if content is None else read_text(content, at, self.tally.notes)
            self.add(UserMessage(text, timestamp))
            return
        self.add_user_pieces(self.pieces(content, at, agent=False), at, timestamp)

    def add_user_pieces(self, pieces: Iterable[Piece], at: At, timestamp: int | None = None) -> None:
        """The same for content that is read already; calls in it count as the agent's."""
        blocks: list[UserBlock] = []
        others = 0
        for piece in pieces:
            if type(piece) is TextBlock or type(piece) is ImageBlock:
                blocks.append(piece)
                continue
            others += 1
            if blocks:
                self.add(UserMessage(blocks, timestamp))
                blocks = []
            if type(piece) is ToolResultMessage:
                self.add(piece)
            elif type(piece) is ToolCall:
                self.tally.add(CALLS_OUTSIDE_ASSISTANT, at, "a tool call in a message of the user", each="user")
                self.add(AssistantMessage([piece], StopReason.TOOL_USE))
            else:
                self.tally.notes.append(dropped_part({"type": "reasoning"}, at))
        if blocks or not others:
            self.add(UserMessage(blocks, timestamp))

    def add_system(self, text: str, timestamp: int | None = None) -> None:
        """Append a prompt."""
        self.prompt = text
        self.add(SystemMessage(text, timestamp))

    def add_custom(self, kind: str, payload: Any, timestamp: int | None = None) -> None:
        """Append a message that is kept whole."""
        self.add(CustomMessage(kind, payload, timestamp))

    def add_result(self, message: ToolResultMessage, at: At) -> None:
        """Append a tool's result, unless the same came inside its call already."""
        inside = self._inside.pop(message.tool_call_id, None)
        if inside is not None:
            text = f"call {message.tool_call_id[:40]!r} has a result inside it already"
            self.tally.add(TOOL_RESULT_REPEATED, at, text)
            if inside.content == message.content and inside.is_error == message.is_error:
                return
        self.add(message)

    # Pieces of messages

    def spoken(self, text: str, at: At) -> list[AssistantBlock]:
        """Text of the agent: what is visible, and the thoughts that its tags hide."""
        return [*self._counted(unweave(text, self.tally, at, self._thoughts_left))]

    def pieces(self, content: Any, at: At, *, agent: bool, known_calls: Mapping[str, str] = _NO_CALLS) -> list[Piece]:
        """What a content comes to: text, or parts of any dialect.

        What repeats one of the `known_calls` (names by id) is left out.
        """
        if content is None:
            return []
        if agent and type(content) is dict and self._is_part(content):
            self.tally.add(CONTENT_RESHAPED, at, "the content is one part, not an array of them", each="")
            return [*self.part_pieces(content, at, agent=True, known_calls=repeatable_calls(content, known_calls))]
        if type(content) is not list:
            text = read_text(content, at, self.tally.notes)
            if agent and may_hold_call("content", content):
                self.tally.notes.append(dropped_part(content, at))
            return [*self.spoken(text, at)] if agent else [TextBlock(text)]
        pieces: list[Piece] = []
        for index, part in enumerate(content):
            if not self.takes_piece((*at, index)):
                break
            for piece in self.part_pieces(
                part, (*at, index), agent=agent, known_calls=repeatable_calls(part, known_calls)
            ):
                if type(piece) is ReasoningDetailsBlock and pieces and type(pieces[-1]) is ReasoningDetailsBlock:
                    pieces[-1].details.extend(piece.details)
                else:
                    pieces.append(piece)
        return pieces

    def takes_piece(self, at: At) -> bool:
        """Count a message, a part, a call or a result; False, with a note, when there were too many already."""
        self._pieces_read += 1
        if self._pieces_read <= self._most_pieces:
            return True
        note_cut(self.tally, at, self._most_pieces)
        return False

    def _counted(self, blocks: list[Spoken]) -> list[Spoken]:
        self._thoughts_left = max(0, self._thoughts_left - len(blocks) + 1)  # a text is a piece in any case
        return blocks

    def part_pieces(
        self, part: Any, at: At, *, agent: bool, known_calls: Container[str] = frozenset()
    ) -> Iterable[Piece]:
        """What one part of a content comes to."""
        from seatrial.formats.dialects import find_part_reader

        if type(part) is dict and (reader := find_part_reader(part)) is not None:
            pieces = reader(part, self, at, known_calls)
            return self._without_images(pieces, part, at) if agent else pieces
        block = read_part(part)
        if type(block) is TextBlock and agent:
            self._note_part(part, at, agent=agent)
            return self._counted(unweave_part(block.text, self.tally, at, self._thoughts_left))
        if block is None or (agent and type(block) is ImageBlock):
            self.tally.notes.append(dropped_part(part, at))
            return ()
        self._note_part(part, at, agent=agent)
        return (block,)

    def _without_images(self, pieces: Iterable[Piece], part: dict[str, Any], at: At) -> list[Piece]:
        """What an agent said, less the images that it made, which have no place in its messages."""
        read = [*pieces]
        kept = [piece for piece in read if type(piece) is not ImageBlock]
        if len(kept) < len(read):
            self.tally.notes.append(dropped_part({**part, "type": "image"}, at))
        return kept

    def _is_part(self, content: dict[str, Any]) -> bool:
        from seatrial.formats.dialects import find_part_reader

        return find_part_reader(content) is not None or read_part(content) is not None

    def _note_part(self, part: Any, at: At, *, agent: bool) -> None:
        if type(part) is dict:
            self.note_keys(part, _PART_KEYS, at, agent=agent)
            if agent:
                self.note_calls_in_known(part, _PART_KEYS - {"type", "text"}, at)
            if type(image := part.get("image_url")) is dict:
                self.note_keys(image, _IMAGE_KEYS, (*at, "image_url"), agent=agent)

    def call(
        self,
        call: Call,
        at: At,
        *,
        answered: bool = False,
        executed_by: ExecutedBy = "agent",
    ) -> ToolCall:
        """The block for a call, which results find from now on; `answered` where it brings its own."""
        if call.not_json:
            self.tally.notes.append(arguments_note(call.arguments, pointer(*at), call.name))
        if call.encoded_twice:
            self.tally.notes.append(encoded_twice_note(pointer(*at), call.name))
        call_id = call.id
        if call_id is None:
            call_id = generated_id(at)
            while self.has_call(call_id):  # a message may list calls under several keys
                call_id += "_"
            # A call that brings its own result needs no id to be paired with it.
            if not answered:
                self.tally.notes.append(generated_id_note(pointer(*at), call.name, call_id))
        self._pairing.called(call_id, call.name, answered=answered)
        if executed_by != "agent":
            self.set_facts(call_id, executed_by=executed_by)
        return ToolCall(call_id, call.name, call.arguments)

    def has_call(self, call_id: Any) -> bool:
        """Whether a call of that id was read already."""
        return type(call_id) is str and self._pairing.name_of(call_id) is not None

    def set_facts(self, call_id: str, **facts: Any) -> None:
        """Note down what is known of a call beside its block."""
        known = self.facts.get(call_id)
        self.facts[call_id] = CallFacts(**facts) if known is None else msgspec.structs.replace(known, **facts)

    def result(self, call_id: Any, name: Any, at: At, *, by_name: bool = False) -> ToolResultMessage:
        """An empty result for the call with that id; without one, for the oldest call that waits (of that name)."""
        return self._pairing.answered(
            call_id if type(call_id) is str else None,
            name if type(name) is str else None,
            at,
            self.tally.notes,
            by_name=by_name,
        )

    def inside_result(self, call: ToolCall, output: Any, at: At) -> ToolResultMessage:
        """The result that came inside a call."""
        message = ToolResultMessage(call.id, call.name, [])
        self.fill(message, output, at)
        self._inside[call.id] = message
        return message

    def fill(self, message: ToolResultMessage, output: Any, at: At) -> None:
        """Give a result its content. A value that is not text is kept as its JSON text and as the value it is."""
        if type(output) is str:
            message.content = [TextBlock(output)]
        elif type(output) is list and output and all(_is_part(part) for part in output):
            message.content = self.result_blocks(output, at)
        elif output is not None:
            message.content = [TextBlock(wire.encode(output).decode())]
            message.details = output

    def result_blocks(self, content: Any, at: At) -> list[ToolResultBlock]:
        """The text and the images of a tool's content."""
        if content is None:
            return []
        if type(content) is not list:
            return [TextBlock(read_text(content, at, self.tally.notes))]
        blocks: list[ToolResultBlock] = []
        for index, part in enumerate(content):
            if not self.takes_piece((*at, index)):
                break
            block = read_part(part)
            if type(block) is TextBlock or type(block) is ImageBlock:
                blocks.append(block)
            elif type(part) is dict and part:
                # A result holds no call of the agent's, so its other parts are kept as what they are.
                blocks.append(TextBlock(wire.encode(part).decode()))
            else:
                self.tally.notes.append(dropped_part(part, (*at, index)))
        return blocks

    def mark_failure(self, message: ToolResultMessage, said: dict[str, Any]) -> None:
        """Mark a result as failed when the keys beside it say so, and keep what they say."""
        failure = find_failure(said)
        if failure is None:
            return
        message.is_error = message.is_error or failure.status != "unknown"
        if not message.content and failure.error is not None:
            message.content = [TextBlock(failure.error)]
        if message.tool_call_id:
            self.set_facts(message.tool_call_id, status=failure.status, error=failure.error)

    # What surrounds them

    def note_keys(self, item: dict[str, Any], known: frozenset[str], at: At, *, agent: bool) -> None:
        """Note every key but the known ones; serious where a call of the agent's may stand under one."""
        for key, value in item.items():
            if key not in known:
                self.drop_key(key, value, at, agent=agent)

    def drop_key(self, key: str, value: Any, at: At, *, agent: bool) -> None:
        """Note that a key has no place in the transcript, unless its value says nothing."""
        if value in _SAYS_NOTHING:
            return
        nested = type(value) is dict or type(value) is list
        weight: Weight = "serious" if agent and nested and key not in KEYS_WITHOUT_CALLS else "harmless"
        if (key in ("metadata", "metrics") or _is_retrieval(key, value)) and not may_hold_call(key, value):
            weight = "harmless"  # anybody writes anything there, so it is looked at
        self.tally.add(KEY_DROPPED, (*at, key), f"dropped the key {key[:100]!r}", each=f"{key} {weight}", weight=weight)

    def note_calls_in(self, key: str, value: Any, at: At) -> None:
        """Note what looks like calls under a key that was read as something else."""
        if may_hold_call(key, value):
            text = f"what stands under {key[:100]!r} looks like calls, and was not read as such"
            self.tally.add(KEY_DROPPED, (*at, key), text, each=f"{key} calls", weight="serious")

    def note_calls_in_known(self, item: dict[str, Any], keys: frozenset[str], at: At) -> None:
        """The same for known keys that are not meant to hold any."""
        for key, value in item.items():
            if key in keys and (type(value) is dict or type(value) is list):
                self.note_calls_in(key, value, at)

    def timestamp(self, value: Any, at: At) -> int | None:
        """Milliseconds since the epoch, out of those or out of ISO 8601."""
        if value is None:
            return None
        milliseconds = value if type(value) is int else _milliseconds(value)
        if milliseconds is not None and 0 <= milliseconds <= MAX_TIMESTAMP:
            return milliseconds
        self.tally.add(VALUE_DROPPED, at, "expected milliseconds since the epoch, or ISO 8601 with an offset")
        return None

    def add_usage(self, message: AssistantMessage, usage: Any, at: At) -> None:
        """Give a turn its token counts, by whatever names they have."""
        from seatrial.formats.usage import read_usage

        if usage is None:
            return
        counts = read_usage(usage)
        if counts is None:
            self.tally.add(VALUE_DROPPED, at, f"expected token counts, got {json_kind(usage)}", each="usage")
        elif message.usage is None:
            message.usage = counts
        else:
            message.usage = Usage(
                *[getattr(message.usage, field) + getattr(counts, field) for field in Usage.__struct_fields__]
            )

    def _apart(self, pieces: Iterable[Piece], at: At) -> tuple[list[AssistantBlock], list[ToolResultMessage]]:
        blocks: list[AssistantBlock] = []
        results: list[ToolResultMessage] = []
        for piece in pieces:
            if type(piece) is ToolResultMessage:
                results.append(piece)
            elif type(piece) is ImageBlock:
                self.tally.notes.append(dropped_part({"type": "image"}, at))
            else:
                add_block(blocks, piece)  # type: ignore[arg-type]
        return blocks, results


def add_block(blocks: list[AssistantBlock], block: AssistantBlock) -> None:
    """Append a block; details that follow each other are one block, as providers send them."""
    if type(block) is ReasoningDetailsBlock and blocks and type(last := blocks[-1]) is ReasoningDetailsBlock:
        last.details.extend(block.details)
    else:
        blocks.append(block)


def repeatable_calls(part: Any, known_calls: Mapping[str, str]) -> Container[str]:
    """Which of the calls a part may repeat: a call of another name is another call, whatever its id."""
    call = read_call(part) if known_calls else None
    if call is not None and call.id is not None and known_calls.get(call.id, call.name) != call.name:
        return frozenset()
    return known_calls.keys()


def _is_retrieval(key: str, value: Any) -> bool:
    """Whether this is what Azure's models on your own data found, and not any other `context`."""
    return key == "context" and type(value) is dict and _RETRIEVAL.issuperset(value)


def _stop_reason(blocks: list[AssistantBlock]) -> StopReason:
    return StopReason.TOOL_USE if any(type(block) is ToolCall for block in blocks) else StopReason.END_TURN


def _is_part(part: Any) -> bool:
    return type(part) is dict and type(part.get("type")) is str


def _milliseconds(given: Any) -> int | None:
    if type(given) is not str:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        return None
    # A time without an offset could be anyone's.
    return None if moment.tzinfo is None else (moment - _EPOCH) // timedelta(milliseconds=1)


_PART_KEYS = frozenset(
    {"type", "text", "refusal", "image_url", "source", "url", "media_type", "alt", "thinking", "reasoning", "signature",
     "data", "id", "index", "detail", "state", "format"}
)  # fmt: skip
_IMAGE_KEYS = frozenset({"url"})
_RETRIEVAL = frozenset({"citations", "intent", "all_retrieved_documents"})
_EPOCH = datetime.fromtimestamp(0, UTC)
