"""Labels of sub-agents: the path of calls that led to one, as `supervisor/refunds` (dispatch.md 5.1)."""

from __future__ import annotations

import re

MAX_SEGMENTS = 8
MAX_LABEL = 256

_SEGMENT = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def actor_label(text: str) -> str | None:
    """The label, trimmed; None when it is not one."""
    label = text.strip()
    segments = label.split("/", MAX_SEGMENTS)
    if len(label) > MAX_LABEL or len(segments) > MAX_SEGMENTS:
        return None
    return label if all(_SEGMENT.fullmatch(segment) for segment in segments) else None
