"""Documents packed with Zstandard, where `packed` is 2.

Nothing is changed, neither tables nor what is in them; but earlier versions could not read what is written from now on.
"""

from __future__ import annotations

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    return
