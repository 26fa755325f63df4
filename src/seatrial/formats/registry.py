"""The formats by name, open to others.

One of Seatrial's is a module with `sniff`, `read` and perhaps `write`, and a line here. Others are registered with
`register_format`, or offered by an entry point in the group `seatrial.formats`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.formats.batch import BatchRecord
from seatrial.formats.limits import excess
from seatrial.formats.reading import Reading, Written
from seatrial.formats.sniffing import CERTAIN, Sample, Sniff
from seatrial.formats.unseen import note_unseen
from seatrial.registry import Registry, where
from seatrial.target import is_target, load_target
from seatrial.transcript import Transcript

V = TypeVar("V")


@runtime_checkable
class Format(Protocol):
    """One foreign shape: a module, or an object. It may have `write(transcript) -> Written` besides."""

    def sniff(self, sample: Sample) -> Sniff | None:
        """How sure it is that bytes are its own; None when they are not."""
        ...

    def read(self, data: bytes) -> Reading:
        """Read one record; raises `SeatrialError` for what cannot be read."""
        ...


class _Writing(Protocol):
    def write(self, transcript: Transcript) -> Written: ...


def _accept(name: str, value: object) -> Format:
    found = value() if isinstance(value, type) else value
    if not isinstance(found, Format):
        raise TypeError(f"`{where(value)}` needs the functions `sniff` and `read`")
    return found if FORMATS.is_built_in(name) else _Guarded(name, found)


FORMATS: Registry[Format] = Registry(
    "format",
    "seatrial.formats",
    {
        "agent-response": "seatrial.formats.agent_response",
        "output-messages": "seatrial.formats.output_messages",
        "openai": "seatrial.formats.openai",
        "openrouter": "seatrial.formats.openrouter",
        "anthropic": "seatrial.formats.anthropic",
        "responses": "seatrial.formats.responses",
        "bedrock": "seatrial.formats.bedrock",
        "gemini": "seatrial.formats.gemini",
        "vercel": "seatrial.formats.vercel",
        "langchain": "seatrial.formats.langchain",
        "pydantic-ai": "seatrial.formats.pydantic_ai",
        "transcript": "seatrial.formats.transcript",
        "agui": "seatrial.formats.agui",
        "events": "seatrial.formats.events",
    },
    _accept,
    fault="format_failed",
)
"""Every format, in the order in which they are listed to people; its module is loaded when it is used."""

WRITABLE = ("agent-response", "output-messages", "openai", "openrouter", "anthropic", "transcript", "agui", "events")
"""Those of Seatrial's that can be written, too."""


def register_format(name: str) -> Callable[[V], V]:
    """Register a class, an object or a module as a format: `@register_format("chat-csv")`."""
    return FORMATS.register(name)


_IN_LINES = frozenset({"agent-response", "output-messages"})
"""Formats of which a file may hold many, one in each line."""
_LINES = 100
"""How many lines are looked at to find out whether they are records."""


_STREAMS = frozenset({"agui", "events"})
"""Formats that are read event by event, so that their length is no matter."""


def read(data: bytes, format: str | None = None) -> Reading:
    """Read one record. Its format is found out from its content, unless it is named."""
    if format not in _STREAMS and (much := excess(data)) is not None:
        raise SeatrialError("too_large", f"the record has {much}")
    name = _detected(data) if format is None else format
    try:
        return note_unseen(data, find_format(name).read(data))
    except SeatrialError as error:
        if error.hint is None and name in _IN_LINES and _is_lines(data):
            error.hint = "the input holds several records, one in each line"
        raise


def write(transcript: Transcript, format: str) -> Written:
    """Write a transcript in that format, and tell what it cannot carry."""
    found = find_format(format)
    if not hasattr(found, "write"):
        raise SeatrialError(
            "not_writable", f"{format} can be read but not written", hint=f"one of {', '.join(writable())}"
        )
    return cast("_Writing", found).write(transcript)


def writable() -> list[str]:
    """The formats that can be written."""
    others = [name for name in FORMATS if not FORMATS.is_built_in(name) and hasattr(FORMATS[name], "write")]
    return [*WRITABLE, *others]


