"""What pages need of HTTP: the parameters of their address, and responses that browsers treat with care."""

from __future__ import annotations

from contextvars import ContextVar
from difflib import get_close_matches
from typing import Any, TypeAlias
from urllib.parse import unquote

import msgspec
from litestar import Request, Response
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from seatrial.errors import SeatrialError
from seatrial.explorer.render import address, rendered
from seatrial.store import Store

FRAGMENT = "Seatrial-Fragment"
"""The header of requests that want a part of a page: the answer is that part alone."""

PARTS = "parts/"
"""Where the templates of such parts are."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types seatrial"
)
HTML = "text/html"
HEADERS = {
    "content-security-policy": POLICY,
    # Without a referrer, browsers send forms with `Origin: null`, and nobody could tell where they are from.
    "referrer-policy": "same-origin",
    "vary": FRAGMENT,
}

PageRequest: TypeAlias = Request[object, object, State]
TheStore: TypeAlias = NamedDependency[SkipValidation[Store]]


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """Who looks at a page. Templates have it as `visitor`; where a page is not served to anybody, it is None."""

    token: str
    """What the hidden field `token` of every form has: a form without it is refused."""
    name: str | None = None
    """The name of the key that the visitor signed in with; None where no key is needed."""
    may_write: bool = True
    """Whether forms that change something are accepted."""


VISITOR: ContextVar[Visitor | None] = ContextVar("seatrial_visitor", default=None)
"""Whose request is being answered."""


def html(template: str, status: int = 200, headers: dict[str, str] | None = None, **context: Any) -> Response[str]:
    """A page, or a part of one, which says that it is one."""
    text = rendered(template, **{"visitor": VISITOR.get(), **context})
    given = {**HEADERS, **(headers or {})}
    if template.startswith(PARTS):
        given[FRAGMENT.lower()] = "1"
    return Response(text, status_code=status, media_type=HTML, headers=given)


def is_fragment(request: PageRequest) -> bool:
    """Whether only a part of a page was asked for."""
    return FRAGMENT.lower() in request.headers


class Arguments:
    """The parameters of a page's address. What is wrong with them is said above the page."""

    def __init__(self, request: PageRequest, *known: str) -> None:
        self.complaints: list[str] = []
        self._given: dict[str, str] = {}
        for name, value in request.query_params.multi_items():
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"Did you mean “{near[0]}”?" if near else f"Known here: {', '.join(known) or 'none'}."
                self.complaints.append(f"Unknown parameter “{name[:80]}”. {hint}")
            elif name in self._given:
                self.complaints.append(f"The parameter “{name}” is given more than once; the first counts.")
            elif value:
                self._given[name] = value

    def get(self, name: str) -> str | None:
        """The value of a parameter; None when it is not given, or empty."""
        return self._given.get(name)

    def choice(self, name: str, words: tuple[str, ...], default: str) -> str:
        """The value of a parameter that is one of these words."""
        value = self._given.get(name, default)
        if value in words:
            return value
        near = get_close_matches(value, words, n=1)
        hint = f"Did you mean “{near[0]}”?" if near else f"It is one of {', '.join(words)}."
        self.complaints.append(f"“{value[:80]}” is not a value of “{name}”. {hint}")
        return default

    def number(self, name: str, default: int = 0) -> int:
        """The value of a parameter that is a whole number, not negative."""
        value = self._given.get(name)
        if value is None:
            return default
        if value.isascii() and value.isdigit() and len(value) <= 12:
            return int(value)
        self.complaints.append(f"“{value[:80]}” is not a number, which “{name}” is.")
        return default

    def others(self, *names: str) -> dict[str, str]:
        """What was given, without these."""
        return {name: value for name, value in self._given.items() if name not in names}

    def address(self, *parts: str, **changed: object) -> str:
        """The address of a page with the same parameters but for these; None leaves one out."""
        return address(*parts, **{**self._given, **changed})


def rest_of(request: PageRequest, segments: int) -> str:
    """The rest of a page's path behind so many segments, as it was before it was written into an address: names may
    have slashes in them, which are `%2F` there."""
    written = request.scope["raw_path"].decode("ascii", "replace").partition("?")[0]
    return "/".join([unquote(each) for each in written.split("/")[segments + 1 :]])


def error_page(error: SeatrialError, status: int) -> str:
    """What a browser shows when a page cannot be."""
    return rendered("error.html", error=error, status=status, complaints=[], visitor=VISITOR.get())
