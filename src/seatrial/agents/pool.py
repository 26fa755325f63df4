"""The connections to one address: kept for the next exchange, and made when there is none."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections import deque
from typing import TypeAlias

import yarl
from aiohappyeyeballs import AddrInfoType, start_connection

from seatrial.agents.exchange import BUFFER_BYTES, Connection
from seatrial.agents.http_faults import ExchangeError, reason
from seatrial.runs import Fault

KEEPALIVE_S = 4.0
"""Shorter than the 5 s after which common servers close: a request must not meet a connection that is going away."""
RESOLVED_S = 10.0
"""How long the addresses of a host name are taken to be the same."""
NEXT_ADDRESS_S = 0.25
"""How long one address may take before another one is tried beside it."""

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


class Pool:
    """As many connections as there are exchanges at once: how many, is not its to say."""

    def __init__(self, url: yarl.URL, *, connect_s: float, read_s: float | None, public: bool) -> None:
        """With `public`, addresses that are not of the public internet are not connected to, whatever DNS says."""
        self._host = (url.raw_host or "").rstrip(".")
        self._port = url.port or 0
        self._tls = ssl.create_default_context() if url.scheme == "https" else None
        self._connect_s = connect_s
        self._read_s = read_s
        self._public = public
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._all: set[Connection] = set()
        self._idle: deque[Connection] = deque()
        self._addresses: asyncio.Task[list[AddrInfoType]] | None = None
        self._addresses_until = 0.0

    async def connection(self) -> Connection:
        """A connection that is free. Raises `ExchangeError`."""
        idle = self._idle
        while idle:
            connection = idle.pop()  # the one that was used last
            if connection.usable and connection.idle_since + KEEPALIVE_S > asyncio.get_running_loop().time():
                return connection
            self._drop(connection)
        return await self._connected()

    async def close(self) -> None:
        """Cut all connections off."""
        for connection in list(self._all):
            self._drop(connection)
        self._idle.clear()
        if self._addresses is not None:
            self._addresses.cancel()
        await asyncio.sleep(0)  # the sockets are closed when the event loop comes to it

    def _release(self, connection: Connection) -> None:
        now = connection.idle_since = asyncio.get_running_loop().time()
        idle = self._idle
        while idle and idle[0].idle_since + KEEPALIVE_S <= now:
            self._drop(idle.popleft())
        idle.append(connection)

    def _drop(self, connection: Connection) -> None:
        self._all.discard(connection)
        connection.abort()

    def _made(self) -> Connection:
        return Connection(self._buffer, self._read_s, self._release, self._all.discard)

    async def _connected(self) -> Connection:
        connection = await self._connect()
        if not connection.usable:
            raise ExchangeError(Fault("connection_lost", "the connection was closed before the agent answered"))
        self._all.add(connection)
        return connection

    async def _connect(self) -> Connection:
        try:
            async with asyncio.timeout(self._connect_s) as timer:
                addresses = await self._resolved()
                sock = await start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_S)
                name = self._host if self._tls is not None else None
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(self._made, sock=sock, ssl=self._tls, server_hostname=name)
                return connection
        except TimeoutError as error:
            within = f" within {self._connect_s:g} s" if timer.expired() else ""
            message = f"there was no connection to the agent{within}"
            raise ExchangeError(Fault("agent_unreachable", message, detail=reason(error.__cause__))) from None
        except (socket.gaierror, UnicodeError) as error:
            message = "the agent's host name cannot be resolved"
            raise ExchangeError(Fault("agent_unreachable", message, detail=reason(error))) from None
        except ssl.SSLError as error:
            message = "TLS with the agent failed"
            raise ExchangeError(Fault("agent_unreachable", message, detail=reason(error))) from None
        except OSError as error:
            message = "no connection to the agent"
            raise ExchangeError(Fault("agent_unreachable", message, detail=reason(error))) from None

    async def _resolved(self) -> list[AddrInfoType]:
        """Where the host is; asked once by all who want to know at the same time."""
        loop = asyncio.get_running_loop()
        known = self._addresses
        if known is None or (known.done() and (loop.time() > self._addresses_until or known.exception())):
            known = self._addresses = loop.create_task(self._resolve())
            known.add_done_callback(lambda task: task.cancelled() or task.exception())  # whoever waits is told
        # Others may wait for it when this one leaves.
        return await asyncio.shield(known)

    async def _resolve(self) -> list[AddrInfoType]:
        loop = asyncio.get_running_loop()
        found: list[AddrInfoType] = [*await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)]
        self._addresses_until = loop.time() + RESOLVED_S
        if self._public:
            allowed = [info for info in found if is_public(_address(info))]
            if not allowed:
                message = f"`endpoint_rule: public` forbids the agent's address {_address(found[0])}"
                raise ExchangeError(Fault("endpoint_refused", message))
            return allowed
        return found


def is_public(address: IpAddress) -> bool:
    """Whether an address belongs to the public internet, also when it is wrapped in an IPv6 one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast


def _address(info: AddrInfoType) -> IpAddress:
    return ipaddress.ip_address(str(info[4][0]).partition("%")[0])


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
