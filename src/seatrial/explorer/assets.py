"""Style sheets, scripts and the icon: served under a name with their hash, so that browsers may keep them for ever."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from hashlib import sha256
from importlib.resources import files

import msgspec

FOLDER = "/static/"
"""Needs no key: the page that asks for one is drawn with it."""

_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_IMPORT = re.compile(rb'(from "\./)([a-z_]+\.js)(")')

_COMMENT = re.compile(rb"/\*.*?\*/", re.DOTALL)
_AROUND = re.compile(rb"\s*([{};,>])\s*")
_BEHIND = re.compile(rb":\s+")
_PROPERTY = re.compile(rb"--[a-z][a-z0-9-]*")
# A script has comments that begin a line, and types; its lines stay lines, since some end a statement.
_TYPE = re.compile(rb"/\*\*.*?\*/ ?", re.DOTALL)
_LINE = re.compile(rb"^[ \t]*(?://.*)?\n?", re.MULTILINE)


class Asset(msgspec.Struct, frozen=True):
    """A file of the folder `static`."""

    address: str
    body: bytes
    media_type: str
    tag: str
    """For the header `ETag`."""

    @property
    def file_name(self) -> str:
        """Its name beside the others."""
        return self.address.removeprefix(FOLDER)


@cache
def assets() -> dict[str, Asset]:
    """All files, by their plain name."""
    folder = files("seatrial.explorer").joinpath("static")
    bodies = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES}
    short = _short_names(b"".join([body for name, body in bodies.items() if name.endswith(".css")]))
    found: dict[str, Asset] = {}

    def add(name: str) -> Asset:
        if name not in found:
            # A module names others as they are in the folder, and browsers know them by their hashes.
            body = _IMPORT.sub(
                lambda match: match[1] + add(match[2].decode()).file_name.encode() + match[3], bodies[name]
            )
            stem, _, kind = name.rpartition(".")
            if kind == "css":
                body = _PROPERTY.sub(lambda match: short[match[0]], without_spaces(body))
            elif kind == "js":
                body = _LINE.sub(b"", _TYPE.sub(b"", body))
            tag = sha256(body).hexdigest()[:16]
            found[name] = Asset(f"{FOLDER}{stem}.{tag}.{kind}", body, _TYPES[kind], f'"{tag}"')
        return found[name]

    for name in bodies:
        add(name)
    return found


def without_spaces(style: bytes) -> bytes:
    """A style sheet as browsers need it: for people, the folder has it with spaces and comments."""
    style = _AROUND.sub(rb"\1", b" ".join(_COMMENT.sub(b"", style).split()))
    return _BEHIND.sub(b":", style).replace(b";}", b"}")


def _short_names(styles: bytes) -> dict[bytes, bytes]:
    """A short name for each property of the style sheets, the same in all of them."""
    counted = Counter(_PROPERTY.findall(styles))
    return {name: b"--%x" % number for number, (name, _) in enumerate(counted.most_common())}


def asset(name: str) -> str:
    """The address of a file."""
    return assets()[name].address
