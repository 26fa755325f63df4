"""What people say of runs: the page, and the form of one word."""

from __future__ import annotations

import asyncio
import time
from typing import Any, get_args
from urllib.parse import parse_qsl

from litestar import Response, get, post
from litestar.params import FromPath
from msgspec.structs import replace

from seatrial.errors import SeatrialError
from seatrial.explorer.filter_box import filter_box
from seatrial.explorer.page import HEADERS, HTML, VISITOR, Arguments, PageRequest, TheStore, html
from seatrial.explorer.render import address
from seatrial.explorer.review import review_page
from seatrial.reports.review_queue import how_chosen
from seatrial.runs import RunKey
from seatrial.store import Review, ReviewWord, Store

MAX_NAME = 80


@get("/review", sync_to_thread=True)
def show_reviews(request: PageRequest, store: TheStore) -> Response[str]:
    """How far graders agree with people, and what to look at next."""
    arguments = Arguments(request, "experiment", "grader", "q", "by", "run")
    kept = {name: value for name in ("experiment", "grader", "by") if (value := arguments.get(name)) is not None}
    box = filter_box(arguments.get("q"), None, kept)
    page = review_page(
        store,
        arguments.get("experiment") or "latest",
        grader=arguments.get("grader"),
        reviewer=_reviewer(arguments.get("by")),
        run_id=arguments.get("run"),
        terms=box.terms,
        query=box.text,
        complaints=arguments.complaints,
    )
    box = replace(box, experiment=page.experiment.experiment_id)
    return html("review.html", page=page, filter_box=box, complaints=arguments.complaints)


@post("/runs/{run_id:str}/reviews", status_code=303)
async def add_review(request: PageRequest, store: TheStore, run_id: FromPath[str]) -> Response[str]:
    """Keep a person's word. The form has been found to be from a page of ours, and the key to have the scope `run`."""
    form = await request.form()
    word, reviewer = _text(form, "word"), _reviewer(_text(form, "reviewer"))
    if word not in get_args(ReviewWord):
        raise SeatrialError("invalid_request", "a review says `right`, `wrong` or `unsure`")
    if not reviewer:
        raise SeatrialError("invalid_request", "a review needs the name of its reviewer")
    there = await asyncio.to_thread(
        _keep,
        store,
        run_id,
        Review(
            at=time.time_ns() // 1_000_000,
            reviewer=reviewer,
            grader=_text(form, "grader") or None,
            word=next(each for each in get_args(ReviewWord) if each == word),
            comment=_text(form, "comment").replace("\r\n", "\n").strip(),
            blind=_text(form, "blind") == "1",
        ),
    )
    return Response(
        "", status_code=303, media_type=HTML, headers={**HEADERS, "location": _next(form, reviewer) or there}
    )


def _next(form: Any, reviewer: str) -> str | None:
    """The page of reviews that the form is from, as the one who has answered now sees it."""
    path, _, query = _text(form, "next").partition("?")
    if path != "/review":
        return None
    given = {name: value for name, value in parse_qsl(query[:4000]) if name != "by"}
    visitor = VISITOR.get()
    by = reviewer if visitor is None or visitor.name is None else None
    return address("review", **{**given, "by": by}) + "#word"


def _keep(store: Store, run_id: str, review: Review) -> str:
    record = store.run_record(run_id)
    if record.experiment_id is not None and isinstance(record.key, RunKey):
        chosen, draw = how_chosen(store, record.experiment_id, review.grader, run_id)
        review = replace(review, chosen=chosen, draw=draw)
    store.add_review(run_id, review).wait()
    return address("runs", run_id) + "#reviews"


def _reviewer(given: str | None) -> str:
    """Who reviews: the key that they signed in with, else the name that they give themselves."""
    visitor = VISITOR.get()
    name = visitor.name if visitor is not None and visitor.name is not None else given
    return " ".join((name or "").split())[:MAX_NAME]


def _text(form: Any, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""


HANDLERS = [show_reviews, add_review]
