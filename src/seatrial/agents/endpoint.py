"""An agent's address and the pooled connections to it."""

from __future__ import annotations

import io
import ipaddress
import socket
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Self, TypeAlias

import aiohttp
import msgspec
import yarl

from seatrial._version import __version__
from seatrial.agents.config import EndpointRule
from seatrial.agents.http_faults import status_fault, transport_fault
from seatrial.errors import SeatrialError
from seatrial.runs import Fault
from seatrial.world.grant import RunGrant

KEEPALIVE_S = 4.0
"""Shorter than the 5 s after which common servers close: a request must not meet a connection that is going away."""
_LARGE = 1 << 20

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


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
        self._headers = {"User-Agent": f"seatrial/{__version__}", **headers}
        self._connect_s = connect_s
        self._read_s = read_s
        self._max_bytes = max_bytes
        self._public = rule == "public"
        self._refused: str | None = None
        """An address that the rule forbids and that the host name led to."""
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(
            # How many runs go on at once is the engine's to say.
            limit=0,
            keepalive_timeout=KEEPALIVE_S,
            socket_factory=self._public_socket if self._public else None,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_s, sock_read=self._read_s),
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def post(self, body: bytes, headers: Mapping[str, str], grant: RunGrant | None = None) -> Answer | Fault:
        """Send and take the whole answer, up to the limit. The token of a grant is kept out of faults."""
        try:
            async with self.open("POST", body, headers) as response:
                received = await self._read(response)
                if isinstance(received, Fault):
                    # What the status says weighs more than the length of the page that came with it.
                    received = status_fault(response.status, response.headers, b"") or received
                    received.http_status = response.status
                    return received
                fault = status_fault(response.status, response.headers, received)
                return Answer(response.status, received, response.content_type, fault)
        except (aiohttp.ClientError, OSError) as error:
            return self.fault(error, grant)

    def open(
        self, method: str, body: bytes | None, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send; the answer is read by the caller, who turns what is raised into a fault with `fault`."""
        if self._session is None:
            raise RuntimeError("the endpoint was not entered")
        # aiohttp sends large bytes in one go, and warns of it; a file it sends in pieces.
        data = io.BytesIO(body) if body is not None and len(body) > _LARGE else body
        return self._session.request(method, self._url, data=data, headers=headers, allow_redirects=False)

    def fault(self, error: aiohttp.ClientError | OSError, grant: RunGrant | None = None) -> Fault:
        """The fault that a failed exchange is."""
        if self._refused is not None and isinstance(error, aiohttp.ClientConnectorError):
            return Fault("endpoint_refused", f"`endpoint_rule: public` forbids the agent's address {self._refused}")
        return transport_fault(error, self._connect_s, self._read_s, grant)

    def too_large(self) -> Fault:
        """The fault of an answer beyond the limit."""
        return Fault("response_too_large", f"the answer is larger than {self._max_bytes:,} bytes")

    async def _read(self, response: aiohttp.ClientResponse) -> bytes | Fault:
        length = response.content_length
        if length is not None and length > self._max_bytes:
            response.close()
            return self.too_large()
        parts: list[bytes] = []
        size = 0
        # Unpacked piece by piece: what is counted is what a compressed answer becomes.
        while part := await response.content.readany():
            size += len(part)
            if size > self._max_bytes:
                response.close()
                return self.too_large()
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _public_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        """Makes the socket for an address that was resolved; here the rule cannot be got around by DNS."""
        family, kind, protocol, _, where = address
        if not is_public(ipaddress.ip_address(str(where[0]).partition("%")[0])):
            self._refused = str(where[0])
            raise OSError(f"{where[0]} is not a public address")
        return socket.socket(family, kind, protocol)


def is_public(address: IpAddress) -> bool:
    """Whether an address belongs to the public internet, also when it is wrapped in an IPv6 one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast


def checked_url(text: str, name: str) -> yarl.URL:
    """The URL in a text. The text may be a secret, so that the error does not show it."""
    try:
        url = yarl.URL(text)
    except ValueError:
        url = yarl.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise SeatrialError("invalid_config", f"{name} must be an http or https URL")
    return url


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if any(character in value for character in "\r\n\0"):
            raise SeatrialError(
                "invalid_config",
                f"the header `{name}` has more than one line",
                hint="a file that a variable was set from may end with a newline",
            )


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
