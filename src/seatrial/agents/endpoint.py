"""An agent's address, what is asked of it over HTTP, and what a status or a failed exchange means for a run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Self

import msgspec
import yarl

from seatrial._support.excerpt import MAX_DETAIL, excerpt
from seatrial._support.retry_after import retry_after_s
from seatrial._version import __version__
from seatrial.agents.config import EndpointRule
from seatrial.errors import SeatrialError
from seatrial.http_client import FailureKind, HttpRequest, HttpResponse, HttpTransport, TransportError
from seatrial.http_client.decompression import ENCODINGS
from seatrial.runs import Fault, class_of_status

_ERROR_CLASSES: dict[FailureKind, str] = {
    "forbidden": "endpoint_refused",
    "unreachable": "agent_unreachable",
    "lost": "connection_lost",
    "cut_off": "answer_cut_off",
    "silent": "agent_timeout",
    "malformed": "agent_bad_response",
}


class Reached(msgspec.Struct):
    """Whether a run's request got as far as a connection; whoever stops waiting has nothing else to go by."""

    connected: bool = False
    received: list[bytes] = []
    """What has come of the answer so far."""
    too_large: bool = False
    """Whether the answer is larger than what is read of one."""

    def mark(self) -> None:
        """There is a connection."""
        self.connected = True


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
        transport: HttpTransport | None = None,
    ) -> None:
        """Over aiohttp, unless another transport is given."""
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
        self._url = self._url.with_user(None)  # the credentials are among the headers now
        self._connect_s = connect_s
        self._read_s = read_s
        self._max_bytes = max_bytes
        self._public_only = rule == "public"
        self._transport = transport

    async def __aenter__(self) -> Self:
        if self._transport is None:
            from seatrial.http_client.aiohttp_transport import AiohttpTransport

            self._transport = AiohttpTransport(
                connect_s=self._connect_s, read_s=self._read_s, public_only=self._public_only, server="the agent"
            )
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._transport is not None:
            await self._transport.__aexit__(*exc_info)

    async def post(
        self,
        body: bytes | None,
        headers: Mapping[str, str],
        reached: Reached | None = None,
        *,
        method: str = "POST",
        query: str = "",
    ) -> Answer | Fault:
        """Send and take the whole answer, up to the limit. `query` is added to the address, and escaped already."""
        try:
            response = await self.ask(method, body, headers, reached, query)
        except TransportError as error:
            return transport_fault(error)
        failure: Fault | None = None
        parts = [] if reached is None else reached.received
        try:
            received = await response.read_all(self._max_bytes, parts)
        except TransportError as error:
            received, failure = None, transport_fault(error)
        finally:
            response.close()
        fault = status_fault(response.status, response.retry_after, received or b"")
        if received is not None:
            return Answer(response.status, received, response.content_type, fault)
        if reached is not None:
            reached.too_large = failure is None
        # What the status says weighs more than what is wrong with the page that came with it.
        fault = fault or failure or self.too_large()
        fault.http_status = response.status
        return fault

    async def ask(
        self,
        method: str,
        body: bytes | None,
        headers: Mapping[str, str],
        reached: Reached | None = None,
        query: str = "",
    ) -> HttpResponse:
        """Send, and wait for the head of the answer; the caller closes it. Raises `TransportError`."""
        if self._transport is None:
            raise RuntimeError("the endpoint was not entered")
        if any(character in value for value in headers.values() for character in "\r\n\0"):
            # An agent has a say in some of them: the cursor of a stream, for one.
            raise TransportError("malformed", "a header of the next request would not be one line")
        url = self._url
        if query:
            url = yarl.URL(f"{url.with_fragment(None)}{'&' if url.raw_query_string else '?'}{query}", encoded=True)
        request = HttpRequest(
            method,
            url,
            merged(self._headers, headers),
            body,
            on_connected=None if reached is None else reached.mark,
        )
        return await self._transport.send(request)

    @property
    def address(self) -> str:
        """The host and the port, for people."""
        return f"{self._url.host}:{self._url.port}"

    async def reach(self) -> Fault | None:
        """Connect and no more; the fault where that cannot be done."""
        if self._transport is None:
            raise RuntimeError("the endpoint was not entered")
        try:
            await self._transport.connect(self._url)
        except TransportError as error:
            return transport_fault(error)
        return None

    def too_large(self) -> Fault:
        """The fault of an answer beyond the limit."""
        return Fault("response_too_large", f"the answer is larger than {self._max_bytes:,} bytes")


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


def status_fault(status: int, retry_after: str | None, body: bytes) -> Fault | None:
    """The fault that an answer of this status, with this `Retry-After`, is; None for 2xx."""
    error_class = class_of_status(status)
    if error_class is None:
        return None
    message = f"the agent answered {status}"
    if error_class == "agent_redirected":
        message += ", and redirects are not followed: name the final address"
    return Fault(
        error_class,
        message,
        detail=excerpt(body),
        http_status=status,
        retry_after_s=retry_after_s(retry_after),
    )


def transport_fault(error: TransportError) -> Fault:
    """The fault of a failed exchange as it may be shown: not too long."""
    detail = None if error.detail is None else error.detail[:MAX_DETAIL]
    message = error.message
    if error.kind == "forbidden":
        message += ", as `endpoint_rule: public` asks"
    return Fault(_ERROR_CLASSES[error.kind], message, detail=detail)
