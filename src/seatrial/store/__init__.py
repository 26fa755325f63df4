"""Where runs live: a SQLite file by default, PostgreSQL by URL; one schema, one writer, one contract for both."""

from seatrial.store.bodies import address
from seatrial.store.experiments import ExperimentSummary
from seatrial.store.items import Item, LongText
from seatrial.store.notices import Listener
from seatrial.store.open import open_store
from seatrial.store.presence import Presence
from seatrial.store.queries import RunFilter, RunNotes, RunRecord
from seatrial.store.receipt import Receipt
from seatrial.store.rollups import EDGES, GRADER_ERRORED, Changes, Counted, is_timed, left_out
from seatrial.store.rows import CallsKnown, Outcome, RunSummary
from seatrial.store.search import Hit
from seatrial.store.served import Admission, Admitted, Ending
from seatrial.store.store import Store
from seatrial.store.totals import (
    AgentTotals,
    Cell,
    GraderCounts,
    NoteCounts,
    NoteTotals,
    SignatureCount,
    Total,
    Totals,
    agent_totals,
    cell_of,
)

__all__ = [
    "EDGES",
    "GRADER_ERRORED",
    "Admission",
    "Admitted",
    "AgentTotals",
    "CallsKnown",
    "Cell",
    "Changes",
    "Counted",
    "Ending",
    "ExperimentSummary",
    "GraderCounts",
    "Hit",
    "Item",
    "Listener",
    "LongText",
    "NoteCounts",
    "NoteTotals",
    "Outcome",
    "Presence",
    "Receipt",
    "RunFilter",
    "RunNotes",
    "RunRecord",
    "RunSummary",
    "SignatureCount",
    "Store",
    "Total",
    "Totals",
    "address",
    "agent_totals",
    "cell_of",
    "is_timed",
    "left_out",
    "open_store",
]
