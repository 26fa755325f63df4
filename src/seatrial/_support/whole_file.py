"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from seatrial.errors import SeatrialError


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to; what is at the path is replaced once all of it is there. Raises `unwritable_file`.

    A link stays one. What is no regular file, as `/dev/null` or a pipe, cannot be replaced, and is written to.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        target = path.resolve()
        part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
        try:
            with part.open("xb") as file:
                yield file
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise SeatrialError("unwritable_file", f"{path} cannot be written: {error.strerror}") from None
