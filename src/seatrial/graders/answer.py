"""Graders of the answer as text. A text to look for that is absent here is the case's `expected`.

A run that completed without an answer has the empty text. Where case is ignored, texts are compared case-folded.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from seatrial._support import wire
from seatrial._support.patterns import Pattern
from seatrial.errors import SeatrialError
from seatrial.graders.grader import (
    Check,
    Find,
    Finding,
    Grader,
    Subject,
    Surroundings,
    errored,
    listed,
    passed_if,
    quoted,
)
from seatrial.graders.probes import cannot_fail
from seatrial.trajectory.values import key

Text = Annotated[str, Meta(min_length=1)]
_EVIDENCE = ["/answer"]


class Equals(Grader):
    """Whether the answer is just this. A value that is not text is compared with the answer read as JSON."""

    kind: ClassVar[str] = "equals"
    version: ClassVar[int] = 3

    value: Any = None
    """What the answer must be; the case's `expected` when absent."""
    ignore_case: bool = False
    """Whether upper and lower case are the same."""
    trim: bool = True
    """Whether space around both texts is left out."""

    def prepare(self) -> Check:
        if not isinstance(self.value, str | None) and (self.ignore_case or not self.trim):
            raise SeatrialError(
                "invalid_config", "`ignore_case` and `trim` are for text, and `value` is not text", pointer="/value"
            )
        return _answer_check(self._find, expected=self.value is None)

    def _find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        wanted = subject.case.expected if self.value is None else self.value
        if wanted is None:
            return _nothing_expected("value")
        answer = subject.answer or ""
        if isinstance(wanted, str):
            same = self._normal(answer) == self._normal(wanted)
        else:
            try:
                # A key on the side of what is expected, so that a value which is no JSON equals nothing.
                same = key(wire.decode_input(answer.encode("utf-8", "replace"))) == key(wanted, b"expected")
            except SeatrialError:
                return _told(False, f"the answer {quoted(answer)} is not JSON, and {quoted(wanted)} is expected")
        sign = "==" if same else "!="
        return _told(same, f"the answer {quoted(answer)} {sign} {quoted(wanted)}")

    def _normal(self, text: str) -> str:
        text = text.strip() if self.trim else text
        return text.casefold() if self.ignore_case else text


class TextGrader(Grader):
    """What graders that look for one text in the answer have in common."""

    value: Text | None = None
    """The text; the case's `expected` when absent."""

    version: ClassVar[int] = 2

    def prepare(self) -> Check:
        positive = self.kind in ("contains", "icontains")
        return _answer_check(self._find, expected=self.value is None, positive=positive)

    def _find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        wanted = subject.case.expected if self.value is None else self.value
        if wanted is None:
            return _nothing_expected("value")
        if not isinstance(wanted, str) or not wanted:
            return errored(f"the case's `expected` is {quoted(wanted)}, and `{self.kind}` needs text")
        answer = subject.answer or ""
        holds = self._holds(answer, wanted)
        verb = _VERBS[self.kind][not holds]
        return _told(holds, f"the answer {quoted(answer)} {verb} {quoted(wanted)}")

    @abstractmethod
    def _holds(self, answer: str, wanted: str) -> bool: ...


class Contains(TextGrader):
    """Whether the answer contains a text."""

    kind: ClassVar[str] = "contains"

    def _holds(self, answer: str, wanted: str) -> bool:
        return wanted in answer


class IContains(TextGrader):
    """Whether the answer contains a text, whatever the case."""

    kind: ClassVar[str] = "icontains"

    def _holds(self, answer: str, wanted: str) -> bool:
        return wanted.casefold() in answer.casefold()


class StartsWith(TextGrader):
    """Whether the answer starts with a text."""

    kind: ClassVar[str] = "starts_with"

    ignore_case: bool = False
    """Whether upper and lower case are the same."""
    trim: bool = True
    """Whether space before the answer is left out."""

    def _holds(self, answer: str, wanted: str) -> bool:
        answer = answer.lstrip() if self.trim else answer
        return _folded(answer, self.ignore_case).startswith(_folded(wanted, self.ignore_case))


class EndsWith(TextGrader):
    """Whether the answer ends with a text."""

    kind: ClassVar[str] = "ends_with"

    ignore_case: bool = False
    """Whether upper and lower case are the same."""
    trim: bool = True
    """Whether space after the answer is left out."""

    def _holds(self, answer: str, wanted: str) -> bool:
        answer = answer.rstrip() if self.trim else answer
        return _folded(answer, self.ignore_case).endswith(_folded(wanted, self.ignore_case))


