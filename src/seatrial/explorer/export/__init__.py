"""Experiments as files that are opened without a server: one file, or a folder for what is too large for one.

The pages are those of the server, from the same templates. `links` says how their links come to lead to files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.explorer.export.folder import write_folder as write_folder
    from seatrial.explorer.export.one_file import write_file as write_file

__getattr__, __all__ = attach(__name__, {"folder": "write_folder", "one_file": "write_file"})
