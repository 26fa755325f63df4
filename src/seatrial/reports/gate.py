"""When a comparison is to fail a build: what `--fail-on` says, and what a comparison says to that.

A condition is `regression`, `significantly-worse` or `drop=0.02`, of all cases; or of those with a tag,
`tag:NAME:CONDITION`, where the name `*` means every tag. A condition that the data cannot answer is neither met nor
not: see `undecided`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from seatrial.errors import SeatrialError
from seatrial.problems import nearest
from seatrial.reports import figures
from seatrial.reports.compare import Comparison, IncomparableTag, TagDifference
from seatrial.reports.compare_text import tag_sentence
from seatrial.reports.sentences import comparison_sentence
from seatrial.reports.statistics.paired import MIN_CHANGED, SIGNIFICANT, PairedDifference
from seatrial.reports.tags import unread_sentence

# Rates are fractions of small numbers: a drop of exactly the limit must not pass it by rounding.
_ROUNDING = 1e-9
L = TypeVar("L", bound="GateLimits")
EVERY_TAG = "*"
_TAG = "tag:"
_POINTS = ("points", "point")
_CONDITIONS = ("regression", "significantly-worse", "drop=0.02")
_HINT = (
    "`regression`, `significantly-worse`, or `drop=0.02` (the same as `drop=2points`); for the cases with a tag, "
    "`tag:NAME:significantly-worse` and the like, where the name `*` means every tag"
)


class GateLimits(msgspec.Struct, frozen=True):
    """What b may not do."""

    regression: bool = False
    """Pass any case less often than a."""
    drop: float | None = None
    """Have a pass rate that is lower than a's by more than this."""
    significantly_worse: bool = False
    """Be worse than a beyond doubt."""


class Gate(GateLimits, frozen=True):
    """What b may not do, on all cases together and on those with a tag."""

    tags: dict[str, GateLimits] = {}
    """By tag; `*` is every tag."""

    @property
    def whole(self) -> bool:
        """Whether anything is asked of all cases together."""
        return self.regression or self.significantly_worse or self.drop is not None


def gate_of(conditions: list[str]) -> Gate:
    """The gate that `--fail-on` describes: `regression`, `drop=0.02`, `tag:account:significantly-worse`, ..."""
    gate = Gate()
    for condition in conditions:
        if condition.startswith(_TAG):
            # A tag may have colons in it.
            tag, _, name = condition.removeprefix(_TAG).rpartition(":")
            if not tag:
                raise _unknown(condition, condition)
            limits = _with(gate.tags.get(tag, GateLimits()), name, condition)
            gate = msgspec.structs.replace(gate, tags={**gate.tags, tag: limits})
        else:
            gate = _with(gate, condition, condition)
    return gate


def check_tags(gate: Gate, comparisons: Sequence[Comparison]) -> None:
    """Raise `SeatrialError` for a tag that no case has."""
    known = {found.tag for comparison in comparisons for found in _of_tags(comparison)}
    known.update(tag for comparison in comparisons for tag in comparison.omitted_tags)
    for tag in gate.tags:
        if tag != EVERY_TAG and tag not in known:
            near = nearest(tag, known)
            some = ", ".join(sorted(known)[:10]) or "none: the cases have no tags"
            raise SeatrialError(
                "usage",
                f"--fail-on names the tag {tag!r}, which no case has",
                hint=f"the tags are {some}" if near is None else f"did you mean `{near}`?",
            )
        if tag == EVERY_TAG and not known:
            raise SeatrialError("usage", f"--fail-on is about every tag (`{_TAG}*`), and no case has one")


def objections(gate: Gate, comparison: Comparison) -> list[str]:
    """Why the gate is shut, in sentences; none when it is open."""
    found = list(_objections(gate, comparison, "", comparison_sentence(comparison).text))
    for of_tag, limits in _limited(gate, comparison):
        if isinstance(of_tag, TagDifference):
            sentence = tag_sentence(of_tag, len(comparison.by_tag))
            found += _objections(limits, of_tag, f"tag {of_tag.tag}: ", sentence)
    return found


def undecided(gate: Gate, comparison: Comparison) -> list[str]:
    """Why it cannot be said whether the gate is to be shut, in sentences: what is not known is no reason to open it."""
    found = []
    if gate.whole and comparison.lost:
        found.append(f"cannot say whether b regressed: {_lost(comparison.lost)}")
    if gate.significantly_worse and (few := _too_few(comparison, 1)) is not None:
        found.append(f"cannot say whether b is significantly worse: {few}")
    for letter, side in (("a", comparison.a), ("b", comparison.b)):
        if (gate.whole or gate.tags) and side.unfinished is not None:
            found.append(f"cannot say whether b regressed: {letter} {side.unfinished}")
    if gate.tags and comparison.unread:
        found.append(f"cannot say which cases have a tag: {unread_sentence(comparison.unread)}")
    looked_at = [of_tag.tag for of_tag in _of_tags(comparison)]
    found += [
        f"tag {tag}: it is not looked at, since it has fewer cases than {len(looked_at):,} other tags"
        for tag in gate.tags
        if tag in comparison.omitted_tags
    ]
    answered = 0
    for of_tag, limits in _limited(gate, comparison):
        why = list(_undecided(limits, of_tag, comparison, named=of_tag.tag in gate.tags))
        found += [f"tag {of_tag.tag}: cannot say whether b regressed: {sentence}" for sentence in why]
        answered += not why and _can_answer(limits, of_tag, comparison)
    if EVERY_TAG in gate.tags and not answered and not found:
        found.append("cannot say whether b is significantly worse in any tag: each has too few cases")
    return found


