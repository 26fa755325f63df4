"""Subscribers of a stream on plain sockets: `python -m bench.stream_client PORT SUBSCRIBERS EVENTS`.

Prints `ready` when each of them has the head of its response. Every byte that comes then is compared with what should
come, so an event that is missing, repeated or changed is an error. When all have everything, prints as JSON for each
event the times at which each subscriber had it, in nanoseconds of the clock that all processes share.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from bisect import bisect_right
from itertools import accumulate

from bench.stream_events import FIRST, RUN, frames

HINT = b"retry: 500\n\n"

_REQUEST = f"GET /v1/runs/{RUN}/stream?after={FIRST - 1} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


class Subscriber:
    """One connection; takes the chunked encoding off."""

    def __init__(self, port: int, expected: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(_REQUEST)
        self.socket.setblocking(False)
        self.taken = 0
        self._expected = expected
        self._in_head = True
        self._line = b""
        self._left = 0
        """Bytes of the chunk that are to come, the line end behind it too."""

    def read(self) -> None:
        data = self.socket.recv(1 << 18)
        if not data:
            raise RuntimeError(f"the stream ended after {self.taken} of {len(self._expected)} bytes")
        if self._in_head:
            head, blank, data = (self._line + data).partition(b"\r\n\r\n")
            if not blank:
                self._line = head
                return
            if b" 200 " not in head:
                raise RuntimeError(head.decode())
            self._in_head = False
            self._line = b""
        self._take(data)

    def _take(self, data: bytes) -> None:
        start, end = 0, len(data)
        while start < end:
            if not self._left:
                stop = data.find(b"\n", start)
                if stop < 0:
                    self._line += data[start:]
                    return
                self._left = int(self._line + data[start:stop], 16) + 2
                self._line = b""
                start = stop + 1
                continue
            count = min(self._left - 2, end - start)
            if count > 0:
                # What comes behind the events, once the run has ended, is not looked at.
                expected = self._expected[self.taken : self.taken + count]
                if not data.startswith(expected, start):
                    raise RuntimeError(f"something else came at byte {self.taken}")
                self.taken += count
            else:
                count = min(self._left, end - start)
            start += count
            self._left -= count


def main() -> None:
    port, count, number = (int(argument) for argument in sys.argv[1:])
    each = frames(number, 1)
    expected = HINT + b"".join(each)
    ends = list(accumulate(map(len, each), initial=len(HINT)))[1:]
    arrivals: list[list[int]] = [[] for _ in range(number)]
    poll = select.epoll()
    subscribers: dict[int, Subscriber] = {}
    for _ in range(count):
        subscriber = Subscriber(port, expected)
        subscribers[subscriber.socket.fileno()] = subscriber
        poll.register(subscriber.socket, select.EPOLLIN)
    while any(subscriber.taken < len(HINT) for subscriber in subscribers.values()):
        for descriptor, _ in poll.poll():
            subscribers[descriptor].read()
    print("ready", flush=True)
    left = count
    while left:
        for descriptor, _ in poll.poll():
            subscriber = subscribers[descriptor]
            before = bisect_right(ends, subscriber.taken)
            subscriber.read()
            after = bisect_right(ends, subscriber.taken)
            if after > before:
                now = time.perf_counter_ns()
                for index in range(before, after):
                    arrivals[index].append(now)
                left -= after == number
    print(json.dumps(arrivals))


if __name__ == "__main__":
    main()
