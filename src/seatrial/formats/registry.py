"""The formats by name, open to others; which of them bytes are in; reading and writing by name.

One of Seatrial's formats is a module with `sniff`, `read` and perhaps `write`, and a line here. Others are registered
with `register_format`, or offered by an entry point in the group `seatrial.formats`.

To detect a format, every format says how sure it is, and the surest wins. Messages that have nothing but a `role` and
`content` are common to all chat APIs: they are called `openai`, whoever wrote them, and every reader of chat messages
reads them alike. Formats that Seatrial recognises and does not read are asked as well, so that they are refused by name
and never half understood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, cast, runtime_checkable

import msgspec

from seatrial._support import wire
from seatrial._support.registry import Registry, where
from seatrial._support.target import is_target, load_target
from seatrial.errors import SeatrialError
from seatrial.formats.chat.hidden_calls import note_unseen
from seatrial.formats.chat.limits import excess
from seatrial.formats.chat.writing import lost_beside
from seatrial.formats.packed import unpacked
from seatrial.formats.reading import Reading, Written
from seatrial.formats.sniffing import CERTAIN, Sample, Sniff, open_sample
from seatrial.formats.unsupported import find_unsupported
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


_BUILT_IN: Final[dict[str, tuple[str, bool]]] = {
    "agent-response": ("agent_response", True),
    "output-messages": ("output_messages", True),
    "openai": ("completions.openai", True),
    "openrouter": ("completions.openrouter", True),
    "anthropic": ("anthropic", True),
    "responses": ("responses", False),
    "bedrock": ("bedrock", False),
    "gemini": ("gemini", False),
    "adk": ("adk", False),
    "vercel": ("vercel", False),
    "langchain": ("langchain", False),
    "pydantic-ai": ("pydantic_ai", False),
    "smolagents": ("smolagents", False),
    "crewai": ("crewai", False),
    "claude-code": ("claude_code", False),
    "claude-stream-json": ("claude_stream_json", False),
    "codex": ("codex", False),
    "codex-exec": ("codex_exec", False),
    "transcript": ("transcript", True),
    "agui": ("agui", True),
    "events": ("events", True),
}
"""The module of each format, and whether it can be written; in the order in which they are listed to people."""

FORMATS: Registry[Format] = Registry(
    "format",
    "seatrial.formats",
    {name: f"seatrial.formats.{module}" for name, (module, _) in _BUILT_IN.items()},
    _accept,
    fault="format_failed",
)
"""Every format; its module is loaded when it is used."""
WRITABLE = tuple(name for name, (_, can_write) in _BUILT_IN.items() if can_write)
"""Those of Seatrial's that can be written, too."""

_IN_LINES = frozenset({"agent-response", "output-messages"})
"""Formats of which a file may hold many, one in each line."""
_LINES = 100
"""How many lines are looked at to find out whether they are records."""
_STREAMS = frozenset({"agui", "events"})
"""Formats that are read event by event, so that their length does not matter."""


def register_format(name: str) -> Callable[[V], V]:
    """Register a class, an object or a module as a format: `@register_format("chat-csv")`."""
    return FORMATS.register(name)


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


class Detection(msgspec.Struct, frozen=True):
    """What the bytes look like."""

    format: str
    reason: str
    """What gave it away, for people."""


def detect(data: bytes) -> Detection:
    """The format of these bytes.

    Raises `SeatrialError`: `undetected_format` when they look like none, `unread_format` when they are of one that is
    known and not read, `ambiguous_format` when two formats are equally sure, `not_json` when they are JSON that is cut
    off, `format_failed` when one of others fails.
    """
    data = unpacked(data)
    sample = open_sample(data)
    FORMATS.check_names()
    found = [(sniff, name) for name in FORMATS if (sniff := find_format(name).sniff(sample)) is not None]
    most = max([sniff.confidence for sniff, _ in found], default=0)
    unsupported = find_unsupported(sample)
    if unsupported is not None and unsupported.sniff.confidence >= most:
        raise SeatrialError(
            "unread_format",
            f"this is {unsupported.name} ({unsupported.sniff.reason}), which Seatrial does not read yet",
            hint=f"it reads {', '.join(FORMATS)}",
        )
    best = [(sniff, name) for sniff, name in found if sniff.confidence == most]
    if not best:
        _refuse_cut_off(data)
        raise SeatrialError(
            "undetected_format",
            "the input looks like none of the known formats",
            hint=_NAME_IT,
        )
    if len(best) > 1:
        claims = " and ".join([f"{name} ({sniff.reason})" for sniff, name in best])
        raise SeatrialError(
            "ambiguous_format",
            f"the input may be {claims}, which is equally likely",
            hint=_NAME_IT,
        )
    sniff, name = best[0]
    return Detection(name, sniff.reason)


def _refuse_cut_off(data: bytes) -> None:
    """Raise `SeatrialError` for a document that ends too early: what it is cannot be known, but why."""
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return
    try:
        wire.decode(data, _SKIPPED, [])
    except SeatrialError as error:
        if error.code == "not_json" and wire.ends_early(error.message, data):
            error.hint = "the file or answer may not have been written or copied whole"
            raise


_SKIPPED = msgspec.json.Decoder(msgspec.Raw)


def read(data: bytes, format: str | None = None) -> Reading:
    """Read one record. Its format is found out from its content, unless it is named."""
    data = unpacked(data)
    if format not in _STREAMS and (much := excess(data)) is not None:
        raise SeatrialError("too_large", f"the record has {much}")
    name = _detected(data) if format is None else format
    try:
        return note_unseen(data, find_format(name).read(data))
    except SeatrialError as error:
        if error.hint is None and name in _IN_LINES and _is_lines(data):
            error.hint = "the input holds several records, one in each line"
        raise


def write(record: Transcript | Reading, format: str) -> Written:
    """Write a transcript in that format, and say what it cannot carry.

    Of a reading, what it knows of the calls beside the transcript is written as well, or is a loss.
    """
    found = find_format(format)
    if not hasattr(found, "write"):
        raise SeatrialError(
            "not_writable", f"{format} can be read but not written", hint=f"one of {', '.join(writable())}"
        )
    if isinstance(record, Transcript):
        return cast("_Writing", found).write(record)
    if carries := hasattr(found, "write_reading"):
        written: Written = found.write_reading(record)
    else:
        written = cast("_Writing", found).write(record.transcript)
    return Written(written.data, [*written.losses, *lost_beside(record, calls_carried=carries)])


def writable() -> list[str]:
    """The formats that can be written."""
    others = [name for name in FORMATS if not FORMATS.is_built_in(name) and hasattr(FORMATS[name], "write")]
    return [*WRITABLE, *others]


class BatchRecord(msgspec.Struct):
    """What was read from one line, or why it could not be read."""

    line: int | None
    """From 1; blank lines count. None when the file is one record."""
    id: str | None
    reading: Reading | None = None
    """None when there is an error."""
    error: SeatrialError | None = None


def read_many(data: bytes, format: str | None = None) -> Iterator[BatchRecord]:
    """Read a file that may hold one record in each line; a bad line affects nothing but itself.

    A file that holds one record, of whatever format, is one record without a line.
    """
    data = unpacked(data)
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


class _Guarded:
    """A format of others, whose faults are reported as its own: what it raises is not the fault of what it reads."""

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


_NAME_IT = (
    "an agent returns the messages of its run, or an answer and its messages; for a file, name the format: `--from` of "
    "`seatrial convert` and `seatrial steps`, `format` of a replay"
)
