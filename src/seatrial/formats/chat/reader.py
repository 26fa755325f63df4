"""A list of chat items, each in the dialect that it is written in, read into the transcript's messages.

A *dialect* (`seatrial.formats.dialects`) knows one way of writing messages down: it says how sure it is that an item is
one of its own, and reads it with what this module offers. One list may hold several, and is read in one pass and in
order, so that results find their calls whoever wrote them.

What cannot be read gets a note. Dropping something that may be, or hold, a call is a serious one.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from seatrial.formats.chat.calls import PlacedFacts
from seatrial.formats.chat.content import ContentReader, Piece, add_block
from seatrial.formats.chat.notes import At, NoteTally, json_kind
from seatrial.formats.chat.parts import dropped_part, read_text
from seatrial.formats.chat.turn import CALL_MISSING, read_usage
from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    Note,
    StopReason,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserBlock,
    UserMessage,
    note_code,
)
from seatrial.transcript.pairing import OpenCalls
from seatrial.transcript.salvage import MAX_TIMESTAMP, MESSAGE_DROPPED, VALUE_DROPPED

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


def messages_from_objects(
    messages: Iterable[Any],
    notes: list[Note],
    *,
    at: At = (),
    facts: list[PlacedFacts] | None = None,
    size: int | None = None,
) -> list[Message]:
    """Messages of a list that is decoded already; what was dropped or guessed is noted.

    What is said of calls beyond the transcript's fields goes to `facts`; `size` is that of the record.
    """
    tally = NoteTally(size)
    chat = Chat(tally)
    chat.read_all(messages, at)
    notes += tally.total()
    found = chat.finish()
    if facts is not None:
        facts += found
    return chat.messages


class Chat(ContentReader):
    """The messages of one conversation so far. Dialects add to it."""

    def __init__(self, tally: NoteTally, messages: list[Message] | None = None) -> None:
        super().__init__(tally)
        self.messages: list[Message] = [] if messages is None else messages
        self.turns: set[str] = set()
        """Ids of the turns so far, where a dialect has them."""
        self.prompt: str | None = None
        """The latest prompt, where a dialect repeats it in every request."""
        self.is_single_turn = False
        """Whether all that is read is one response of a model, or one message."""
        self._turn: AssistantMessage | None = None
        """The turn that further items may belong to, where a dialect writes a turn in several items."""
        self._turn_calls = False
        """Whether that turn has a call."""
        self._after_turn: list[ToolResultMessage] = []
        """Results that came inside the items of that turn."""

    def read_all(self, items: Iterable[Any], at: At = ()) -> None:
        """Read a whole list."""
        for index, item in enumerate(items):
            place = (*at, index)
            if not self.takes_piece(place):
                break
            self.read(item, place)
        self.close_turn()

    def finish(self) -> list[PlacedFacts]:
        """End the reading; returns what is known of calls beyond the messages, by the places that they now have."""
        if self._pairing.unnamed:
            self._name_results(self._pairing.unnamed)
        if not self._facts:
            return []
        placed: list[PlacedFacts] = []
        for index, message in enumerate(self.messages):
            if type(message) is AssistantMessage:
                said: Iterable[ToolCall | ToolResultMessage] = message.tool_calls()
            else:
                said = (message,) if type(message) is ToolResultMessage else ()
            for number, each in enumerate(said):
                if (facts := self.facts_of(each)) is not None:
                    placed.append(PlacedFacts(index, facts, number))
        return placed

    def _name_results(self, unnamed: list[ToolResultMessage]) -> None:
        """Give these results the names of the tools that they are the results of."""
        without = {id(result) for result in unnamed}
        calls: OpenCalls[str] = OpenCalls()
        for message in self.messages:
            if type(message) is AssistantMessage:
                calls.add([(call.id, call.name, call.name) for call in message.tool_calls()])
            elif type(message) is ToolResultMessage:
                tool = calls.take(message.tool_call_id, None if id(message) in without else message.tool_name)
                message.tool_name = message.tool_name if tool is None else tool

    def read(self, item: Any, at: At) -> None:
        """Append the messages that one item stands for."""
        if type(item) is not dict:
            self.tally.add(MESSAGE_DROPPED, at, f"expected a message, got {json_kind(item)}")
            return
        dialect = self.dialects.find_dialect(item)
        if dialect is not None:
            dialect.read(item, self, at)
            return
        from seatrial.formats.unsupported import find_unsupported_item

        if (name := find_unsupported_item(item)) is not None:
            message = f"this is {name}, which Seatrial does not read as a message"
            self.tally.add(MESSAGE_OF_ANOTHER_FORMAT, at, message)
        elif type(item.get("type")) is str:
            kind = item["type"][:40]
            self.tally.add(MESSAGE_DROPPED, at, f"dropped an entry of the unknown type {kind!r}")
        else:
            self.tally.add(MESSAGE_DROPPED_NO_ROLE, at, "dropped a message without a role")

    def read_answer(self, said: dict[str, Any], at: At) -> AssistantMessage:
        """Append the message of a model's response, which is the assistant's whatever role it names."""
        before = len(self.messages)
        self.read({**said, "role": "assistant"}, at)
        self.close_turn()
        for message in reversed(self.messages[before:]):
            if type(message) is AssistantMessage:
                return message
        # By its `type` or its `kind` it is a tool's result, a request, or something else that no model answers.
        self.tally.add(MESSAGE_DROPPED, at, "the message of the response is not one of the assistant")
        return self.add_assistant([], at)

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
        if type(content) is not list and not self.is_dialect_part(content):
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

    def add_calls_of_others(self, pieces: Iterable[Piece], role: str, at: At) -> None:
        """Append the calls, and their results, of a message whose role makes none: they count as the agent's."""
        made = [piece for piece in pieces if type(piece) is ToolCall or type(piece) is ToolResultMessage]
        calls = [piece for piece in made if type(piece) is ToolCall]
        if calls:
            text = f"tool calls in a message of the role {role[:40]!r}"
            self.tally.add(CALLS_OUTSIDE_ASSISTANT, at, text, each=role)
            self.add(AssistantMessage([*calls], StopReason.TOOL_USE))
        here = {call.id for call in calls}
        for piece in made:
            if type(piece) is ToolResultMessage:
                if piece.tool_call_id in here:
                    self.add(piece)
                else:
                    self.add_result(piece, at)

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
            same = inside.content == message.content and inside.is_error == message.is_error
            if same and self.facts_of(message) in (None, self.facts_of(inside)):
                return
        self.add(message)

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
        if usage is None:
            return
        self.note_missing_calls(message, usage, at)
        counts = read_usage(usage)
        if counts is None:
            self.tally.add(VALUE_DROPPED, at, f"expected token counts, got {json_kind(usage)}", each="usage")
        elif message.usage is None:
            message.usage = counts
        else:
            message.usage = Usage(
                *[getattr(message.usage, field) + getattr(counts, field) for field in Usage.__struct_fields__]
            )

    def note_missing_calls(self, message: AssistantMessage, usage: Any, at: At) -> None:
        """Note that the provider counted more calls of its own tools than the message has."""
        counts = usage.get("server_tool_use") if type(usage) is dict else None
        counted = [count for count in counts.values() if type(count) is int] if type(counts) is dict else []
        if sum(counted) <= 0:
            return
        facts = [self.facts_of(call) for call in message.tool_calls()]
        here = sum(fact is not None and fact.executed_by == "provider" for fact in facts)
        if here < sum(counted):
            text = f"the provider counted {sum(counted)} calls of its own tools, and {here} are here"
            self.tally.add(CALL_MISSING, (*at, "server_tool_use"), text)

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


def _stop_reason(blocks: list[AssistantBlock]) -> StopReason:
    for block in blocks:
        if type(block) is ToolCall:
            return _TOOL_USE
    return _END_TURN


def _milliseconds(given: Any) -> int | None:
    if type(given) is not str:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        return None
    # A time without an offset could be anyone's.
    return None if moment.tzinfo is None else (moment - _EPOCH) // timedelta(milliseconds=1)


_EPOCH = datetime.fromtimestamp(0, UTC)
# Looking a member up in its enumeration takes as long as making the message that it is for.
_TOOL_USE = StopReason.TOOL_USE
_END_TURN = StopReason.END_TURN
