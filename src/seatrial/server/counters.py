"""Totals of this process: plain numbers, added to for every write, and read for the metrics."""

from __future__ import annotations

from bisect import bisect_left

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds by which times are counted."""


class Counters:
    """Totals since the process began."""

    __slots__ = ("appended", "bytes_sent", "commit_counts", "commit_s", "delivered", "healed")

    def __init__(self) -> None:
        self.appended = 0
        """Events that were committed here."""
        self.delivered = 0
        """Events that subscribers were given, each counted for each of them."""
        self.bytes_sent = 0
        """Bytes of streams."""
        self.healed = 0
        """Times that asking the store brought events of a run of our own to light that nobody had told of."""
        self.commit_counts = [0] * (len(SECONDS) + 1)
        """Appends by how long their commit took: up to each of the bounds, and beyond the last."""
        self.commit_s = 0.0
        """How long they took in all."""

    def committed(self, seconds: float) -> None:
        """Count an append that was acknowledged after so long."""
        self.commit_counts[bisect_left(SECONDS, seconds)] += 1
        self.commit_s += seconds


COUNTERS = Counters()
