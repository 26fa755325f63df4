"""The service at an address: one pool of connections, requests with the key, answers that are looked at with care."""

from __future__ import annotations

import asyncio
import io
import random
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypeVar

import aiohttp
import msgspec
import yarl

from seatrial._support import wire
from seatrial._version import __version__
from seatrial.client.address import bearer, service_address
from seatrial.client.patience import Patience, PatienceLeft
from seatrial.client.refusal import MAX_REFUSAL_BYTES, MAX_TEXT, AttemptError, refusal
from seatrial.errors import SeatrialError

T = TypeVar("T")

MAX_ANSWER_BYTES = 256 * 1024 * 1024
_LARGE = 512 * 1024
_chance = random.SystemRandom().random


class Service:
    """Entered once, asked many times, concurrently.

    Redirects are not followed, cookies are not kept, and proxies of the environment are not used: the key goes to this
    address and nowhere else.
    """

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        allow_plain_http: bool,
        ssl: ssl.SSLContext | None,
        connect_s: float,
        timeout_s: float,
        patience: Patience,
    ) -> None:
        self._address = service_address(url, keyed=key is not None, allow_plain_http=allow_plain_http)
        self._base = str(self._address).rstrip("/")
        self._headers = {"User-Agent": f"seatrial/{__version__}", "Accept-Encoding": "identity"}
        self._key = ""
        if key is not None:
            self._headers["Authorization"] = bearer(key)
            self._key = key.strip()
        self._ssl = ssl
        self._connect_s = connect_s
        self._timeout_s = timeout_s
        self._patience = patience
        self._session: aiohttp.ClientSession | None = None
        self._open: set[aiohttp.ClientResponse] = set()
        """Answers that are being read."""

    def __repr__(self) -> str:
        return f"Service({self._base!r})"

    @property
    def url(self) -> str:
        """Where it is; there are no secrets in it."""
        return self._base

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            # A stream keeps its connection for the length of a run, and there may be many.
            connector=aiohttp.TCPConnector(limit=0, ssl=True if self._ssl is None else self._ssl),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            # The session would close their connections as well, but leave their readers waiting.
            for response in list(self._open):
                response.close()
            await session.close()

    def budget(self, patience: Patience) -> PatienceLeft:
        """A full budget, with the clock of the loop."""
        return PatienceLeft(patience, asyncio.get_running_loop().time, _chance)

    async def call(
        self,
        method: str,
        path: str,
        decoder: msgspec.json.Decoder[T],
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> T:
        """What the service answers. Asked again after failures that may pass, so the request must bear repetition."""
        budget = self.budget(self._patience)
        while True:
            try:
                return await self._call_once(method, path, decoder, params or {}, body)
            except AttemptError as attempt:
                wait_s = budget.wait_s(attempt.wait_s) if attempt.may_pass else None
                if wait_s is None:
                    raise attempt.error from None
            await asyncio.sleep(wait_s)

    async def _call_once(
        self, method: str, path: str, decoder: msgspec.json.Decoder[T], params: Mapping[str, str], body: bytes | None
    ) -> T:
        timeout = aiohttp.ClientTimeout(total=self._timeout_s, connect=self._connect_s)
        async with self.answer(method, path, params=params, body=body, accept=_JSON, timeout=timeout) as content:
            data = await _read(content, MAX_ANSWER_BYTES)
            if len(data) > MAX_ANSWER_BYTES:
                raise AttemptError(SeatrialError("too_large", "the service's answer is too large"), may_pass=False)
        try:
            return wire.decode(data, decoder)
        except SeatrialError as error:
            message = f"the service's answer is not what was asked for: {error}"
            raise AttemptError(SeatrialError("service_failed", message), may_pass=False) from None

    def answer(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        accept: str,
        timeout: aiohttp.ClientTimeout,
        body: bytes | None = None,
    ) -> ServiceAnswer:
        """`async with` it, to send the request and to read what comes."""
        url = yarl.URL(f"{self._base}{path}", encoded=True).update_query(params)
        return ServiceAnswer(self, method, url, body, accept, timeout)

    async def send(
        self, method: str, url: yarl.URL, body: bytes | None, accept: str, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Send a request; the answer, when it is 2xx and of the type that was asked for."""
        if self._session is None:
            raise _not_open()
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = "application/json"
        # aiohttp sends large bytes in one go, and warns of it; a file it sends in pieces.
        data = io.BytesIO(body) if body is not None and len(body) > _LARGE else body
        response = await self._session.request(
            method, url, data=data, headers=headers, timeout=timeout, allow_redirects=False
        )
        self._open.add(response)
        try:
            if not 200 <= response.status < 300:
                body = await _read(response.content, MAX_REFUSAL_BYTES)
                if self._key:
                    # Whoever answers may send back what was sent.
                    body = body.replace(self._key.encode(), b"***")
                raise refusal(response.status, response.headers, body)
            if response.content_type != accept:
                message = f"the service answered with {response.content_type[:80]!r} instead of {accept}"
                raise AttemptError(SeatrialError("service_failed", message), may_pass=False)
        except BaseException:
            self.close(response)
            raise
        return response

    def close(self, response: aiohttp.ClientResponse) -> None:
        """Be done with an answer; a connection that it has not left is closed."""
        self._open.discard(response)
        response.close()

    def lost(
        self, error: aiohttp.ClientError | OSError, timeout: aiohttp.ClientTimeout
    ) -> AttemptError | SeatrialError:
        """What to raise for a connection that there was not, or that did not last."""
        if self._session is None:
            return _not_open()
        may_pass = True
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            message = f"no connection to {self._base} within {self._connect_s:g} s"
        elif isinstance(error, TimeoutError):
            message = f"nothing came from {self._base} for {timeout.sock_read or timeout.total or 0:g} s"
        elif isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ServerFingerprintMismatch):
            message, may_pass = f"the certificate of {self._base} is not accepted: {error}", False
        elif isinstance(error, aiohttp.ClientConnectorError):
            message = f"no connection to {self._base}: {error.os_error.strerror or error.os_error}"
        elif isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
            message = f"the connection to {self._base} broke off"
        else:
            message = f"the exchange with {self._base} failed: {type(error).__name__}: {error}"
        if self._key:
            message = message.replace(self._key, "***")
        return AttemptError(SeatrialError("service_failed", message[:MAX_TEXT]), may_pass=may_pass)


class ServiceAnswer:
    """The answer to one request, for as long as it is read.

    Not made of a generator: those that a loop finds open at its end it closes all at once, the inner before the outer.
    """

    def __init__(
        self,
        service: Service,
        method: str,
        url: yarl.URL,
        body: bytes | None,
        accept: str,
        timeout: aiohttp.ClientTimeout,
    ) -> None:
        self._service = service
        self._request = (method, url, body, accept)
        self._timeout = timeout
        self._response: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> aiohttp.StreamReader:
        try:
            self._response = await self._service.send(*self._request, self._timeout)
        except (aiohttp.ClientError, OSError) as error:
            raise self._service.lost(error, self._timeout) from None
        return self._response.content

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._response is not None:
            self._service.close(self._response)
        if isinstance(error, aiohttp.ClientError | OSError):
            raise self._service.lost(error, self._timeout) from None


def _not_open() -> SeatrialError:
    return SeatrialError("service_failed", "the client is not open", hint="use it in `with` or `async with`")


async def _read(content: aiohttp.StreamReader, limit: int) -> bytes:
    """The body, or somewhat more than `limit` bytes of it."""
    parts: list[bytes] = []
    size = 0
    while size <= limit and (part := await content.readany()):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


_JSON = "application/json"
