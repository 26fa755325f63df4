"""Full-text search over what runs said and did: what people type, which text is indexed, and where in a run a hit is.

In what is typed, every word must occur, in any order; "words in quotes" must follow each other; a word that ends in *
stands for every word that begins so. Nothing else has a meaning, so nothing that is typed is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from seatrial.formats.reading import Reading
from seatrial.runs import RunKey, ServedKey
from seatrial.trajectory.step import Step
from seatrial.transcript import (
    AssistantBlock,
    CustomMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
)

# Letters and digits; `_` separates, so that `refund_order` is found by `order`.
WORD = re.compile(r"[^\W_]+")
_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')

MAX_WORDS = 32
"""Words of a query that are looked at."""
MAX_WORD = 255
"""Characters of a word that are looked at."""

MAX_PIECE = 20_000
"""Characters of one message or step that are indexed: one huge tool result leaves room for the rest of the run."""
MAX_TEXT = 200_000
"""Characters of one run that are indexed. PostgreSQL takes no more than a megabyte of distinct words."""

_BEFORE, _AFTER = 60, 140
_MAX_BITS = 256  # nobody looks for a longer number, and Python refuses to write some out


class Phrase(msgspec.Struct, frozen=True):
    """Words that follow each other."""

    words: tuple[str, ...]
    prefix: bool = False
    """Whether the last word is only the beginning of one."""


class Hit(msgspec.Struct, frozen=True):
    """A run that contains what was looked for."""

    run_id: str
    experiment_id: str | None
    key: RunKey | ServedKey
    pointer: str
    """Where in the run: `/messages/3`, `/steps/0`, `/answer`."""
    snippet: str
    """The text around the first place. It is the agent's: escape it before it is shown."""
    marks: tuple[tuple[int, int], ...]
    """What was looked for, as ranges of the snippet."""


def phrases(query: str) -> list[Phrase]:
    """The phrases of a query; none when it has no letter and no digit."""
    found: list[Phrase] = []
    left = MAX_WORDS
    for term in _TERM.finditer(query.encode("utf-8", "replace").decode()):
        text = term[1] if term[1] is not None else term[2]
        words = WORD.findall(text)[:left]
        if words:
            prefix = (term[2] is not None and text.endswith("*")) or len(words[-1]) > MAX_WORD
            found.append(Phrase(tuple(word[:MAX_WORD] for word in words), prefix))
            left -= len(words)
    return found


def pattern(found: list[Phrase]) -> re.Pattern[str]:
    """Finds any of the phrases in a text."""
    alternatives = [
        r"[\W_]+".join(map(re.escape, phrase.words)) + ("" if phrase.prefix else r"(?![^\W_])") for phrase in found
    ]
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(alternatives)})", re.IGNORECASE)


def pieces(reading: Reading | None, steps: list[Step]) -> Iterator[tuple[str, str]]:
    """(pointer, text) of everything in a run that can be searched for, in order."""
    messages = () if reading is None else range(len(reading.transcript.messages))
    places = [f"/messages/{index}" for index in messages]
    if reading is not None:
        places.append("/answer")
    places += [f"/steps/{index}" for index in range(len(steps))]
    return ((place, text) for place, text in zip(places, _texts(reading, steps), strict=True) if text)


def indexed_text(reading: Reading | None, steps: list[Step]) -> str:
    """The text of a run as the index has it."""
    text = "\n".join([text for text in _texts(reading, steps) if text])[:MAX_TEXT]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def snippet(found: list[Phrase], parts: Iterator[tuple[str, str]]) -> tuple[str, str, tuple[tuple[int, int], ...]]:
    """(pointer, snippet, marks) of the first piece that has one of the phrases; the first piece when none has."""
    wanted = pattern(found)
    first: tuple[str, str] | None = None
    for pointer, text in parts:
        first = first or (pointer, text)
        if (match := wanted.search(text)) is not None:
            start = max(0, match.start() - _BEFORE)
            cut = text[start : match.start() + _AFTER]
            return pointer, cut, tuple(mark.span() for mark in wanted.finditer(cut))
    # The words are there, but not as this regular expression reads them (another alphabet's case, say).
    pointer, text = first or ("", "")
    return pointer, text[: _BEFORE + _AFTER], ()


def _texts(reading: Reading | None, steps: list[Step]) -> list[str]:
    """The text of every message, of the answer and of every step; empty where there is none."""
    texts: list[str] = []
    if reading is not None:
        transcript = reading.transcript
        with_calls = not steps
        texts = [_message_text(message, with_calls)[:MAX_PIECE] for message in transcript.messages]
        answer = (transcript.answer or "")[:MAX_PIECE]
        # A message has said it already, as a rule.
        texts.append("" if answer in texts else answer)
    return texts + [_step_text(step)[:MAX_PIECE] for step in steps]


def _message_text(message: Message, with_calls: bool) -> str:
    if isinstance(message, CustomMessage):
        return ""
    content = message.content
    if isinstance(content, str):
        return content
    if len(content) == 1:
        return _block_text(content[0], with_calls)
    return "\n".join([text for block in content if (text := _block_text(block, with_calls))])


def _block_text(block: AssistantBlock | ImageBlock, with_calls: bool) -> str:
    if type(block) is TextBlock or type(block) is ThinkingBlock or type(block) is ReasoningBlock:
        return block.text
    if with_calls and type(block) is ToolCall:
        return f"{block.name} {_scalars(block.arguments)}"
    return ""


def _step_text(step: Step) -> str:
    text = f"{step.name} {step.arguments_text or _scalars(step.arguments)}"
    # What was said along the way has its result among the messages already.
    if step.source in ("messages", "events") or step.result is msgspec.UNSET:
        return text
    return f"{text}\n{_scalars(step.result)}"


def _scalars(value: Any) -> str:
    """Keys, texts and numbers of a JSON value, in order. Not its JSON: there a line break would look like an n."""
    found: list[str] = []
    if type(value) is dict:
        # As a rule, arguments are a few texts and numbers.
        for key, inner in value.items():
            if type(inner) is str:
                found += (key, inner)
            elif type(inner) is int and inner.bit_length() <= _MAX_BITS:
                found += (key, str(inner))
            else:
                break
        else:
            return " ".join(found)
        found.clear()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            for key, inner in reversed(item.items()):
                stack += (inner, key)
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif type(item) is float or (type(item) is int and item.bit_length() <= _MAX_BITS):
            found.append(str(item))
    return " ".join(found)
