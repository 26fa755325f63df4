"""Where runs live: a SQLite file by default, PostgreSQL by URL; one schema, one writer, one contract for both."""

from seatrial.store.bodies import address
from seatrial.store.counts import AgentCounts, Cell, GraderCounts, NoteCounts, NoteTotals
from seatrial.store.experiments import ExperimentSummary
from seatrial.store.notices import Listener
from seatrial.store.open import open_store
from seatrial.store.presence import Presence
from seatrial.store.queries import RunFilter, RunNotes, RunSummary
from seatrial.store.receipt import Receipt
from seatrial.store.rows import Outcome
from seatrial.store.search import Hit
from seatrial.store.served import Admission, Admitted, Ending
from seatrial.store.store import Store

__all__ = [
    "Admission",
    "Admitted",
    "AgentCounts",
    "Cell",
    "Ending",
    "ExperimentSummary",
    "GraderCounts",
    "Hit",
    "Listener",
    "NoteCounts",
    "NoteTotals",
    "Outcome",
    "Presence",
    "Receipt",
    "RunFilter",
    "RunNotes",
    "RunSummary",
    "Store",
    "address",
    "open_store",
]
