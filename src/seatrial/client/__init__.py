"""The client of the run service: ask for runs, and follow them to their end over connections that break.

`Client` is for async code, `SyncClient` for any other.
"""

from seatrial.client.client import Client
from seatrial.client.stream import EventStream
from seatrial.client.sync import SyncClient, SyncEventStream

__all__ = ["Client", "EventStream", "SyncClient", "SyncEventStream"]
