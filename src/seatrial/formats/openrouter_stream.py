"""OpenRouter's streams: OpenAI's, with native reasoning in `delta.reasoning` and `delta.reasoning_details`."""

from __future__ import annotations

from seatrial.formats.completion_stream import CompletionStream


class OpenRouterStream(CompletionStream):
    """Reads a streamed chat completion of OpenRouter."""

    format = "openrouter"
