"""What the tests of streamed responses ask of every format."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.formats.chat.documents import StreamReader
from seatrial.formats.reading import Reading
from seatrial.transcript import AssistantMessage


def fed(stream: StreamReader, data: Iterable[bytes]) -> Reading:
    """What a new stream reads from these pieces."""
    for piece in data:
        stream.feed(piece)
    return stream.finish()


def answer(reading: Reading) -> AssistantMessage:
    """The only message."""
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    return message


def codes(reading: Reading) -> list[str]:
    """The codes of the notes."""
    return [note.code for note in reading.notes]


def assert_read_as_far_as_it_goes(make: type[StreamReader], text: bytes, whole: str) -> None:
    """A stream that was cut off anywhere says a beginning of the whole, and the same when it comes byte by byte."""
    reading = fed(make(), [text])
    said = "".join([m.plain_text() for m in reading.transcript.messages if isinstance(m, AssistantMessage)])
    assert whole.startswith(said)
    assert fed(make(), [bytes([byte]) for byte in text]) == reading
