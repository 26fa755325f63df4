"""OpenAI chat completions: messages, requests, responses and recorded streams; written as an array of messages.

Messages hold no more than a request needs, so most of what a run knows beside its words is a loss: times, token counts,
errors. Native reasoning has no field in them and is never put into the visible text instead. Prompted thinking is
written into `content` as `<thought>` tags, and read out of it again.
"""

from __future__ import annotations

from seatrial.formats.completions.reader import read_completions, sniff_completion
from seatrial.formats.completions.stream import CompletionStream
from seatrial.formats.completions.writer import CompletionDialect, write_completions
from seatrial.formats.reading import Reading, Written
from seatrial.formats.sniffing import Sample, Sniff, sniff_chat
from seatrial.transcript import Transcript


class OpenAIStream(CompletionStream):
    """Reads a streamed chat completion of OpenAI, or of a server that speaks its language."""

    format = "openai"


_DIALECT = CompletionDialect(native_reasoning=False, images_in_results=False)


def sniff(sample: Sample) -> Sniff | None:
    """Choices without native reasoning, or messages with calls beside their content."""
    return sniff_completion(sample, reasoning=False) or sniff_chat(sample, "openai")


def read(data: bytes) -> Reading:
    """Read a messages array, a request, a response, or a stream recorded as SSE, as lines or as an array of chunks."""
    return read_completions(data, OpenAIStream)


def write(transcript: Transcript) -> Written:
    """Write the messages as a JSON array."""
    messages, losses = write_completions(transcript, _DIALECT)
    return Written(messages, losses)
