"""Two places of a stored run, found without reading the rest of it: the turn that made a call, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from seatrial.store import OutlineEntry, RunRecord, Store, TranscriptItem
from seatrial.trajectory.step import Step
from seatrial.transcript import AssistantMessage, ReasoningBlock, TextBlock, ThinkingBlock, ToolCall

ENTRIES_AT_ONCE = 1000
ITEMS_AT_ONCE = 20
MAX_BACK = 400
"""Messages at the end of a run among which its answer is looked for."""
MAX_BEFORE = 3
"""Messages before a call that belong to its turn, where each part of a turn is a message."""


class TurnPart(msgspec.Struct, frozen=True):
    """Something that an agent thought or said."""

    channel: Literal["thinking", "reasoning", "text"]
    text: str


class Turn(msgspec.Struct, frozen=True):
    """What an agent thought and said before it acted."""

    message: int
    """The index of the message that acts."""
    parts: list[TurnPart]


class StoredAnswer(msgspec.Struct, frozen=True):
    """What a run answered."""

    text: str
    message: int | None = None
    """The index of its message; None when the answer is named outside the messages."""


def turn_before(store: Store, record: RunRecord, step: Step) -> Turn | None:
    """What an agent thought and said before it made a call; None when the record does not have the call's message."""
    index = _message_of(store, record, step)
    if index is None:
        return None
    first = max(0, index - MAX_BEFORE)
    items = store.items(record.summary.run_id, first, index - first + 1)
    return Turn(index, list(_parts(items, step, frozenset(record.given)))) if items else None


def last_turn(store: Store, record: RunRecord) -> Turn | None:
    """What an agent thought, and did not say, before it answered."""
    found = stored_answer(store, record)
    # An answer that is named outside the messages was thought of in the last of them.
    place = record.messages - 1 if found is None or found.message is None else found.message
    items = store.items(record.summary.run_id, place, 1)
    if not items or place in record.given or not isinstance(items[0].message, AssistantMessage):
        return None
    parts = [part for part in map(_part, items[0].message.content) if part is not None]
    return Turn(place, [part for part in parts if part.channel != "text"])


def stored_answer(store: Store, record: RunRecord) -> StoredAnswer | None:
    """The answer of a run; None when there is none, or it stands further from the end than anybody looks."""
    if record.answer:
        long = next((text for text in record.long_texts if text.pointer == "/transcript/answer"), None)
        return StoredAnswer(record.answer if long is None else store.text(long.address))
    given = frozenset(record.given)
    run_id = record.summary.run_id
    end = record.messages
    while end > max(0, record.messages - MAX_BACK):
        first = max(0, end - ITEMS_AT_ONCE)
        for item in reversed(store.items(run_id, first, end - first)):
            if item.index in given or not isinstance(item.message, AssistantMessage):
                continue
            if text := _whole_text(store, item, item.message):
                return StoredAnswer(text, item.index)
        end = first
    return None if record.answer is None else StoredAnswer(record.answer)


def _whole_text(store: Store, item: TranscriptItem, message: AssistantMessage) -> str:
    """The visible text of a message, long ones from where they are kept."""
    long = {text.pointer: text.address for text in item.long_texts}
    return "".join(
        store.text(long[place]) if (place := f"/content/{index}/text") in long else block.text
        for index, block in enumerate(message.content)
        if isinstance(block, TextBlock)
    )


def _message_of(store: Store, record: RunRecord, step: Step) -> int | None:
    """The index of the message with a call. Steps ascend with the messages, so that few pages are looked at."""
    run_id = record.summary.run_id
    low, high = 0, -(-record.messages // ENTRIES_AT_ONCE)
    while low < high:
        middle = (low + high) // 2
        page = store.outline(run_id, middle * ENTRIES_AT_ONCE, ENTRIES_AT_ONCE)
        numbered = [entry for entry in page if entry.step is not None and entry.kind == "call"]
        if not numbered:
            # Nothing says in which half it is; a thousand messages without a call are rare enough to walk.
            page = store.outline(run_id, low * ENTRIES_AT_ONCE, (high - low) * ENTRIES_AT_ONCE)
            return _making(store, run_id, page, step)
        if step.index < (numbered[0].step or 0):
            high = middle
        elif (found := _making(store, run_id, page, step)) is not None:
            return found
        else:
            low = middle + 1
    return None


def _making(store: Store, run_id: str, page: Sequence[OutlineEntry], step: Step) -> int | None:
    """The message among these that makes a call: the last that begins with an earlier step, or with this one."""
    before = [entry for entry in page if entry.kind == "call" and entry.step is not None and entry.step <= step.index]
    for entry in reversed(before[-2:]):
        items = store.items(run_id, entry.first, 1)
        if items and any(_is_call(block, step) for block in _content(items[0])):
            return entry.first
    return None


def _content(item: TranscriptItem) -> Sequence[object]:
    return item.message.content if isinstance(item.message, AssistantMessage) else ()


def _is_call(block: object, step: Step) -> bool:
    return isinstance(block, ToolCall) and block.name == step.name and step.id in (None, block.id)


def _parts(items: Sequence[TranscriptItem], step: Step, given: frozenset[int]) -> Iterator[TurnPart]:
    """What was thought and said in the turn of a call, before it: also in messages of their own."""
    first = len(items) - 1
    while first > 0 and isinstance(items[first - 1].message, AssistantMessage):
        earlier = items[first - 1]
        if earlier.index in given or any(isinstance(block, ToolCall) for block in _content(earlier)):
            break
        first -= 1
    for item in items[first:]:
        for block in _content(item):
            if item is items[-1] and _is_call(block, step):
                return
            part = _part(block)
            if part is not None:
                yield part


def _part(block: object) -> TurnPart | None:
    if isinstance(block, ThinkingBlock):
        return TurnPart("thinking", block.text)
    if isinstance(block, ReasoningBlock):
        return TurnPart("reasoning", block.text)
    return TurnPart("text", block.text) if isinstance(block, TextBlock) and block.text.strip() else None
