"""Prompted thinking: hidden tags in a model's visible text, taken out of it and woven back in.

A tag is `<thought>` or one of its synonyms, in any case and with white space anywhere after the `<`. Any closing
tag closes, whichever opened; tags do not nest and have no attributes. A `<` that turns out to start no tag is text,
together with the character that showed it: `<<thought>` is text.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TypeAlias

from seatrial.transcript.fences import FenceFollower, end_of
from seatrial.transcript.messages import TextBlock, ThinkingBlock
from seatrial.transcript.note import note_code

TAGS = ("think", "thinking", "thought", "reasoning", "reflection")
CANONICAL_TAG = "thought"

UNCLOSED_THINKING_TAG = note_code(
    "unclosed_thinking_tag", "The text ends inside a hidden thinking tag; what the tag held is kept, not shown.", "look"
)

Segment: TypeAlias = TextBlock | ThinkingBlock


class ThinkingFilter:
    """Takes thinking out of a text that arrives in pieces; where it was cut makes no difference.

    The cost is linear in the text. Text that may still become a tag is held back until it is decided.
    """

    def __init__(self, *, respect_code_fences: bool = False) -> None:
        self.unclosed_thought: str | None = None
        """What the last flush found inside a tag that nobody had closed; None when there was none."""
        self._fences = FenceFollower() if respect_code_fences else None
        self._inside = False
        # What has been read of a possible tag: its canonical form, and the text itself in pieces.
        self._candidate = ""
        self._held: list[str] = []
        self._thought: list[str] = []
        self._completed: deque[str] = deque()

    def feed_segments(self, delta: str) -> list[Segment]:
        """Read a piece; give the visible text and the completed thoughts in it, in order."""
        segments: list[Segment] = []
        visible: list[str] = []
        position, end = 0, len(delta)
        while position < end:
            start = position
            if not self._candidate:
                position = self._next_tag(delta, start)
                if position > start:
                    (self._thought if self._inside else visible).append(delta[start:position])
                if (tag := self._plain_tag(delta, position)) is not None:
                    position = tag.end()
                    self._pass_tag(segments, visible)
                elif position < end:
                    self._candidate = "<"
                    self._held.append("<")
                    position += 1
                continue
            position = self._follow_candidate(delta, start)
            self._held.append(delta[start:position])
            if self._candidate[-1:] == ">":
                self._clear_candidate()
                self._pass_tag(segments, visible)
            elif not self._candidate:
                text = self._clear_candidate()
                if self._inside:
                    self._thought.append(text)
                else:
                    visible.append(text)
                    if self._fences is not None:
                        self._fences.skip(text)
        _add_text(segments, visible)
        return segments

    def feed(self, delta: str) -> str:
        """Read a piece; give its visible part. Completed thoughts wait for `take_completed_thought`."""
        return self._queue_thoughts(self.feed_segments(delta))

    def take_completed_thought(self) -> str | None:
        """The oldest completed thought that `feed` found and nobody took yet."""
        return self._completed.popleft() if self._completed else None

    def flush_segments(self) -> list[Segment]:
        """End the text: give what was held back as visible text, or keep what is inside an unclosed tag.

        The filter is then ready for the next text.
        """
        rest = self._clear_candidate()
        self.unclosed_thought = self._take_thought() + rest if self._inside else None
        visible = [] if self._inside else [rest]
        self._inside = False
        if self._fences is not None:
            self._fences = FenceFollower()
        segments: list[Segment] = []
        _add_text(segments, visible)
        return segments

    def flush(self) -> str:
        """End the text; give the visible rest. Completed thoughts stay, an unclosed one is in `unclosed_thought`."""
        return self._queue_thoughts(self.flush_segments())

    def reset(self) -> None:
        """Forget everything, completed thoughts included."""
        self.flush_segments()
        self.unclosed_thought = None
        self._completed.clear()

    def _next_tag(self, text: str, position: int) -> int:
        """Where the next possible tag starts, or the end."""
        if self._fences is not None and not self._inside:
            return self._fences.next_tag(text, position)
        return end_of(_NO_CLOSING_TAG if self._inside else _NO_OPENING_TAG, text, position)

    def _plain_tag(self, text: str, position: int) -> re.Match[str] | None:
        """The whole tag that stands there, written as it usually is; one letter at a time would take far longer."""
        return (_PLAIN_CLOSING if self._inside else _PLAIN_OPENING).match(text, position)

    def _pass_tag(self, segments: list[Segment], visible: list[str]) -> None:
        """Go into a thought, or out of it."""
        if self._inside:
            _add_text(segments, visible)
            segments.append(ThinkingBlock(self._take_thought()))
        self._inside = not self._inside

    def _follow_candidate(self, text: str, position: int) -> int:
        """Read on until the candidate is complete, or is none (then it is empty), or the text ends."""
        possible = _CLOSING if self._inside else _OPENING
        end = len(text)
        while (position := end_of(_BLANKS, text, position)) < end:
            char = text[position]
            position += 1
            # Only ASCII letters have another case here: the Kelvin sign is no k.
            self._candidate += char.lower() if char.isascii() else char
            if self._candidate not in possible:
                self._candidate = ""
                break
            if char == ">":
                break
        return position

    def _clear_candidate(self) -> str:
        text = "".join(self._held)
        self._held.clear()
        self._candidate = ""
        return text

    def _take_thought(self) -> str:
        thought = "".join(self._thought)
        self._thought.clear()
        return thought

    def _queue_thoughts(self, segments: list[Segment]) -> str:
        self._completed.extend([s.text for s in segments if isinstance(s, ThinkingBlock)])
        return "".join([s.text for s in segments if isinstance(s, TextBlock)])


def strip_thinking_tags(text: str) -> str:
    """The visible text, trimmed, without what a closed or unclosed tag holds."""
    segments, _ = split_thinking(text)
    return "".join([s.text for s in segments if isinstance(s, TextBlock)]).strip()


def split_thinking(text: str, *, respect_code_fences: bool = False) -> tuple[list[Segment], str | None]:
    """Visible text and thoughts in order, and what an unclosed tag at the end held."""
    thinking = ThinkingFilter(respect_code_fences=respect_code_fences)
    segments = thinking.feed_segments(text)
    rest = thinking.flush_segments()
    if rest and segments and isinstance(segments[-1], TextBlock):
        segments[-1] = TextBlock(segments[-1].text + rest.pop().text)
    return segments + rest, thinking.unclosed_thought


def weave_thought(text: str) -> str:
    """A thought as it goes back into the wire `content`. A thought that holds a closing tag does not survive this."""
    return f"<{CANONICAL_TAG}>{text}</{CANONICAL_TAG}>"


def survives_weaving(text: str, before: str = "") -> bool:
    """Whether a thought woven in after this visible text is read back as just that text and that thought."""
    expected: list[Segment] = [TextBlock(before)] if before else []
    return split_thinking(before + weave_thought(text)) == ([*expected, ThinkingBlock(text)], None)


def _add_text(segments: list[Segment], visible: list[str]) -> None:
    """Close the visible text collected so far as one block, if there is any."""
    text = "".join(visible)
    visible.clear()
    if text:
        segments.append(TextBlock(text))


def _prefixes(lead: str) -> frozenset[str]:
    """Every beginning of every tag, and the tags."""
    tags = [f"{lead}{tag}>" for tag in TAGS]
    return frozenset(tag[:length] for tag in tags for length in range(1, len(tag) + 1))


_OPENING = _prefixes("<")
_CLOSING = _prefixes("</")
_PLAIN_OPENING = re.compile(f"<(?:{'|'.join(TAGS)})>", re.IGNORECASE | re.ASCII)
_PLAIN_CLOSING = re.compile(f"</(?:{'|'.join(TAGS)})>", re.IGNORECASE | re.ASCII)
_BLANKS = re.compile(r"[ \t\n\f\r]*+")
# Text up to the next `<` that may start a tag. What shows that one does not is text too, as it is in a candidate.
_NO_OPENING_TAG = re.compile(r"[^<]*+(?:<[ \t\n\f\r]*+[^ \t\n\f\rtTrR][^<]*+)*+")
_NO_CLOSING_TAG = re.compile(r"[^<]*+(?:<[ \t\n\f\r]*+[^ \t\n\f\r/][^<]*+)*+")
