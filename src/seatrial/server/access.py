"""Who may do what: keys and their scopes, and the hosts and origins that requests may name."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NoReturn

from seatrial.errors import SeatrialError
from seatrial.runs.served import ApiKey, Scope
from seatrial.server.settings import LOOPBACK_NAMES, ServerSettings
from seatrial.store import Store

KEY_TTL_S = 5.0
"""How long a key is trusted before it is looked up again."""

_MAX_KNOWN = 1024
_SCHEME = "bearer "
_RANKS: dict[Scope, int] = {"read": 0, "run": 1, "admin": 2}
"""Each scope allows what those before it do."""


class Keys:
    """The keys of a store, each trusted for a few seconds, and the streams that were opened with them.

    For the thread of its event loop alone.
    """

    def __init__(self, store: Store, *, may_be_open: bool, ttl_s: float = KEY_TTL_S) -> None:
        self._store = store
        self._may_be_open = may_be_open
        self._ttl_s = ttl_s
        self._known: dict[bytes, tuple[float, ApiKey]] = {}
        self._open: tuple[float, bool] = (0.0, False)
        self._looking = asyncio.Lock()
        # By the id of their key, or the digest of their session.
        self._streams: dict[str | bytes | None, dict[object, Callable[[], None]]] = {}

    def remembered(self, authorization: str | None, session: str | None = None) -> ApiKey | None:
        """The key of a request, when it was looked up not long ago."""
        trusted_until, key = self._known.get(_credential(authorization, session), (0.0, None))
        return key if key is not None and time.monotonic() < trusted_until and _valid(key) else None

    async def key_of(self, authorization: str | None, session: str | None = None) -> ApiKey | None:
        """The key of a request, or None where none is needed. Raises `unauthorized`.

        A browser has no `authorization`, but the token of the session that it opened with a key.
        """
        if await self._is_open():
            return None
        if authorization is None and session is None:
            raise _unauthorized("a key is needed", "send `Authorization: Bearer <key>`; `seatrial keys add` makes one")
        async with self._looking:
            key = self.remembered(authorization, session)
            if key is None:
                key = await asyncio.to_thread(self._look_up, authorization, session)
                if key is not None:
                    self._remember(_credential(authorization, session), key)
        if key is None or not _valid(key):
            if session is not None and authorization is None:
                raise _unauthorized("the session has ended", "sign in again")
            raise _unauthorized("the key is unknown, revoked or expired", "`seatrial keys list` shows which are valid")
        return key

    def _look_up(self, authorization: str | None, session: str | None) -> ApiKey | None:
        if authorization is not None:
            return self._store.keyring.find(_secret(authorization))
        return None if session is None else self._store.keyring.session_key(session)

    async def end_session(self, session: str) -> None:
        """Forget a session, and close the connections that were opened with it."""
        await asyncio.to_thread(self._store.keyring.end_session, session)
        self._known.pop(_credential(None, session), None)
        self._close(_digest(session))

    @contextmanager
    def holding(self, key: ApiKey | None, abort: Callable[[], None], session: str | None = None) -> Iterator[None]:
        """Inside this block, the connection is closed when its key or its session becomes invalid."""
        holder = None if key is None else key.key_id if session is None else _digest(session)
        handle = object()
        self._streams.setdefault(holder, {})[handle] = abort
        try:
            yield
        finally:
            held = self._streams[holder]
            del held[handle]
            if not held:
                del self._streams[holder]

    def _close(self, holder: str | bytes | None) -> None:
        for abort in list(self._streams.get(holder, {}).values()):
            abort()

    async def watch(self) -> NoReturn:
        """Keep closing the connections whose keys are no longer valid, until cancelled."""
        while True:
            await asyncio.sleep(self._ttl_s)
            try:
                await self.sweep()
            except SeatrialError:
                # The store is away. What can be read of it says nothing new until it is back.
                continue

    async def sweep(self) -> None:
        """Check the keys of the open connections once."""
        if not self._streams or await self._is_open():
            return
        valid: set[str | bytes | None] = set()
        valid |= {key.key_id for key in await asyncio.to_thread(self._store.keyring.all) if _valid(key)}
        sessions = await asyncio.to_thread(self._store.keyring.session_keys)
        valid |= {digest for digest, key in sessions.items() if _valid(key)}
        for holder in self._streams.keys() - valid:
            self._close(holder)

    async def _is_open(self) -> bool:
        if not self._may_be_open:
            return False
        known_until, is_open = self._open
        if time.monotonic() >= known_until:
            is_open = not await asyncio.to_thread(self._store.keyring.exists)
            self._open = (time.monotonic() + self._ttl_s, is_open)
        return is_open

    def _remember(self, digest: bytes, key: ApiKey) -> None:
        self._known.pop(digest, None)
        self._known[digest] = (time.monotonic() + self._ttl_s, key)
        if len(self._known) > _MAX_KNOWN:
            del self._known[next(iter(self._known))]


def check_scope(key: ApiKey | None, needed: Scope) -> None:
    """Raises `forbidden` when a key lacks the scope that an operation needs."""
    if key is not None and max(map(_RANKS.__getitem__, key.scopes), default=-1) < _RANKS[needed]:
        raise SeatrialError(
            "forbidden",
            f"the operation needs the scope `{needed}`, and the key does not have it",
            hint=f"make one that has: `seatrial keys add NAME --scope {needed}`",
        )


def check_host(host: str | None, settings: ServerSettings) -> None:
    """Raises `forbidden` for a name that the server is not known by.

    A page whose own name was made to point here (DNS rebinding) is kept out by this. An address is no name: nobody
    but the client itself can have chosen it.
    """
    name = _name_of(host or "")
    if name in LOOPBACK_NAMES or name == settings.host.lower() or not settings.allow_hosts.isdisjoint({name, "*"}):
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        raise SeatrialError(
            "forbidden",
            f"the server is not known by the name {name[:80]!r}",
            hint="start it with --allow-host NAME if it should be",
        ) from None


def check_origin(origin: str | None, host: str | None, settings: ServerSettings) -> str | None:
    """Raises `forbidden` for a web page of another origin; gives the origin that the CORS headers allow, if any."""
    if origin is None:
        return None
    if "*" in settings.allow_origins or origin in settings.allow_origins:
        return origin
    scheme, _, authority = origin.partition("://")
    if scheme in ("http", "https") and authority.lower() == (host or "").lower():
        return None
    raise SeatrialError(
        "forbidden",
        f"pages of the origin {origin[:80]!r} may not use the server",
        hint="start it with --allow-origin ORIGIN if they should",
    )


def _name_of(host: str) -> str:
    """The name without the port; an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def _secret(authorization: str) -> str:
    return authorization[len(_SCHEME) :].strip() if authorization[: len(_SCHEME)].lower() == _SCHEME else ""


def _credential(authorization: str | None, session: str | None) -> bytes:
    """What a key is remembered under; a key is never taken for a session, nor a session for a key."""
    if authorization is not None:
        return b"key" + _digest(_secret(authorization))
    return b"session" + _digest(session or "")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _valid(key: ApiKey) -> bool:
    return key.revoked_at is None and (key.expires_at is None or datetime.now(UTC) < key.expires_at)


def _unauthorized(message: str, hint: str) -> SeatrialError:
    return SeatrialError("unauthorized", message, hint=hint)
