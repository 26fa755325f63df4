"""Every page that the browser tests visit, and of which `make screenshots` makes pictures.

A page that is added to the explorer is added here, with an address for each state that looks different. Words in
braces are ids that differ from store to store: `ids` finds them.
"""

from __future__ import annotations

from urllib.parse import quote

from seatrial.store import RunFilter, Store

ADDRESSES: dict[str, str] = {
    # The name of its picture, and the address.
    "experiments": "/experiments",
    "experiments-complaint": "/experiments?bry=suite",
    "experiments-by-time": "/experiments?by=time&q=agent:clerk-mini",
    "experiments-nothing": "/experiments?q=agent:nobody",
    "experiment": "/experiments/{new}",
    "experiment-all": "/experiments/{new}?tab=all&group=tag&sel={failed_case}",
    "experiment-agents": "/experiments/{new}?base={new}:clerk&agents=clerk-mini&sort=flaky",
    "experiment-filter": "/experiments/{new}?q=outcome%3Afailed+tool%3Arefund",
    "experiment-mistake": "/experiments/{new}?q=tol%3Arefund",
    "experiment-nothing": "/experiments/{new}?q=outcome%3Afailed+duration%3E10m",
    "experiment-runs": "/experiments/{new}?view=runs&q=outcome%3Aerrored",
    "experiment-graders": "/experiments/{new}?view=graders&base=none",
    "experiment-rows": "/experiments/{new}/rows?tab=all&after=10",
    "grader": "/experiments/{new}/graders/honest",
    "grader-filter": "/experiments/{old}/graders/says%20where%20it%20is?q=agent:nobody",
    "run-failed": "/runs/{failed_run}",
    "run-passed": "/runs/{passed_run}",
    "run-errored": "/runs/{errored_run}",
    "verdict": "/runs/{failed_run}/verdicts/refunds%20by%20the%20book",
    "verdict-counts": "/runs/{passed_run}/verdicts/refunds%20once",
    "verdict-other": "/runs/{failed_run}/verdicts/honest",
    "compare-runs": "/compare/runs?a={a}&b={b}",
    "compare-runs-all": "/compare/runs?a={a}&b={b}&show=all&at=a/steps/0",
    "compare-runs-same": "/compare/runs?a={a}&b={a}",
    "search": "/search?q=refund",
    "search-name": "/search?q={flaky_case}",
    "search-empty": "/search",
    "search-nothing": "/search?q=refund+xylophone&experiment={new}",
    "search-invalid": "/search?q=%3F%3F",
    "keys": "/help/keys",
    "filter": "/filter/suggest?q=outcome:failed+tool:&experiment={new}",
    "filter-mistake": "/filter/suggest?q=outcome:failed+tol:refund+steps>10&experiment={new}",
    "case": "/experiments/{new}/cases/{flaky_case}",
    "case-errored": "/experiments/{new}/cases/{errored_case}?agents=clerk-mini&back=1",
    "review": "/review?experiment={new}",
    "review-named": "/review?experiment={new}&grader=honest&by=Ada&q=tool:refund",
    "compare": "/compare?a={old}&b={new}",
    "compare-filtered": "/compare?a={new}:clerk&b={new}:clerk-mini&q=tool:refund&sort=better",
    "compare-itself": "/compare?a={old}&b={old}",
    "live": "/live",
    "not-found": "/nothing-is-here",
}

STATES = frozenset(
    {
        *("experiments-complaint", "experiments-by-time", "experiments-nothing"),
        *("experiment-all", "experiment-agents", "experiment-filter", "experiment-mistake", "experiment-nothing"),
        *("experiment-rows", "grader-filter", "run-passed", "verdict-other", "compare-runs-all", "compare-runs-same"),
        *("search-name", "search-empty", "search-nothing", "search-invalid", "filter-mistake"),
        *("case-errored", "review-named", "compare-filtered", "compare-itself"),
    }
)
"""Those that show a page of the list in another state, with the same parts: they are looked at in one window alone."""

MISSING = frozenset({"not-found"})
"""Pages that are answered with 404."""


def ids(store: Store) -> dict[str, str]:
    """What the braces of addresses stand for in a store of the clerk."""
    old, new = (store.resolve_experiment(f"clerk-{version}").experiment_id for version in ("2.3.2", "2.4.0"))
    found = {"old": old, "new": new}
    for outcome in ("passed", "failed", "errored"):
        run = store.runs(new, RunFilter(outcomes=frozenset({outcome})), limit=1)[0]
        found |= {f"{outcome}_run": run.run_id, f"{outcome}_case": run.case_id}
    # The same case and agent, with the other outcome: what one compares.
    failed = store.runs(new, RunFilter(outcomes=frozenset({"failed"})), limit=500)
    for run in failed:
        where = RunFilter(outcomes=frozenset({"passed"}), agents=frozenset({run.agent}), cases=frozenset({run.case_id}))
        if passing := store.runs(new, where, limit=1):
            return found | {"flaky_case": run.case_id, "a": passing[0].run_id, "b": run.run_id}
    raise AssertionError("the clerk has a flaky case")


def resolved(address: str, known: dict[str, str]) -> str:
    """An address of the list, in a store."""
    return address.format_map({name: quote(text, safe="") for name, text in known.items()})
