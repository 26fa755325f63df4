"""The page of all experiments: what is new, and whether any suite is getting worse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from seatrial.explorer import numbers
from seatrial.explorer.baseline import MAX_OFFERED
from seatrial.explorer.plots.interval import PlotAxis, interval_plot, rate_axis
from seatrial.explorer.plots.trend import TrendPoint, trend
from seatrial.explorer.render import address
from seatrial.reports import figures
from seatrial.reports.sentences import HeadSentence, comparison_sentence, experiment_sentence, interval_text, tone_of
from seatrial.reports.statistics.paired import CaseCounts, PairedDifference, counted_difference
from seatrial.reports.summary import AgentSummary, summary_of
from seatrial.store import AgentTotals, CellsOf, ExperimentSummary, Store, Totals
from seatrial.store.filter import FilterTerm

WINDOW: Final = 200
"""Experiments that one page looks at."""
SUITES: Final = 12
SHOWN: Final = 4
"""Experiments of a suite that are shown, in the order by suite."""
BY_TIME: Final = 40
TREND: Final = 30
AGENTS: Final = 5
"""Agents of an experiment that are shown."""
LINES: Final = 3
"""Agents in a trend."""
MOST_CASES: Final = 2_000
"""Cases up to which an experiment is compared with the one before it, here: of more, its own page does that."""


class ListedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A row: one agent in one experiment."""

    summary: AgentSummary
    plot: Markup
    tone: str
    change: str
    """`▼ −6.2 points`, `+1.1 no clear difference`."""
    beside: str
    cost: str


class ListedExperiment(msgspec.Struct, frozen=True, kw_only=True):
    """One experiment with its agents."""

    experiment: ExperimentSummary
    suite: str
    agents: list[ListedAgent]
    more: int
    """Agents that are not shown."""
    took: str
    state: str
    """What is to be said when it is not finished."""


class SuiteSheet(msgspec.Struct, frozen=True, kw_only=True):
    """The newest experiments of one suite, or of all of them."""

    name: str
    about: str
    sentence: HeadSentence | None
    href: str | None
    """The experiment that the sentence is about."""
    trend: Markup | None
    experiments: list[ListedExperiment]
    axis: tuple[str, str]
    older: int
    older_href: str | None


class ExperimentsPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    sheets: list[SuiteSheet]
    about: str
    next: str | None
    """The cursor for the next ones."""


def experiments_page(
    store: Store, terms: tuple[FilterTerm, ...] = (), *, by_time: bool = False, before: str | None = None
) -> ExperimentsPage:
    """The newest experiments, or those before one, by suite or by time."""
    found = store.experiment_page(before=before, limit=WINDOW + 1, terms=terms)
    more, found = len(found) > WINDOW, found[:WINDOW]
    names = _suite_names(store, found)
    if by_time:
        shown = found[:BY_TIME]
        totals = store.many_totals([each.experiment_id for each in shown])
        previous = _previous(store, shown, found, whole=not terms)
        sheet = _sheet(store, "", shown, shown, names, totals, previous, 0, None)
        left = more or len(found) > len(shown)
        return ExperimentsPage(
            sheets=[sheet] if shown else [],
            about="",
            next=shown[-1].experiment_id if left and shown else None,
        )
    suites: defaultdict[str, list[ExperimentSummary]] = defaultdict(list)
    for each in found:
        suites[names[each.experiment_id]].append(each)
    chosen = list(suites.items())[:SUITES]
    wanted = [each.experiment_id for _, some in chosen for each in some[:SHOWN]]
    totals = store.many_totals(wanted)
    rates = store.many_totals([each.experiment_id for _, some in chosen for each in some[SHOWN:TREND]], rates_only=True)
    shown = [each for _, some in chosen for each in some[:SHOWN]]
    previous = _previous(store, shown, found, whole=not terms)
    sheets = [
        _sheet(
            store,
            name,
            some[:SHOWN],
            some[:TREND],
            names,
            {**rates, **totals},
            previous,
            max(0, len(some) - SHOWN),
            address("experiments", by="time", q=f"suite:{some[0].suite_hash[:12]}") if some[0].suite_hash else None,
        )
        for name, some in chosen
    ]
    left_suites = len(suites) - len(chosen)
    last = chosen[-1][1][-1].experiment_id if chosen else None
    return ExperimentsPage(
        sheets=sheets,
        about=f"{numbers.plural(len(suites), 'suite')} · {'more than ' if more else ''}"
        f"{numbers.plural(len(found), 'experiment')}",
        next=(last if left_suites else found[-1].experiment_id) if more or left_suites else None,
    )


