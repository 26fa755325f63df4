"""Experiments: all of them, one, and more cases of it."""

from __future__ import annotations

from typing import Any

from litestar import Response, get
from litestar.params import FromPath
from litestar.response import Redirect
from msgspec.structs import replace

from seatrial.explorer.experiment import PARAMETERS, ExperimentPage, case_rows, experiment_page
from seatrial.explorer.experiments import experiments_page
from seatrial.explorer.filter_box import MAX_COUNTED, FilterBox, filter_box, without_terms
from seatrial.explorer.grader import grader_page
from seatrial.explorer.matrix import MatrixPage
from seatrial.explorer.page import Arguments, PageRequest, TheStore, html, is_fragment
from seatrial.reports.causes import signature_words
from seatrial.reports.terminal import grader_table
from seatrial.store import RunFilter, Store
from seatrial.store.pairs import SORTS

RUNS = 50
"""Runs of a page."""


@get("/", sync_to_thread=False)
def home() -> Redirect:
    """The first page."""
    return Redirect("/experiments", status_code=303)


@get("/experiments", sync_to_thread=True)
def show_experiments(request: PageRequest, store: TheStore) -> Response[str]:
    """All experiments, the newest first."""
    arguments = Arguments(request, "q", "by", "before")
    by = arguments.choice("by", ("suite", "time"), "suite")
    box = filter_box(arguments.get("q"), None, {"by": by} if by != "suite" else {})
    page = experiments_page(store, box.terms, by_time=by == "time", before=arguments.get("before"))
    return html(
        "experiments.html",
        page=page,
        filter_box=box,
        by=by,
        views={word: arguments.address("experiments", by=word, before=None) for word in ("suite", "time")},
        next_page=None if page.next is None else arguments.address("experiments", before=page.next),
        first_page=None if arguments.get("before") is None else arguments.address("experiments", before=None),
        without=[],
        complaints=arguments.complaints,
    )


@get("/experiments/{ref:str}", sync_to_thread=True)
def show_experiment(request: PageRequest, store: TheStore, ref: FromPath[str]) -> Response[str]:
    """One experiment, beside what it is compared with."""
    arguments = Arguments(request, *PARAMETERS)
    view = arguments.choice("view", ("cases", "runs", "graders"), "cases")
    page = experiment_page(store, ref, arguments)
    box = _box(arguments, page)
    below = {"cases": _cases, "runs": _runs, "graders": _graders}[view](store, ref, page, box, arguments)
    return html("experiment.html", page=page, filter_box=box, **below, complaints=arguments.complaints)


@get("/experiments/{ref:str}/rows", sync_to_thread=True)
def show_rows(request: PageRequest, store: TheStore, ref: FromPath[str]) -> Response[str]:
    """More cases of an experiment."""
    arguments = Arguments(request, *PARAMETERS)
    page = experiment_page(store, ref, arguments)
    box = _box(arguments, page)
    rows, _ = case_rows(store, page, box.terms, arguments.number("after"))
    template = "parts/case_rows.html" if is_fragment(request) else "case_rows.html"
    more = _more(arguments, ref, rows)
    return html(template, page=page, matrix=rows, more=more, complaints=arguments.complaints)


@get("/experiments/{ref:str}/graders/{name:path}", sync_to_thread=True)
def show_grader(request: PageRequest, store: TheStore, ref: FromPath[str], name: FromPath[str]) -> Response[str]:
    """One grader of an experiment."""
    arguments = Arguments(request, "q", "after")
    box = filter_box(arguments.get("q"), None)
    # What is in it may be a slash.
    name = name.removeprefix("/")
    page = grader_page(store, ref, name, box.terms, after=arguments.get("after"), most=MAX_COUNTED)
    box = replace(box, experiment=page.experiment.experiment_id)
    last = page.runs[-1].run_id if page.more else None
    return html(
        "grader.html",
        page=page,
        filter_box=box,
        runs=page.runs,
        words=signature_words,
        matching_runs=page.failed,
        next_runs=None if last is None else arguments.address("experiments", ref, "graders", name, after=last),
        without=[],
        complaints=arguments.complaints,
    )


def _box(arguments: Arguments, page: ExperimentPage) -> FilterBox:
    kept = {name: value for name in PARAMETERS if name not in ("q", "after", "sel") and (value := arguments.get(name))}
    return filter_box(arguments.get("q"), page.experiment_id, kept)


def _more(arguments: Arguments, ref: str, rows: MatrixPage) -> dict[str, Any]:
    after = rows.first + len(rows.rows)
    here = {"after": after, "sel": None}
    return {
        "href": arguments.address("experiments", ref, **here) + "#cases",
        "rows": arguments.address("experiments", ref, "rows", **here),
        "count": len(rows.rows),
    }


def _cases(store: Store, ref: str, page: ExperimentPage, box: FilterBox, arguments: Arguments) -> dict[str, Any]:
    rows, order = case_rows(store, page, box.terms, arguments.number("after"))
    where = RunFilter(agents=frozenset(order.agents), terms=box.terms)
    matching = store.matching_cases(page.experiment_id, order, limit=MAX_COUNTED) if box.terms else 0
    runs = store.count_runs(page.experiment_id, where, limit=MAX_COUNTED) if box.terms else 0
    return {
        "matrix": rows,
        "more": _more(arguments, ref, rows),
        "matching": matching,
        "matching_runs": runs,
        "total": next((tab.count for tab in page.tabs if tab.current), page.summary.cases),
        "sorts": {
            word: arguments.address("experiments", ref, sort=None if word == "change" else word, after=None, sel=None)
            for word in SORTS
        },
        "grouped": arguments.address("experiments", ref, group=None if page.by_tag else "tag", after=None, sel=None),
        "without": without_terms(store, page.experiment_id, box) if box.terms and not runs else [],
    }


def _runs(store: Store, ref: str, page: ExperimentPage, box: FilterBox, arguments: Arguments) -> dict[str, Any]:
    where = RunFilter(terms=box.terms)
    after = arguments.get("after")
    behind = None if after is None else store.run_record(after).summary.key
    found = store.runs(page.experiment_id, where, after=behind, limit=RUNS + 1)
    shown = found[:RUNS]
    more = len(found) > RUNS
    return {
        "runs": shown,
        "words": signature_words,
        "matching_runs": store.count_runs(page.experiment_id, where, limit=MAX_COUNTED),
        "next_runs": arguments.address("experiments", ref, after=shown[-1].run_id, sel=None) if more else None,
        "without": without_terms(store, page.experiment_id, box) if not found else [],
    }


def _graders(store: Store, ref: str, page: ExperimentPage, box: FilterBox, arguments: Arguments) -> dict[str, Any]:
    head, rows = grader_table(store.grader_counts(page.experiment_id))
    return {"grader_agents": head[1:], "graders": [(row[0], row[1:]) for row in rows]}


HANDLERS = [home, show_experiments, show_experiment, show_rows, show_grader]
