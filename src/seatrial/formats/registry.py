"""The formats by name. Adding one is a module with `read` and `write`, and a line here."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Protocol, cast

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.formats.batch import BatchRecord
from seatrial.formats.limits import excess
from seatrial.formats.reading import Reading, Written
from seatrial.formats.sniffing import Sample, Sniff
from seatrial.formats.unseen import note_unseen
from seatrial.transcript import Transcript


class Format(msgspec.Struct, frozen=True):
    """One foreign shape; its module is loaded when it is used."""

    name: str
    summary: str
    """One line, for people who choose."""
    module: str
    writes: bool = True
    """Whether it can be written, too."""


class Codec(Protocol):
    """What the module of a format offers."""

    def sniff(self, sample: Sample) -> Sniff | None: ...
    def read(self, data: bytes) -> Reading: ...
    def write(self, transcript: Transcript) -> Written: ...


FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        Format("agent-response", "the body that a customer-hosted agent returns", "agent_response"),
        Format("output-messages", "a provider response with output_messages or a trace", "output_messages"),
        Format("openai", "OpenAI chat completions: messages, requests, responses, streams", "openai"),
        Format("openrouter", "OpenRouter: chat completions with native reasoning", "openrouter"),
        Format("anthropic", "Anthropic Messages: requests, responses, streams", "anthropic"),
        Format("responses", "OpenAI Responses: items, requests, responses, streams", "responses", writes=False),
        Format("bedrock", "Bedrock Converse: messages, requests, responses, streams", "bedrock", writes=False),
        Format("gemini", "Gemini: contents, requests, responses, streams", "gemini", writes=False),
        Format("vercel", "Vercel's AI SDK: UIMessages, ModelMessages, streams", "vercel", writes=False),
        Format("langchain", "LangChain and LangGraph: messages and states", "langchain", writes=False),
        Format("pydantic-ai", "Pydantic AI: messages of a run", "pydantic_ai", writes=False),
        Format("transcript", "the canonical transcript: an array of messages, or lines", "transcript"),
        Format("agui", "a recorded AG-UI event stream", "agui"),
        Format("events", "the native event log: sequenced envelopes", "events"),
    )
}
"""Every format, in the order in which they are listed to people."""

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
        return note_unseen(data, codec(name).read(data))
    except SeatrialError as error:
        if error.hint is None and name in _IN_LINES and _is_lines(data):
            error.hint = "the input holds several records, one in each line"
        raise


def write(transcript: Transcript, format: str) -> Written:
    """Write a transcript in that format, and tell what it cannot carry."""
    module = codec(format)
    if not FORMATS[format].writes:
        raise SeatrialError(
            "not_writable", f"{format} can be read but not written", hint=f"one of {', '.join(writable())}"
        )
    return module.write(transcript)


def writable() -> list[str]:
    """The formats that can be written."""
    return [format.name for format in FORMATS.values() if format.writes]


def read_many(data: bytes, format: str | None = None) -> Iterator[BatchRecord]:
    """Read a file that may hold one record in each line; a bad line spoils nothing but itself.

    A file that holds one record, of whatever format, is one record without a line.
    """
    name = _detected(data) if format is None else format
    module = codec(name)
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


def codec(name: str) -> Codec:
    """The module of a format."""
    format = FORMATS.get(name)
    if format is None:
        raise SeatrialError("unknown_format", f"there is no format {name!r}", hint=f"one of {', '.join(FORMATS)}")
    return cast("Codec", import_module(f"seatrial.formats.{format.module}"))
