"""The page of an experiment: better or worse and how sure, why runs fail, and each case with its trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec
from markupsafe import Markup

from seatrial.explorer import numbers
from seatrial.explorer.baseline import MAX_OFFERED, NO_BASE, Baseline, ComparedCells, baseline, compared_cells
from seatrial.explorer.distributions import Distribution, distributions
from seatrial.explorer.matrix import MatrixColumn, MatrixPage, matrix_page
from seatrial.explorer.page import Arguments
from seatrial.explorer.plots.dumbbell import dumbbell
from seatrial.explorer.plots.interval import PlotAxis, interval_plot, rate_axis
from seatrial.reports import figures
from seatrial.reports.causes import FailureCause, causes
from seatrial.reports.sentences import HeadSentence, comparison_sentence, experiment_sentence, interval_text, tone_of
from seatrial.reports.statistics.paired import PairedDifference
from seatrial.reports.summary import AgentSummary, Summary, summary_of
from seatrial.runs import Experiment
from seatrial.store import AgentTotals, CaseOrder, ExperimentSummary, Store
from seatrial.store.filter import FilterTerm, written_term
from seatrial.store.pairs import SORTS, TABS, CaseSort, CaseTab

MAX_COLUMNS: Final = 6
"""Agents that the matrix has beside each other."""
MAX_COMPARED: Final = 60
"""Agents that are held against their base; of more, only those that are shown."""
SIGNATURES: Final = 500
PARAMETERS: Final = ("base", "agents", "tab", "view", "q", "sort", "group", "after", "sel")
VIEWS: Final = ("cases", "runs", "graders")


class ShownAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table of agents."""

    name: str
    beside: str
    """`base` and its experiment; "" of the agents of this one."""
    summary: AgentSummary
    plot: Markup
    tone: str
    points: str | None
    """The difference to the base; None without one."""
    range: str
    all_pass: float | None
    cost: float | None
    """Of one run, on average of those whose cost is known."""
    href: str | None = None
    """The page with this agent in front; None of the base."""
    chosen: bool = False


class ShownCause(msgspec.Struct, frozen=True):
    """A row of *why runs fail*."""

    cause: FailureCause
    plot: Markup
    href: str | None


class PageLink(msgspec.Struct, frozen=True):
    """Another state of the page."""

    label: str
    href: str
    current: bool = False
    count: int | None = None
    key: str = ""


class ExperimentPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows above its cases."""

    experiment: Experiment
    suite: str
    sentence: HeadSentence
    others: str
    """What is to be said of the agents that the sentence is not about."""
    facts: list[str]
    errored: str
    """Errored runs, by class; "" for none."""
    warning: str
    summary: Summary
    agents: list[ShownAgent]
    axis: tuple[str, str]
    trials: int
    base: Baseline | None
    base_agent: str | None
    bases: list[PageLink]
    chosen: str | None
    chosen_compared: ComparedCells | None
    columns: list[MatrixColumn]
    hidden: list[PageLink]
    """Agents that the matrix has no room for, each with the page that has it."""
    causes: list[ShownCause]
    distributions: list[Distribution]
    names: tuple[str, str]
    """What the base and the chosen agent are called beside each other."""
    tabs: list[PageLink]
    views: list[PageLink]
    view: str
    tab: CaseTab
    sort: CaseSort
    by_tag: bool
    planned: int | None
    """Trials of each case."""
    counted: bool
    selected: str | None
    """The case that the address points at."""

    @property
    def running(self) -> bool:
        """Whether figures will change."""
        return self.experiment.status == "running"

    @property
    def experiment_id(self) -> str:
        """The id, also where the address has a name."""
        return self.experiment.experiment_id


def experiment_page(store: Store, ref: str, arguments: Arguments) -> ExperimentPage:
    """An experiment, beside the base that the address asks for."""
    experiment = store.resolve_experiment(ref)
    experiment_id = experiment.experiment_id
    totals = store.totals(experiment_id, flaky=0)
    summary = summary_of(totals)
    earlier = store.earlier_experiments(experiment_id, experiment.suite_hash, limit=MAX_OFFERED)
    base = baseline(store, experiment, totals, earlier, arguments.get("base"), arguments.complaints)
    of_agents = {found.agent: found for found in totals.agents}
    wanted = _wanted(arguments, list(of_agents))
    order = wanted or list(of_agents)
    beside = {agent: None if base is None else base.agent_for(agent, len(of_agents)) for agent in of_agents}
    compared = {
        agent: compared_cells(store, experiment_id, agent, base, beside[agent])
        for agent in [*wanted, *(agent for agent in of_agents if agent not in wanted)][:MAX_COMPARED]
    }
    chosen = order[0] if wanted else _worst(compared, order)
    if base is not None and all(each.cells is None for each in compared.values()) and arguments.get("base"):
        arguments.complaints.append(f"No agent of this experiment has runs in “{base.name}” to be compared with.")
    found = compared.get(chosen) if chosen is not None else None
    difference = None if found is None else found.difference
    of_base = beside[chosen] if chosen is not None and found is not None and found.cells is not None else None
    names = _names(experiment, base, chosen, of_base)
    columns = _columns(experiment_id, base, chosen, of_base, order)
    tab = _tab(arguments, found)
    sort: CaseSort = next(each for each in SORTS if each == arguments.choice("sort", SORTS, "change"))
    by_tag = arguments.choice("group", ("tag",), "") == "tag" if arguments.get("group") else False
    here = _here(arguments, ref)
    return ExperimentPage(
        experiment=experiment,
        suite=str(experiment.suite.get("name") or ""),
        sentence=_sentence(summary, difference, names, experiment),
        others=_others(compared, chosen),
        facts=_facts(store, experiment, summary, base),
        errored=_errored(summary),
        warning=_warning(experiment, summary, store),
        summary=summary,
        agents=_agents(experiment, summary, base, beside, compared, chosen, here),
        axis=_axis_labels(summary, base),
        trials=summary.trials,
        base=base,
        base_agent=None if of_base is None else of_base.agent,
        bases=_bases(experiment, earlier, base, list(of_agents), here),
        chosen=chosen,
        chosen_compared=found,
        columns=columns,
        hidden=[
            PageLink(agent, here(agents=quote(agent, safe=""), after=None))
            for agent in of_agents
            if agent not in {column.agent for column in columns if not column.base}
        ],
        causes=_causes(store, experiment_id, chosen, found, of_agents.get(chosen or ""), here, arguments.get("q")),
        distributions=[] if chosen is None else distributions(of_agents[chosen], of_base, names),
        names=names,
        tabs=_tabs(found, tab, here),
        views=[
            PageLink(
                view.capitalize(), here(view=None if view == "cases" else view, after=None), view == _view(arguments)
            )
            for view in VIEWS
        ],
        view=_view(arguments),
        tab=tab,
        sort=sort,
        by_tag=by_tag,
        planned=int(experiment.suite.get("trials") or 1) if experiment.status == "running" else None,
        counted=store.is_counted(experiment_id),
        selected=arguments.get("sel"),
    )


def case_rows(
    store: Store, page: ExperimentPage, terms: tuple[FilterTerm, ...], first: int
) -> tuple[MatrixPage, CaseOrder]:
    """A page of its cases."""
    order = CaseOrder(
        agent=page.chosen or "",
        base=None if page.chosen_compared is None else page.chosen_compared.cells,
        tab=page.tab,
        sort=page.sort,
        by_tag=page.by_tag,
        terms=terms,
        agents=tuple(column.agent for column in page.columns if not column.base),
    )
    trials = max([page.trials, *(0 if page.base is None else each.most_trials for each in _of_base(page))])
    rows = matrix_page(
        store, page.experiment_id, page.columns, order, first, trials=max(trials, 1), planned=page.planned
    )
    return rows, order


def _of_base(page: ExperimentPage) -> Sequence[AgentTotals]:
    return [] if page.base is None else [each for each in page.base.totals.agents if each.agent == page.base_agent]


def _here(arguments: Arguments, ref: str) -> Any:
    def here(**changed: object) -> str:
        return arguments.address("experiments", ref, **{"sel": None, **changed})

    return here


def _view(arguments: Arguments) -> str:
    value = arguments.get("view")
    return value if value in VIEWS else "cases"


def _wanted(arguments: Arguments, agents: list[str]) -> list[str]:
    """The agents that the address asks for, those that there are."""
    wanted = [unquote(name) for name in (arguments.get("agents") or "").split(",") if name]
    for name in wanted:
        if name not in agents:
            arguments.complaints.append(f"There is no agent “{name[:80]}” in this experiment.")
    return list(dict.fromkeys(name for name in wanted if name in agents))[:MAX_COLUMNS]


def _worst(compared: dict[str, ComparedCells], agents: list[str]) -> str | None:
    """The agent that is worse beyond doubt by most; else the first."""
    worse = [
        (found.difference.difference, agent)
        for agent, found in compared.items()
        if found.difference is not None and found.difference.is_worse
    ]
    return min(worse)[1] if worse else next(iter(agents), None)


def _names(
    experiment: Experiment, base: Baseline | None, chosen: str | None, of_base: AgentTotals | None
) -> tuple[str, str]:
    """What the base and the agent are called: by what is not the same of them."""
    if base is None or of_base is None or chosen is None:
        return "", chosen or ""
    if base.experiment_id == experiment.experiment_id:
        return of_base.agent, chosen
    if of_base.agent == chosen:
        return f"in {base.name}", chosen
    return f"{of_base.agent} in {base.name}", chosen


def _sentence(
    summary: Summary, difference: PairedDifference | None, names: tuple[str, str], experiment: Experiment
) -> HeadSentence:
    if difference is not None:
        said = comparison_sentence(difference, *names)
        if experiment.status == "running":
            return HeadSentence(f"So far, {said.lead[:1].lower()}{said.lead[1:]}", said.rest, said.tone)
        return said
    return experiment_sentence(summary.agents, running=experiment.status == "running")


def _others(compared: dict[str, ComparedCells], chosen: str | None) -> str:
    """`Of 3 other agents, 1 is worse and 2 show no clear difference.`"""
    tones = [
        tone_of(found.difference)
        for agent, found in compared.items()
        if agent != chosen and found.difference is not None
    ]
    if not tones:
        return ""
    words = [
        f"{count:,} {'is' if count == 1 else 'are'} {tone}"
        for tone in ("worse", "better")
        if (count := tones.count(tone))
    ]
    plain = tones.count("plain")
    words += [f"{plain:,} {'shows' if plain == 1 else 'show'} no clear difference"] if plain else []
    head = f"Of {len(tones):,} other agents" if len(tones) > 1 else "The other agent"
    if len(tones) == 1:
        return f"{head} {words[0].split(' ', 1)[1]}."
    return f"{head}, {', '.join(words[:-1])}{' and ' if len(words) > 1 else ''}{words[-1]}."


def _facts(store: Store, experiment: Experiment, summary: Summary, base: Baseline | None) -> list[str]:
    facts = []
    if experiment.suite_hash:
        same = ""
        if base is not None and base.experiment_id != experiment.experiment_id:
            same = ", the same in both" if base.suite_hash == experiment.suite_hash else ", not the same in the base"
        facts.append(f"suite {experiment.suite_hash[:6]}{same}")
    took = None if experiment.finished_at is None else max(0, experiment.finished_at - experiment.created_at)
    if took is not None:
        facts.append(f"{experiment.status} after {numbers.duration(took)}")
    planned = experiment.planned_runs(store.case_count(experiment.experiment_id))
    ended = summary.runs - sum(agent.left_out.get("unfinished", 0) for agent in summary.agents)
    progress = f"{numbers.count(ended)} of {numbers.plural(planned, 'run')}" if ended < planned else None
    facts.append(progress or numbers.plural(summary.runs, "run"))
    known = [agent.cost_usd for agent in summary.agents if agent.cost_usd is not None]
    if known:
        missing = any(agent.unknown.get("cost_usd") for agent in summary.agents)
        facts.append(f"{'≥ ' if missing else ''}{numbers.money(sum(known))}")
    return facts


def _errored(summary: Summary) -> str:
    if not summary.errored:
        return ""
    classes: dict[str, int] = {}
    for agent in summary.agents:
        for word, count in agent.left_out.items():
            if word in agent.error_classes or word == "errored":
                classes[word] = classes.get(word, 0) + count
    named = ", ".join(
        f"{'without a verdict' if word == 'errored' else word} {numbers.TIMES}{numbers.NBSP}{numbers.count(count)}"
        for word, count in sorted(classes.items(), key=lambda item: (-item[1], item[0]))[:4]
    )
    return f"{numbers.count(summary.errored)} errored{f': {named}' if named else ''}"


def _warning(experiment: Experiment, summary: Summary, store: Store) -> str:
    """Why runs are missing."""
    if experiment.status == "stopped":
        return f"Stopped before all was run: {experiment.stop_reason or 'the process ended'}."
    planned = experiment.planned_runs(store.case_count(experiment.experiment_id))
    if experiment.status == "finished" and summary.runs < planned:
        lost = planned - summary.runs
        return f"{numbers.plural(lost, 'run')} of this experiment {'is' if lost == 1 else 'are'} not in the store."
    return ""


def _axis(summary: Summary, base: Baseline | None) -> PlotAxis:
    some = [*summary.agents, *([] if base is None else summary_of(base.totals).agents)]
    return rate_axis([agent.interval for agent in some if agent.interval is not None])


def _axis_labels(summary: Summary, base: Baseline | None) -> tuple[str, str]:
    axis = _axis(summary, base)
    return numbers.percent(axis.low, 100), numbers.percent(axis.high, 100)


def _agents(
    experiment: Experiment,
    summary: Summary,
    base: Baseline | None,
    beside: dict[str, AgentTotals | None],
    compared: dict[str, ComparedCells],
    chosen: str | None,
    here: Any,
) -> list[ShownAgent]:
    axis = _axis(summary, base)
    bases = {} if base is None else {agent.agent: agent for agent in summary_of(base.totals).agents}
    shown: list[ShownAgent] = []
    told: set[str] = set()
    for agent in summary.agents:
        before = beside[agent.agent]
        own = base is not None and before is not None and base.experiment_id == experiment.experiment_id
        if base is not None and before is not None and before.agent not in told and not own:
            told.add(before.agent)
            if len(summary.agents) <= MAX_COLUMNS:
                shown.append(_shown(bases[before.agent], axis, f"base · {base.name}"))
        found = compared.get(agent.agent)
        reference = None if before is None else bases[before.agent].pass_rate
        is_base = own and before is not None and before.agent == agent.agent
        row = _shown(
            agent,
            axis,
            "base" if is_base else "",
            None if found is None else found.difference,
            reference,
            href=here(agents=quote(agent.agent, safe=""), after=None),
            chosen=agent.agent == chosen,
        )
        shown.append(row)
    return shown


def _shown(
    agent: AgentSummary,
    axis: PlotAxis,
    beside: str,
    difference: PairedDifference | None = None,
    reference: float | None = None,
    *,
    href: str | None = None,
    chosen: bool = False,
) -> ShownAgent:
    tone = "plain" if difference is None else tone_of(difference)
    words = (
        f"{figures.percent(agent.pass_rate)} passed, 95% interval {figures.percent_range(agent.interval)}"
        if agent.pass_rate is not None
        else "no run passed or failed"
    )
    plot = interval_plot(
        agent.pass_rate,
        agent.interval,
        axis,
        words=words,
        tone={"worse": "bad", "better": "good"}.get(tone, ""),
        lines=() if reference is None else (reference,),
    )
    last = agent.trials[-1] if agent.trials else None
    priced = agent.runs - agent.unknown.get("cost_usd", 0)
    return ShownAgent(
        name=agent.agent,
        beside=beside,
        summary=agent,
        plot=plot,
        tone=tone,
        points=None if difference is None else figures.points(difference.difference),
        range="" if difference is None else f"{interval_text(difference)}, {figures.p_value(difference.p_value)}",
        all_pass=None if last is None or last.k < 2 else last.pass_hat_k,
        cost=None if agent.cost_usd is None or not priced else agent.cost_usd / priced,
        href=href,
        chosen=chosen,
    )


def _columns(
    experiment_id: str, base: Baseline | None, chosen: str | None, of_base: AgentTotals | None, agents: list[str]
) -> list[MatrixColumn]:
    if chosen is None:
        return []
    columns = []
    if base is not None and of_base is not None:
        columns.append(MatrixColumn(base.experiment_id, of_base.agent, base.name, True))
    some = [chosen, *(agent for agent in agents if agent != chosen)]
    if base is not None and of_base is not None and base.experiment_id == experiment_id:
        some = [agent for agent in some if agent != of_base.agent]
    most = MAX_COLUMNS if len(agents) <= MAX_COLUMNS else 3
    return columns + [MatrixColumn(experiment_id, agent, agent, False) for agent in some[:most]]


def _bases(
    experiment: Experiment, earlier: list[ExperimentSummary], base: Baseline | None, agents: list[str], here: Any
) -> list[PageLink]:
    """What can be chosen as the base."""
    found = [
        PageLink(
            each.name,
            here(base=each.experiment_id, after=None, tab=None),
            base is not None and base.agent is None and base.experiment_id == each.experiment_id,
        )
        for each in earlier
    ]
    if len(agents) > 1:
        found += [
            PageLink(
                f"{agent}, in this experiment",
                here(base=f"{experiment.experiment_id}:{agent}", after=None, tab=None),
                base is not None and base.agent == agent and base.experiment_id == experiment.experiment_id,
            )
            for agent in agents[:MAX_OFFERED]
        ]
    return [*found, PageLink("nothing", here(base=NO_BASE, after=None, tab=None), base is None)] if found else []


def _causes(
    store: Store,
    experiment_id: str,
    chosen: str | None,
    found: ComparedCells | None,
    totals: AgentTotals | None,
    here: Any,
    text: str | None,
) -> list[ShownCause]:
    if chosen is None or totals is None:
        return []
    own = store.signatures(experiment_id, agent=chosen, limit=SIGNATURES)
    cells = None if found is None else found.cells
    base = None if cells is None else store.signatures(cells.experiment_id, agent=cells.agent, limit=SIGNATURES)
    some = causes(own, base, left_out=totals.left_out)
    most = max([max(cause.runs, cause.base or 0) for cause in some], default=0)
    return [
        ShownCause(
            cause,
            dumbbell(cause.base, cause.runs, most, toned=not cause.words.errored),
            None
            if cause.signature is None or not cause.runs
            else here(q=written_term("why", cause.signature), tab="all", after=None, view=None) + "#cases",
        )
        for cause in some
    ]


def _tab(arguments: Arguments, found: ComparedCells | None) -> CaseTab:
    default: CaseTab = "all"
    if found is not None and found.difference is not None and found.difference.worse and not arguments.get("q"):
        default = "worse"
    return next(each for each in TABS if each == arguments.choice("tab", TABS, default))


def _tabs(found: ComparedCells | None, tab: CaseTab, here: Any) -> list[PageLink]:
    if found is None:
        return []
    counts: dict[CaseTab, int] = {
        "flaky": found.tallies.flaky,
        "errored": found.tallies.errored,
        "all": found.tallies.cases,
    }
    if found.cells is not None:
        difference = found.difference
        counts = {
            "worse": 0 if difference is None else difference.worse,
            "better": 0 if difference is None else difference.better,
            **counts,
        }
    return [
        PageLink(word.capitalize(), here(tab=word, after=None) + "#cases", word == tab, counts[word])
        for word in TABS
        if word in counts
    ]
