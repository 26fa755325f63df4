"""The transcript of a run, a range of it at a time."""

from __future__ import annotations

import msgspec

from seatrial.store import Store, TranscriptItem


class TranscriptRange(msgspec.Struct, frozen=True):
    """What a page shows of a transcript."""

    items: list[TranscriptItem]


def transcript_range(store: Store, run_id: str, first: int, count: int, at: str | None) -> TranscriptRange:
    """So many messages of a run, from the one with the index `first` on."""
    return TranscriptRange(store.items(run_id, first, count))
