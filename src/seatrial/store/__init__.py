"""Where runs live: a SQLite file by default, PostgreSQL by URL; one schema, one writer, one contract for both."""

from seatrial.store.database import Listener, shown
from seatrial.store.documents import LongText, address, identifier
from seatrial.store.experiments import CaseTags, ExperimentSummary
from seatrial.store.find import TextHit, TextHits
from seatrial.store.history import CaseNeighbours, CaseTrials
from seatrial.store.items import StoredStep, TranscriptItem
from seatrial.store.names import Named, NamedCase, NamedExperiment, NamedRun
from seatrial.store.of_run import GradingSummary, StepLine
from seatrial.store.open import open_store
from seatrial.store.outline import OutlineEntry
from seatrial.store.pairs import CaseOrder, CasePlace, CaseTallies, CellsOf, TrialLine
from seatrial.store.presence import Presence
from seatrial.store.queries import RunFilter, RunNotes, RunRecord
from seatrial.store.reviews import Chosen, Review, ReviewCandidate, ReviewedRun, ReviewWord
from seatrial.store.rollups import (
    EDGES,
    AgentTotals,
    Changes,
    Counted,
    GraderCounts,
    NoteCounts,
    NoteTotals,
    SignatureCount,
    Total,
    Totals,
    agent_totals,
    cell_of,
    is_timed,
)
from seatrial.store.rows import CallsKnown, Cell, RunSummary, StoredOutcome
from seatrial.store.search import Hit
from seatrial.store.served import Admission, Admitted, Ending
from seatrial.store.store import Store
from seatrial.store.writer import Receipt

__all__ = [
    "EDGES",
    "Admission",
    "Admitted",
    "AgentTotals",
    "CallsKnown",
    "CaseNeighbours",
    "CaseOrder",
    "CasePlace",
    "CaseTags",
    "CaseTallies",
    "CaseTrials",
    "Cell",
    "CellsOf",
    "Changes",
    "Chosen",
    "Counted",
    "Ending",
    "ExperimentSummary",
    "GraderCounts",
    "GradingSummary",
    "Hit",
    "Listener",
    "LongText",
    "Named",
    "NamedCase",
    "NamedExperiment",
    "NamedRun",
    "NoteCounts",
    "NoteTotals",
    "OutlineEntry",
    "Presence",
    "Receipt",
    "Review",
    "ReviewCandidate",
    "ReviewWord",
    "ReviewedRun",
    "RunFilter",
    "RunNotes",
    "RunRecord",
    "RunSummary",
    "SignatureCount",
    "StepLine",
    "Store",
    "StoredOutcome",
    "StoredStep",
    "TextHit",
    "TextHits",
    "Total",
    "Totals",
    "TranscriptItem",
    "TrialLine",
    "address",
    "agent_totals",
    "cell_of",
    "identifier",
    "is_timed",
    "open_store",
    "shown",
]
