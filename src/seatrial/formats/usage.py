"""Token counts, by the names that people give them."""

from __future__ import annotations

from typing import Any

from seatrial.transcript import Usage

_NAMES = {
    "input_tokens": ("input_tokens", "inputTokens", "prompt_tokens", "promptTokens", "input"),
    "output_tokens": ("output_tokens", "outputTokens", "completion_tokens", "completionTokens", "output"),
    "cache_creation_input_tokens": ("cache_creation_input_tokens", "cacheCreationInputTokens"),
    "cache_read_input_tokens": ("cache_read_input_tokens", "cacheReadInputTokens", "cached_tokens", "cached"),
}


def read_usage(value: Any) -> Usage | None:
    """The counts that have a known name and fit into 64 bits; None when there are none."""
    if type(value) is not dict:
        return None
    counts: dict[str, int] = {}
    for field, names in _NAMES.items():
        for name in names:
            count = value.get(name)
            if type(count) is int and -(2**63) <= count < 2**63:
                counts[field] = count
                break
    return Usage(**counts) if counts else None
