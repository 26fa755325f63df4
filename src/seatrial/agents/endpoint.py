"""An agent's address and the pooled connections to it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Self

import msgspec
import yarl

from seatrial._version import __version__
from seatrial.agents.config import EndpointRule
from seatrial.agents.excerpt import MAX_DETAIL
from seatrial.agents.exchange import Response
from seatrial.agents.http_faults import ExchangeError, status_fault
from seatrial.agents.pool import Pool
from seatrial.agents.unpacking import ENCODINGS
from seatrial.errors import SeatrialError
from seatrial.runs import Fault
from seatrial.world.grant import RunGrant


class Reached(msgspec.Struct):
    """Whether a run's request got as far as a connection; whoever stops waiting has nothing else to go by."""

    connected: bool = False


class Answer(msgspec.Struct):
    """What came back over HTTP, whole."""

    status: int
    body: bytes
    content_type: str
    fault: Fault | None
    """Set when the status is not 2xx."""


class Endpoint:
    """One address. Entered once, asked many times, concurrently.

    Redirects are not followed, cookies are not kept from one run to the next, and proxies of the environment are not
    used: what is tested is the agent at this address.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        rule: EndpointRule,
        connect_s: float,
        read_s: float | None,
        max_bytes: int,
    ) -> None:
        self._url = checked_url(url, "the agent's address")
        if rule == "public" and self._url.scheme != "https":
            raise SeatrialError("invalid_config", "`endpoint_rule: public` asks for an https URL")
        _check_headers(headers)
        if self._url.user is not None and any(name.lower() == "authorization" for name in headers):
            raise SeatrialError("invalid_config", "there are credentials in the agent's address and in a header too")
        usual = {
            "Host": self._url.host_port_subcomponent or "",
            "User-Agent": f"seatrial/{__version__}",
            "Accept": "*/*",
            "Accept-Encoding": ENCODINGS,
            **_credentials(self._url),
        }
        self._headers = merged(usual, headers)
        self._connect_s = connect_s
        self._read_s = read_s
        self._max_bytes = max_bytes
        self._public = rule == "public"
        self._common: dict[tuple[str, ...], str] = {}
        self._pool: Pool | None = None

    async def __aenter__(self) -> Self:
        self._pool = Pool(self._url, connect_s=self._connect_s, read_s=self._read_s, public=self._public)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._pool is not None:
            await self._pool.close()

    async def post(
        self,
        body: bytes,
        headers: Mapping[str, str],
        grant: RunGrant | None = None,
        reached: Reached | None = None,
    ) -> Answer | Fault:
        """Send and take the whole answer, up to the limit. The token of a grant is kept out of faults."""
        try:
            response = await self.ask("POST", body, headers, reached)
        except ExchangeError as error:
            return told(error.fault, grant)
        failure: Fault | None = None
        try:
            received = await response.whole(self._max_bytes)
        except ExchangeError as error:
            received, failure = None, told(error.fault, grant)
        finally:
            response.close()
        fault = status_fault(response.status, response.retry_after, received or b"")
        if received is not None:
            return Answer(response.status, received, response.content_type, fault)
        # What the status says weighs more than what is wrong with the page that came with it.
        fault = fault or failure or self.too_large()
        fault.http_status = response.status
        return fault

    async def ask(
        self, method: str, body: bytes | None, headers: Mapping[str, str], reached: Reached | None = None
    ) -> Response:
        """Send, and wait for the head of the answer; the caller closes it. Raises `ExchangeError`."""
        if self._pool is None:
            raise RuntimeError("the endpoint was not entered")
        head = self._head(method, body, headers)
        connection = await self._pool.connection()
        if reached is not None:
            reached.connected = True
        response = connection.ask(head, body)
        try:
            await response.begin()
        except BaseException:
            response.close()
            raise
        return response

    @property
    def address(self) -> str:
        """The host and the port, for people."""
        return f"{self._url.host}:{self._url.port}"

    async def reach(self) -> Fault | None:
        """Connect and no more; the fault where that cannot be done."""
        if self._pool is None:
            raise RuntimeError("the endpoint was not entered")
        try:
            connection = await self._pool.connection()
        except ExchangeError as error:
            return told(error.fault)
        connection.abort()
        return None

    def too_large(self) -> Fault:
        """The fault of an answer beyond the limit."""
        return Fault("response_too_large", f"the answer is larger than {self._max_bytes:,} bytes")

    def _head(self, method: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        # Much of it is the same for every run.
        kind = (method, *headers)
        common = self._common.get(kind)
        if common is None:
            kept = [f"{name}: {value}" for name, value in without(self._headers, headers).items()]
            common = self._common[kind] = "\r\n".join([f"{method} {self._url.raw_path_qs} HTTP/1.1", *kept])
        lines = [common, *[f"{name}: {value}" for name, value in headers.items()]]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines) + "\r\n\r\n"
        if "\0" in head or not head.count("\r") == head.count("\n") == common.count("\n") + len(lines) + 1:
            # An agent has a say in some of them: the place in a stream, for one.
            raise ExchangeError(Fault("agent_bad_response", "a header of the next request would not be one line"))
        return head.encode("utf-8", "replace")


def told(fault: Fault, grant: RunGrant | None = None) -> Fault:
    """A fault of an exchange as it may be shown: without the token of a grant, and not too long."""
    if fault.detail is not None:
        # Before it is cut: a part of a token must not stay either.
        detail = fault.detail if grant is None else grant.redact_text(fault.detail)
        fault.detail = detail[:MAX_DETAIL]
    return fault


def checked_url(text: str, name: str) -> yarl.URL:
    """The URL in a text. The text may be a secret, so that the error does not show it."""
    try:
        url = yarl.URL(text)
    except ValueError:
        url = yarl.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise SeatrialError("invalid_config", f"{name} must be an http or https URL")
    return url


def merged(headers: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Headers with others beside or instead of them, each once: the case of a name does not matter."""
    return {**without(headers, others), **others}


def without(headers: Mapping[str, str], others: Iterable[str]) -> dict[str, str]:
    """Headers without those that are among the others, however they are written."""
    names = {name.lower() for name in others}
    return {name: value for name, value in headers.items() if name.lower() not in names}


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if any(character in value for character in "\r\n\0"):
            raise SeatrialError(
                "invalid_config",
                f"the header `{name}` has more than one line",
                hint="a file that a variable was set from may end with a newline",
            )


def _credentials(url: yarl.URL) -> dict[str, str]:
    if url.user is None:
        return {}
    return {"Authorization": f"Basic {b64encode(f'{url.user}:{url.password or str()}'.encode()).decode()}"}
