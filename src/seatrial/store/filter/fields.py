"""The fields that a filter can name, and how their values are read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from seatrial.events.types import RunStatus
from seatrial.runs.fault import FAULT_CLASSES
from seatrial.store.rows import StoredOutcome
from seatrial.trajectory.completeness import Level

FieldName: TypeAlias = Literal[
    "agent",
    "agrees",
    "attempts",
    "calls",
    "case",
    "change",
    "cost",
    "duration",
    "error",
    "experiment",
    "flaky",
    "grader",
    "note",
    "outcome",
    "reviewed",
    "score",
    "since",
    "status",
    "steps",
    "suite",
    "tag",
    "tokens",
    "tool",
    "toolfail",
    "trial",
    "until",
    "why",
]
FieldKind: TypeAlias = Literal["name", "word", "number", "grader", "time"]

UNKNOWN: Final = "unknown"
"""As a value: the runs of which nobody knows it. They match no other value, and no negated one either."""


class FilterField(msgspec.Struct, frozen=True):
    """What a filter can ask of a run."""

    name: FieldName
    kind: FieldKind
    meaning: str
    words: tuple[str, ...] = ()
    """The values there are, of a `word`."""
    number: Callable[[str], float | None] | None = None
    """Reads a value of a `number`; None when it is not one."""
    example: str = ""
    """What to write, for errors: of numbers and times."""
    may_be_unknown: bool = False


def _plain(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _with_units(units: dict[str, float]) -> Callable[[str], float | None]:
    pattern = re.compile(rf"([0-9.]{{1,20}})\s?({'|'.join(map(re.escape, units))})")

    def read(text: str) -> float | None:
        found = pattern.fullmatch(text)
        value = _plain(found[1]) if found else None
        return None if found is None or value is None else value * units[found[2]]

    return read


_MS = _with_units({"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000})
_COUNT = _with_units({"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000})
_CENTS = _with_units({"¢": 0.01, "$": 1, "": 1})


def _money(text: str) -> float | None:
    return _CENTS(text.removeprefix("$"))


def _whole(text: str) -> float | None:
    return _COUNT(text)


_FIELDS: Final = (
    FilterField("agent", "name", "the agent that ran"),
    FilterField("case", "name", "the case"),
    FilterField("tag", "name", "a tag of the case"),
    FilterField("experiment", "name", "the name of the experiment"),
    FilterField("suite", "name", "the hash of the suite, or the beginning of it"),
    FilterField("outcome", "word", "the result of the run", words=get_args(StoredOutcome)),
    FilterField("status", "word", "where the run is in its life", words=get_args(RunStatus)),
    FilterField("error", "word", "the class of the fault", words=tuple(FAULT_CLASSES)),
    FilterField("calls", "word", "how much is known of the calls", words=get_args(Level), may_be_unknown=True),
    FilterField("flaky", "word", "trials of this case by this agent passed and failed", words=("yes", "no")),
    FilterField(
        "change",
        "word",
        "how often the case passes, beside the last finished experiment of the same suite before it",
        words=("worse", "better", "same"),
    ),
    FilterField("score", "number", "the score, 0 to 1", number=_plain, example="0.5", may_be_unknown=True),
    FilterField("duration", "number", "how long it took", number=_MS, example="10s, 500ms or 2m", may_be_unknown=True),
    FilterField("steps", "number", "how many calls it made", number=_whole, example="12", may_be_unknown=True),
    FilterField("cost", "number", "what it cost", number=_money, example="$0.10 or 5¢", may_be_unknown=True),
    FilterField(
        "tokens", "number", "input and output tokens", number=_COUNT, example="800, 20k or 1.5M", may_be_unknown=True
    ),
    FilterField("attempts", "number", "how often it was tried", number=_whole, example="2"),
    FilterField("trial", "number", "the trial, from 1", number=_whole, example="2"),
    FilterField("tool", "name", "a tool that was called"),
    FilterField("toolfail", "name", "a tool of which a call failed"),
    FilterField("grader", "grader", "a grader that failed the run; `grader:NAME=passed` for another verdict"),
    FilterField("why", "name", "where it first went wrong, as *why runs fail* lists it"),
    FilterField(
        "reviewed",
        "word",
        "whether people reviewed it, or what one of them says",
        words=("yes", "no", "right", "wrong", "unsure"),
    ),
    FilterField("agrees", "word", "whether what people say of it is what graders say", words=("yes", "no")),
    FilterField("note", "name", "the code of a note"),
    FilterField("since", "time", "began then or later", example="7d, 12h or 2026-11-16"),
    FilterField("until", "time", "began before then, or on that day", example="2026-11-16"),
)
FIELDS: Final[dict[str, FilterField]] = {field.name: field for field in _FIELDS}

VERDICT_WORDS: Final = ("passed", "failed", "errored", "skipped")

_AGO = re.compile(r"([0-9]{1,5})\s?(m|min|h|d|w)")
_SPANS = {"m": 1, "min": 1, "h": 60, "d": 60 * 24, "w": 60 * 24 * 7}


def read_time(text: str, now_ms: int, *, end_of_day: bool) -> int | None:
    """A moment in ms since the epoch, of `7d`, `2026-11-16` or `2026-11-16T10:30`, in UTC; None when it is none."""
    if (ago := _AGO.fullmatch(text)) is not None:
        return now_ms - int(ago[1]) * _SPANS[ago[2]] * 60_000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        if len(text) <= len("2026-11-16") and end_of_day:
            moment += timedelta(days=1)
        return int(moment.timestamp() * 1000)
    except (OverflowError, ValueError):
        return None
