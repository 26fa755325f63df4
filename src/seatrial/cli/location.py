"""Where the store is: `--store`, else the environment, else a file beside you."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.store import Store

VARIABLE = "SEATRIAL_STORE"
DEFAULT = "seatrial.db"


def add_store_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--store`."""
    parser.add_argument(
        "--store",
        metavar="WHERE",
        help=f"a file, or a sqlite:/// or postgresql:// URL (default: ${VARIABLE}, else {DEFAULT})",
    )


def store_location(args: argparse.Namespace) -> str:
    """The store that was asked for."""
    return str(args.store or os.environ.get(VARIABLE) or DEFAULT)


def opened_store(args: argparse.Namespace, *, create: bool = False, read_only: bool = False) -> Store:
    """The store that was asked for, open; a context manager."""
    # SQLAlchemy takes longer to load than most commands take to run.
    from seatrial.store import open_store

    try:
        return open_store(store_location(args), create=create, read_only=read_only)
    except SeatrialError as error:
        if error.code != "store_outdated":
            raise
        outdated = error
    try:
        # It has to be brought up to date, if it can be.
        return open_store(store_location(args), create=False)
    except SeatrialError:
        raise outdated from None
