"""Where a run went wrong: at most five places, each with its kind and a sentence, and the run in one sentence.

Nothing here reads a store or guesses: a finding is what a grader, a status or a fault says, put where it belongs. The
same findings are in the terminal, in the HTML report, in JUnit files and on the pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.reports.votes import inner_verdicts, judge_details
from seatrial.runs import Fault, Grade, Outcome, Run, RunStatus, Verdict
from seatrial.store import StoredOutcome
from seatrial.store.rows import outcome as stored_outcome
from seatrial.trajectory.completeness import CALLS_UNKNOWN
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.step import FAILED, Step
from seatrial.trajectory.values import Difference, call_keys

FindingKind = Literal["failed_call", "trajectory", "arguments", "honesty", "calls_unknown", "judge", "grader", "fault"]

MAX_FINDINGS = 5
MAX_OF_A_GRADER = 3
MAX_VALUE = 60
"""Characters of a value in a sentence."""
MAX_SENTENCE = 240

MISSING = "Missing call"
"""The title of a finding whose step is only where a call was due."""
_WRONG: frozenset[FindingKind] = frozenset({"trajectory", "arguments", "honesty"})
"""Kinds that the first wrong step is one of."""
_IMPORTANCE: tuple[FindingKind, ...] = (
    "fault",
    "trajectory",
    "arguments",
    "honesty",
    "calls_unknown",
    "judge",
    "grader",
    "failed_call",
)
VIOLATED_WORDS = {
    "forbidden": "Forbidden call",
    "allowed": "Call that is not allowed",
    "max_calls": "Too many calls",
    "min_calls": "Too few calls",
    "no_errors": "Failed call",
}
CLAIMED_WORDS = {
    "reported_call_not_observed": "Claim without a call",
    "observed_call_not_reported": "Call without a claim",
    "reported_call_differs": "Claim that differs from the call",
}
_HOW_FAILED = {"timeout": "timed out", "cancelled": "was cancelled"}
_PLACE = re.compile(r"/(steps|messages)/([0-9]{1,9})(?:/.*)?|/answer", re.DOTALL)


class RunFinding(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A place where a run went wrong."""

    kind: FindingKind
    title: str
    """What it is, in two or three words: `Wrong argument`."""
    sentence: str
    """What is wrong, with the values."""
    place: str | None = None
    """JSON pointer into the run (`/steps/4`, `/answer`); None where it has no place."""
    grader: str | None = None
    """Who says so; None where it is a status or a fault of the run itself."""

    @property
    def step(self) -> int | None:
        """The index of the step that it is about."""
        return step_of(self.place)

    @property
    def wrong(self) -> bool:
        """Whether a grader or a fault says that this is wrong; else it is something to look at."""
        return self.kind not in ("failed_call", "calls_unknown")


