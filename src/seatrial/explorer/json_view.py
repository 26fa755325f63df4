"""JSON values as HTML: what is short on a line, the rest as a tree that is open two levels deep.

Every piece of a value is escaped here, and what would be too much says how much it is and where to see it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec
from markupsafe import Markup

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.explorer import numbers
from seatrial.explorer.markup import visible
from seatrial.store.documents import LongText
from seatrial.transcript.note import pointer

MAX_INLINE = 480
"""Characters of a value that is shown on a line, which a page breaks into eight at most."""
MAX_NODES = 250
"""Values of one tree; behind them is a link to the whole."""
MAX_STRING = 400
"""Characters of a text in a tree."""
AT_ONCE = 100
"""Members of an object or an array that are beside each other; the next ones are folded away."""
OPEN_LEVELS = 2
MAX_DEPTH = 40

Where = Callable[[str], str]
"""The address at which the text of a pointer can be seen."""


def json_view(
    value: Any,
    at: str = "",
    where: Where = str,
    long_texts: Mapping[str, LongText] | None = None,
    marked: Collection[str] = (),
) -> Markup:
    """A value that stands at a pointer; `marked` are pointers in it, and `long_texts` what of it is elsewhere."""
    found = _View(where, long_texts or {}, frozenset(marked))
    if found.is_short(value, at):
        return Markup('<code class="j">{}</code>').format(found.inline(value, at))
    return Markup('<div class="j">{}</div>').format(found.tree(value, at, 0))


def one_line_json(value: Any, width: int = 120) -> str | None:
    """A value on one line; None when that is too long."""
    try:
        text = msgspec.json.format(wire.encode(value), indent=0).decode()
    except SeatrialError:
        return None
    return visible(text) if len(text) <= width else None


class _View:
    def __init__(self, where: Where, long_texts: Mapping[str, LongText], marked: frozenset[str]) -> None:
        self._where = where
        self._long = long_texts
        self._marked = marked
        self._left = MAX_NODES

    def is_short(self, value: Any, at: str) -> bool:
        if any(place == at or place.startswith(f"{at}/") for place in self._long):
            return False
        left = MAX_INLINE
        stack = [(value, 0)]
        while stack:
            item, depth = stack.pop()
            if isinstance(item, str):
                left -= len(item) + 4
                if "\n" in item.rstrip("\n"):
                    return False
            elif isinstance(item, dict | list):
                left -= 4
                if depth == MAX_DEPTH or len(item) > left:
                    return False
                if isinstance(item, dict):
                    left -= sum([len(key) + 4 for key in item])
                    stack += [(inner, depth + 1) for inner in item.values()]
                else:
                    stack += [(inner, depth + 1) for inner in item]
            else:
                left -= 8
            if left < 0:
                return False
        return True

    def inline(self, value: Any, at: str) -> Markup:
        if isinstance(value, dict):
            members = [
                Markup('<span class="jk">{}</span>: {}').format(_quoted(key), self.inline(inner, at + pointer(key)))
                for key, inner in value.items()
            ]
            shown = Markup("{{ {} }}").format(Markup(", ").join(members)) if members else Markup("{}")
        elif isinstance(value, list):
            members = [self.inline(inner, f"{at}/{index}") for index, inner in enumerate(value)]
            shown = Markup("[{}]").format(Markup(", ").join(members))
        else:
            shown = self._scalar(value)
        return self._with_mark(shown, at)

    def tree(self, value: Any, at: str, depth: int) -> Markup:
        """A value below its name."""
        self._left -= 1
        if (cut := self._long.get(at)) is not None and not isinstance(value, str):
            return self._more(at, f"{numbers.size(cut.size)} of JSON")
        if not isinstance(value, dict | list) or not value:
            return self._text(value, at) if isinstance(value, str) else self._with_mark(self._scalar(value), at)
        if depth == MAX_DEPTH:
            return self._more(at, "nested deeper than is shown here")
        items: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
        rows = Markup("").join(self._groups(iter(items), len(value), at, depth))
        if depth == 0:
            return Markup("<ul>{}</ul>").format(rows)
        opened = Markup(" open") if depth < OPEN_LEVELS or self._has_mark(at) else ""
        return Markup("<details{}><summary>{}</summary><ul>{}</ul></details>").format(opened, _size(value), rows)

    def _groups(self, items: Any, count: int, at: str, depth: int) -> Iterable[Markup]:
        """The members, those behind the first hundred in folds of a hundred."""
        for first in range(0, count, AT_ONCE):
            rows = [self._row(key, inner, at, depth) for key, inner in islice(items, min(AT_ONCE, max(self._left, 0)))]
            shown = Markup("").join(rows)
            if first and rows:
                name = f"{first} to {first + len(rows) - 1}"
                shown = Markup("<li><details><summary>{}</summary><ul>{}</ul></details></li>").format(name, shown)
            yield shown
            if self._left <= 0:
                if first + len(rows) < count:
                    yield Markup("<li>{}</li>").format(self._more(at, f"{count - first - len(rows)} more"))
                return

    def _row(self, key: str | int, value: Any, at: str, depth: int) -> Markup:
        name = _quoted(key) if isinstance(key, str) else str(key)
        shown = self.tree(value, at + pointer(key), depth + 1)
        return Markup('<li><span class="jk">{}</span> {}</li>').format(name, shown)

    def _text(self, value: str, at: str) -> Markup:
        cut = self._long.get(at)
        text = value[:MAX_STRING]
        shown = Markup('<span class="js" dir="auto">"{}{}</span>').format(
            visible(text), '"' if cut is None and len(text) == len(value) else "…"
        )
        if cut is not None:
            shown += Markup(" {}").format(self._more(at, f"{cut.lines} lines, {numbers.size(cut.size)}"))
        elif len(text) < len(value):
            shown += Markup(" {}").format(self._more(at, f"{len(value) - len(text)} more characters"))
        return self._with_mark(shown, at)

    def _scalar(self, value: Any) -> Markup:
        if isinstance(value, str):
            return Markup('<span class="js">{}</span>').format(_quoted(value))
        if isinstance(value, bool | int | float) or value is None:
            return Markup('<span class="jn">{}</span>').format(_number(value))
        return Markup("{}") if isinstance(value, dict) else Markup("[]")

    def _more(self, at: str, text: str) -> Markup:
        return Markup('<a class="ln" href="{}">{}</a>').format(self._where(at), f"… {text}")

    def _with_mark(self, shown: Markup, at: str) -> Markup:
        return Markup("<mark>{}</mark>").format(shown) if at in self._marked else shown

    def _has_mark(self, at: str) -> bool:
        return any(place.startswith(f"{at}/") for place in self._marked)


def _size(value: dict[str, Any] | list[Any]) -> str:
    return numbers.plural(len(value), "key" if isinstance(value, dict) else "item")


def _number(value: bool | float | None) -> str:
    try:
        return wire.encode(value).decode()
    except (SeatrialError, ValueError):
        return "(a number too long to show)"


def _quoted(text: str) -> str:
    try:
        return visible(wire.encode(text).decode())
    except SeatrialError:
        return visible(f'"{text}"')
