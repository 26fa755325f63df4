"""Pages of the server as files: where their links lead, without a server.

Templates and page modules write the addresses of the server, and know nothing of exports. What they have rendered goes
through `without_server`: each link leads to the file, or the place in it, that a function names for it. A link that
leads nowhere is text; a button that leads nowhere, a form, and the choices between views are left out, for there is
nobody to answer them.

This reads our own HTML, in which every text of an agent is escaped: a tag is one of ours, and its values are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from markupsafe import escape

from seatrial.errors import SeatrialError

LinkTarget: TypeAlias = Callable[[str], str | None]
"""Where an address of the server leads to in an export; None for one that is not in it."""

_FORMS = re.compile(r"<form\b.*?</form>", re.DOTALL)
_CHOICES = re.compile(r'<nav class="(?:tabs|zm)".*?</nav>', re.DOTALL)
_BUTTONS = re.compile(r'<a\b[^<>]*\bclass="(?:ic|chip sea)[ "][^<>]*>.*?</a>', re.DOTALL)
_ATTRIBUTE = r'\s+[\w:-]+(?:="[^"]*")?'
_TAG = re.compile(rf"<([a-z][a-z0-9]*)((?:{_ATTRIBUTE})*)\s*(/?)>")
_ONE = re.compile(r'\s+([\w:-]+)(?:="([^"]*)")?')
_LINKS = frozenset({"href", "src"})
_OURS = frozenset({"id", "for", "aria-labelledby", "aria-controls", "aria-describedby"})
"""Attributes that name elements of their page."""
_OF_MODULES = frozenset({"data-timeline", "data-items", "data-open", "data-find", "data-key", "data-move", "data-hit"})
_ENTITIES = {"&amp;": "&", "&#34;": '"', "&#39;": "'", "&lt;": "<", "&gt;": ">", "&quot;": '"'}
_ENTITY = re.compile("|".join(_ENTITIES))
_SYMBOL = "#m-"
"""The beginning of links to marks, which all pages of a file share."""


def main_part(html: str) -> str:
    """What a page has between its bar and its end."""
    begin, end = html.find('<main id="main">'), html.rfind("</main>")
    if begin < 0 or end < 0:
        raise SeatrialError("internal_error", "a page that is to be exported has no main part")
    return html[begin + len('<main id="main">') : end]


def without_server(html: str, target: LinkTarget, prefix: str = "") -> str:
    """A page whose links lead to files. `prefix` begins the ids of its elements: of several pages in one file, each has
    another."""

    def tag(match: re.Match[str]) -> str:
        name, given, end = match.groups()
        if not given:
            return match[0]
        kept: list[str] = []
        for one in _ONE.finditer(given):
            attribute, value = one.groups()
            if attribute in _LINKS and value is not None and name != "use":
                value = _led(value, target, prefix)
                if value is None:
                    continue
            elif attribute in _OURS and value:
                value = " ".join([f"{prefix}{each}" for each in value.split(" ")])
            elif attribute in _OF_MODULES:
                continue
            kept.append(f" {attribute}" if value is None else f' {attribute}="{value}"')
        if name == "img" and not any(each.startswith(" src=") for each in kept):
            return '<span class="f">an image, which is not in this export</span>'
        return f"<{name}{''.join(kept)}{end}>"

    def button(match: re.Match[str]) -> str:
        href = re.search(r'\shref="([^"]*)"', match[0])
        return match[0] if href is not None and target(_plain(href[1])) is not None else ""

    html = _BUTTONS.sub(button, _CHOICES.sub("", _FORMS.sub("", html)))
    return _TAG.sub(tag, html)


def _led(value: str, target: LinkTarget, prefix: str) -> str | None:
    if value.startswith("#"):
        return value if value.startswith(_SYMBOL) else f"#{prefix}{value[1:]}"
    led = target(_plain(value))
    return None if led is None else str(escape(led))


def _plain(value: str) -> str:
    """The text of a value that a template has escaped."""
    return _ENTITY.sub(lambda match: _ENTITIES[match[0]], value)
