"""How much has gone through this process: plain numbers, added to for every write, read for the figures."""

from __future__ import annotations


class Flow:
    """Totals since the process began."""

    __slots__ = ("appended", "bytes_sent", "delivered", "healed")

    def __init__(self) -> None:
        self.appended = 0
        """Events that were committed here."""
        self.delivered = 0
        """Events that subscribers were given, each counted for each of them."""
        self.bytes_sent = 0
        """Bytes of streams."""
        self.healed = 0
        """Times that asking the store brought events of a run of our own to light that nobody had told of."""


FLOW = Flow()
