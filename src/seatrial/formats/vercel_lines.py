"""The data stream protocol of the AI SDK up to version 4: lines of a letter or digit, a colon and JSON.

Each line is read as the chunk of a UI message stream that took its place in version 5.

| line | chunk |
| --- | --- |
| `0:"text"`, `g:"text"` | a delta of text, of reasoning |
| `b:`, `c:`, `9:` | a tool call: its start, a piece of its arguments, the whole of it |
| `a:` | the result of a tool |
| `2:`, `8:` | data, annotations |
| `h:`, `k:` | a source, a file |
| `3:"text"` | an error |
| `f:`, `e:`, `d:` | start of a step, end of a step, end of the message |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.formats.sniffing import SURE, Sample, Sniff
from seatrial.formats.vercel_stream import VercelStream

_LINE: Final = re.compile(rb'([0-9a-k]):(?=["{\[])')
_FIRST: Final = re.compile(rb'(?:0:"|f:\{"messageId"|[9bc]:\{"toolCallId"|[28]:\[)')
_TEXTS: Final = {b"0": "text", b"g": "reasoning"}
_KINDS: Final = {
    b"b": "tool-input-start",
    b"c": "tool-input-delta",
    b"9": "tool-input-available",
    b"a": "tool-output-available",
    b"2": "data-v4",
    b"8": "data-v4",
    b"h": "source-url",
    b"k": "file",
    b"f": "start-step",
    b"e": "finish-step",
    b"d": "finish",
}
_NAMES: Final[Mapping[str, str]] = {"args": "input", "result": "output", "argsTextDelta": "inputTextDelta"}
_SIGNATURES: Final = frozenset({b"i", b"j"})
"""Of reasoning, which say nothing to anybody but the model."""


def is_lines(data: bytes) -> bool:
    """Whether bytes are such a stream."""
    return _FIRST.match(data.lstrip()) is not None


def sniff_lines(sample: Sample) -> Sniff | None:
    """The first line gives it away."""
    return Sniff(SURE + 5, "lines of the data stream protocol") if is_lines(sample.head) else None


def feed_lines(data: bytes, stream: VercelStream) -> None:
    """Feed the lines to a reader of UI message streams."""
    for number, line in enumerate(data.split(b"\n")):
        if line and not line.isspace():
            for chunk in _chunks(line.strip(), number):
                stream.feed_payload(wire.encode(chunk))


def _chunks(line: bytes, number: int) -> Iterator[dict[str, Any]]:
    match = _LINE.match(line)
    code = match[1] if match is not None else b""
    if code in _SIGNATURES:
        return
    try:
        value = wire.decode(line[2:], repairs=[])
    except SeatrialError:
        code, value = b"", None
    if code in _TEXTS and type(value) is str:
        # Deltas that follow each other are one text; there is nothing that ends one.
        yield {"type": f"{_TEXTS[code]}-delta", "id": "0", "delta": value}
        return
    for kind in _TEXTS.values():
        yield {"type": f"{kind}-end", "id": "0"}
    if code == b"3":
        yield {"type": "error", "errorText": value}
    elif code in (b"2", b"8"):
        yield {"type": _KINDS[code], "data": value}
    elif code in _KINDS and isinstance(value, dict):
        yield {**{_NAMES.get(key, key): item for key, item in value.items()}, "type": _KINDS[code]}
    else:
        yield {"type": f"line {number + 1}, which is not one of the protocol"}
