"""Token counts, by the names that people give them."""

from __future__ import annotations

from typing import Any

from seatrial.transcript import Usage

_NAMES = {
    "input_tokens": ("input_tokens", "inputTokens", "prompt_tokens", "promptTokens", "input"),
    "output_tokens": ("output_tokens", "outputTokens", "completion_tokens", "completionTokens", "output"),
    "cache_creation_input_tokens": (
        "cache_creation_input_tokens",
        "cacheCreationInputTokens",
        "cacheWriteInputTokens",
        "cache_write_tokens",
    ),
    "cache_read_input_tokens": (
        "cache_read_input_tokens",
        "cacheReadInputTokens",
        "cachedInputTokens",
        "cache_read_tokens",
        "cached_tokens",
        "cached",
    ),
}
_WITHIN_INPUT = (
    ("prompt_tokens_details", "cached_tokens", "cache_read_input_tokens"),
    ("input_tokens_details", "cached_tokens", "cache_read_input_tokens"),
    ("input_token_details", "cache_read", "cache_read_input_tokens"),
    ("input_token_details", "cache_creation", "cache_creation_input_tokens"),
)
"""Counts that the input tokens include; in the transcript they stand apart, and add up to the same."""


def read_usage(value: Any) -> Usage | None:
    """The counts that have a known name and fit into 64 bits.

    None when what was read or what was written is not known: half a count would be shown, and judged, as a whole one.
    """
    if type(value) is not dict:
        return None
    counts: dict[str, int] = {}
    for field, names in _NAMES.items():
        for name in names:
            count = value.get(name)
            if _is_count(count):
                counts[field] = value[name]
                break
    if "input_tokens" not in counts or "output_tokens" not in counts:
        return None
    for details, name, field in _WITHIN_INPUT:
        within = value.get(details)
        count = within.get(name) if type(within) is dict else None
        if type(count) is int and 0 < count <= counts.get("input_tokens", 0) and field not in counts:
            counts[field] = count
            counts["input_tokens"] -= count
    return Usage(**counts)


def split_cached(total: Any, output: Any, *, read: Any = None, written: Any = None) -> dict[str, int] | None:
    """Counts for `read_usage`, out of an input count that includes what was read from or written to a cache.

    None when what was read or what was written is not known, or when all counts are 0: some libraries write that for
    counts that they do not have.
    """
    if not (_is_count(total) and _is_count(output)):
        return None
    cached, stored = _count(read), _count(written)
    counts = {
        "input_tokens": max(_count(total) - cached - stored, 0),
        "output_tokens": _count(output),
        "cache_creation_input_tokens": stored,
        "cache_read_input_tokens": cached,
    }
    return counts if any(counts.values()) else None


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _count(value: Any) -> int:
    return value if _is_count(value) else 0
