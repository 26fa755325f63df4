"""Style sheets, scripts and the icon: served under a name with their hash, so that browsers may keep them for ever."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files

import msgspec

FOLDER = "/static/"
"""Needs no key: the page that asks for one is drawn with it."""

_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


class Asset(msgspec.Struct, frozen=True):
    """A file of the folder `static`."""

    address: str
    body: bytes
    media_type: str
    tag: str
    """For the header `ETag`."""


@cache
def assets() -> dict[str, Asset]:
    """All files, by their plain name."""
    found = {}
    for file in files("seatrial.explorer").joinpath("static").iterdir():
        stem, _, kind = file.name.rpartition(".")
        if kind in _TYPES:
            body = file.read_bytes()
            tag = sha256(body).hexdigest()[:16]
            found[file.name] = Asset(f"{FOLDER}{stem}.{tag}.{kind}", body, _TYPES[kind], f'"{tag}"')
    return found


def asset(name: str) -> str:
    """The address of a file."""
    return assets()[name].address
