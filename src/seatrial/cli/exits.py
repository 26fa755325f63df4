"""Exit codes, the same for every command."""

from __future__ import annotations

from collections.abc import Mapping

PASSED = 0
FAILED = 1
USAGE = 2
COULD_NOT_RUN = 3


def exit_of(outcomes: Mapping[str, int], *, complete: bool = True) -> int:
    """How a command on many runs ends: 1 when any failed, 3 when something could not be run, else 0."""
    if outcomes.get("failed"):
        return FAILED
    return COULD_NOT_RUN if outcomes.get("errored") or not complete else PASSED
