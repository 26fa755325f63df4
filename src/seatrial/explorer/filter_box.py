"""The field that filters runs: what is typed in it, what is wrong with that, and what there would be without a term."""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from seatrial.explorer.render import address
from seatrial.store import RunFilter, Store
from seatrial.store.filter import MAX_FILTER, FilterError, FilterTerm, parse_filter, without_each

MAX_WITHOUT = 6
"""Terms that are left out, one at a time, to find what there would be without it."""
MAX_COUNTED = 10_000
"""Runs that are counted then; of more, a page says that they are more."""
_AROUND = 80
"""Characters of a filter that are shown on each side of a mistake."""


class FilterMistake(msgspec.Struct, frozen=True):
    """What is wrong with a filter, and the place of it: the filter is these three texts in a row."""

    message: str
    before: str
    wrong: str
    after: str


class FilterBox(msgspec.Struct, frozen=True, kw_only=True):
    """The field as a page shows it: its template is `parts/filter.html`, which has it as `filter_box`."""

    text: str
    experiment: str | None
    """The id of the experiment whose values are suggested."""
    kept: dict[str, str]
    """The other parameters of the page."""
    terms: tuple[FilterTerm, ...] = ()
    """What was read; none while there is a mistake: nothing is filtered until it is right."""
    mistake: FilterMistake | None = None
    longest: int = MAX_FILTER

    @property
    def unfiltered(self) -> str:
        """The page without a filter."""
        return "?" + urlencode(self.kept)


class WithoutTerm(msgspec.Struct, frozen=True):
    """How many runs there would be without one term."""

    term: str
    href: str
    """The page with the filter without it."""
    runs: int
    more: bool
    """Whether there are more than were counted."""


class SuggestedFilter(msgspec.Struct, frozen=True):
    """One thing to type, and the filter with it."""

    insert: str
    start: int
    end: int
    about: str
    runs: int | None
    href: str


def filter_box(text: str | None, experiment: str | None, kept: Mapping[str, str] | None = None) -> FilterBox:
    """What the field shows of a text. `kept` are the parameters of the page that stay when another filter is typed: not
    its cursors, which lead through what this one found."""
    text = text or ""
    kept = dict(kept or {})
    try:
        terms = parse_filter(text, time.time_ns() // 1_000_000)
    except FilterError as error:
        before, wrong, after = text[: error.start], text[error.start : error.end], text[error.end :]
        if len(before) > _AROUND:
            before = f"…{before[-_AROUND:]}"
        mistake = FilterMistake(error.message, before, _cut(wrong), _cut(after))
        return FilterBox(text=text, experiment=experiment, kept=kept, mistake=mistake)
    return FilterBox(text=text, experiment=experiment, kept=kept, terms=terms)


def without_terms(store: Store, experiment_id: str, box: FilterBox) -> list[WithoutTerm]:
    """What there would be without each term of a filter that nothing matches; those that hide nothing are left out."""
    found: list[WithoutTerm] = []
    if len(box.terms) < 2:
        return found
    for number, (term, text) in enumerate(without_each(box.text, box.terms)[:MAX_WITHOUT]):
        others = box.terms[:number] + box.terms[number + 1 :]
        runs = store.count_runs(experiment_id, RunFilter(terms=others), limit=MAX_COUNTED + 1)
        if runs:
            href = "?" + urlencode({**box.kept, "q": text})
            found.append(WithoutTerm(term, href, min(runs, MAX_COUNTED), runs > MAX_COUNTED))
    return found


def suggested_filters(store: Store, experiment: str | None, text: str, caret: int) -> list[SuggestedFilter]:
    """What may follow at a place of a filter."""
    if len(text) > MAX_FILTER:
        return []
    return [
        SuggestedFilter(
            each.insert,
            each.start,
            each.end,
            each.about,
            each.runs,
            address("filter", "suggest", experiment=experiment, q=text[: each.start] + each.insert + text[each.end :]),
        )
        for each in store.filter_suggestions(experiment, text, caret)
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _AROUND else f"{text[:_AROUND]}…"
