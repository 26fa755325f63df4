"""Runs that fail alike, together: a thousand failures have a handful of causes."""

from __future__ import annotations

import msgspec

from seatrial.reports.rows import Rows
from seatrial.store import StoredOutcome

MAX_IDS = 20_000
"""Runs of one group whose ids are kept; all are counted."""
MAX_NAMED = 20

UNPASSED: frozenset[StoredOutcome] = frozenset({"failed", "errored"})


class Alike(msgspec.Struct):
    """Runs of the same outcome that first go wrong in the same way."""

    outcome: StoredOutcome
    signature: str | None
    """None for a run that has none, which is alone."""
    count: int = 0
    run_ids: list[str] = []
    """In the order of the suite; the first of them."""
    named: list[tuple[str, str, int]] = []
    """Agent, case and trial of the first of these."""

    @property
    def first(self) -> str:
        """The run that stands for all of them."""
        return self.run_ids[0]


def runs_alike(rows: Rows, outcomes: frozenset[StoredOutcome] = UNPASSED) -> list[Alike]:
    """Failed runs first, then errored ones, then others; of these the largest group first, else as in the suite."""
    groups: dict[tuple[str, str], Alike] = {}
    for row in rows(outcomes=outcomes):
        # One without a signature was stored by an earlier version, or neither failed nor errored.
        key = (row.outcome, row.signature if row.signature is not None else f"\0{row.run_id}")
        group = groups.get(key)
        if group is None:
            group = groups[key] = Alike(row.outcome, row.signature)
        group.count += 1
        if len(group.run_ids) < MAX_IDS:
            group.run_ids.append(row.run_id)
        if len(group.named) < MAX_NAMED:
            group.named.append((row.agent, row.case_id, row.trial))
    order = {"failed": 0, "errored": 1}
    return sorted(groups.values(), key=lambda group: (order.get(group.outcome, 2), -group.count))