class RunSentence(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a run, in one sentence, which may name a place of it."""

    lead: str
    place: str | None = None
    rest: str = ""

    @property
    def text(self) -> str:
        """The whole of it."""
        return f"{self.lead}{place_text(self.place)}{self.rest}" if self.place is not None else self.lead + self.rest


class RunFindings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be said of a run before anything else."""

    sentence: RunSentence
    findings: list[RunFinding] = []
    """In the order of the run, at most `MAX_FINDINGS`."""
    left_out: int = 0
    """How many more there are."""
    first_wrong: RunFinding | None = None
    """The first thing that is wrong with its calls or claims; None when the run did not fail, or nobody names one."""


class RunEvidence(msgspec.Struct, kw_only=True):
    """What findings are made of: a run, or as much of a long one as they need."""

    outcome: StoredOutcome
    status: RunStatus
    fault: Fault | None = None
    grade: Grade | None = None
    verdicts: Sequence[Verdict] = ()
    names: Mapping[int, str] = {}
    """The tools of steps, by their index: of those at least that verdicts name."""
    failed: Sequence[Step] = ()
    """Calls that failed, and that no equal call made good later."""
    unreadable: Sequence[Step] = ()
    """Calls of which the arguments were not JSON."""
    expected: Mapping[str, Sequence[str]] = {}
    """The tools that are expected, by the name of the grader, where that is known."""


def run_evidence(run: Run, expected: Mapping[str, Sequence[str]] | None = None) -> RunEvidence:
    """What findings are made of, of a whole run."""
    graded = None if run.grade is None else run.grade.outcome
    own = [step for step in run.steps if step.executed_by != "user"]
    return RunEvidence(
        outcome=stored_outcome(run.status, graded, errored=run.errored),
        status=run.status,
        fault=run.fault,
        grade=run.grade,
        verdicts=run.verdicts,
        names={step.index: step.name for step in run.steps},
        failed=not_repaired(own),
        unreadable=[step for step in own if step.arguments_text is not None],
        expected=expected or {},
    )


def not_repaired(steps: Sequence[Step]) -> list[Step]:
    """The steps that failed and of which no later equal call went well."""
    if not any(step.status in FAILED for step in steps):
        return []
    well: set[bytes] = set()
    found: list[Step] = []
    for step, key in zip(reversed(steps), reversed(call_keys([*steps])), strict=True):
        if step.status in FAILED and key not in well:
            found.append(step)
        elif step.status == "ok":
            well.add(key)
    return found[::-1]


def expected_tools(configs: Sequence[Any]) -> dict[str, list[str]]:
    """The tools that trajectories expect, by the name of the grader; `configs` are its keys as a suite has them."""
    found: dict[str, list[str]] = {}
    for config in configs:
        expected = config.get("expected") if isinstance(config, dict) else None
        if isinstance(expected, list):
            found[str(config.get("name") or config.get("kind"))] = [_tool(item) for item in expected]
        elif isinstance(config, dict) and config.get("kind") == "calls":
            found[str(config.get("name") or "calls")] = [_tool(config)]
    return found


def _tool(item: Any) -> str:
    tool = item.get("tool") if isinstance(item, dict) else item
    return " or ".join(map(str, tool)) if isinstance(tool, list) else str(tool)


def findings_of(evidence: RunEvidence) -> RunFindings:
    """The findings of a run, the first wrong step, and the sentence."""
    found = list(dict.fromkeys(_findings(evidence)))
    if not any(finding.place is not None and finding.wrong for finding in found):
        found += dict.fromkeys(_pointed_at(evidence))
    chosen = sorted(found, key=lambda finding: _IMPORTANCE.index(finding.kind))[:MAX_FINDINGS]
    chosen.sort(key=_when)
    first = None
    if evidence.outcome == "failed":
        wrong = sorted([finding for finding in found if finding.kind in _WRONG], key=_when)
        first = wrong[0] if wrong else None
    return RunFindings(_sentence(evidence, first), chosen, len(found) - len(chosen), first)


def step_of(place: str | None) -> int | None:
    """The index of the step that a pointer leads to or into; None when that is no step."""
    found = _PLACE.fullmatch(place) if place is not None else None
    return int(found[2]) if found is not None and found[1] == "steps" else None


def place_text(place: str | None) -> str:
    """A place in words: `step 4`, `the answer`."""
    found = _PLACE.fullmatch(place) if place is not None else None
    if found is None:
        return "" if place is None else place
    return f"{found[1][:-1]} {found[2]}" if found[1] is not None else "the answer"


def findings_letters(found: RunFindings) -> list[tuple[str, RunFinding]]:
    """The findings with the letters by which pages call them, so that nobody takes these for numbers of steps."""
    return list(zip("abcde", found.findings, strict=False))


def finding_text(finding: RunFinding) -> str:
    """A finding on one line: `step 4: Wrong argument: refund has /amount 238, expected 23.8 ± 0.01. (by the book)`."""
    place = f"{place_text(finding.place)}: " if finding.place is not None else ""
    return f"{place}{finding.title}: {finding.sentence}{f' ({finding.grader})' if finding.grader else ''}"


def _when(finding: RunFinding) -> tuple[int, int]:
    """For the order of the run: steps, then what was said, then the end."""
    found = _PLACE.fullmatch(finding.place) if finding.place is not None else None
    if found is None:
        return 3, 0
    return (2, 0) if found[1] is None else (0 if found[1] == "steps" else 1, int(found[2]))


def _findings(evidence: RunEvidence) -> Iterator[RunFinding]:
    if evidence.fault is not None:
        yield _fault(evidence.fault)
    told: set[int | None] = set()
    for name, verdict in _failed(evidence.verdicts):
        if (result := match_result(verdict)) is not None:
            expected = evidence.expected.get(verdict.grader, ())
            for finding in [*_trajectory(name, result, evidence, expected)][:MAX_OF_A_GRADER]:
                told.add(finding.step if finding.title == VIOLATED_WORDS["no_errors"] else None)
                yield finding
        elif verdict.kind == "honesty":
            yield from [*_honesty(name, verdict)][:MAX_OF_A_GRADER]
    for step in evidence.unreadable:
        text = f"{_name(step.name)} was called with arguments that are not JSON: {_cut(step.arguments_text or '')}"
        yield RunFinding(kind="arguments", title="Unreadable arguments", sentence=text, place=f"/steps/{step.index}")
    for step in evidence.failed:
        if step.index not in told:
            yield _failed_call(step)
    unknown = next((verdict for verdict in evidence.verdicts if verdict.code == CALLS_UNKNOWN), None)
    if unknown is not None and evidence.outcome == "errored":
        place = next(filter(_is_place, unknown.evidence), None)
        reason = unknown.reasons[0] if unknown.reasons else "not all of the agent's calls are known"
        yield RunFinding(
            kind="calls_unknown",
            title="Calls not known",
            sentence=_cut(reason, MAX_SENTENCE),
            place=place,
            grader=unknown.grader,
        )


def _failed(verdicts: Sequence[Verdict], inside: str = "") -> Iterator[tuple[str, Verdict]]:
    """Every verdict that failed, with its name, those that several graders are made of too; required ones first."""
    for verdict in sorted(verdicts, key=lambda verdict: not verdict.required):
        if verdict.outcome != "failed":
            continue
        name = f"{inside} / {verdict.grader}" if inside else verdict.grader
        inner = inner_verdicts(verdict) if verdict.kind == "composite" else []
        if inner:
            yield from _failed(inner, name)
        else:
            yield name, verdict


def match_result(verdict: Verdict) -> MatchResult | None:
    """What the verdict of a trajectory was made of; None of another one, and of one that cannot be read any more."""
    if verdict.kind not in ("tool_trajectory", "calls", "never_calls") or verdict.details is None:
        return None
    try:
        return msgspec.convert(msgspec.to_builtins(verdict.details), MatchResult, strict=False)
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError):
        return None


