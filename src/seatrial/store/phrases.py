"""What people type into a search box, as phrases.

Every word must occur, in any order; "words in quotes" must follow each other; a word that ends in * stands for every
word that begins so. Nothing else has a meaning, so nothing that is typed is an error.
"""

from __future__ import annotations

import re

import msgspec

# Letters and digits; `_` separates, so that `refund_order` is found by `order`.
WORD = re.compile(r"[^\W_]+")
_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')

MAX_WORDS = 32
"""Words of a query that are looked at."""
MAX_WORD = 255
"""Characters of a word that are looked at."""


class Phrase(msgspec.Struct, frozen=True):
    """Words that follow each other."""

    words: tuple[str, ...]
    prefix: bool = False
    """Whether the last word may go on."""


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