def read_many(data: bytes, format: str | None = None) -> Iterator[BatchRecord]:
    """Read a file that may hold one record in each line; a bad line spoils nothing but itself.

    A file that holds one record, of whatever format, is one record without a line.
    """
    name = _detected(data) if format is None else format
    module = find_format(name)
    if name not in _IN_LINES or not _is_lines(data):
        reading = note_unseen(data, module.read(data))
        yield BatchRecord(None, reading.id, reading)
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line and not line.isspace():
            try:
                reading = note_unseen(line, module.read(line))
                yield BatchRecord(number, reading.id, reading)
            except SeatrialError as error:
                error.line = number
                yield BatchRecord(number, None, error=error)


def _detected(data: bytes) -> str:
    """The format of a file; a batch whose first line is bad is known by the first that is not."""
    # Here, because detection asks every format of this registry.
    from seatrial.formats.detection import detect

    try:
        return detect(data).format
    except SeatrialError:
        if (line := _first_object(data)) is None or not _is_lines(data):
            raise
        if (name := detect(line).format) not in _IN_LINES:
            raise
        return name


def _is_lines(data: bytes) -> bool:
    """Whether the first line is a JSON value and something follows; or a later one is, and the whole is not."""
    first, _, more = data.strip().partition(b"\n")
    return bool(more) and (_is_json(first) or (_first_object(more) is not None and not _is_json(data)))


def _first_object(data: bytes) -> bytes | None:
    """The first line that is a JSON object, among the first few. One that is indented is part of a document."""
    lines = data.split(b"\n", _LINES)[:_LINES]
    return next((line for line in lines if line.startswith(b"{") and _is_json(line)), None)


def _is_json(data: bytes) -> bool:
    try:
        wire.decode(data, repairs=[])
    except SeatrialError:
        return False
    return True


def find_format(name: str, directory: Path | None = None) -> Format:
    """The format of that name, or `package.module:Class`, which is looked for in `directory` first.

    Raises `SeatrialError`: `unknown_format`, or `invalid_config` for a class that cannot be imported or used.
    """
    if not is_target(name):
        return FORMATS.find(name, code="unknown_format")
    if name not in _classes or directory is not None:
        try:
            _classes[name] = _accept(name, load_target(name, directory))
        except TypeError as error:
            raise SeatrialError("invalid_config", f"the format {name!r} cannot be used: {error}") from error
    return _classes[name]


_classes: dict[str, Format] = {}
"""Formats that are called by where they are."""


class _Guarded:
    """A format of others, whose faults are told as its own: what it raises is not the fault of what it reads."""

    def __init__(self, name: str, format: Format) -> None:
        self._name = name
        self._format = format
        self.__module__ = type(format).__module__
        if hasattr(format, "write"):
            self.write = lambda transcript: self._called("write", Written, transcript)

    def sniff(self, sample: Sample) -> Sniff | None:
        found: Sniff | None = self._called("sniff", Sniff | None, sample)
        if found is not None and not (type(found.confidence) is int and 0 < found.confidence <= CERTAIN):
            raise self._failed(f"`sniff` gave a confidence of {found.confidence!r}, which is not from 1 to {CERTAIN}")
        return found

    def read(self, data: bytes) -> Reading:
        reading = self._checked(self._called("read", Reading, data))
        reading.format = self._name
        return reading

    def _checked(self, given: Reading) -> Reading:
        """The reading, once all in it is what its fields promise: a call that is a plain dict would not be seen."""
        try:
            written = wire.encode(given)
            reading = msgspec.json.decode(written, type=Reading)
        except Exception as error:
            raise self._failed(f"`read` gave a reading that is not sound: {error}"[:500]) from error
        if msgspec.json.decode(wire.encode(reading)) != msgspec.json.decode(written):
            raise self._failed("`read` gave a reading that is not sound: it holds more than its fields have room for")
        return reading

    def _called(self, function: str, kind: Any, argument: object) -> Any:
        try:
            found = getattr(self._format, function)(argument)
        except (SeatrialError, KeyboardInterrupt):
            raise
        except BaseException as error:  # sys.exit as well: it must not end the experiment
            raise self._failed(f"`{function}` raised {type(error).__name__}: {error}"[:500]) from error
        if not isinstance(found, kind):
            raise self._failed(f"`{function}` gave {type(found).__name__}, and not {getattr(kind, '__name__', kind)}")
        return found

    def _failed(self, why: str) -> SeatrialError:
        return SeatrialError(
            "format_failed",
            f"the format {self._name!r} of {where(self._format)} failed: {why}",
            hint="name the format that the input has, or uninstall this one",
        )
