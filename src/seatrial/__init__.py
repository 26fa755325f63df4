"""Sea trials for AI agents.

`formats` reads what agents write and writes it in other shapes, `events` checks and folds streams, `trajectory` takes
the tool calls out and matches them, `transcript` is the record itself. `suites`, `engine`, `graders`, `store` and
`reports` run agents on cases, judge what they did, and keep and show it.
"""

from seatrial._version import __version__
from seatrial.errors import InfrastructureError, SeatrialError

__all__ = ["InfrastructureError", "SeatrialError", "__version__"]
