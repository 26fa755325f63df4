"""Requests that wait for their answers, on disk: memory must not grow with a batch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

import msgspec

from seatrial.agents.agent import RunRequest


class WaitingRequests:
    """Requests by the id under which they were sent; each can be taken once."""

    def __init__(self) -> None:
        self._file = _temporary_file()
        self._end = 0
        self._places: dict[str, tuple[int, int]] = {}
        """Offset and length in the file."""
        self._taken: set[str] = set()
        self._taken_again: set[str] = set()
        self._held: dict[str, RunRequest] = {}
        """Those that could not be written."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._file is not None:
            self._file.close()

    def __contains__(self, request_id: object) -> bool:
        """Whether there ever was a request of this id."""
        return request_id in self._places

    def __iter__(self) -> Iterator[str]:
        """All ids, in the order in which they were added."""
        return iter(self._places)

    def add(self, request_id: str, request: RunRequest) -> None:
        """Keep a request."""
        length = self._write(request)
        if length == 0:
            self._held[request_id] = request
        self._places[request_id] = (self._end, length)
        self._end += length

    def take(self, request_id: str) -> RunRequest | None:
        """The request of this id; None when there is none, or it was taken."""
        if request_id not in self._places or request_id in self._taken:
            return None
        self._taken.add(request_id)
        return self._read(request_id)

    def take_again(self, request_id: str) -> RunRequest | None:
        """A request that was taken, for the second time; None for the third time."""
        if request_id not in self._taken or request_id in self._taken_again:
            return None
        self._taken_again.add(request_id)
        return self._read(request_id)

    def _read(self, request_id: str) -> RunRequest:
        place = self._places[request_id]
        if self._file is None or request_id in self._held:
            return self._held[request_id]
        return _DECODER.decode(os.pread(self._file.fileno(), place[1], place[0]))

    def taken(self) -> Iterator[RunRequest]:
        """Every request that was taken, in the order in which they were added."""
        return (self._read(request_id) for request_id in self._places if request_id in self._taken)

    def take_rest(self) -> Iterator[tuple[str, RunRequest]]:
        """Every request that was not taken, in the order in which they were added."""
        for request_id in self._places:
            request = self.take(request_id)
            if request is not None:
                yield request_id, request

    def _write(self, request: RunRequest) -> int:
        """How many bytes it takes in the file; 0 when it cannot be kept there."""
        if self._file is None:
            return 0
        try:
            data = _ENCODER.encode(request)
            return len(data) if os.pwrite(self._file.fileno(), data, self._end) == len(data) else 0
        except (OSError, TypeError, ValueError, OverflowError):
            # No room; or text that is not Unicode, a number beyond 64 bits, an object of a suite written in Python.
            return 0


def _temporary_file() -> IO[bytes] | None:
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return None


def _encode_path(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written")


def _decode_path(kind: type, value: Any) -> Any:
    return kind(value)


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_encode_path)
_DECODER = msgspec.msgpack.Decoder(RunRequest, dec_hook=_decode_path)
