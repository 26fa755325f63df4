"""Exit codes, the same for every command."""

from __future__ import annotations

PASSED = 0
FAILED = 1
USAGE = 2
COULD_NOT_RUN = 3
