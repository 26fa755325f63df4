"""Mutated samples: what a reader gets when the sender is broken, hostile or cut off. The same ones in every run."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

_TOKENS = (
    b"null", b"true", b"-1", b"1e999", b"NaN", b"{}", b"[]", b'""', b'"\\ud800"', b"\xff", b"\x00", b"{", b"]", b",",
    b'"', b"\n", b"\r\n", b"data: ", b"9" * 400, b"[" * 60, b'"' + b"x" * 3000 + b'"',
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**63, 2**70, 1.5, -0.0, "", "x", "\x00", "é" * 50, "tool_use", [], {}, [[]], [{}],
    [None], {"a": None}, {"type": "text"}, {"role": "tool"}, {"name": "f", "arguments": "{"}, {"function": {}},
    ["x", 1, {}],
)  # fmt: skip


def mutations(samples: Sequence[bytes], count: int, *, seed: int = 0) -> Iterator[bytes]:
    """`count` variations of the samples: bytes cut, doubled, replaced; values of JSON exchanged, dropped, renamed."""
    rng = random.Random(seed)
    for _ in range(count):
        sample = rng.choice(samples)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            sample = _mutated_value(sample, rng) if rng.random() < 0.6 else _mutated_bytes(sample, rng)
        yield sample


def _mutated_bytes(sample: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(sample) + 1)
    end = min(len(sample), start + rng.choice((0, 1, 1, 2, 8, 64)))
    middle = rng.choice((b"", rng.choice(_TOKENS), bytes([rng.randrange(256)]), sample[start:end] * 2))
    if rng.random() < 0.1:
        return sample[:start]
    return sample[:start] + middle + sample[end:]


def _mutated_value(sample: bytes, rng: random.Random) -> bytes:
    """Exchange one value of the JSON document, or of one line of JSON lines or event frames."""
    lines = sample.split(b"\n")
    place = rng.randrange(len(lines))
    prefix = b"data: " if lines[place].startswith(b"data: ") else b""
    for text, before, after in ((sample, b"", b""), (lines[place].removeprefix(prefix), prefix, b"")):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            continue
        changed = json.dumps(_exchanged(document, rng)).encode()
        if text is sample:
            return changed
        lines[place] = before + changed + after
        return b"\n".join(lines)
    return _mutated_bytes(sample, rng)


def _exchanged(document: Any, rng: random.Random) -> Any:
    holder: Any = None
    key: Any = None
    value = document
    while isinstance(value, dict | list) and value and (holder is None or rng.random() < 0.85):
        holder = value
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        value = value[key]
    if holder is None:
        return rng.choice(_VALUES)
    if rng.random() < 0.2:
        del holder[key]
    elif isinstance(holder, dict) and rng.random() < 0.2:
        holder[rng.choice(("type", "role", "content", "name", "id", "x"))] = holder.pop(key)
    else:
        holder[key] = rng.choice(_VALUES)
    return document
