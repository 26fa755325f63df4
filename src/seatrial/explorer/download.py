"""A run in any format that is written, and what such a format cannot carry."""

from __future__ import annotations

import msgspec

from seatrial import formats
from seatrial.errors import SeatrialError
from seatrial.explorer.render import address
from seatrial.formats.reading import Written
from seatrial.formats.registry import writable
from seatrial.store import Store
from seatrial.transcript import Note

MAX_LOSSES = 200


class DownloadPage(msgspec.Struct, frozen=True, kw_only=True):
    """The formats of a run, and of one of them what it cannot carry."""

    run_id: str
    formats: list[str]
    format: str | None
    """None when none has been chosen."""
    losses: list[Note]
    more_losses: int
    size: int
    bodies: int
    """How many attempts brought bytes, which can be had as they are."""

    @property
    def anyway(self) -> str:
        """The address of the file, whatever is lost."""
        return address("runs", self.run_id, "download", format=self.format, losses="accepted")


def written(store: Store, run_id: str, format: str) -> Written:
    """A run in a format; `not_found` when there is nothing to write."""
    run = store.run(run_id)
    if run.reading is None:
        raise SeatrialError("not_found", f"run {run_id} has no transcript", hint="its raw body may say more")
    return formats.write(run.reading, format)


def download_page(store: Store, run_id: str, format: str | None, found: Written | None) -> DownloadPage:
    """What can be downloaded of a run."""
    record = store.run_record(run_id)
    losses = [] if found is None else found.losses
    attempts = [attempt for exchange in record.exchanges for attempt in exchange.attempts]
    return DownloadPage(
        run_id=run_id,
        formats=writable(),
        format=format,
        losses=losses[:MAX_LOSSES],
        more_losses=max(0, len(losses) - MAX_LOSSES),
        size=0 if found is None else len(found.data),
        bodies=sum([attempt.body_hash is not None for attempt in attempts]),
    )
