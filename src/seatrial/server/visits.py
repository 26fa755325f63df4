"""What browsers say with their cookies: the session of a visitor, and that a form comes from a page of ours."""

from __future__ import annotations

import hmac
import re
import secrets

import msgspec
from litestar.datastructures import Headers

from seatrial.errors import SeatrialError
from seatrial.explorer.page import VISITOR, PageRequest, Visitor
from seatrial.runs import ApiKey
from seatrial.runs.served import Scope
from seatrial.server.access import check_scope

VISIT = "seatrial_visit"
"""Key of the scope's state."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_PORT = re.compile(r":([0-9]{1,5})$")


class Visit(msgspec.Struct, kw_only=True):
    """A request of a browser, or of a program that has no cookies."""

    suffix: str
    """Of the names of the cookies: servers at other ports of the same host have others."""
    session: str | None
    """The token of its session."""
    form: str
    """Random text of this browser, which forms are tied to where there is no session."""
    is_new: bool
    """Whether the browser does not have that text yet."""
    key: ApiKey | None = None
    """The key of the session, once it was found to be valid."""

    @property
    def form_token(self) -> str:
        """What forms must come with. Only a page of ours can know it: the cookies are hidden even from our scripts."""
        secret = self.session or self.form
        return hmac.new(secret.encode(), b"seatrial form", "sha256").hexdigest()

    def introduce(self) -> None:
        """Say to the pages who is looking."""
        name = None if self.key is None else self.key.name
        VISITOR.set(Visitor(token=self.form_token, name=name, may_write=self._may("run")))

    def _may(self, scope: Scope) -> bool:
        try:
            check_scope(self.key, scope)
        except SeatrialError:
            return False
        return True

    def form_cookie(self) -> str:
        """`Set-Cookie` for the text that forms are tied to. Also sent where a link of another site leads here."""
        return f"seatrial_form{self.suffix}={self.form}; Path=/; HttpOnly; SameSite=Lax"

    def session_cookie(self, token: str, max_age_s: float, *, secure: bool) -> str:
        """`Set-Cookie` for a session."""
        cookie = f"seatrial_session{self.suffix}={token}; Path=/; HttpOnly; SameSite=Strict; Max-Age={max_age_s:.0f}"
        return f"{cookie}; Secure" if secure else cookie


def visit_of(headers: Headers) -> Visit:
    """What the cookies of a request say."""
    port = _PORT.search(headers.get("host") or "")
    suffix = f"_{port[1]}" if port else ""
    cookies: dict[str, str] = {}
    for part in (headers.get("cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        if _TOKEN.fullmatch(value):
            cookies.setdefault(name, value)
    form = cookies.get(f"seatrial_form{suffix}")
    return Visit(
        suffix=suffix,
        session=cookies.get(f"seatrial_session{suffix}"),
        form=form or secrets.token_urlsafe(32),
        is_new=form is None,
    )


def visit_in(request: PageRequest) -> Visit:
    """The visit that a request belongs to."""
    found = request.scope["state"][VISIT]
    assert isinstance(found, Visit)  # noqa: S101 (the middleware has put it there)
    return found


async def check_form(request: PageRequest) -> None:
    """Raises `forbidden` for a form that is not from a page of ours."""
    form = await request.form()
    given = form.get("token")
    expected = visit_in(request).form_token
    if not isinstance(given, str) or not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
        raise SeatrialError(
            "forbidden",
            "the form was not sent from a page of this server, or the page is too old",
            hint="load the page again, with cookies allowed, and send the form once more",
        )
