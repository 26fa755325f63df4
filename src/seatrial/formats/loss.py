"""What a format does not carry; found, for most writers here, by reading back what was written.

So a difference between a transcript and what a reader of the written bytes gets cannot go unmentioned.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import zip_longest
from typing import Any

from msgspec import UNSET

from seatrial import wire
from seatrial.formats.parts import At
from seatrial.formats.tally import NoteTally
from seatrial.transcript import Message, Note, Transcript, note_code

NOT_CARRIED = note_code(
    "not_carried", "The format has no place for this part of the transcript; it was left out.", "look"
)
CHANGED = note_code(
    "changed", "The format carries this part of the transcript in another form; it is read back differently.", "look"
)


def losses(transcript: Transcript, read_back: Transcript, dropped: Collection[int] = ()) -> list[Note]:
    """What is missing from, or different in, the transcript that was read back; pointers go into the written one.

    `dropped` are the indices of messages that were not written; all others should come back one for one.
    """
    tally = NoteTally()
    left_out = frozenset(dropped)
    kept = [index for index in range(len(transcript.messages)) if index not in left_out]
    for index in sorted(left_out):
        tally.add(NOT_CARRIED, ("messages", index), "the whole message is left out")
    for position, after in zip_longest(kept, read_back.messages):
        if position is None:
            tally.add(CHANGED, ("messages",), "one message is read back as several")
            break
        _compare_messages(transcript.messages[position], after, ("messages", position), tally)
    if transcript.answer is None and read_back.answer is not None:
        tally.add(CHANGED, ("answer",), "the transcript names no answer; its last assistant text is given as one")
    else:
        _compare(transcript.answer, read_back.answer, ("answer",), tally)
    for field in ("identity", "usage", "cost_usd", "duration_ms"):
        _compare(getattr(transcript, field), getattr(read_back, field), (field,), tally)
    for key in sorted(transcript.metadata.keys() | read_back.metadata.keys()):
        # UNSET, because a key that says null is not the same as no key.
        _compare(transcript.metadata.get(key, UNSET), read_back.metadata.get(key, UNSET), ("metadata", key), tally)
    return tally.total()


def _compare_messages(before: Message, after: Message | None, at: At, tally: NoteTally) -> None:
    if before == after:
        return
    if type(before) is not type(after):
        tally.add(CHANGED, at, "the message is read back as one of another role")
        return
    for field in before.__struct_fields__:
        one, other = getattr(before, field), getattr(after, field)
        if type(one) is list and type(other) is list:
            _compare_blocks(one, other, (*at, field), tally)
        else:
            _compare(one, other, (*at, field), tally)


def _compare_blocks(before: list[Any], after: list[Any], at: At, tally: NoteTally) -> None:
    """One loss, at the first block that is read back differently."""
    if before == after:
        return
    if sorted(map(wire.encode, before)) == sorted(map(wire.encode, after)):
        tally.add(CHANGED, at, "the blocks are read back in another order", each="order")
        return
    first = next(index for index, (one, other) in enumerate(zip_longest(before, after)) if one != other)
    tally.add(CHANGED, (*at, first), "the content from this block on is read back differently")


def _compare(before: Any, after: Any, at: At, tally: NoteTally) -> None:
    if before == after:
        return
    field = str(at[-1])
    if after is None or after is UNSET or after is False or after == "":
        tally.add(NOT_CARRIED, at, f"{field} is not carried", each=field)
    else:
        tally.add(CHANGED, at, f"{field} is read back differently", each=field)
