"""The page of one case: whether it is flaky, since when, in which ways it fails, and its trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.explorer.render import address
from seatrial.reports.case_history import CaseTally, case_sentence
from seatrial.reports.causes import signature_words
from seatrial.reports.compare import asks_the_same
from seatrial.reports.sentences import HeadSentence
from seatrial.reports.stored_findings import StoredFailure, grader_configs, stored_failures
from seatrial.runs import Case, Experiment
from seatrial.store import CaseNeighbours, CaseTrials, RunSummary, Store

BACK = 24
"""Experiments of the history, unless more are asked for."""
MAX_BACK = 96
MAX_MARKS = 12
"""Trials of an experiment that each have a mark; of more, there is a count."""
MAX_WAYS = 6
MAX_ROWS = 100
MAX_EXPLAINED = 50
"""Trials of which it is said why they did not pass."""
MAX_TEXT = 20_000
LABELS, LEAST, MOST, ALL = 190, 49, 110, 1176
"""Pixels: the column of labels, and a column of the history at least, at most, and all together."""


class HistoryColumn(msgspec.Struct, frozen=True):
    """One experiment."""

    trials: CaseTrials
    tally: CaseTally
    href: str
    """The case in that experiment."""
    here: bool
    first: bool
    """Whether it is the first of those of its name."""


class NamedColumns(msgspec.Struct, frozen=True):
    """Experiments of the same name that follow each other."""

    name: str
    columns: int


class FailureWay(msgspec.Struct, frozen=True):
    """A way in which the case fails, with how many runs of each column did."""

    words: str
    errored: bool
    """Whether it says nothing of the agent."""
    counts: list[int]


class TrialRow(msgspec.Struct, frozen=True):
    """A trial."""

    run: RunSummary
    failure: StoredFailure | None
    compare: str | None
    """Where it is compared with the nearest trial that passed."""
    compare_words: str


class CasePage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    experiment: Experiment
    case_id: str
    case: Case | None
    """None when it is damaged."""
    agent: str
    agents: list[tuple[str, str]]
    """Each with the page that shows it."""
    sentence: HeadSentence
    neighbours: CaseNeighbours
    columns: list[HistoryColumn]
    """The oldest first."""
    width: int
    """Of a column, in pixels."""
    names: list[NamedColumns]
    most: int
    """Rows of marks; 0 where there are too many trials for that."""
    ways: list[FailureWay]
    more_ways: int
    other: int
    """Earlier experiments that ask something else by this case, and are left out."""
    older: str | None
    rows: list[TrialRow]
    more_rows: int
    expectations: str
    line: str


def case_page(
    store: Store,
    ref: str,
    case_id: str,
    agent: str | None = None,
    back: int = BACK,
    complaints: list[str] | None = None,
) -> CasePage:
    """A case of an experiment as one agent does it; unless one is chosen, the one that passes it least."""
    experiment = store.resolve_experiment(ref)
    case = _case(store, experiment, case_id)
    back = max(1, min(back or BACK, MAX_BACK))
    here = store.case_runs(experiment.experiment_id, case_id)
    agents = sorted({run.agent for run in here})
    chosen = agent if agent in agents else _weakest(here)
    if agent and agent not in agents and complaints is not None:
        complaints.append(f"No agent “{agent[:80]}” ran this case here.")
    found = store.case_history(experiment.experiment_id, case_id, chosen, limit=back + 1) if chosen else []
    alike, other = _alike(store, experiment, case, found[:back])
    tallies = [_tally(each) for each in alike]
    own = alike[0].runs if alike and alike[0].experiment.experiment_id == experiment.experiment_id else []
    now = tallies[0] if own else CaseTally(experiment.name, 0, 0)
    columns = _columns(alike, tallies, experiment, case_id, chosen)
    ways, more_ways = _ways(columns)
    most = max([len(each.runs) for each in alike], default=0)

    def view(**changed: object) -> str:
        given = {"agents": agent, "back": None if back == BACK else back, **changed}
        return address("experiments", experiment.experiment_id, "cases", case_id, **given)

    return CasePage(
        experiment=experiment,
        case_id=case_id,
        case=case,
        agent=chosen,
        agents=[(name, view(agents=name)) for name in agents],
        sentence=case_sentence(now, tallies[1:] if own else tallies),
        neighbours=store.case_neighbours(experiment.experiment_id, case_id),
        columns=columns,
        width=max(LEAST, min(MOST, ALL // max(1, len(columns)))),
        names=[NamedColumns(name, len(list(some))) for name, some in groupby(each.tally.name for each in columns)],
        most=most if most <= MAX_MARKS else 0,
        ways=ways,
        more_ways=more_ways,
        other=other,
        older=view(back=min(2 * back, MAX_BACK)) if len(found) > back and back < MAX_BACK else None,
        rows=_rows(store, experiment, own[:MAX_ROWS], alike),
        more_rows=max(0, len(own) - MAX_ROWS),
        expectations=_json(grader_configs(experiment, case)) if case is not None else "",
        line=_json(case) if case is not None else "",
    )


def _case(store: Store, experiment: Experiment, case_id: str) -> Case | None:
    try:
        return store.case(experiment.experiment_id, case_id)
    except SeatrialError as error:
        if error.code == "not_found":
            raise
        return None


def _weakest(runs: Sequence[RunSummary]) -> str:
    """The agent that fails most; of several, the first."""
    failed = Counter(run.agent for run in runs if run.outcome == "failed")
    return min(sorted({run.agent for run in runs}), key=lambda name: -failed[name], default="")


def _alike(
    store: Store, experiment: Experiment, case: Case | None, found: Sequence[CaseTrials]
) -> tuple[list[CaseTrials], int]:
    """Those in which the case means what it means here, and how many others there are."""
    alike = []
    known: dict[str, bool] = {experiment.suite_hash: True}
    for each in found:
        suite_hash = each.experiment.suite_hash
        if suite_hash not in known:
            known[suite_hash] = case is not None and _means_the_same(store, experiment, case, each)
        if known[suite_hash]:
            alike.append(each)
    return alike, len(found) - len(alike)


def _means_the_same(store: Store, experiment: Experiment, case: Case, other: CaseTrials) -> bool:
    try:
        earlier = store.resolve_experiment(other.experiment.experiment_id)
        return asks_the_same(earlier, experiment, store.case(earlier.experiment_id, case.id), case)
    except SeatrialError:
        return False  # damaged


def _tally(trials: CaseTrials) -> CaseTally:
    outcomes = Counter(run.outcome for run in trials.runs)
    left_out = Counter(
        (run.error_class if run.outcome == "errored" else None) or run.outcome
        for run in trials.runs
        if run.outcome not in ("passed", "failed")
    )
    passed, failed = outcomes["passed"], outcomes["failed"]
    return CaseTally(trials.experiment.name, passed, passed + failed, dict(left_out.most_common()))


def _columns(
    alike: Sequence[CaseTrials], tallies: Sequence[CaseTally], experiment: Experiment, case_id: str, agent: str
) -> list[HistoryColumn]:
    columns: list[HistoryColumn] = []
    for trials, tally in zip(reversed(alike), reversed(tallies), strict=True):
        other = trials.experiment.experiment_id
        columns.append(
            HistoryColumn(
                trials,
                tally,
                address("experiments", other, "cases", case_id, agents=agent),
                other == experiment.experiment_id,
                not columns or columns[-1].tally.name != tally.name,
            )
        )
    return columns


def _ways(columns: Sequence[HistoryColumn]) -> tuple[list[FailureWay], int]:
    counted = [Counter([run.signature for run in each.trials.runs if run.signature]) for each in columns]
    total = sum(counted, Counter[str]())
    now = counted[-1] if counted else total
    # What happens now before what happened, and the most frequent first.
    every = sorted(total, key=lambda signature: (-now[signature], -total[signature], signature))
    ways = [
        FailureWay(words.text, words.errored, [each[signature] for each in counted])
        for signature in every[:MAX_WAYS]
        for words in [signature_words(signature)]
    ]
    return ways, max(0, len(every) - MAX_WAYS)


def _rows(
    store: Store, experiment: Experiment, own: Sequence[RunSummary], alike: Sequence[CaseTrials]
) -> list[TrialRow]:
    passed = [run for run in own if run.outcome == "passed"]
    earlier = next(((each, run) for each in alike[1:] for run in each.runs if run.outcome == "passed"), None)
    failures = stored_failures(
        store, experiment.experiment_id, [run for run in own if run.outcome != "passed"][:MAX_EXPLAINED]
    )
    rows: list[TrialRow] = []
    for run in own:
        if run.outcome == "passed":
            rows.append(TrialRow(run, None, None, ""))
            continue
        compare, words = None, ""
        if passed:
            nearest = min(passed, key=lambda other: abs(other.trial - run.trial))
            compare = address("compare", "runs", a=nearest.run_id, b=run.run_id)
            words = f"compare with trial {nearest.trial}"
        elif earlier is not None:
            compare = address("compare", "runs", a=earlier[1].run_id, b=run.run_id)
            words = f"compare with trial {earlier[1].trial} of {earlier[0].experiment.name}"
        rows.append(TrialRow(run, failures.get(run.run_id), compare, words))
    return rows


def _json(value: object) -> str:
    text = msgspec.json.format(wire.encode(value), indent=2).decode("utf-8", "replace")
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n… and {len(text) - MAX_TEXT:,} more characters"
