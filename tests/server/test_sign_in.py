"""Sign-in of browsers: sessions, their end, and forms that only pages of ours can send."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from http.cookies import SimpleCookie

import aiohttp
import pytest
import sqlalchemy as sa

from seatrial.runs import ApiKey
from seatrial.server.settings import ServerSettings
from seatrial.server.sign_in import TRIES, own_path
from seatrial.store import Store
from seatrial.store.schema import api_keys, browser_sessions
from server.served import SETTINGS, serving

NOW = time.time_ns() // 1_000_000
HOUR = 3_600_000


class Visitor:
    """A browser: it keeps cookies, and follows no redirect."""

    def __init__(self, url: str, client: aiohttp.ClientSession) -> None:
        self.cookies: dict[str, str] = {}
        self.last: SimpleCookie = SimpleCookie()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.text = ""
        self._url = url
        self._client = client

    async def get(self, path: str, **headers: str) -> int:
        return await self._ask("GET", path, headers)

    async def post(self, path: str, form: dict[str, str], **headers: str) -> int:
        return await self._ask("POST", path, {"Origin": self._url, **headers}, form)

    async def sign_in(self, secret: str, path: str = "/sign-in", **headers: str) -> int:
        """Through the form, as a person does."""
        await self.get(path)
        hidden = dict(re.findall(r'name="(token|next)" value="([^"]*)"', self.text))
        return await self.post("/sign-in", {**hidden, "key": secret}, **headers)

    @property
    def token(self) -> str:
        """That of the form on the page."""
        return str(re.findall(r'name="token" value="([^"]+)"', self.text)[0])

    @property
    def session(self) -> str | None:
        return next((value for name, value in self.cookies.items() if name.startswith("seatrial_session")), None)

    async def _ask(self, method: str, path: str, headers: dict[str, str], form: dict[str, str] | None = None) -> int:
        sent = {"Accept": "text/html", "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        async with self._client.request(
            method, path, headers={**sent, **headers}, data=form, allow_redirects=False
        ) as response:
            self.status, self.headers, self.text = response.status, dict(response.headers), await response.text()
            self.last = SimpleCookie()
            for line in response.headers.getall("Set-Cookie", []):
                self.last.load(line)
            for name, morsel in self.last.items():
                self.cookies[name] = morsel.value
                if morsel["max-age"] == "0":
                    del self.cookies[name]
        return self.status


def visiting(
    store: Store,
    visit: Callable[[Visitor, Callable[[], Visitor]], Awaitable[None]],
    settings: ServerSettings = SETTINGS,
) -> None:
    """Let somebody visit a server over the store; more visitors can be made."""

    async def scenario() -> None:
        async with serving(store, settings=settings) as (url, client):
            await visit(Visitor(url, client), lambda: Visitor(url, client))

    asyncio.run(scenario())


def reader(store: Store) -> tuple[ApiKey, str]:
    return store.keyring.add("reader", ["read"], now=NOW)


def test_a_browser_without_a_session_is_led_to_the_form_and_a_program_is_told_what_is_missing(store: Store) -> None:
    reader(store)

    async def visit(visitor: Visitor, _: object) -> None:
        assert await visitor.get("/experiments?by=time") == 303
        assert visitor.headers["Location"] == "/sign-in?next=%2Fexperiments%3Fby%3Dtime"
        assert await visitor.get("/experiments", Accept="application/json") == 401
        assert await visitor.get("/experiments", **{"Seatrial-Fragment": "1"}) == 401
        assert await visitor.get("/v1/runs") == 401
        assert await visitor.post("/experiments", {}) == 401
        assert await visitor.get("/sign-in") == 200

    visiting(store, visit)


def test_a_key_is_given_once_and_a_cookie_stands_for_it(store: Store) -> None:
    _, secret = reader(store)

    async def visit(visitor: Visitor, _: object) -> None:
        assert await visitor.sign_in(secret, "/sign-in?next=%2Fexperiments%3Fby%3Dtime") == 303
        assert visitor.headers["Location"] == "/experiments?by=time"
        cookie = next(iter(visitor.last.values()))
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
        assert cookie["max-age"] == str(12 * 3600)
        assert not cookie["secure"]
        assert secret not in repr(visitor.headers)
        assert await visitor.get("/experiments") == 200
        assert "Sign out" in visitor.text
        assert await visitor.get("/v1/runs") == 200
        assert await visitor.get("/sign-in?next=/experiments") == 303

    visiting(store, visit)


def test_behind_a_proxy_with_tls_the_cookie_is_for_tls_alone(store: Store) -> None:
    _, secret = reader(store)

    async def visit(visitor: Visitor, _: object) -> None:
        host = visitor._url.removeprefix("http://")
        await visitor.sign_in(secret, Origin=f"https://{host}")
        assert next(iter(visitor.last.values()))["secure"]

    visiting(store, visit)


def test_servers_at_other_ports_have_cookies_of_their_own(store: Store) -> None:
    _, secret = reader(store)

    async def visit(visitor: Visitor, _: object) -> None:
        await visitor.sign_in(secret)
        port = visitor._url.rpartition(":")[2]
        assert set(visitor.cookies) == {f"seatrial_session_{port}", f"seatrial_form_{port}"}

    visiting(store, visit)


def test_the_token_of_a_session_is_not_in_the_store(store: Store) -> None:
    _, secret = reader(store)

    async def visit(visitor: Visitor, _: object) -> None:
        await visitor.sign_in(secret)
        with store._dialect.reading.connect() as connection:
            row = connection.execute(sa.select(browser_sessions)).one()
        assert visitor.session is not None
        assert visitor.session not in repr(row)

    visiting(store, visit)


@pytest.mark.parametrize("wrong", ["", "st_nothing", "st_000000000000_" + "A" * 43, "\N{SNOWMAN}"])
def test_a_wrong_key_opens_no_session(store: Store, wrong: str) -> None:
    reader(store)

    async def visit(visitor: Visitor, _: object) -> None:
        assert await visitor.sign_in(wrong) == 401
        assert "The key is unknown, revoked or expired" in visitor.text
        assert visitor.session is None
        assert await visitor.get("/experiments") == 303

    visiting(store, visit)


def test_a_key_without_read_sees_nothing_and_is_told_what_it_lacks(store: Store) -> None:
    key, secret = reader(store)

    with store._dialect.migrating() as connection:
        connection.execute(sa.update(api_keys).where(api_keys.c.key_id == key.key_id).values(scopes=""))

    async def visit(visitor: Visitor, _: object) -> None:
        assert await visitor.sign_in(secret) == 403
        assert "scope `read`" in visitor.text
        assert visitor.session is None
        name = f"seatrial_session_{visitor._url.rpartition(':')[2]}"
        visitor.cookies[name] = store.keyring.open_session(key, now=NOW, expires_at=NOW + HOUR)
        assert await visitor.get("/experiments") == 403
        assert "scope `read`" in visitor.text

    visiting(store, visit)


def test_a_session_ends_at_its_time(store: Store) -> None:
    key, _ = reader(store)

    async def visit(visitor: Visitor, _: object) -> None:
        name = f"seatrial_session_{visitor._url.rpartition(':')[2]}"
        for expires_at, status in ((NOW + HOUR, 200), (NOW - 1, 303)):
            visitor.cookies[name] = store.keyring.open_session(key, now=NOW - HOUR, expires_at=expires_at)
            assert await visitor.get("/experiments") == status

    visiting(store, visit)


def test_a_session_ends_with_its_key(store: Store) -> None:
    key, _ = reader(store)
    short, _ = store.keyring.add("short", ["read"], now=NOW - HOUR, expires_at=NOW - 1)

    async def visit(visitor: Visitor, _: object) -> None:
        name = f"seatrial_session_{visitor._url.rpartition(':')[2]}"
        visitor.cookies[name] = store.keyring.open_session(short, now=NOW - HOUR, expires_at=NOW + HOUR)
        assert await visitor.get("/experiments") == 303
        visitor.cookies[name] = store.keyring.open_session(key, now=NOW, expires_at=NOW + HOUR)
        store.keyring.revoke(key.key_id, NOW)
        assert await visitor.get("/experiments") == 303
        assert await visitor.get("/v1/runs", Accept="application/json") == 401

    visiting(store, visit)


def test_signing_out_ends_the_session_and_not_only_the_cookie(store: Store) -> None:
    _, secret = reader(store)

    async def visit(visitor: Visitor, _: object) -> None:
        await visitor.sign_in(secret)
        await visitor.get("/experiments")
        stolen = dict(visitor.cookies)
        assert await visitor.post("/sign-out", {"token": visitor.token}) == 303
        assert visitor.session is None
        visitor.cookies = stolen
        assert await visitor.get("/experiments") == 303

    visiting(store, visit)


def test_signing_in_again_ends_the_session_before(store: Store) -> None:
    key, secret = reader(store)

    async def visit(visitor: Visitor, _: object) -> None:
        name = f"seatrial_session_{visitor._url.rpartition(':')[2]}"
        visitor.cookies[name] = first = store.keyring.open_session(key, now=NOW - HOUR, expires_at=NOW - 1)
        assert await visitor.sign_in(secret) == 303
        assert visitor.session != first
        assert len(store.keyring.session_keys()) == 1

    visiting(store, visit)


def test_a_form_without_the_token_of_its_page_is_refused(store: Store) -> None:
    _, secret = reader(store)

    async def visit(visitor: Visitor, another: Callable[[], Visitor]) -> None:
        other = another()
        await other.get("/sign-in")
        await visitor.get("/sign-in")
        for form in ({}, {"token": ""}, {"token": "0" * 64}, {"token": other.token}, {"token": "\N{SNOWMAN}"}):
            assert await visitor.post("/sign-in", {**form, "key": secret}) == 403, form
            assert visitor.session is None
        assert await visitor.sign_in(secret) == 303
        await visitor.get("/experiments")
        for form in ({}, {"token": other.token}):
            assert await visitor.post("/sign-out", form) == 403
        assert await visitor.get("/experiments") == 200

    visiting(store, visit)


def test_a_form_of_another_site_is_refused_even_with_the_token(store: Store) -> None:
    _, secret = reader(store)

    async def visit(visitor: Visitor, _: object) -> None:
        assert await visitor.sign_in(secret, Origin="https://evil.example") == 403
        assert await visitor.sign_in(secret, Origin="null") == 403
        assert visitor.session is None

    visiting(store, visit)


def test_a_session_writes_only_with_forms(store: Store) -> None:
    _, secret = store.keyring.add("runner", ["run"], now=NOW)

    async def visit(visitor: Visitor, _: object) -> None:
        await visitor.sign_in(secret)
        assert await visitor.post("/v1/runs", {"agent": "a"}) == 403
        assert "a session may only send forms" in visitor.text
        assert await visitor.post("/v1/runs", {"agent": "a"}, Authorization=f"Bearer {secret}") not in (401, 403)

    visiting(store, visit)


def test_without_keys_pages_are_open_and_forms_still_have_tokens(store: Store) -> None:
    async def visit(visitor: Visitor, _: object) -> None:
        assert await visitor.get("/experiments") == 200
        assert "Sign out" not in visitor.text
        assert await visitor.get("/sign-in?next=/experiments") == 303
        assert await visitor.post("/sign-out", {}) == 403
        cookie = next(iter(visitor.cookies))
        assert "form" in cookie

    visiting(store, visit)


def test_keys_cannot_be_tried_without_end(store: Store) -> None:
    _, secret = reader(store)

    async def visit(visitor: Visitor, another: Callable[[], Visitor]) -> None:
        for _ in range(TRIES):
            assert await visitor.sign_in("st_wrong") == 401
        assert await another().sign_in(secret) == 429

    visiting(store, visit)


@pytest.mark.parametrize(
    ("asked", "led_to"),
    [
        ("/runs/a?at=/steps/4", "/runs/a?at=/steps/4"),
        ("/compare?a=x:y&b=z", "/compare?a=x:y&b=z"),
        (None, "/"),
        ("", "/"),
        ("runs", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("\n//evil.example", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/sign-out", "/"),
        ("/sign-in?next=/x", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
    ],
)
def test_signing_in_leads_only_to_pages_of_the_server(asked: str | None, led_to: str) -> None:
    assert own_path(asked) == led_to
