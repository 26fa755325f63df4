"""Which format bytes are in: every format says how sure it is, and the surest has it.

Messages that have nothing but a `role` and `content` are the common ground of all chat APIs: they are called `openai`,
whoever wrote them, and every reader of chat messages reads them alike. Formats that Seatrial knows and does not read
are asked as well, so that they are refused by their name and never half understood.
"""

from __future__ import annotations

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.formats.foreign import recognise
from seatrial.formats.registry import FORMATS, find_format
from seatrial.formats.sniffing import open_sample


class Detection(msgspec.Struct, frozen=True):
    """What the bytes look like."""

    format: str
    reason: str
    """What gave it away, for people."""


def detect(data: bytes) -> Detection:
    """The format of these bytes.

    Raises `SeatrialError`: `undetected_format` when they look like none, `unread_format` when they are of one that is
    known and not read, `ambiguous_format` when two formats are equally sure, `not_json` when they are JSON that is cut
    off, `format_failed` when one of others fails.
    """
    sample = open_sample(data)
    FORMATS.check_names()
    found = [(sniff, name) for name in FORMATS if (sniff := find_format(name).sniff(sample)) is not None]
    most = max([sniff.confidence for sniff, _ in found], default=0)
    foreign = recognise(sample)
    if foreign is not None and foreign.sniff.confidence >= most:
        raise SeatrialError(
            "unread_format",
            f"this is {foreign.name} ({foreign.sniff.reason}), which Seatrial does not read yet",
            hint=f"it reads {', '.join(FORMATS)}",
        )
    best = [(sniff, name) for sniff, name in found if sniff.confidence == most]
    if not best:
        _refuse_cut_off(data)
        raise SeatrialError(
            "undetected_format",
            "the input looks like none of the known formats",
            hint="name its format, on the command line with --from",
        )
    if len(best) > 1:
        claims = " and ".join([f"{name} ({sniff.reason})" for sniff, name in best])
        raise SeatrialError(
            "ambiguous_format",
            f"the input may be {claims}, which is equally likely",
            hint="name its format, on the command line with --from",
        )
    sniff, name = best[0]
    return Detection(name, sniff.reason)


def _refuse_cut_off(data: bytes) -> None:
    """Raise `SeatrialError` for a document that ends too early: what it is cannot be known, but why."""
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return
    try:
        wire.decode(data, _SKIPPED, [])
    except SeatrialError as error:
        if error.code == "not_json" and wire.ends_early(error.message, data):
            error.hint = "the file or answer may not have been written or copied whole"
            raise


_SKIPPED = msgspec.json.Decoder(msgspec.Raw)