class ContainsAny(Grader):
    """Whether the answer contains at least one of several texts."""

    kind: ClassVar[str] = "contains_any"
    version: ClassVar[int] = 2

    values: Annotated[list[Text], Meta(min_length=1)]
    """The texts."""
    ignore_case: bool = False
    """Whether upper and lower case are the same."""

    def prepare(self) -> Check:
        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            found = _found(self.values, subject.answer, self.ignore_case)
            first = next((text for text, there in zip(self.values, found, strict=True) if there), None)
            what = f"none of {len(found)} texts is in the answer" if first is None else f"{quoted(first)} is there"
            return _told(first is not None, what)

        return _answer_check(find, positive=True)


class ContainsAll(Grader):
    """Whether the answer contains every one of several texts. Its score is the share of those found."""

    kind: ClassVar[str] = "contains_all"
    version: ClassVar[int] = 2

    values: Annotated[list[Text], Meta(min_length=1)]
    """The texts."""
    ignore_case: bool = False
    """Whether upper and lower case are the same."""

    def prepare(self) -> Check:
        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            found = _found(self.values, subject.answer, self.ignore_case)
            score = sum(found) / len(found)
            missing = [quoted(text) for text, there in zip(self.values, found, strict=True) if not there]
            reason = f"{sum(found)} of {len(found)} texts are in the answer: {score:.3g}"
            reason += f"; missing: {listed(missing)}" if missing else ""
            return passed_if(not missing, reason, score=score, evidence=_EVIDENCE)

        return _answer_check(find, positive=True)


class Regex(Grader):
    """Whether a pattern of Python's `re` is found in the answer. Flags are written into it: `(?i)`. Where the pattern
    takes too long, or the answer is longer than 100,000 characters, the grader is errored. A pattern that is found in
    every text, as `.*$` and the unanchored `(?!.*password)` are, is refused: write `\\A(?!.*password)`."""

    kind: ClassVar[str] = "regex"
    version: ClassVar[int] = 4

    pattern: Text
    """The pattern."""
    whole: bool = False
    """Whether the pattern must cover the whole answer, trimmed, and not just be found in it."""

    def prepare(self) -> Check:
        try:
            pattern = Pattern(self.pattern)
        except SeatrialError as error:
            error.pointer = "/pattern"
            raise
        if cannot_fail(pattern, whole=self.whole):
            how = "covers" if self.whole else "is found in"
            message = f"the pattern {quoted(self.pattern)} {how} every answer, also an empty one: it cannot fail"
            raise SeatrialError("invalid_config", message, pointer="/pattern")

        def find(subject: Subject, surroundings: Surroundings) -> Finding:
            answer = subject.answer or ""
            try:
                found = pattern.covered(answer.strip()) if self.whole else pattern.search(answer)
            except SeatrialError as error:
                return errored(f"the pattern {quoted(self.pattern)} on the answer: {error}")
            if found is None:
                how = "cover" if self.whole else "occur in"
                return _told(False, f"the pattern {quoted(self.pattern)} does not {how} the answer {quoted(answer)}")
            return _told(True, f"the pattern {quoted(self.pattern)} matches {quoted(found)}")

        # With an anchor or an assertion, a pattern also says what else there is not.
        positive = not self.whole and not any(mark in self.pattern for mark in _ABOUT_THE_REST)
        return _answer_check(find, positive=positive)


_ABOUT_THE_REST = ("^", "$", "(?!", "(?=", "(?<", "(?(", r"\A", r"\Z", r"\b", r"\B")
_VERBS = {
    "contains": ("contains", "does not contain"),
    "icontains": ("contains", "does not contain"),
    "starts_with": ("starts with", "does not start with"),
    "ends_with": ("ends with", "does not end with"),
}


def _answer_check(find: Find, *, expected: bool = False, positive: bool = False) -> Check:
    """A check of the answer; `expected`: it compares it with what the case expects."""
    keys = frozenset({"expected"} if expected else ())
    return Check(find, of_answer=True, positive=positive, reads=keys, needs=keys)


def _folded(text: str, ignore_case: bool) -> str:
    return text.casefold() if ignore_case else text


def _found(texts: list[str], answer: str | None, ignore_case: bool) -> list[bool]:
    answer = _folded(answer or "", ignore_case)
    return [_folded(text, ignore_case) in answer for text in texts]


def _told(condition: bool, reason: str) -> Finding:
    return passed_if(condition, reason, evidence=_EVIDENCE)


def _nothing_expected(name: str) -> Finding:
    return errored(f"neither the grader has `{name}` nor the case `expected`, so there is nothing to compare with")