def _objections(limits: GateLimits, found: PairedDifference, where: str, sentence: str) -> Iterator[str]:
    if limits.regression and found.worse:
        yield f"{where}{figures.plural(found.worse, 'case')} passed less often than before"
    if limits.drop is not None and found.difference < -limits.drop - _ROUNDING:
        yield f"{where}the pass rate dropped by {-found.difference * 100:.1f} points; {limits.drop * 100:g} are allowed"
    if limits.significantly_worse and found.is_worse:
        yield sentence


def _undecided(
    limits: GateLimits, found: TagDifference | IncomparableTag, comparison: Comparison, *, named: bool
) -> Iterator[str]:
    if isinstance(found, IncomparableTag):
        # Cases that one side was not to run say nothing against the others, unless they were asked about.
        if named or found.lost or any(why.startswith(("a: ", "b: ")) for why in found.left_out):
            yield "no case with it has graded runs on both sides"
        return
    if found.lost:
        yield _lost(found.lost)
    # Of every tag, small ones are expected; one that is named is meant.
    if named and limits.significantly_worse and (few := _too_few(found, _tested(comparison, found))) is not None:
        yield few


def _can_answer(limits: GateLimits, found: TagDifference | IncomparableTag, comparison: Comparison) -> bool:
    if isinstance(found, IncomparableTag):
        return False
    others = limits.regression or limits.drop is not None
    return others or _too_few(found, _tested(comparison, found)) is None


def _tested(comparison: Comparison, found: TagDifference) -> int:
    """How many tags are tested, if every case of this one had changed."""
    return 1 + sum(other.better + other.worse >= MIN_CHANGED for other in comparison.by_tag if other.tag != found.tag)


def _too_few(found: PairedDifference, tested: int) -> str | None:
    """That nothing could be called worse, not even if all cases fell; None when it could."""
    if 2 * tested / 2**found.paired < SIGNIFICANT:
        return None
    least = math.floor(math.log2(2 * tested / SIGNIFICANT)) + 1
    return f"{figures.plural(found.paired, 'case')} to compare, too few for any test; it takes at least {least:,}"


def _lost(count: int) -> str:
    return f"{count:,} of the cases that a could judge, b could not, or not in every trial that was planned"


def _limited(gate: Gate, comparison: Comparison) -> Iterator[tuple[TagDifference | IncomparableTag, GateLimits]]:
    """The tags of which something is asked, and what."""
    every = gate.tags.get(EVERY_TAG, GateLimits())
    for found in _of_tags(comparison):
        named = gate.tags.get(found.tag, GateLimits())
        if found.tag in gate.tags or EVERY_TAG in gate.tags:
            drops = [limit for limit in (every.drop, named.drop) if limit is not None]
            yield (
                found,
                GateLimits(
                    every.regression or named.regression,
                    min(drops) if drops else None,
                    every.significantly_worse or named.significantly_worse,
                ),
            )


def _of_tags(comparison: Comparison) -> list[TagDifference | IncomparableTag]:
    return [*comparison.by_tag, *comparison.incomparable_tags]


def _with(limits: L, name: str, condition: str) -> L:
    """The limits and what one more condition says."""
    word, equals, value = name.partition("=")
    if word == "drop" and (limit := _share(value)) is not None:
        return msgspec.structs.replace(limits, drop=limit)
    if not equals and word == "regression":
        return msgspec.structs.replace(limits, regression=True)
    if not equals and word == "significantly-worse":
        return msgspec.structs.replace(limits, significantly_worse=True)
    raise _unknown(condition, name)


def _unknown(condition: str, name: str) -> SeatrialError:
    near = nearest(name.partition("=")[0], [known.partition("=")[0] for known in _CONDITIONS])
    word, _, value = name.partition("=")
    if word == "drop" and value:
        hint = "a share below 1, as `drop=0.02`, or points, as `drop=2points`"
    elif near is not None:
        written = next(known for known in _CONDITIONS if known.startswith(near))
        hint = f"did you mean `{condition[: len(condition) - len(name)]}{written}`? {_HINT}"
    else:
        hint = _HINT
    return SeatrialError("usage", f"--fail-on {condition!r} is not known", hint=hint)


def _share(text: str) -> float | None:
    """`0.02`, `2points`; None for what is neither, and for a drop that no rate can exceed."""
    unit = next((unit for unit in _POINTS if text.endswith(unit)), "")
    try:
        value = float(text.removesuffix(unit)) / (100 if unit else 1)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value < 1 else None
