"""A store in which every text that an agent, a grader or the author of a suite controls is hostile.

The structs are filled by their types, so a field that is added to one of them is hostile, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from seatrial.formats.reading import Reading
from seatrial.runs import Attempt, Case, Exchange, Experiment, Fault, Grade, Outcome, Run, RunKey, Verdict
from seatrial.store import Review, Store, open_store
from seatrial.trajectory.step import Step
from seatrial.transcript import Message

CREATED_AT = 1_790_000_000_000
LONG_WORD = "verylongword" * 834
"""10,000 characters without a place to break."""

TEXTS = (
    "<script>alert(1)</script>",
    "</title><script>alert(2)</script>",
    "<img src=x onerror=alert(3)>",
    '" autofocus onfocus="alert(4)" x="',
    "' onmouseover='alert(5)",
    "javascript:alert(6)",
    "[click](javascript:alert(7)) <javascript:alert(8)> [data](data:text/html,<script>alert(9)</script>)",
    "![pixel](http://127.0.0.1:9/pixel.png) ![svg](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+)",
    "<svg onload=alert(10)><a xlink:href='javascript:alert(11)'>x</a></svg>",
    "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='alert(12)'/>",
    "{{7*7}} {% raw %} ${7*7} #{7*7} <%= 7*7 %> %s %(x)s %n {0} {x.__class__}",
    "\u202etxt.exe\u202c \u2066isolated\u2069 \u200f\u061c",
    "zero\u200bwidth\u200d\u2060\ufeff\u00ad",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \r over",
    "null\x00byte",
    LONG_WORD,
    "مرحبا بالعالم שלום עולם",
    "<style>*{display:none}</style><base href='//127.0.0.1:9/'><meta http-equiv=refresh content='0;url=//127.0.0.1/'>",
    "--></textarea></pre></code></style></svg></table>]]><iframe src=//127.0.0.1:9></iframe><form action=//127.0.0.1>",
    "../../nowhere?at=/steps/0&q=%00#x",
    "& &amp; &lt;b&gt; &#x3c;",
    "# Title\n\n---\n\n> " + "> " * 60 + "deep\n\n| a | b |\n|---|---|\n| <b> | [x](//127.0.0.1:9) |\n",
    "\U0001f469\u200d\U0001f467 e" + "\u0301" * 40,
    "\n\n \t\n",
)
ALL = " ".join(TEXTS)


def name(text: str) -> str:
    """A text as the name of something: a store takes 1,024 bytes, without NUL."""
    return text.replace("\0", "").encode()[:1000].decode(errors="ignore") or "-"


AGENTS = (name(ALL), name(LONG_WORD), "clerk", "clerk-mini")
"""The last two are in addresses of the list, as are some of the graders."""
GRADERS = {
    "refunds by the book": "tool_trajectory",
    "refunds once": "calls",
    "honest": "honesty",
    "says where it is": "icontains",
    name(ALL): "judge",
    name(LONG_WORD): TEXTS[0],
}


def filled(kind: Any, texts: Iterator[str], depth: int = 0) -> Any:
    """A value of a type, with hostile texts wherever any text may be; one of each kind where there may be several."""
    kind = kind if isinstance(kind, inspect.Type) else inspect.type_info(kind)
    if isinstance(kind, inspect.StructType):
        return kind.cls(
            **{
                field.name: _OURS[field.name] if field.name in _OURS else filled(field.type, texts, depth + 1)
                for field in kind.fields
            }
        )
    if isinstance(kind, inspect.UnionType):
        return _each(kind, texts, depth)[0]
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        items = _each(kind.item_type, texts, depth) if depth < 7 else []
        return items if isinstance(kind, inspect.ListType) else tuple(items)
    if isinstance(kind, inspect.DictType):
        return {next(texts): filled(kind.value_type, texts, depth + 1)}
    if isinstance(kind, inspect.AnyType):
        return {next(texts): [next(texts), {next(texts): next(texts), "type": next(texts)}], "error": next(texts)}
    if isinstance(kind, inspect.LiteralType):
        return kind.values[0]
    if isinstance(kind, inspect.EnumType):
        return next(iter(kind.cls))
    return _SCALARS[type(kind)] if type(kind) in _SCALARS else next(texts)


_OURS: dict[str, Any] = {"error_class": "agent_exception", "moved_to": None, "grader": name(ALL)}
"""Fields whose values are words of ours, or names."""

_SCALARS: dict[type, Any] = {
    inspect.IntType: 0,
    inspect.FloatType: 0.5,
    inspect.BoolType: True,
    inspect.NoneType: None,
    inspect.BytesType: ALL.encode(),
}


def _each(kind: inspect.Type, texts: Iterator[str], depth: int) -> list[Any]:
    if not isinstance(kind, inspect.UnionType):
        return [filled(kind, texts, depth + 1)]
    kinds = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    # What is only text would hide what has structure.
    kinds.sort(key=lambda each: isinstance(each, inspect.StrType))
    return [filled(each, texts, depth + 1) for each in kinds]


class _Hostile(msgspec.Struct):
    """The types of the parts of a run that come from outside, each to be filled."""

    messages: list[Message]
    steps: list[Step]
    attempts: list[Attempt]
    metadata: dict[str, Any]
    fault: Fault
    grade: Grade


def hostile_run(run_id: str, key: RunKey, outcome: Outcome, texts: Iterator[str]) -> Run:
    """A run of which every text is hostile."""
    run: Run = filled(Run, texts)
    parts: _Hostile = filled(_Hostile, texts)
    reading: Reading = filled(Reading, texts)
    transcript = reading.transcript
    transcript.messages = [*parts.messages, *filled(_Hostile, texts).messages]
    transcript.given = [0]
    reading.events = None
    reading.facts = []
    steps = [*parts.steps, *run.steps]
    for index, step in enumerate(steps):
        step.index = index
        step.arguments_text = None
    steps[-1].status = "error"
    for number, attempt in enumerate(parts.attempts, 1):
        attempt.number = number
        attempt.body_hash = None
    scores = {"passed": 1.0, "failed": 0.0}
    verdicts = [
        msgspec.structs.replace(
            each,
            grader=grader,
            kind=kind,
            outcome=outcome,
            score=scores.get(outcome),
            score_range=None,
            evidence=["/steps/0", "/messages/1", *each.evidence],
            weight=1.0,
        )
        for (grader, kind), each in zip(GRADERS.items(), [filled(Verdict, texts) for _ in GRADERS], strict=True)
    ]
    return msgspec.structs.replace(
        run,
        run_id=run_id,
        experiment_id="hostile-new",
        key=key,
        status="completed" if outcome != "errored" else "failed",
        reading=reading,
        unread_notes=[],
        steps=steps,
        steps_source="messages",
        reported=None,
        exchanges=[Exchange(number=1, attempts=parts.attempts)],
        fault=parts.fault if outcome == "errored" else None,
        verdicts=verdicts,
        grade=msgspec.structs.replace(parts.grade, outcome=outcome, score=scores.get(outcome), verdicts=len(verdicts)),
        started_at=CREATED_AT,
        duration_ms=1234.5,
    )


def hostile_events() -> list[bytes]:
    """Events with types, properties and values of anybody's."""
    return [
        msgspec.json.encode({"type": kind, text: {text: [text]}, "delta": text, "name": text, "messageId": text})
        for text in TEXTS
        for kind in ("TEXT_MESSAGE_CONTENT", "CUSTOM", text)
    ]


