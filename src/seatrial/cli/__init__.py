"""The `seatrial` command: finding and running a subcommand of `commands/`, and what several of them share."""

from __future__ import annotations

from seatrial.cli.main import main

__all__ = ["main"]
