"""What messages are made of: contents in any dialect, their parts, calls and results, and the keys beside them.

What cannot be read gets a note. Dropping something that may be, or hold, a call is a serious one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

from seatrial._support import wire
from seatrial.events.layout import Spoken
from seatrial.formats.chat.calls import (
    Call,
    CallFacts,
    ExecutedBy,
    ListedCalls,
    Pairing,
    generated_id,
    generated_id_note,
)
from seatrial.formats.chat.hidden_calls import (
    CALLS_IN_RESULT,
    KEY_DROPPED,
    KEYS_WITHOUT_CALLS,
    KnownCalls,
    holds_written_call,
    may_hold_call,
    may_hold_call_under,
)
from seatrial.formats.chat.limits import most_pieces, note_cut
from seatrial.formats.chat.notes import At, NoteTally
from seatrial.formats.chat.parts import dropped_part, read_part, read_text, split_thoughts, split_thoughts_of_part
from seatrial.transcript import (
    AssistantBlock,
    ImageBlock,
    ReasoningDetailsBlock,
    TextBlock,
    ToolCall,
    ToolResultBlock,
    ToolResultMessage,
    Weight,
    pointer,
)
from seatrial.transcript.arguments import arguments_note, encoded_twice_note
from seatrial.transcript.failure import find_failure, find_failure_inside, is_failed_mcp_result, is_failed_part
from seatrial.transcript.salvage import CONTENT_RESHAPED

Piece: TypeAlias = AssistantBlock | ImageBlock | ToolResultMessage
"""What a part of a message's content is read as."""
NOT_LISTED: Final = ListedCalls()
_SAYS_NOTHING: tuple[Any, ...] = (None, "", [], {}, False, 0)
_PART_KEYS = frozenset(
    {"type", "text", "refusal", "image_url", "source", "url", "media_type", "alt", "thinking", "reasoning", "signature",
     "data", "id", "index", "detail", "state", "format"}
)  # fmt: skip
_PLAIN_IN_PART = _PART_KEYS - {"type", "text"}
_IMAGE_KEYS = frozenset({"url"})
_ANYTHING = frozenset({"extras", "internal", "metadata", "metrics", "provider_data"})
"""Keys under which anybody writes anything, so that it is looked at; `extras` is of LangChain, `internal` of Inspect,
`provider_data` of the OpenAI Agents SDK."""
_RETRIEVAL = frozenset({"citations", "intent", "all_retrieved_documents"})


