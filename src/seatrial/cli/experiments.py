"""What the commands on experiments share: where the store is, and how an experiment ends a command."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from seatrial.cli.exits import COULD_NOT_RUN, FAILED, PASSED
from seatrial.store import Store, open_store

STORE_VARIABLE = "SEATRIAL_STORE"
DEFAULT_STORE = ".seatrial/runs.db"


def add_store_option(parser: argparse.ArgumentParser) -> None:
    """The option that says where runs live."""
    parser.add_argument(
        "--store",
        metavar="WHERE",
        default=os.environ.get(STORE_VARIABLE, DEFAULT_STORE),
        help=f"a SQLite file or a postgresql:// URL (default: ${STORE_VARIABLE}, else {DEFAULT_STORE})",
    )


def opened_store(where: str, *, create: bool = False) -> Store:
    """The store; its directory is made when it may be."""
    if create and "://" not in where:
        Path(where).parent.mkdir(parents=True, exist_ok=True)
    return open_store(where, create=create)


def exit_code(outcomes: Mapping[str, int], *, complete: bool) -> int:
    """0 when all passed, 1 when any failed, 3 when something could not be run."""
    if outcomes.get("failed"):
        return FAILED
    if outcomes.get("errored") or not complete:
        return COULD_NOT_RUN
    return PASSED