def _suite_names(store: Store, found: Sequence[ExperimentSummary]) -> dict[str, str]:
    """The name of the suite of each; of one without a name, that of the experiment."""
    first = {each.suite_hash: each.experiment_id for each in reversed(found)}
    named = store.suite_names(list(first.values()))
    return {each.experiment_id: named.get(first[each.suite_hash]) or each.name for each in found}


def _previous(
    store: Store, shown: Sequence[ExperimentSummary], found: Sequence[ExperimentSummary], *, whole: bool
) -> dict[str, ExperimentSummary]:
    """For each, the finished one before it that ran the same suite. Where only some were asked for, `found` is not the
    `whole` of them, and the one before may be among the others."""
    if not whole:
        earlier = {
            each.experiment_id: store.earlier_experiments(each.experiment_id, each.suite_hash, limit=MAX_OFFERED)
            for each in shown
            if each.suite_hash
        }
        some = {
            name: next((each for each in before if each.status == "finished"), None) for name, before in earlier.items()
        }
        return {name: each for name, each in some.items() if each is not None}
    before: dict[str, ExperimentSummary] = {}
    last: dict[str, ExperimentSummary] = {}
    for each in reversed(found):
        if each.suite_hash in last:
            before[each.experiment_id] = last[each.suite_hash]
        if each.status == "finished" and each.suite_hash:
            last[each.suite_hash] = each
    return before


def _sheet(
    store: Store,
    name: str,
    shown: Sequence[ExperimentSummary],
    of_trend: Sequence[ExperimentSummary],
    names: Mapping[str, str],
    totals: Mapping[str, list[AgentTotals]],
    previous: Mapping[str, ExperimentSummary],
    older: int,
    older_href: str | None,
) -> SuiteSheet:
    summaries = {each.experiment_id: _summaries(totals.get(each.experiment_id, [])) for each in of_trend}
    axis = rate_axis(
        [agent.interval for each in shown for agent in summaries[each.experiment_id] if agent.interval is not None]
    )
    listed: list[ListedExperiment] = []
    sentence, href = None, None
    for each in shown:
        differences = _differences(store, each, previous.get(each.experiment_id), summaries[each.experiment_id])
        listed.append(_listed(each, names, summaries, differences, previous.get(each.experiment_id), axis))
        if sentence is None and name:
            before = previous.get(each.experiment_id)
            sentence = _sentence(each, summaries[each.experiment_id], differences, before)
            href = address("experiments", each.experiment_id)
    newest = summaries[shown[0].experiment_id] if shown else []
    return SuiteSheet(
        name=name,
        about=f"{numbers.plural(shown[0].cases, 'case')} · {numbers.plural(len(newest), 'agent')}" if shown else "",
        sentence=sentence,
        href=href,
        trend=_trend(of_trend, summaries) if name else None,
        experiments=listed,
        axis=(numbers.percent(axis.low, 100), numbers.percent(axis.high, 100)),
        older=older,
        older_href=older_href if older else None,
    )


def _summaries(totals: list[AgentTotals]) -> list[AgentSummary]:
    return summary_of(Totals(agents=totals, cases=0, most_trials=0, flaky=[])).agents


def _differences(
    store: Store, here: ExperimentSummary, before: ExperimentSummary | None, agents: Sequence[AgentSummary]
) -> dict[str, PairedDifference]:
    """How each agent does beside the same one in the experiment before."""
    found: dict[str, PairedDifference] = {}
    if before is None or max(here.cases, before.cases) > MOST_CASES:
        return found
    for agent in agents[:AGENTS]:
        tallies = store.case_tallies(here.experiment_id, agent.agent, CellsOf(before.experiment_id, agent.agent))
        if tallies.pairs:
            counted = tuple(sorted((CaseCounts(*key), cases) for key, cases in tallies.pairs.items()))
            found[agent.agent] = counted_difference(counted)
    return found