class ContentReader:
    """Reads contents, calls and results, and remembers what later ones need: the calls so far, how much was read."""

    def __init__(self, tally: NoteTally) -> None:
        from seatrial.formats import dialects  # here, because dialects need this module

        self.dialects = dialects
        self.tally = tally
        self._facts: dict[int, tuple[ToolCall | ToolResultMessage, CallFacts]] = {}
        """What is known of calls beyond the transcript's fields: by identity of the call, or of its result."""
        self._pairing = Pairing()
        self._latest: dict[str, ToolCall] = {}
        """The calls so far by id, the last one where several have the same."""
        self._inside: dict[str, ToolResultMessage] = {}
        """Results that came inside their calls, by id."""
        self._pieces_read = 0
        self._most_pieces = most_pieces(tally.size)
        self._thoughts_left = self._most_pieces
        """How many more pieces thinking tags may make of texts."""

    def spoken(self, text: str, at: At) -> list[AssistantBlock]:
        """Text of the agent: what is visible, and the thoughts that its tags hide."""
        return [*self._counted(split_thoughts(text, self.tally, at, self._thoughts_left))]

    def pieces(self, content: Any, at: At, *, agent: bool, listed: ListedCalls = NOT_LISTED) -> list[Piece]:
        """What a content is read as: text, or parts of any dialect.

        What repeats one of the calls that are `listed` elsewhere in the message is left out.
        """
        if content is None:
            return []
        if type(content) is str:
            return [*self.spoken(content, at)] if agent else [TextBlock(content)]
        if self.is_dialect_part(content) or (agent and type(content) is dict and read_part(content) is not None):
            self.tally.add(CONTENT_RESHAPED, at, "the content is one part, not an array of them", each="")
            return [*self.part_pieces(content, at, agent=agent, listed=listed)]
        if type(content) is not list:
            text = read_text(content, at, self.tally.notes)
            if agent and may_hold_call("content", content):
                self.tally.notes.append(dropped_part(content, at))
            return [*self.spoken(text, at)] if agent else [TextBlock(text)]
        pieces: list[Piece] = []
        for index, part in enumerate(content):
            place = (*at, index)
            if not self.takes_piece(place):
                break
            for piece in self.part_pieces(part, place, agent=agent, listed=listed):
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

    def part_pieces(self, part: Any, at: At, *, agent: bool, listed: ListedCalls = NOT_LISTED) -> Iterable[Piece]:
        """What one part of a content is read as."""
        if type(part) is dict and (reader := self.dialects.find_part_reader(part)) is not None:
            pieces = reader(part, self, at, listed)
            return self._without_images(pieces, part, at) if agent else pieces
        block = read_part(part)
        if type(block) is TextBlock and agent:
            self._note_part(part, at, agent=agent)
            return self._counted(split_thoughts_of_part(block.text, self.tally, at, self._thoughts_left))
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

    def is_dialect_part(self, content: Any) -> bool:
        """Whether a content is one part that some dialect knows: a call, a result, a thought."""
        return type(content) is dict and self.dialects.find_part_reader(content) is not None

    def _note_part(self, part: Any, at: At, *, agent: bool) -> None:
        if type(part) is dict:
            self.note_keys_of_message(part, _PART_KEYS, at, agent=agent)
            self.note_calls_in_known(part, _PLAIN_IN_PART, at)
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
        block = self._latest[call_id] = ToolCall(call_id, call.name, call.arguments)
        if executed_by != "agent":
            self.set_facts(block, executed_by=executed_by)
        return block

    def has_call(self, call_id: Any) -> bool:
        """Whether a call of that id was read already."""
        return type(call_id) is str and self._pairing.name_of(call_id) is not None

    def has_made(self, call: Call) -> bool:
        """Whether the call that was read last under the id of this one is this one."""
        known = self._latest.get(call.id or "")
        return known is not None and ListedCalls([known]).repeats(call)

    def facts_of(self, said: ToolCall | ToolResultMessage) -> CallFacts | None:
        """What is known of a call beside its block, or beside its result."""
        known = self._facts.get(id(said))
        return None if known is None else known[1]

    def set_facts(self, said: ToolCall | ToolResultMessage, **facts: Any) -> None:
        """Note down what is known of a call beside its block, or beside its result."""
        known = self.facts_of(said)
        self._facts[id(said)] = said, CallFacts(**facts) if known is None else msgspec.structs.replace(known, **facts)

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
            self.fill_blocks(message, output, at)
        elif output is not None:
            message.content = [TextBlock(wire.encode(output).decode())]
            message.details = output
            self.note_calls_in_result(output, at)
            if is_failed_mcp_result(output):
                self.mark_failure(message, {"isError": True})

    def fill_blocks(self, message: ToolResultMessage, content: Any, at: At) -> None:
        """Give a result the text and the images of a tool's content, which may itself say that the call failed."""
        message.content = self._result_blocks(content, at)
        if is_failed_mcp_result(content) or (type(content) is list and any(map(is_failed_part, content))):
            self.mark_failure(message, {"isError": True})

    def _result_blocks(self, content: Any, at: At) -> list[ToolResultBlock]:
        if content is None:
            return []
        self.note_calls_in_result(content, at)
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
                blocks.append(TextBlock(wire.encode(part).decode()))
            else:
                self.tally.notes.append(dropped_part(part, (*at, index)))
        return blocks

    def mark_failure(self, message: ToolResultMessage, said: dict[str, Any], inside: Any = None) -> None:
        """Mark a result as failed when the keys beside it say so, and keep what they say.

        `inside` is the result itself, where errors are inside it by the convention of its API.
        """
        failure = find_failure(said)
        if failure is None or failure.status == "unknown":
            failure = find_failure_inside(inside) or failure
        if failure is None:
            return
        message.is_error = message.is_error or failure.status != "unknown"
        if not message.content and failure.error is not None:
            message.content = [TextBlock(failure.error)]
        self.set_facts(message, status=failure.status, error=failure.error)

    def note_keys(self, item: dict[str, Any], known: frozenset[str], at: At, *, agent: bool) -> None:
        """Note every key but the known ones; serious where a call of the agent's may stand under one."""
        if known.issuperset(item):
            return  # as almost always
        for key, value in item.items():
            if key not in known:
                self.drop_key(key, value, at, agent=agent)

    def note_keys_of_message(self, item: dict[str, Any], known: frozenset[str], at: At, *, agent: bool) -> None:
        """The same for a message or a part of it: in those of others, too, what looks like calls is a serious loss."""
        if known.issuperset(item):
            return
        for key, value in item.items():
            if key not in known:
                self.drop_key(key, value, at, agent=agent or may_hold_call(key, value))

    def drop_key(self, key: str, value: Any, at: At, *, agent: bool) -> None:
        """Note that a key has no place in the transcript, unless its value says nothing."""
        if value in _SAYS_NOTHING:
            return
        if key in KEYS_WITHOUT_CALLS or key in _ANYTHING or _is_retrieval(key, value):
            suspect = may_hold_call_under(key, value, self._known())
        else:
            suspect = agent and (type(value) is dict or type(value) is list)
        weight: Weight = "serious" if suspect else "harmless"
        self.tally.add(KEY_DROPPED, (*at, key), f"dropped the key {key[:100]!r}", each=f"{key} {weight}", weight=weight)

    def note_calls_in(self, key: str, value: Any, at: At) -> None:
        """Note what looks like calls under a key that was read as something else."""
        if may_hold_call(key, value):
            text = f"what stands under {key[:100]!r} looks like calls, and was not read as such"
            self.tally.add(KEY_DROPPED, (*at, key), text, each=f"{key} calls", weight="serious")

    def note_calls_in_result(self, value: Any, at: At) -> None:
        """Note what is written like calls in the result of a tool, which is kept as the data that it is."""
        if type(value) is not dict and type(value) is not list:
            return
        if holds_written_call(value, self._known()):
            self.tally.add(CALLS_IN_RESULT, at, "a tool's result holds what is written like a call", each="")

    def _known(self) -> KnownCalls:
        return KnownCalls(self._pairing.names, again=self._pairing.again)

    def note_calls_in_known(self, item: dict[str, Any], keys: frozenset[str], at: At) -> None:
        """The same for known keys that are not meant to hold any."""
        for key, value in item.items():
            if (type(value) is dict or type(value) is list) and key in keys:
                self.note_calls_in(key, value, at)


def add_block(blocks: list[AssistantBlock], block: AssistantBlock) -> None:
    """Append a block; details that follow each other are one block, as providers send them."""
    if type(block) is ReasoningDetailsBlock and blocks and type(last := blocks[-1]) is ReasoningDetailsBlock:
        last.details.extend(block.details)
    else:
        blocks.append(block)


def _is_retrieval(key: str, value: Any) -> bool:
    """Whether this is what Azure's models on your own data found, and not any other `context`."""
    return key == "context" and type(value) is dict and _RETRIEVAL.issuperset(value)


def _is_part(part: Any) -> bool:
    return type(part) is dict and type(part.get("type")) is str
