"""HTTP over aiohttp: pooled connections, limits on what a server may send, and a name for each way to fail."""

from __future__ import annotations

import asyncio
import io
import ipaddress
import socket
import ssl
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, Self, TypeAlias, cast

import aiohttp
import yarl
from aiohttp.client_proto import ResponseHandler

from seatrial.http_client.paced_handler import MAX_INTERIM, PacedHandler
from seatrial.http_client.transport import HttpRequest, HttpResponse
from seatrial.http_client.transport_error import TransportError

KEEPALIVE_S = 4.0
"""Shorter than the 5 s after which common servers close: a request must not meet a connection that is being closed."""
DNS_CACHE_S = 10
"""How long the addresses of a host name are kept."""
READ_BYTES = 64 * 1024
"""aiohttp stops reading from the socket when it holds twice as much that nobody has read."""

_LARGE_BODY = 2**20
"""aiohttp writes bytes in one go, and warns of it when they are more than this; a file it writes in pieces."""

_ON_CONNECTED: ContextVar[Callable[[], None] | None] = ContextVar("on_connected", default=None)
"""What the request of the current task asked to be called. aiohttp's own hooks run at every stage of a request."""

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class AiohttpTransport:
    """One pool of connections, as many as there are requests at once. Proxies of the environment are not used.

    aiohttp itself limits the head of a response: 8,190 bytes a line, 128 headers.
    """

    def __init__(
        self, *, connect_s: float, read_s: float | None, public_only: bool = False, server: str = "the server"
    ) -> None:
        """With `public_only`, connections are made to addresses of the public internet alone, whatever DNS says.

        `server` is what the server is called in error messages.
        """
        self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_s, sock_read=read_s)
        self._public_only = public_only
        self._server = server
        self._tls: ssl.SSLContext | None = None
        self._connector: _Connector | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._connector = _Connector(
            limit=0,
            keepalive_timeout=KEEPALIVE_S,
            ttl_dns_cache=DNS_CACHE_S,
            resolver=aiohttp.ThreadedResolver(),
            socket_factory=_public_socket if self._public_only else None,
        )
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            auto_decompress=False,
            read_bufsize=READ_BYTES,
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # the sockets are closed in the next iteration of the event loop

    async def send(self, request: HttpRequest) -> HttpResponse:
        if self._session is None:
            raise RuntimeError("the transport was not entered")
        body = request.body
        _ON_CONNECTED.set(request.on_connected)
        try:
            response = await self._session.request(
                request.method,
                request.url,
                headers=request.headers,
                data=io.BytesIO(body) if body is not None and len(body) > _LARGE_BODY else body,
                ssl=self._tls_for(request.url),
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise self._failure(error, begun=False) from None
        if response.status < 200:
            response.close()
            raise TransportError("malformed", f"{self._server} wants to speak something else than HTTP")
        return self._response(response)

    async def connect(self, url: yarl.URL) -> None:
        if self._connector is None:
            raise RuntimeError("the transport was not entered")
        _ON_CONNECTED.set(None)
        request = aiohttp.ClientRequest("GET", url, loop=asyncio.get_running_loop(), ssl=self._tls_for(url))
        try:
            connection = await self._connector.connect(request, [], self._timeout)
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise self._failure(error, begun=False) from None
        connection.close()

    def _response(self, response: aiohttp.ClientResponse) -> HttpResponse:
        stop_watching = _watch(response, self._not_http)

        async def read() -> bytes:
            try:
                return await response.content.readany()
            except (aiohttp.ClientError, OSError) as error:
                raise self._failure(error, begun=True) from None

        def close() -> None:
            stop_watching()
            response.close()

        wanted = {
            "content-type": response.headers.get("Content-Type", ""),
            "content-length": response.headers.get("Content-Length", ""),
            "content-encoding": ", ".join(response.headers.getall("Content-Encoding", ())),
        }
        if (retry_after := response.headers.get("Retry-After")) is not None:
            wanted["retry-after"] = retry_after
        return HttpResponse(response.status, wanted, read, close, server=self._server)

    def _tls_for(self, url: yarl.URL) -> ssl.SSLContext | bool:
        if url.scheme != "https":
            return True  # aiohttp's word for the default
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def _failure(self, error: Exception, *, begun: bool) -> TransportError:
        """What an error of aiohttp means. Its text is shown only where it cannot hold the URL, which may be secret."""
        server = self._server
        match error:
            case aiohttp.ClientConnectorDNSError():
                return TransportError(
                    "unreachable", f"{server}'s host name cannot be resolved", _reason(error.os_error)
                )
            case UnicodeError():
                return TransportError("unreachable", f"{server}'s host name cannot be resolved", _reason(error))
            case aiohttp.ClientSSLError():
                return TransportError("unreachable", f"TLS with {server} failed", _reason(error.os_error))
            case aiohttp.ClientConnectorError(os_error=_ForbiddenAddressError() as forbidden):
                message = f"{server}'s address {forbidden.address} is not on the public internet"
                return TransportError("forbidden", message)
            case aiohttp.ClientConnectorError():
                return TransportError("unreachable", f"no connection to {server}", _reason(error.os_error))
            case aiohttp.SocketTimeoutError():
                return TransportError("silent", f"{server} sent nothing for {self._timeout.sock_read:g} s")
            case TimeoutError():
                return TransportError("unreachable", f"no connection to {server} within {self._timeout.connect:g} s")
            case aiohttp.ClientResponseError():
                return self._not_http(error)
            case aiohttp.ServerDisconnectedError(message=str()) if not begun:
                return TransportError("lost", f"the connection was closed before {server} answered")
            case aiohttp.ServerDisconnectedError():
                return TransportError(
                    "cut_off", f"{server}'s answer broke off"
                )  # in its head, of which there is a part
            case aiohttp.ClientPayloadError():
                detail = "the body is shorter than its head says, or its last chunk is missing"
                return TransportError("cut_off", f"{server}'s answer broke off", detail)
            case _ if not begun:
                return TransportError("lost", f"the connection was reset before {server} answered", _reason(error))
            case _:
                return TransportError("cut_off", f"{server}'s answer broke off", _reason(error))

    def _not_http(self, error: BaseException | None) -> TransportError:
        return TransportError("malformed", f"{self._server}'s answer is not HTTP", _what_is_broken(error))


def is_public(address: IpAddress) -> bool:
    """Whether an address belongs to the public internet, as do all addresses that are wrapped in it."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and not _is_in(address, _RESERVED_IPV4)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in _NAT64:
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    if address.sixtofour is not None:
        return is_public(address.sixtofour)
    if address.teredo is not None:
        return all(map(is_public, address.teredo))
    # Python's own table differs between its versions, and has site-local addresses and others as global.
    return address in _GLOBAL_UNICAST and not _is_in(address, _RESERVED_IPV6)


def _is_in(address: IpAddress, networks: tuple[str, ...]) -> bool:
    return any(address in ipaddress.ip_network(network) for network in networks)


class _Connector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = cast("partial[ResponseHandler]", partial(PacedHandler, loop=self._loop))

    async def connect(self, req: aiohttp.ClientRequest, traces: Any, timeout: aiohttp.ClientTimeout) -> Any:
        """A connection on which nothing has arrived that nobody asked for: aiohttp would take it for the response to
        the next request, and one run would get the answer of another.
        """
        while True:
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is not None and not connection.protocol.should_close:
                break
            connection.close()
        if (report := _ON_CONNECTED.get()) is not None:
            report()
        return connection


class _ForbiddenAddressError(OSError):
    def __init__(self, address: IpAddress) -> None:
        # Without the address: where all addresses of a host fail with the same text, the error itself is raised.
        super().__init__("not an address of the public internet")
        self.address = address


def _public_socket(info: Any) -> socket.socket:
    """A socket for an address that is about to be connected to; there is no way around this check."""
    family, kind, protocol, _, where = info
    address = ipaddress.ip_address(str(where[0]).partition("%")[0])
    if not is_public(address):
        raise _ForbiddenAddressError(address)
    return socket.socket(family, kind, protocol)


def _watch(
    response: aiohttp.ClientResponse, failure: Callable[[BaseException | None], TransportError]
) -> Callable[[], None]:
    """Tell the reader of a body when its framing is broken: aiohttp closes the connection and lets the reader wait."""
    protocol = None if response.connection is None else response.connection.protocol
    closed = None if protocol is None else protocol.closed
    if protocol is None or closed is None:
        return lambda: None

    def on_closed(closed: asyncio.Future[None], protocol: ResponseHandler = protocol) -> None:
        closed.exception()
        content = response.content
        if not content.is_eof() and content.exception() is None:
            content.set_exception(failure(protocol.exception()))

    def stop_watching() -> None:
        closed.remove_done_callback(on_closed)

    closed.add_done_callback(on_closed)
    return stop_watching


def _what_is_broken(error: BaseException | None) -> str | None:
    """What a parser found wrong, in words of ours: its own quote what the server sent, which may be a secret."""
    said = str(getattr(error, "message", "")).partition("\n")[0].lower()
    return next((words for sign, words in _BROKEN.items() if sign in said), None)


def _reason(error: BaseException | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {error}"


_BROKEN = {
    "interim responses": f"there are more than {MAX_INTERIM:,} interim responses (status 1xx)",
    "more than": "its head is too large: a line of more than 8,190 bytes, or more than 128 headers",
    "too many": "its head is too large: a line of more than 8,190 bytes, or more than 128 headers",
    "chunk": "the chunk size or the end of a chunk is wrong",
    "content-length": "its `Content-Length` is wrong",
    "transfer-encoding": "its `Transfer-Encoding` is wrong",
    "header": "a header is wrong",
    "status": "the status line is wrong",
    "http/": "the status line is wrong",
}


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""As public as the address at its end; the prefix for local networks, 64:ff9b:1::/48, is not."""
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All that is given out to networks; the rest is local, given up or not used."""
_RESERVED_IPV4 = ("192.0.0.0/24", "192.88.99.0/24")
"""For protocols, and for relays of 6to4."""
_RESERVED_IPV6 = ("2001::/23", "2001:db8::/32", "3fff::/20")
"""For protocols, and for documentation."""