def make_hostile_store(path: Path) -> dict[str, str]:
    """Make the store; gives what stands in braces in the list of addresses."""
    cases = [name(f"{number} {text}") for number, text in enumerate(TEXTS)]
    with open_store(path) as store:
        for experiment_id in ("hostile-old", "hostile-new"):
            _fill(store, experiment_id, cases)
        first, second = ("run-hostile-new-0-0-1", "run-hostile-new-0-0-2")
        return {
            "old": "hostile-old",
            "new": "hostile-new",
            "passed_run": second,
            "failed_run": first,
            "errored_run": "run-hostile-new-0-1-1",
            "passed_case": cases[0],
            "failed_case": cases[0],
            "errored_case": cases[0],
            "flaky_case": cases[0],
            "a": second,
            "b": first,
        }


def _fill(store: Store, experiment_id: str, cases: list[str]) -> None:
    texts = itertools.cycle((*TEXTS, ALL))
    experiment: Experiment = filled(Experiment, texts)
    suite = {"name": ALL, "description": ALL, "agents": {agent: {"kind": ALL, ALL: ALL} for agent in AGENTS}}
    experiment = msgspec.structs.replace(
        experiment,
        experiment_id=experiment_id,
        name=name(f"{experiment_id} {ALL}"),
        suite={**suite, ALL[:200]: {ALL[:200]: [ALL]}},
        suite_hash="hostile",
        created_at=CREATED_AT,
        finished_at=CREATED_AT + 1000,
        status="finished",
        notes={AGENTS[0]: experiment.notes[next(iter(experiment.notes))]},
        selected=None,
    )
    made = [
        msgspec.structs.replace(
            filled(Case, texts),
            id=case,
            instruction=ALL,
            tags=[name(each) for each in TEXTS],
            threshold=0.5,
            workspace=None,
        )
        for case in cases
    ]
    store.create_experiment(experiment, made)
    for (place, case), (number, agent) in itertools.product(enumerate(cases), enumerate(AGENTS)):
        if place > 1 and number:
            continue
        for trial, outcome in ((1, "errored" if number == 1 else "failed"), (2, "passed")):
            if place > 1 and trial > 1:
                continue
            run_id = f"run-{experiment_id}-{place}-{number}-{trial}"
            key = RunKey(agent, case, trial)
            run = hostile_run(run_id, key, outcome, texts)  # type: ignore[arg-type]
            run.experiment_id = experiment_id
            if (place, number) == (0, 0):
                store.begin_run(experiment_id, key, run_id).wait()
                store.append_events(run_id, hostile_events()).wait()
            store.record_run(run)
    review: Review = filled(Review, texts)
    store.add_review(
        f"run-{experiment_id}-0-0-1",
        msgspec.structs.replace(
            review, comment=ALL.replace(LONG_WORD, ""), reviewer=name(ALL), grader=None, word="wrong"
        ),
    ).wait()
    store.finish_experiment(experiment_id, finished_at=CREATED_AT + 1000, stop_reason=ALL).wait()
