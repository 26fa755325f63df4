"""Markdown of agents as HTML: no markup of theirs, no address that could run or load something, nothing hidden.

markdown-it knows no HTML here, so tags of an agent come out as text; nh3 then lets through what this module means to
write, and nothing else. Images are named instead of loaded: whoever serves one would learn that somebody looked.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from seatrial._support.printable import printable

MAX_MARKDOWN = 16 * 1024
"""Characters that are read as Markdown; a longer text is shown as it is."""

_SCHEMES = ("https://", "http://", "mailto:")
_TAGS = {
    *("p", "br", "hr", "b", "strong", "em", "s", "a", "code", "pre", "blockquote", "span"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"),
}
_ATTRIBUTES = {"a": {"href", "class"}, "p": {"class"}, "span": {"class"}, "ol": {"start"}}
# What tells that a text means to be Markdown. Without any of it, there is nothing to see beside the text as it is.
_MARKS = re.compile(r"[*_`\[<|~\\]|^ {0,3}(?:#{1,6} |>|[-+] |\d{1,9}[.)] |={3,}|-{3,})|^(?: {4}|\t)", re.MULTILINE)

# The reader drops what is nested deeper than its limit. Each level takes a character at the beginning of a line.
_MAX_NESTING = 100
_DEEP = re.compile(rf"^[ \t>*+\-\d.)]{{{_MAX_NESTING - 20},}}[^ \t>*+\-\d.)\n]", re.MULTILINE)


def is_marked_up(text: str) -> bool:
    """Whether a text has anything in it that Markdown would show in another way than as it is."""
    return _MARKS.search(text) is not None and _can_be_read(text)


def visible(text: str) -> str:
    """A text of anybody with everything in it made visible; an end of line is one, whatever it is written with."""
    return printable(text.replace("\r\n", "\n"))


def markdown(text: str) -> Markup:
    """A text as HTML."""
    # Both have passed nh3, or have been escaped.
    if not _can_be_read(text):
        return Markup('<p class="pl">{}</p>').format(visible(text))
    html = _reader().render(visible(text))
    return Markup(  # noqa: S704
        nh3.clean(
            html,
            tags=_TAGS,
            attributes=_ATTRIBUTES,
            url_schemes={"http", "https", "mailto"},
            link_rel="noopener noreferrer nofollow",
        )
    )


class _Renderer(RendererHTML):
    """HTML for pages that have one heading, and load nothing."""

    def link_close(
        self, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
    ) -> str:
        opened = _opening(tokens, index)
        address = str(tokens[opened].attrGet("href") or "")
        said = "".join([token.content for token in tokens[opened + 1 : index]])
        host = _host(address)
        # A text that shows where it leads needs no second host; one that shows another host is a trap.
        return (
            "</a>" if host and host == _host(said) else f'</a> <span class="f">({escape(host or address[:80])})</span>'
        )

    def image(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        token = tokens[index]
        where = _host(str(token.attrGet("src") or "")) or "no address"
        return f'<span class="ex">image {escape(token.content)} ({escape(where)}), not loaded</span>'

    def heading_open(
        self, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
    ) -> str:
        return '<p class="mh">'

    def heading_close(
        self, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
    ) -> str:
        return "</p>\n"


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING}, renderer_cls=_Renderer)
    reader.enable(["table", "strikethrough"])
    reader.validateLink = _is_harmless  # type: ignore[method-assign, assignment]
    return reader


def _can_be_read(text: str) -> bool:
    return len(text) <= MAX_MARKDOWN and _DEEP.search(text) is None


def _is_harmless(address: str) -> bool:
    return address.strip().lower().startswith(_SCHEMES)


def _opening(tokens: Sequence[Token], close: int) -> int:
    return next(index for index in range(close, -1, -1) if tokens[index].type == "link_open")


def _host(address: str) -> str:
    address = address.strip()
    if address.lower().startswith("mailto:"):
        return address[7:].partition("?")[0][:80]
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return parts.netloc.rpartition("@")[2][:80] if parts.scheme in ("http", "https") else ""
