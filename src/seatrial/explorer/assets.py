"""Style sheet and script: served under a name with their hash, so that browsers may keep them for ever."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files

import msgspec
from litestar import Response, get
from litestar.params import FromPath

from seatrial.errors import SeatrialError

FOLDER = "/static/"
"""Needs no key: the page that asks for one is drawn with it."""

_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_FOREVER = "public, max-age=31536000, immutable"


class _Asset(msgspec.Struct, frozen=True):
    address: str
    body: bytes
    media_type: str
    tag: str


@cache
def _assets() -> dict[str, _Asset]:
    found = {}
    for file in files("seatrial.explorer").joinpath("static").iterdir():
        stem, _, kind = file.name.rpartition(".")
        if kind in _TYPES:
            body = file.read_bytes()
            tag = sha256(body).hexdigest()[:16]
            found[file.name] = _Asset(f"{FOLDER}{stem}.{tag}.{kind}", body, _TYPES[kind], f'"{tag}"')
    return found


def asset(name: str) -> str:
    """The address of a file."""
    return _assets()[name].address


@get(FOLDER + "{name:str}", sync_to_thread=False)
def serve_asset(name: FromPath[str]) -> Response[bytes]:
    """A file, by its name with its hash."""
    for each in _assets().values():
        if each.address == FOLDER + name:
            headers = {"cache-control": _FOREVER, "etag": each.tag}
            return Response(each.body, media_type=each.media_type, headers=headers)
    raise SeatrialError("not_found", "there is no such file")
