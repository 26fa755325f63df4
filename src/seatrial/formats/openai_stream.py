"""Streams of `chat.completion.chunk`s."""

from __future__ import annotations

from seatrial.formats.completion_stream import CompletionStream


class OpenAIStream(CompletionStream):
    """Reads a streamed chat completion of OpenAI, or of a server that speaks its language."""

    format = "openai"
