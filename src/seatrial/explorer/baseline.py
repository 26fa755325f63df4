"""What an experiment is compared with: an earlier one of the same suite, or an agent that was named."""

from __future__ import annotations

import msgspec

from seatrial.errors import SeatrialError
from seatrial.reports.statistics.paired import CaseCounts, PairedDifference, counted_difference
from seatrial.reports.stored import check_agent, named_experiment
from seatrial.runs import Experiment
from seatrial.store import AgentTotals, CaseTallies, CellsOf, ExperimentSummary, Store, Totals

NO_BASE = "none"
"""As the parameter `base`: compare with nothing."""
MAX_OFFERED = 12
"""Earlier experiments that can be chosen as the base."""


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The experiment that agents are compared with, and which agent of it."""

    experiment_id: str
    name: str
    suite_hash: str
    agent: str | None
    """None for those of the same name, or the only one with the only one."""
    totals: Totals

    def agent_for(self, agent: str, agents: int) -> AgentTotals | None:
        """What an agent is compared with, in an experiment of so many."""
        of_name = {found.agent: found for found in self.totals.agents}
        if self.agent is not None:
            return of_name.get(self.agent)
        if agents == len(of_name) == 1:
            return self.totals.agents[0]
        return of_name.get(agent)


class ComparedCells(msgspec.Struct, frozen=True):
    """The cells of an agent beside those of its base."""

    tallies: CaseTallies
    cells: CellsOf | None
    """Of the base; None without one."""
    difference: PairedDifference | None
    """None where no case has graded runs on both sides."""


def baseline(
    store: Store,
    experiment: Experiment,
    totals: Totals,
    earlier: list[ExperimentSummary],
    ref: str | None,
    complaints: list[str],
) -> Baseline | None:
    """The base that an address asks for; without one, the last finished experiment of the same suite before this."""
    if ref == NO_BASE:
        return None
    if ref is not None:
        try:
            return _named(store, experiment, totals, ref)
        except SeatrialError as error:
            complaints.append(f"No base: {error.message}.")
            return None
    found = next((each for each in earlier if each.status == "finished"), None)
    if found is None:
        return None
    return Baseline(
        experiment_id=found.experiment_id,
        name=found.name,
        suite_hash=found.suite_hash,
        agent=None,
        totals=store.totals(found.experiment_id, flaky=0),
    )


def _named(store: Store, experiment: Experiment, totals: Totals, ref: str) -> Baseline:
    found, agent = named_experiment(store, ref)
    same = found.experiment_id == experiment.experiment_id
    if same and not agent:
        raise SeatrialError("usage", "an experiment is not compared with itself; name one of its agents")
    of_base = totals if same else store.totals(found.experiment_id, flaky=0)
    check_agent(found, agent, [each.agent for each in of_base.agents])
    return Baseline(
        experiment_id=found.experiment_id,
        name=found.name,
        suite_hash=found.suite_hash,
        agent=agent or None,
        totals=of_base,
    )


def compared_cells(
    store: Store, experiment_id: str, agent: str, base: Baseline | None, beside: AgentTotals | None
) -> ComparedCells:
    """How an agent does on each case, beside its base."""
    cells = None if base is None or beside is None else CellsOf(base.experiment_id, beside.agent)
    if cells == CellsOf(experiment_id, agent):
        cells = None
    tallies = store.case_tallies(experiment_id, agent, cells)
    counted = tuple(sorted((CaseCounts(*key), cases) for key, cases in tallies.pairs.items()))
    return ComparedCells(tallies, cells, counted_difference(counted) if counted else None)
