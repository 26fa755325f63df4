"""Where the store is: `--store`, else the environment, else a file in the working directory."""

from __future__ import annotations

import argparse
import os
import resource
from typing import TYPE_CHECKING

from seatrial._support.environment import STORE_VARIABLE
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.store import Store

VARIABLE = STORE_VARIABLE
DEFAULT = "seatrial.db"
MIN_FILES = 16
"""Files that a command with a store has open at once, at the least."""


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
    # SQLite has strange things to say when it cannot open a file more.
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < MIN_FILES:
        message = f"only {limit} files may be open at once, and it takes at least {MIN_FILES}"
        raise SeatrialError("store_unavailable", message, hint="raise the limit: `ulimit -n 1024`")
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
