"""The thinking filter (transcript.md 1.4), held against a slow one that follows the contract to the letter."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seatrial.transcript import (
    TextBlock,
    ThinkingBlock,
    ThinkingFilter,
    split_thinking,
    strip_thinking_tags,
    survives_weaving,
    weave_thought,
)
from seatrial.transcript.thinking import Segment

BLANK = " \t\n\f\r"
TAGS = ["think", "thinking", "thought", "reasoning", "reflection"]


# The reference: one character at a time, everything worked out anew for each.


def canonical(candidate: str) -> str:
    rest = candidate[1:].lstrip(BLANK)
    slash = "/" if rest.startswith("/") else ""
    letters = [c.lower() if c.isascii() else c for c in rest.removeprefix("/") if c not in BLANK]
    return "<" + slash + "".join(letters)


def in_fenced_code(visible: str) -> bool:
    fence = ""
    *lines, last = visible.split("\n")
    for line in lines:
        if fence:
            close = re.fullmatch(r" {0,3}(`{3,}|~{3,})[ \t\r]*", line)
            if close and close[1].startswith(fence):
                fence = ""
        elif opening := opened_fence(line):
            fence = opening
    return bool(fence or opened_fence(last))


def opened_fence(line: str) -> str:
    match = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line)
    return match[1] if match and not (match[1][0] == "`" and "`" in match[2]) else ""


def reference(text: str, *, respect_code_fences: bool = False) -> tuple[list[Segment], str | None]:
    segments: list[Segment] = []
    inside = False
    visible = thought = pending = ""
    written = 0
    for char in text:
        if not pending and char == "<" and (inside or not (respect_code_fences and in_fenced_code(visible))):
            pending = "<"
            continue
        if pending:
            pending += char
            tags = [f"</{tag}>" if inside else f"<{tag}>" for tag in TAGS]
            if canonical(pending) in tags:
                if inside:
                    segments += [TextBlock(visible[written:]), ThinkingBlock(thought)]
                    written, thought = len(visible), ""
                inside, pending = not inside, ""
                continue
            if any(tag.startswith(canonical(pending)) for tag in tags):
                continue
            char, pending = pending, ""
        if inside:
            thought += char
        else:
            visible += char
    if not inside:
        visible += pending
    segments.append(TextBlock(visible[written:]))
    return [s for s in segments if s != TextBlock("")], thought + pending if inside else None


def joined(segments: list[Segment]) -> list[Segment]:
    """Segments with neighbouring texts put together."""
    found: list[Segment] = []
    for segment in segments:
        if found and isinstance(segment, TextBlock) and isinstance(found[-1], TextBlock):
            found[-1] = TextBlock(found[-1].text + segment.text)
        else:
            found.append(segment)
    return found


def in_pieces(pieces: list[str], *, respect_code_fences: bool = False) -> tuple[list[Segment], str | None]:
    thinking = ThinkingFilter(respect_code_fences=respect_code_fences)
    segments = [segment for piece in pieces for segment in thinking.feed_segments(piece)]
    assert TextBlock("") not in segments
    segments += thinking.flush_segments()
    return joined(segments), thinking.unclosed_thought


PIECES = [
    *["<", "</", ">", "/", "<thought>", "</thought>", "<think>", "</think>", "</ reasoning >", "<Reflection>"],
    *["th", "ink", "ing", "ought", "t", "r", "K", "\u212a", "x", "1 < 2", "<b>", "</b>"],
    *[" ", "\n", "\t", "\f", "\r", "\x0b", "\u00a0", "   ", "    "],
    *["`", "``", "```", "````", "~~~", "~", "\n```\n", "\n```py\n", "\n~~~ \n"],
]


@st.composite
def cut_texts(draw: st.DrawFn) -> list[str]:
    """A text full of tags, near tags and fences, cut anywhere."""
    text = "".join(draw(st.lists(st.sampled_from(PIECES), max_size=14)))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(cut_texts(), st.booleans())
@settings(max_examples=600)
@example(["<thought>", "```\n</thought>"], True)
@example(["```\n<thought>a</thought>\n``", "`", "\n<thought>b</thought>"], True)
@example(["``", "`", "<think>", "\n```"], True)
@example(["<\n", "```\n<think>x</think>"], True)
def test_the_result_is_the_reference_whatever_the_cuts(pieces: list[str], fences: bool) -> None:
    text = "".join(pieces)
    expected = reference(text, respect_code_fences=fences)
    assert in_pieces(pieces, respect_code_fences=fences) == expected
    assert in_pieces(list(text), respect_code_fences=fences) == expected
    assert split_thinking(text, respect_code_fences=fences) == expected


# The contract's table of edge cases. Where we keep more than the original: every thought, not only the last of a
# piece; and what an unclosed tag holds.


@pytest.mark.parametrize(
    ("text", "visible", "thoughts", "rest"),
    [
        ("<thought>a<think>b</think>c</thought>d", "c</thought>d", ["a<think>b"], ""),
        ("<thought>a</think>b", "b", ["a"], ""),
        ("<<thought>x</thought>y", "<<thought>x</thought>y", [], ""),
        ("<thought>x<</thought>y</thought>z", "z", ["x<</thought>y"], ""),
        ("<thought id=1>x</thought>y", "<thought id=1>x</thought>y", [], ""),
        ("<thought/>y", "<thought/>y", [], ""),
        ("</thought>y", "</thought>y", [], ""),
        ("<thoughts>x</thoughts>", "<thoughts>x</thoughts>", [], ""),
        ("< / thought >y", "< / thought >y", [], ""),
        ("<narrate>x</narrate>", "<narrate>x</narrate>", [], ""),
        ("<th ought>x</tho ught>y", "y", ["x"], ""),
        ("```\n<thought>x</thought>\n```", "```\n\n```", ["x"], ""),
        ("<thought></thought>y", "y", [""], ""),
        ("a<thought>one</thought>b<think>two</think>c", "abc", ["one", "two"], ""),
        ("a <thin", "a ", [], "<thin"),
        ("<thought>x</thou", "", [], ""),
        ("<ThOuGhT>x</tHiNk>y", "y", ["x"], ""),
        ("<\u00a0thought>x</thought>y", "<\u00a0thought>x</thought>y", [], ""),
        ("<\x0bthought>x</thought>y", "<\x0bthought>x</thought>y", [], ""),
        ("<thought>1 < 2 </b> </thought>ok", "ok", ["1 < 2 </b> "], ""),
        ("<think>a</think>\n\n  b  ", "\n\n  b  ", ["a"], ""),
    ],
)
def test_the_edge_cases_of_the_contract(text: str, visible: str, thoughts: list[str], rest: str) -> None:
    for pieces in ([text], list(text)):
        thinking = ThinkingFilter()
        assert "".join([thinking.feed(piece) for piece in pieces]) == visible
        taken = []
        while (thought := thinking.take_completed_thought()) is not None:
            taken.append(thought)
        assert taken == thoughts
        assert thinking.flush() == rest


def test_stripping_trims_what_is_left() -> None:
    assert strip_thinking_tags("<think>a</think>\n\n  b  ") == "b"
    assert strip_thinking_tags("a <thin") == "a <thin"
    assert strip_thinking_tags("a <think>b") == "a"


def test_an_unclosed_thought_is_kept_apart_and_not_shown() -> None:
    thinking = ThinkingFilter()
    assert thinking.feed("a<thought>x</thou") == "a"
    assert thinking.flush() == ""
    assert thinking.unclosed_thought == "x</thou"
    assert thinking.take_completed_thought() is None
    assert split_thinking("<thought>") == ([], "")


def test_a_flush_leaves_completed_thoughts_and_readies_the_filter_for_the_next_text() -> None:
    thinking = ThinkingFilter(respect_code_fences=True)
    thinking.feed("<think>one</think><think>two</think>```\n<think>")
    thinking.flush()
    assert thinking.feed("<think>three</think>b<thi") == "b"
    assert thinking.flush() == "<thi"
    assert thinking.unclosed_thought is None
    assert [thinking.take_completed_thought() for _ in range(4)] == ["one", "two", "three", None]


def test_a_reset_forgets_everything() -> None:
    thinking = ThinkingFilter()
    thinking.feed("<think>one</think><think>two")
    thinking.flush()
    thinking.feed("<thought>more</th")
    thinking.reset()
    assert thinking.unclosed_thought is None
    assert thinking.take_completed_thought() is None
    assert thinking.feed("x<") == "x"
    assert thinking.flush() == "<"


def test_segments_come_in_order_and_thoughts_are_given_once() -> None:
    thinking = ThinkingFilter()
    assert thinking.feed_segments("a<think>b</think>c<x>d<think>e") == [
        TextBlock("a"),
        ThinkingBlock("b"),
        TextBlock("c<x>d"),
    ]
    assert thinking.feed_segments("</think>") == [ThinkingBlock("e")]
    assert thinking.take_completed_thought() is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("```\n<thought>x</thought>\n```\n", True),
        ("~~~html\n<thought>x</thought>", True),
        ("   ````\n```\n<thought>x</thought>\n````", True),
        ("```\n```\n<thought>x</thought>", False),
        ("``` \n~~~\n<thought>x</thought>", True),
        ("    ```\n<thought>x</thought>", False),
        ("text ```\n<thought>x</thought>", False),
        ("```x``` <thought>x</thought>", False),
        ("`<thought>x</thought>`", False),
        ("<think>```\n</think><thought>x</thought>", False),
        ("<think>a</think>```\n<thought>x</thought>", True),
        ("```\r\n<thought>x</thought>\r\n```\r\n", True),
    ],
)
def test_tags_in_fenced_code_are_left_alone_when_asked(text: str, shown: bool) -> None:
    for pieces in ([text], list(text)):
        segments, _ = in_pieces(pieces, respect_code_fences=True)
        assert (ThinkingBlock("x") not in segments) is shown
    assert ThinkingBlock("x") in split_thinking(text)[0]


@pytest.mark.parametrize("fences", [False, True])
@pytest.mark.parametrize("text", ["<" + " " * 100_000, "<" + "\n" * 100_000, "<t" * 50_000, "`" * 100_000])
def test_the_cost_is_linear_however_the_text_arrives(text: str, fences: bool) -> None:
    # Working the candidate out anew for each character would take minutes; this takes a tenth of a second.
    start = time.process_time()
    assert in_pieces([text], respect_code_fences=fences) == ([TextBlock(text)], None)
    assert in_pieces(list(text), respect_code_fences=fences) == ([TextBlock(text)], None)
    assert time.process_time() - start < 4


# Weaving


def test_a_thought_is_woven_in_as_the_canonical_tag() -> None:
    assert weave_thought("plan") == "<thought>plan</thought>"
    assert split_thinking("a" + weave_thought("plan") + "b") == (
        [TextBlock("a"), ThinkingBlock("plan"), TextBlock("b")],
        None,
    )


@pytest.mark.parametrize(
    ("thought", "before", "survives"),
    [
        ("plan", "", True),
        ("", "", True),
        ("a <think> b", "", True),
        ("a </b> < 2", "", True),
        ("a </think> b", "", False),
        ("a < / THOUGHT > b", "", False),
        ("a <", "", False),
        ("a </", "", False),
        ("plan", "see: ", True),
        ("plan", "x <", False),
        ("plan", "x <th", False),
        ("plan", "<think>y</think>", False),
    ],
)
def test_a_thought_survives_weaving_unless_its_text_meddles_with_the_tags(
    thought: str, before: str, survives: bool
) -> None:
    assert survives_weaving(thought, before) is survives
