"""Why runs fail: their signatures in words, and how often each occurs in an experiment and in its base."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from seatrial.reports.findings import CLAIMED_WORDS, VIOLATED_WORDS
from seatrial.runs.fault import FAULT_CLASSES
from seatrial.store import SignatureCount

_TRAJECTORY: Final = ("tool_trajectory", "calls", "never_calls")
_EXPECTED = re.compile(r"/expected/([0-9]{1,9})")


class SignatureWords(msgspec.Struct, frozen=True):
    """A signature as people read it."""

    text: str
    """Where it first goes wrong: `refund: /amount differs`."""
    by: str
    """What says so: `tool_trajectory`, `judge`, ..."""
    errored: bool = False
    """Whether runs with it errored: that says nothing of the agent."""


class FailureCause(msgspec.Struct, frozen=True, kw_only=True):
    """A way in which runs fail, or several together."""

    signature: str | None
    """None for the others together."""
    words: SignatureWords
    base: int | None
    """Runs of the base that fail in this way; None when there is no base."""
    runs: int
    ways: int = 1
    """Signatures that this stands for."""

    @property
    def change(self) -> int | None:
        """How many more runs fail so than in the base."""
        return None if self.base is None else self.runs - self.base


def signature_words(signature: str) -> SignatureWords:
    """The words of a signature; of one of an unknown form, its parts as they are."""
    kind, *parts = signature.split("|")
    if kind == "fault" and parts:
        found = FAULT_CLASSES.get(parts[0])
        return SignatureWords(parts[0], "fault", found is None or found.blame != "agent")
    if parts and parts[-1] in ("errored", "skipped") and len(parts) == 2:
        return SignatureWords(f"{parts[0]} {parts[-1]}", kind, True)
    if kind == "grade":
        return SignatureWords(
            "no grader alone" if parts == ["failed"] else "not judged", "grade", parts[:1] == ["errored"]
        )
    if kind in _TRAJECTORY:
        return SignatureWords(_calls(parts) or " ".join(parts) or kind, kind)
    if kind == "honesty" and parts:
        claim = CLAIMED_WORDS.get(parts[-1], parts[-1]).lower()
        return SignatureWords(f"{parts[0]}: {claim}" if len(parts) > 1 else claim, kind)
    if kind == "field_accuracy" and len(parts) == 2:
        return SignatureWords(f"{parts[0]} {'is missing' if parts[1] == 'missing' else parts[1]}", kind)
    return SignatureWords(" ".join(parts) or kind, kind)


def _calls(parts: Sequence[str]) -> str | None:
    *place, how = parts or ("",)
    tool = place[0] if place and not place[0].startswith("/") else None
    rest = place[1:] if tool is not None else place
    head = f"{tool}: " if tool is not None else ""
    if how == "violated" and (rest or tool is not None):
        # Without a tool, the constraint alone is left.
        constraint = rest[0] if rest else place[0]
        words = VIOLATED_WORDS.get(constraint, constraint).lower()
        return f"{head}{words}" if rest else words
    if how == "out of order" and tool is not None:
        return f"{head}called out of order"
    if how == "extra" and not rest and tool is not None:
        return f"{head}a call too many"
    if rest and (expected := _EXPECTED.fullmatch(rest[0])) is not None:
        return f"expected call {expected[1]} is missing"
    if rest and how in ("differs", "missing", "extra"):
        where = rest[0].removeprefix("/arguments") or "arguments"
        return f"{head}{where} {_HOW[how]}"
    return None


_HOW: Final = {"differs": "differs", "missing": "is missing", "extra": "is not expected"}


def causes(
    here: Sequence[SignatureCount],
    base: Sequence[SignatureCount] | None,
    *,
    most: int = 5,
    left_out: Mapping[str, int] | None = None,
) -> list[FailureCause]:
    """The ways that changed most, or without a base the most frequent ones; then the others together; what errored
    last, and never together with what failed. `left_out` are the classes of fault that errored here: a suite may say
    that others do than usual."""
    now = {counted.signature: counted.runs for counted in here}
    then = None if base is None else {counted.signature: counted.runs for counted in base}
    every = list(dict.fromkeys([*now, *(then or ())]))
    made = [
        FailureCause(
            signature=signature,
            words=_with_class(signature_words(signature), left_out),
            base=None if then is None else then.get(signature, 0),
            runs=now.get(signature, 0),
        )
        for signature in every
    ]
    found: list[FailureCause] = []
    for errored in (False, True):
        some = sorted([cause for cause in made if cause.words.errored is errored], key=_weight)
        shown, others = (some, []) if len(some) <= most + 1 else (some[:most], some[most:])
        found += shown
        if others:
            found.append(
                FailureCause(
                    signature=None,
                    words=SignatureWords(f"other, {len(others):,} ways", "", errored),
                    base=None if then is None else sum(cause.base or 0 for cause in others),
                    runs=sum(cause.runs for cause in others),
                    ways=len(others),
                )
            )
    return found


def _with_class(words: SignatureWords, left_out: Mapping[str, int] | None) -> SignatureWords:
    if words.by != "fault" or not left_out or not left_out.get(words.text):
        return words
    return msgspec.structs.replace(words, errored=True)


def _weight(cause: FailureCause) -> tuple[int, int, str]:
    """For the order: what changed most first, in either direction; of equals, the most frequent."""
    return -abs(cause.change or 0), -cause.runs - (cause.base or 0), cause.signature or ""
