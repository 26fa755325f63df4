"""Thoughts in tags inside visible text, however many they are."""

from __future__ import annotations

import json

from seatrial import formats
from seatrial.formats.chat.limits import LEAST_PIECES
from seatrial.formats.chat.notes import NoteTally
from seatrial.formats.chat.parts import THOUGHTS_MERGED, split_thoughts
from seatrial.transcript import AssistantMessage, TextBlock, ThinkingBlock


def test_thoughts_past_the_limit_are_one_and_no_visible_text_is_lost() -> None:
    tally = NoteTally()
    blocks = split_thoughts("".join(f"<think>t{n};</think>v{n};" for n in range(5)), tally, (), most=4)
    assert blocks == [
        ThinkingBlock("t0;"),
        TextBlock("v0;"),
        ThinkingBlock("t1;"),
        TextBlock("v1;"),
        TextBlock("v2;v3;v4;"),
        ThinkingBlock("t2;t3;t4;"),
    ]
    assert [note.code for note in tally.total()] == [THOUGHTS_MERGED]


def test_a_text_without_tags_is_itself_also_when_nothing_is_left_of_the_limit() -> None:
    tally = NoteTally()
    assert split_thoughts("a < b", tally, (), most=0) == [TextBlock("a < b")]
    assert split_thoughts("<think>a</think>b", tally, (), most=0) == [ThinkingBlock("a"), TextBlock("b")]
    assert tally.total() == []


def test_the_tags_of_all_messages_together_make_no_more_pieces_than_a_record_may_have() -> None:
    spoken = {"role": "assistant", "content": "<think>a</think>b" * 5_000}
    asked = {"role": "user", "content": "go on"}
    record = json.dumps([asked, spoken] * 20).encode()
    reading = formats.read(record, "openai")
    answers = [message for message in reading.transcript.messages if isinstance(message, AssistantMessage)]
    assert len(answers) == 20
    assert sum(len(answer.content) for answer in answers) <= LEAST_PIECES + 3 * len(answers)
    assert THOUGHTS_MERGED in [note.code for note in reading.notes]
    for answer in answers:
        assert "".join(block.text for block in answer.content if isinstance(block, TextBlock)) == "b" * 5_000
        assert "".join(block.text for block in answer.content if isinstance(block, ThinkingBlock)) == "a" * 5_000