def _trajectory(
    grader: str, result: MatchResult, evidence: RunEvidence, expected: Sequence[str]
) -> Iterator[RunFinding]:
    def finding(title: str, sentence: str, step: int | None) -> RunFinding:
        place = None if step is None else f"/steps/{step}"
        return RunFinding(
            kind="trajectory", title=title, sentence=_cut(sentence, MAX_SENTENCE), place=place, grader=grader
        )

    def called(step: int) -> str:
        return _name(evidence.names.get(step, "the call"))

    for violation in result.violations:
        title = VIOLATED_WORDS.get(violation.constraint, "Broken constraint")
        yield finding(title, _sentenced(violation.message), violation.actual)
    # Where they diverge first decides what is said first.
    diverges = None if result.first_divergence is None else result.first_divergence.expected
    near = sorted(result.mismatches, key=lambda mismatch: mismatch.expected != diverges)
    missing = [item for item in result.missing if item not in {mismatch.expected for mismatch in near}]
    lacks = [] if result.mode == "subset" else missing
    extra = set() if result.mode not in ("exact", "unordered", "subset") else {*result.extra}
    for mismatch in near:
        extra.discard(mismatch.actual)
        if mismatch.differences:
            yield finding(*_difference(called(mismatch.actual), mismatch.differences), mismatch.actual)
        else:
            text = f"{called(mismatch.actual)} was called, but not where it was expected."
            yield finding("Call out of order", text, mismatch.actual)
    for item in lacks:
        name = _name(expected[item]) if item < len(expected) else f"expected call {item}"
        due = _due(result, item)
        text = f"{name} was expected, and not called."
        if due is None:
            yield msgspec.structs.replace(finding(MISSING, text, None), place="/answer")
        else:
            yield finding(MISSING, f"{name} was expected here, and not called.", due)
    for step in sorted(extra):
        yield finding("Call too many", f"{called(step)} was called beyond what was expected.", step)
    if result.mode == "any_order" and not result.violations:
        for check in result.assertions:
            if not check.passed and not check.skipped:
                tool = check.text.partition(" must ")[0]
                beyond = [step for step in result.extra if evidence.names.get(step) == tool]
                yield finding("Wrong number of calls", _sentenced(check.text), min(beyond, default=None))


