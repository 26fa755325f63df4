"""The `seatrial` command: one module per command, loaded only when it is the one that runs."""

from __future__ import annotations

from seatrial.cli.main import main

__all__ = ["main"]
