"""The W3C trace context of a run: agents that trace what they do put it under the trace of their run."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from hashlib import sha256

TRACEPARENT = "traceparent"

_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")


def trace_headers(run_id: str, configured: Iterable[str]) -> dict[str, str]:
    """The header for one request of a run, unless the suite sends one of its own."""
    return {} if any(name.lower() == TRACEPARENT for name in configured) else {TRACEPARENT: traceparent(run_id)}


def traceparent(run_id: str) -> str:
    """A fresh span of the run's trace, sampled. All attempts of a run belong to one trace."""
    return f"00-{trace_id(run_id)}-{secrets.token_hex(8)}-01"


def trace_id(run_id: str) -> str:
    """The trace of a run: its id itself where that can be one, as in experiments, else made of it."""
    return run_id if _TRACE_ID.fullmatch(run_id) else sha256(run_id.encode("utf-8", "replace")).hexdigest()[:32]
