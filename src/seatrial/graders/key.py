"""Content keys: equal when the same check looks at the same content, so that a verdict need not be found again.

The key of a verdict is made of the run's content (status, fault, transcript, notes, trace, steps and
how complete they are, durations), of what
the case says, of the grader's kind, version and configuration, and of the model's name where one is asked. What a
grader is called, how much it weighs and how long it may take are no part of it: they do not change what is found.

Where the body was kept that the transcript was read from, its content address stands for the transcript: a run is read
once, and to write and hash a long answer yet again would cost as much as the rest of the grading.
"""

from __future__ import annotations

from hashlib import blake2b, sha256
from operator import attrgetter

import msgspec

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.graders.grader import Check, Grader, Subject
from seatrial.runs import Exchange, Run

_NEGATION = 2
"""Raised when negating may judge otherwise than before."""
_SORTED = msgspec.json.Encoder(order="sorted")
# Not its graders, its threshold and its deadline.
_what_the_case_says = attrgetter(
    *("id", "instruction", "input", "messages", "files", "expected"),
    *("expected_outcome", "expected_outcome_detail", "tags", "metadata", "world"),
)


def content_digest(subject: Subject) -> bytes | None:
    """The content of a run and its case; None when a part of it is not JSON, and no two are known to be equal."""
    # As it is stored, by which a verdict is found again.
    run = subject.stored.run
    reading = run.reading
    body = run.attempts[-1].body_hash if run.attempts else None
    content = [
        [_status(run), run.fault, run.steps, run.steps_source, run.completeness, run.duration_ms, run.metadata, body],
        [attempt.duration_ms for attempt in run.attempts],
        # Only where there are several, or there is one: the keys of verdicts that are stored stay what they are.
        *([] if len(run.exchanges) < 2 else [[_bodies(exchange) for exchange in run.exchanges]]),
        *([] if run.reported is None else [run.reported]),
        *([] if run.diff is None else [run.diff]),
        None if reading is None else [reading.format, reading.notes, reading.trace],
        reading.transcript if reading is not None and body is None else None,
        _what_the_case_says(subject.case),
    ]
    # Most processors have an instruction for SHA-256: with a long answer it is several times faster than BLAKE2.
    try:
        return sha256(wire.encode(content)).digest()[:16]
    except (TypeError, ValueError, OverflowError, SeatrialError):
        return None


def _status(run: Run) -> str:
    """The status as earlier versions had it, so that the keys of stored verdicts stay what they are."""
    return "errored" if run.errored else run.status


def _bodies(exchange: Exchange) -> list[str | None]:
    return [attempt.body_hash for attempt in exchange.attempts]


def configuration_digest(grader: Grader) -> bytes:
    """What a grader checks, whatever it is called and weighs."""
    plain = msgspec.structs.replace(grader, name="", weight=1.0, required=True, timeout_s=None)
    checked = [grader.kind, grader.version, plain]
    if grader.negate:
        checked.append(_NEGATION)
    try:
        data = _SORTED.encode(checked)
    except UnicodeEncodeError:
        data = _SORTED.encode(wire.without_surrogates(checked))
    return blake2b(data, digest_size=16).digest()


def verdict_key(content: bytes | None, configuration: bytes, check: Check, model: str | None) -> str:
    """The key of a verdict; empty when an equal key would not mean an equal verdict."""
    if content is None or not check.repeatable:
        return ""
    asked = (model or "").encode("utf-8", "replace") if check.asks_model else b""
    return blake2b(b"".join([configuration, check.parts, content, asked]), digest_size=16).hexdigest()
