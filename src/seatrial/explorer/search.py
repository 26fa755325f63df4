"""The page that searches the store, and the list of where one may go: names first, then what agents said and did."""

from __future__ import annotations

import msgspec

from seatrial.errors import SeatrialError
from seatrial.explorer.render import address
from seatrial.explorer.transcript import anchor_of
from seatrial.runs import RunKey
from seatrial.store import ExperimentSummary, Hit, Named, Store
from seatrial.store.search import MAX_TEXT, phrases

HITS_A_PAGE = 20
HITS_TO_GO_TO = 4
"""Among the places to go to: each keystroke asks for them."""
NAMES = 6
"""Of each kind."""
MAX_QUERY = 500
"""Characters of what is looked for."""
MAX_WITHOUT = 6
_EXPERIMENTS = 200
"""The newest, whose names are shown beside hits; of older ones, their ids."""

PAGES = {
    "/experiments": "Experiments",
    "/live": "Running runs",
    "/review": "Review",
    "/search": "Search",
    "/help/keys": "Keys",
}
"""Pages that need no id, by their address."""


class FoundRun(msgspec.Struct, frozen=True):
    """A run with what was looked for."""

    run_id: str
    outcome: str
    """`damaged` when its record cannot be read."""
    title: str
    """The case, or the thread of a run of the run service."""
    agent: str
    trial: int | None
    experiment_id: str | None
    experiment: str | None
    pointer: str
    href: str
    """The place in the run."""
    snippet: list[tuple[str, bool]]
    """Its pieces, and whether each is what was looked for."""


class SearchPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows."""

    query: str
    experiment: ExperimentSummary | None
    """The one that is searched; None for all."""
    is_continued: bool
    """Whether there are newer runs on an earlier page."""
    named: Named | None = None
    """On the first page of a search of the whole store."""
    found: list[FoundRun] = []
    more: str | None = None
    """The address of the next page."""
    complaint: str | None = None
    """Why nothing was looked for."""
    without: list[tuple[str, str]] = []
    """Where nothing was found: a phrase, and the address of a search without it that finds something."""
    everywhere: str | None = None
    """The address of the same search in all experiments, if that finds something."""
    indexed: int = MAX_TEXT


class Destinations(msgspec.Struct, frozen=True):
    """Where one may go."""

    query: str
    pages: dict[str, str]
    named: Named
    found: list[FoundRun]
    all_hits: str | None
    """The address of the search for the same; None when nothing can be looked for."""


def search_page(store: Store, query: str, experiment: str | None, before: str | None) -> SearchPage:
    """What the store has of a text: the newest runs, or those that are older than the run `before`."""
    within = None if experiment is None else _summary(store, experiment)
    page = SearchPage(query=query, experiment=within, is_continued=before is not None)
    if not query.strip():
        return page
    names = store.named(query.strip(), limit=NAMES) if within is None and before is None else None
    if len(query) > MAX_QUERY:
        complaint = f"What is looked for has at most {MAX_QUERY} characters; this has {len(query):,}."
        return msgspec.structs.replace(page, complaint=complaint)
    wanted = phrases(query)
    if not wanted:
        complaint = "There is no word here to look for: a word has letters or digits."
        return msgspec.structs.replace(page, complaint=complaint, named=names)
    scope = None if within is None else within.experiment_id
    hits = store.search(query, experiment_id=scope, before=before, limit=HITS_A_PAGE + 1)
    shown = hits[:HITS_A_PAGE]
    more = address("search", q=query, experiment=scope, before=shown[-1].run_id) if len(hits) > len(shown) else None
    page = msgspec.structs.replace(page, named=names, found=_found(store, shown), more=more)
    if shown or before is not None:
        return page
    return msgspec.structs.replace(
        page,
        without=_without(store, [" ".join(phrase.words) + "*" * phrase.prefix for phrase in wanted], scope),
        everywhere=address("search", q=query) if scope is not None and store.search(query, limit=1) else None,
    )


def destinations(store: Store, query: str, experiment: str | None) -> Destinations:
    """Where one may go from a page, given the beginning of what one types; `experiment` is that of the page."""
    text = query.strip()[:MAX_QUERY]
    pages = {href: name for href, name in PAGES.items() if text.lower() in name.lower()}
    can_be_searched = bool(phrases(text))
    # The last word may not be typed to its end.
    hits = store.search(f"{text}*", limit=HITS_TO_GO_TO) if can_be_searched and not text.endswith('"') else []
    try:
        names = store.named(text, experiment_id=experiment, limit=NAMES)
    except SeatrialError:  # that of the page is gone; its cases are not needed to go elsewhere
        names = store.named(text, limit=NAMES)
    all_hits = address("search", q=text) if can_be_searched else None
    return Destinations(text, pages, names, _found(store, hits), all_hits)


def _summary(store: Store, ref: str) -> ExperimentSummary:
    known = {each.experiment_id: each for each in store.experiments(_EXPERIMENTS)}
    if ref in known:
        return known[ref]
    found = store.resolve_experiment(ref)
    fields = {name: getattr(found, name) for name in ExperimentSummary.__struct_fields__ if hasattr(found, name)}
    return ExperimentSummary(**{**fields, "cases": store.case_count(found.experiment_id)})


def _found(store: Store, hits: list[Hit]) -> list[FoundRun]:
    names = {each.experiment_id: each.name for each in store.experiments(_EXPERIMENTS)} if hits else {}
    return [_found_run(store, hit, names) for hit in hits]


def _found_run(store: Store, hit: Hit, names: dict[str, str]) -> FoundRun:
    try:
        outcome: str = store.run_record(hit.run_id).summary.outcome
    except SeatrialError as error:
        if error.code not in ("damaged", "not_found"):
            raise
        outcome = "damaged"
    key = hit.key
    of_case = isinstance(key, RunKey)
    pieces: list[tuple[str, bool]] = []
    end = 0
    for start, stop in hit.marks:
        pieces += [(hit.snippet[end:start], False), (hit.snippet[start:stop], True)]
        end = stop
    pieces.append((hit.snippet[end:], False))
    href = address("runs", hit.run_id, at=hit.pointer or None) + (f"#{anchor_of(hit.pointer)}" if hit.pointer else "")
    return FoundRun(
        run_id=hit.run_id,
        outcome=outcome,
        title=key.case_id if isinstance(key, RunKey) else key.thread_id,
        agent=key.agent,
        trial=key.trial if isinstance(key, RunKey) else None,
        experiment_id=hit.experiment_id if of_case else None,
        experiment=names.get(hit.experiment_id or "", hit.experiment_id) if of_case else None,
        pointer=hit.pointer,
        href=href,
        snippet=[(text, is_hit) for text, is_hit in pieces if text],
    )


def _without(store: Store, words: list[str], experiment: str | None) -> list[tuple[str, str]]:
    """Phrases without which there would be something to show."""
    found: list[tuple[str, str]] = []
    if len(words) > 1:
        quoted = [f'"{each}"' if " " in each else each for each in words]
        for number, each in enumerate(quoted[:MAX_WITHOUT]):
            rest = " ".join(quoted[:number] + quoted[number + 1 :])
            if store.search(rest, experiment_id=experiment, limit=1):
                found.append((each, address("search", q=rest, experiment=experiment)))
    return found
