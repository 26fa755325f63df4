"""The ways in which chat messages are written down, one module each.

A dialect has `fits(item) -> int`, how sure it is that an item of a list is one of its own, and `read(item, chat, at)`,
which adds what the item says to a `Chat`. `PARTS` are its content parts, by their `type`, which may stand in messages
of other dialects as well; `MEMBERS` those of parts without a `type`, by the key that says what they are. Adding a
dialect is a module and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Protocol, TypeAlias, cast

from seatrial.formats.chat.calls import ListedCalls
from seatrial.formats.chat.content import ContentReader, Piece
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.reader import Chat
from seatrial.formats.dialects import (
    adk,
    anthropic,
    bedrock,
    gemini,
    langchain,
    openai,
    pydantic_ai,
    responses,
    smolagents,
    vercel,
)

PartReader: TypeAlias = Callable[[dict[str, Any], ContentReader, At, ListedCalls], Iterable[Piece]]
"""Reads one part of a content. The last argument are the calls that the message lists elsewhere, too."""


class Dialect(Protocol):
    """What the module of a dialect offers."""

    def fits(self, item: dict[str, Any]) -> int:
        """0: not one of mine. 1: it could be. 2: it looks like it. 3: nothing else looks like this."""
        ...

    def read(self, item: dict[str, Any], chat: Chat, at: At) -> None:
        """Add what the item says."""
        ...


_MODULES: tuple[ModuleType, ...] = (
    openai, anthropic, responses, bedrock, gemini, adk, langchain, pydantic_ai, smolagents, vercel,
)  # fmt: skip
# Of those that are equally sure, the first reads it: they read alike what they share.
DIALECTS: tuple[Dialect, ...] = tuple(cast("Dialect", module) for module in _MODULES)
PARTS: dict[str, PartReader] = {kind: reader for module in _MODULES for kind, reader in module.PARTS.items()}
"""Readers of the parts that are not plain text, an image or a thought."""
MEMBERS: dict[str, PartReader] = {
    key: reader for module in _MODULES for key, reader in getattr(module, "MEMBERS", {}).items()
}
"""Readers of parts without a `type`, by the key that says what they are."""
_MARKS = frozenset({"author", "parts", "toolInvocations", "type", *smolagents.MARKS})
"""Keys of which every item of a dialect has one, unless its content is an array; but for those of the first dialect."""


def find_dialect(item: dict[str, Any]) -> Dialect | None:
    """The dialect that is surest of an item; None when it is none of any."""
    if _MARKS.isdisjoint(item) and type(item.get("content")) is not list:
        return DIALECTS[0] if DIALECTS[0].fits(item) else None
    best: Dialect | None = None
    sure = 0
    for dialect in DIALECTS:
        found = dialect.fits(item)
        if found > sure:
            best, sure = dialect, found
            if sure == 3:
                break
    return best


def find_part_reader(part: dict[str, Any]) -> PartReader | None:
    """The reader of a part; None when it is plain text, an image or a thought, or unknown."""
    kind = part.get("type")
    if type(kind) is str:
        return PARTS.get(kind)
    return next((MEMBERS[key] for key in part if key in MEMBERS), None)
