"""OpenRouter requests, responses and recorded streams: chat completions with native reasoning beside the content.

The channels stay apart, both ways: prompted thinking is in `content` as `<thought>` tags and nowhere else; native
reasoning is in `reasoning` and `reasoning_details` and nowhere else, the details byte for byte.
"""

from __future__ import annotations

from seatrial.formats.completions.reader import read_completions, sniff_completion
from seatrial.formats.completions.stream import CompletionStream
from seatrial.formats.completions.writer import CompletionDialect, write_completions
from seatrial.formats.reading import Reading, Written
from seatrial.formats.sniffing import Sample, Sniff, sniff_chat
from seatrial.transcript import Transcript


class OpenRouterStream(CompletionStream):
    """Reads a streamed chat completion of OpenRouter."""

    format = "openrouter"


_DIALECT = CompletionDialect(native_reasoning=True, images_in_results=True)


def sniff(sample: Sample) -> Sniff | None:
    """Choices or messages with native reasoning."""
    return sniff_completion(sample, reasoning=True) or sniff_chat(sample, "openrouter")


def read(data: bytes) -> Reading:
    """Read a messages array, a request, a response, or a stream recorded as SSE, as lines or as an array of chunks."""
    return read_completions(data, OpenRouterStream)


def write(transcript: Transcript) -> Written:
    """Write a request: `{"messages": [...]}`, to which a sender adds the model."""
    messages, losses = write_completions(transcript, _DIALECT)
    return Written(b'{"messages":' + messages + b"}", losses)