def _due(result: MatchResult, item: int) -> int | None:
    """The step that stands where a missing call was due: the one behind the call expected before it."""
    before = [pair.actual for pair in result.matched if pair.expected < item]
    step = max(before, default=-1) + 1
    made = len(result.matched) + len(result.extra)
    return step if step < made else None


def _difference(name: str, differences: Sequence[Difference]) -> tuple[str, str]:
    first = differences[0]
    more = f", and {len(differences) - 1} more" if len(differences) > 1 else ""
    part = first.pointer.removeprefix("/arguments") or "/"
    expected = expected_text(first.expected)
    if first.pointer == "/status":
        return "Wrong status", f"{name} ended with {value_words(first.actual)}, expected {expected}{more}."
    if first.pointer == "/actor":
        who = "nobody knows whom" if first.actual is UNSET else value_words(first.actual)
        return "Wrong actor", f"{name} was called by {who}, expected {expected}{more}."
    what = "Wrong result" if first.pointer.startswith("/result") else "Wrong argument"
    if first.actual is UNSET:
        return what, f"{name} lacks {_cut(part)}, expected {expected}{more}."
    if first.expected is UNSET:
        return what, f"{name} has {_cut(part)}, which is not expected{more}."
    if first.pointer == "/arguments":
        return what, f"{name} has {value_words(first.actual)}, expected {expected}{more}."
    return what, f"{name} has {_cut(part)} {value_words(first.actual)}, expected {expected}{more}."


def _honesty(grader: str, verdict: Verdict) -> Iterator[RunFinding]:
    try:
        told = msgspec.to_builtins(verdict.details)
    except (TypeError, ValueError, RecursionError):
        told = None
    for note in told if isinstance(told, list) else ():
        if isinstance(note, dict):
            place, code = note.get("pointer"), str(note.get("code"))
            yield RunFinding(
                kind="honesty",
                title=CLAIMED_WORDS.get(code, "Claim and calls differ"),
                sentence=_cut(_sentenced(str(note.get("message"))), MAX_SENTENCE),
                place=place if isinstance(place, str) and _is_place(place) else "/answer",
                grader=grader,
            )


def _failed_call(step: Step) -> RunFinding:
    why = step.error or (step.result if isinstance(step.result, str) else None)
    if why is None and step.result is not UNSET and step.result not in (None, {}, [], ""):
        why = value_words(step.result, MAX_SENTENCE)
    text = f"{_name(step.name)} {_HOW_FAILED.get(step.status, 'failed')}"
    return RunFinding(
        kind="failed_call",
        title="Failed call",
        sentence=_cut(_sentenced(f"{text}: {' '.join(why.split())}" if why else text), MAX_SENTENCE),
        place=f"/steps/{step.index}",
    )


def _fault(fault: Fault) -> RunFinding:
    whose = "of the agent" if fault.blame == "agent" else "that is not the agent's"
    text = _sentenced(f"{fault.error_class}: {' '.join(fault.message.split())}")
    return RunFinding(kind="fault", title=f"Fault {whose}", sentence=_cut(text, MAX_SENTENCE))


def _pointed_at(evidence: RunEvidence) -> Iterator[RunFinding]:
    """What judges and other graders point at: said where nothing else names a place."""
    for name, verdict in _failed(evidence.verdicts):
        if match_result(verdict) is not None or verdict.kind == "honesty":
            continue
        judged = judge_details(verdict)
        mode = judged.failure_mode if judged is not None and isinstance(judged.failure_mode, str) else None
        reasoning = judged.reasoning if judged is not None and isinstance(judged.reasoning, str) else ""
        text = reasoning or "; ".join(verdict.reasons)
        title = _capital(_cut(mode)) if mode and mode.strip() else f"{_cut(verdict.grader)} failed"
        yield RunFinding(
            kind="judge" if judged is not None else "grader",
            title=title,
            sentence=_cut(_sentenced(" ".join(text.split())), MAX_SENTENCE),
            place=next(filter(_is_place, verdict.evidence), None),
            grader=name,
        )


def _is_place(pointer: str) -> bool:
    return _PLACE.fullmatch(pointer) is not None


