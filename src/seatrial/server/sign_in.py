"""Sign-in of browsers: a key is given once, and a cookie stands for it until the session ends."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import urlencode, urlsplit

from litestar import Response, Router, get, post
from litestar.datastructures import Headers
from litestar.response.base import ASGIResponse
from litestar.types import HTTPScope

from seatrial.errors import SeatrialError
from seatrial.explorer.page import FRAGMENT, HEADERS, HTML, Arguments, PageRequest, html
from seatrial.explorer.routes import PAGE
from seatrial.server.access import Keys, check_scope
from seatrial.server.problems import wants_page
from seatrial.server.rates import Rates
from seatrial.server.settings import ServerSettings
from seatrial.server.visits import visit_in
from seatrial.store import Store

SIGN_IN = "/sign-in"
SIGN_OUT = "/sign-out"
UNSIGNED = frozenset({SIGN_IN, SIGN_OUT})
"""Pages that need no key."""
TRIES = 10
"""How many keys may be tried from one address at once; then one every `TRY_S`."""
TRY_S = 6.0


def sign_in_router(store: Store, keys: Keys, settings: ServerSettings) -> Router:
    """The pages where visitors sign in and out."""
    tries = Rates(1 / TRY_S, TRIES)

    @get(SIGN_IN)
    async def show_form(request: PageRequest) -> Response[str]:
        arguments = Arguments(request, "next")
        there = own_path(arguments.get("next"))
        if await _is_admitted(request):
            return _see(there)
        # A link on another site leads here without the cookie of the session, which the same address has when one of
        # our own pages leads there.
        foreign = request.headers.get("sec-fetch-site") == "cross-site"
        return html("sign_in.html", next=there, again=foreign, complaints=arguments.complaints)

    @post(SIGN_IN)
    async def sign_in(request: PageRequest) -> Response[str]:
        form = await request.form()
        there = own_path(form.get("next"))
        tries.take("" if request.client is None else request.client.host)
        try:
            key = await keys.key_of(f"Bearer {str(form.get('key', '')).strip()}")
            check_scope(key, "read")
        except SeatrialError as error:
            if error.code not in ("unauthorized", "forbidden"):
                raise
            status = 401 if error.code == "unauthorized" else 403
            return html("sign_in.html", status, next=there, again=False, complaints=[], error=error)
        if key is None:
            return _see(there)
        visit = visit_in(request)
        if visit.session is not None:
            await keys.end_session(visit.session)
        now = time.time_ns() // 1_000_000
        until = now + round(settings.session_s * 1000)
        token = await asyncio.to_thread(store.keyring.open_session, key, now=now, expires_at=until)
        # The server has no TLS of its own; with a proxy in front that has, the browser says so.
        secure = request.headers.get("origin", "").startswith("https://")
        return _see(there, visit.session_cookie(token, settings.session_s, secure=secure))

    @post(SIGN_OUT)
    async def sign_out(request: PageRequest) -> Response[str]:
        visit = visit_in(request)
        if visit.session is not None:
            await keys.end_session(visit.session)
        return _see(SIGN_IN, visit.session_cookie("", 0, secure=False))

    async def _is_admitted(request: PageRequest) -> bool:
        try:
            check_scope(await keys.key_of(None, visit_in(request).session), "read")
        except SeatrialError as error:
            if error.code not in ("unauthorized", "forbidden"):
                raise
            return False
        return True

    return Router("/", route_handlers=[show_form, sign_in, sign_out], opt={PAGE: True})


def own_path(given: object) -> str:
    """An address to go to after signing in: a page of this server, whatever was asked for."""
    if not isinstance(given, str) or not given.startswith("/") or given.startswith("//") or "\\" in given:
        return "/"
    if any(ord(character) <= 32 or ord(character) == 127 for character in given):
        return "/"
    try:
        parts = urlsplit(given)
    except ValueError:
        return "/"
    return "/" if parts.scheme or parts.netloc or parts.path in UNSIGNED else given


def may_sign_in(scope: HTTPScope, headers: Headers) -> bool:
    """Whether a visitor without a key is led to the form, and not only told what is missing."""
    if scope["method"] != "GET" or "authorization" in headers or FRAGMENT.lower() in headers:
        return False
    return wants_page(scope)


def to_sign_in(scope: HTTPScope) -> ASGIResponse:
    """The response that leads to the form, and from there back to the page that was asked for."""
    asked = scope["raw_path"].decode("ascii", "replace")
    if scope["query_string"]:
        asked += "?" + scope["query_string"].decode("ascii", "replace")
    query = "" if asked == "/" else "?" + urlencode({"next": asked})
    return ASGIResponse(status_code=303, headers={"location": SIGN_IN + query})


def _see(there: str, cookie: str | None = None) -> Response[str]:
    headers = {**HEADERS, "location": there}
    if cookie is not None:
        headers["set-cookie"] = cookie
    return Response("", status_code=303, media_type=HTML, headers=headers)
