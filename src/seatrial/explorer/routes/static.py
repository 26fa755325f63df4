"""Style sheets and scripts."""

from __future__ import annotations

from litestar import Response, get
from litestar.params import FromPath

from seatrial.errors import SeatrialError
from seatrial.explorer.assets import FOLDER, assets

_FOREVER = "public, max-age=31536000, immutable"


@get(FOLDER + "{name:str}", sync_to_thread=False)
def serve_asset(name: FromPath[str]) -> Response[bytes]:
    """A file, by its name with its hash."""
    for each in assets().values():
        if each.address == FOLDER + name:
            headers = {"cache-control": _FOREVER, "etag": each.tag}
            return Response(each.body, media_type=each.media_type, headers=headers)
    raise SeatrialError("not_found", "there is no such file")


HANDLERS = [serve_asset]