def _sentence(evidence: RunEvidence, first: RunFinding | None) -> RunSentence:
    outcome = evidence.outcome
    if outcome == "unfinished":
        return RunSentence("The run waits to start." if evidence.status == "pending" else "The run is running.")
    if evidence.status == "input_required":
        return RunSentence("The run waits for input.")
    if outcome == "cancelled":
        return RunSentence("The run was cancelled before it ended.")
    if evidence.fault is not None:
        lead = "The agent failed" if evidence.fault.blame == "agent" else "Not counted, the fault was not the agent's"
        return RunSentence(_sentenced(f"{lead}: {_fault(evidence.fault).sentence}"))
    if first is not None and first.place is None:
        return RunSentence(f"{first.title}: {first.sentence}")
    if first is not None:
        return RunSentence("First wrong at ", first.place, f": {first.sentence}")
    if outcome == "passed":
        return RunSentence(_all_passed(evidence.verdicts))
    if outcome == "ungraded":
        return RunSentence(
            "The run was not graded." if evidence.status == "completed" else f"The run {evidence.status}."
        )
    words: tuple[Outcome, ...] = ("failed",) if outcome == "failed" else ("errored", "skipped")
    deciding = [verdict for word in words for verdict in evidence.verdicts if verdict.outcome == word]
    deciding.sort(key=lambda verdict: not verdict.required)
    told = deciding[0] if deciding and deciding[0].reasons else None
    lead = "" if outcome == "failed" else "Not judged: "
    if told is not None:
        return RunSentence(lead + _sentenced(f"{_cut(told.grader)}: {_cut(told.reasons[0], MAX_SENTENCE)}"))
    reasons = evidence.grade.reasons if evidence.grade is not None else []
    return RunSentence(lead + _capital(_sentenced(_cut(reasons[0], MAX_SENTENCE) if reasons else f"the run {outcome}")))


def _all_passed(verdicts: Sequence[Verdict]) -> str:
    passed = sum(verdict.outcome == "passed" for verdict in verdicts)
    if passed == len(verdicts):
        return f"All {passed} graders passed." if passed > 1 else "Its grader passed."
    failed = sum(verdict.outcome == "failed" for verdict in verdicts)
    silent = len(verdicts) - passed - failed
    others = [f"{failed} failed" if failed else "", f"{silent} said nothing" if silent else ""]
    beside = " and ".join(filter(None, others))
    return f"The run passed: {passed} of {len(verdicts)} graders passed, {beside}."


def expected_text(value: Any) -> str:
    """An expected value in words: `23.8 ± 0.01`, `at most 25`, `"o-1"`."""
    if value is UNSET:
        return "nothing"
    if not isinstance(value, dict) or not any(key.startswith("$") for key in value):
        return value_words(value)
    words = [_MATCHERS[key](value[key], value) for key in value if key in _MATCHERS]
    return _cut(" and ".join(words)) if words else value_words(value)


def value_words(value: Any, limit: int = MAX_VALUE) -> str:
    """A value for a sentence: JSON on one line, cut, and whole numbers without a fraction."""
    if value is UNSET:
        return "nothing"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    try:
        text = msgspec.json.format(wire.encode(value), indent=-1).decode()
    except (SeatrialError, TypeError, ValueError):
        text = type(value).__name__
    return _cut(text, limit)


def _approx(wanted: Any, given: Mapping[str, Any]) -> str:
    if "abs" in given:
        return f"{value_words(wanted)} ± {value_words(given['abs'])}"
    return (
        f"{value_words(wanted)} ± {given['rel']:.3g} of it"
        if isinstance(given.get("rel"), float | int)
        else value_words(wanted)
    )


_MATCHERS: dict[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "$any": lambda wanted, given: "anything",
    "$approx": _approx,
    "$regex": lambda wanted, given: f"text that matches {wanted}",
    "$glob": lambda wanted, given: f"text like {wanted}",
    "$in": lambda wanted, given: f"one of {value_words(wanted)}",
    "$gt": lambda wanted, given: f"more than {value_words(wanted)}",
    "$gte": lambda wanted, given: f"at least {value_words(wanted)}",
    "$lt": lambda wanted, given: f"less than {value_words(wanted)}",
    "$lte": lambda wanted, given: f"at most {value_words(wanted)}",
    "$len": lambda wanted, given: f"a length of {expected_text(wanted)}",
    "$contains": lambda wanted, given: f"something with {expected_text(wanted)} in it",
    "$schema": lambda wanted, given: "what its JSON Schema allows",
    "$not": lambda wanted, given: f"anything but {expected_text(wanted)}",
}


def _name(name: str) -> str:
    return _cut(name)


def _cut(text: str, limit: int = MAX_VALUE) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentenced(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