def _listed(
    each: ExperimentSummary,
    names: Mapping[str, str],
    summaries: Mapping[str, list[AgentSummary]],
    differences: Mapping[str, PairedDifference],
    before: ExperimentSummary | None,
    axis: PlotAxis,
) -> ListedExperiment:
    agents = summaries[each.experiment_id]
    then = {agent.agent: agent for agent in summaries.get(before.experiment_id, [])} if before is not None else {}
    took = None if each.finished_at is None else max(0, each.finished_at - each.created_at)
    state = "running" if each.status == "running" else ""
    if each.status == "stopped":
        state = f"stopped: {each.stop_reason or 'the process ended'}"
    return ListedExperiment(
        experiment=each,
        suite=names[each.experiment_id],
        agents=[
            _agent(agent, differences.get(agent.agent), then.get(agent.agent), axis, running=each.status == "running")
            for agent in agents[:AGENTS]
        ],
        more=max(0, len(agents) - AGENTS),
        took="" if took is None else numbers.duration(took),
        state=state,
    )


def _agent(
    agent: AgentSummary,
    found: PairedDifference | None,
    before: AgentSummary | None,
    axis: PlotAxis,
    *,
    running: bool,
) -> ListedAgent:
    tone = "plain" if found is None else tone_of(found)
    change, beside = "", ""
    if found is not None:
        points = figures.points(found.difference)
        sign = {"worse": "▼ ", "better": "▲ "}.get(tone, "")
        change = f"{sign}{points} points" if tone != "plain" else f"{points} no clear difference"
        beside = interval_text(found) if tone != "plain" else ""
    if running:
        beside = f"{beside}, so far" if change else "so far"
    reference = () if before is None or before.pass_rate is None else (before.pass_rate,)
    rate = figures.percent(agent.pass_rate)
    words = f"{rate} passed, 95% interval {figures.percent_range(agent.interval)}"
    plot = interval_plot(
        agent.pass_rate,
        agent.interval,
        axis,
        words=words if agent.pass_rate is not None else "no run passed or failed",
        tone={"worse": "bad", "better": "good"}.get(tone, ""),
        lines=reference,
    )
    cost = numbers.money(agent.cost_usd)
    missing = agent.cost_usd is not None and agent.unknown.get("cost_usd")
    return ListedAgent(
        summary=agent,
        plot=plot,
        tone=tone,
        change=change,
        beside=beside.lstrip(", "),
        cost=f"≥ {cost}" if missing else cost,
    )


def _sentence(
    each: ExperimentSummary,
    agents: Sequence[AgentSummary],
    differences: Mapping[str, PairedDifference],
    before: ExperimentSummary | None,
) -> HeadSentence:
    """What the newest experiment says: of the agent that fell most beyond doubt, else of the one that rose."""
    clear = sorted([(found.difference, agent) for agent, found in differences.items() if tone_of(found) != "plain"])
    if clear and before is not None:
        agent = clear[0][1]
        return comparison_sentence(differences[agent], f"in {before.name}", agent)
    said = experiment_sentence(agents[:AGENTS], running=each.status == "running")
    if len(differences) == 1 and before is not None:
        (agent,) = differences
        return comparison_sentence(differences[agent], f"in {before.name}", agent)
    if differences and before is not None:
        return HeadSentence("No clear difference", f" to {before.name} in {numbers.plural(len(differences), 'agent')}.")
    return said


def _trend(experiments: Sequence[ExperimentSummary], summaries: Mapping[str, list[AgentSummary]]) -> Markup | None:
    lines: dict[str, list[TrendPoint]] = {}
    for place, each in enumerate(reversed(experiments)):
        for agent in summaries[each.experiment_id]:
            if agent.pass_rate is not None and agent.interval is not None:
                point = TrendPoint(place, agent.pass_rate, agent.interval, each.suite_hash)
                lines.setdefault(agent.agent, []).append(point)
    longest = sorted(lines.items(), key=lambda item: -len(item[1]))[:LINES]
    return trend(longest, len(experiments))
