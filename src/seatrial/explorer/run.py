"""The page of one run: what came of it, where it went wrong, what it did and when, who says so, and what was kept.

Nothing here grows with the length of a run: of a long one, a part of its steps, its overview and its first notes are
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from seatrial.errors import SeatrialError
from seatrial.explorer import numbers
from seatrial.explorer.live import LiveState, expectations, live_state
from seatrial.explorer.render import address
from seatrial.explorer.so_far import RunningStore, is_running
from seatrial.explorer.timeline import MAX_MESSAGES, MAX_STEPS, Axis, Timeline, run_timeline
from seatrial.reports.detail import file_lines, summary_text, value_text
from seatrial.reports.findings import (
    RunFinding,
    RunFindings,
    RunSentence,
    findings_letters,
    match_result,
    place_text,
    step_of,
)
from seatrial.reports.stored_findings import stored_findings
from seatrial.reports.votes import JudgeLine, judge_lines
from seatrial.runs import Attempt, Case, Experiment, Outcome, RunKey, Verdict, model_costs
from seatrial.store import GradingSummary, ReviewedRun, RunNotes, RunRecord, RunSummary, StepLine, Store
from seatrial.trajectory.completeness import known_calls, what_is_missing, what_to_do
from seatrial.trajectory.step import FAILED, Status, elapsed
from seatrial.transcript import AssistantMessage, UserMessage

KNOWN_METADATA = ("model", "system_prompt_id", "total_input_tokens", "total_output_tokens", "agent_runtime_ms")
"""Keys of an agent's metadata that come first."""

MAX_BANNERS = 3
MAX_NOTES = 50
MAX_OUTLINE = 60
"""Steps of a list beside the transcript; of more, those around the place that is shown."""
MAX_SAID = 1200
"""Characters of the question and of the answer above the transcript; the transcript has the rest."""
FOLDED_AT = 260
MAX_REASON = 700
MAX_EVIDENCE = 8
MAX_METADATA = 60
MAX_VALUE = 300
MAX_PATCH = 6000
MAX_TRIALS = 40
MAX_ATTEMPTS = 20
MAX_REVIEWS = 20
ANSWER_AMONG = 20
"""Messages at the end of a run among which its answer is looked for."""
_FEW = 3

_SOURCES = {"observed": "observed by Seatrial", "trace": "from its trace", "messages": "from its messages"}


class RunFact(msgspec.Struct, frozen=True):
    """One figure of a run."""

    name: str
    value: str
    beside: str = ""
    time: int | None = None
    """Milliseconds since the epoch, in place of a value."""


class RunBanner(msgspec.Struct, frozen=True):
    """Something that must be known before the rest is read."""

    tone: str
    """Its CSS class: `fail`, or "" for amber."""
    head: str
    text: str
    detail: str | None = None


class SaidText(msgspec.Struct, frozen=True):
    """A question or an answer: how it begins, and the rest of it folded."""

    text: str
    folded: bool
    cut: bool
    """Whether the transcript has more of it."""
    place: str
    """Where the transcript has it; empty when it does not."""


class OutlineLine(msgspec.Struct, frozen=True):
    """A line of the list of steps."""

    place: str
    name: str
    step: int | None = None
    took: str = ""
    status: Status | None = None
    wrong: bool = False
    """Whether a finding is about it."""
    here: bool = False

    @property
    def failed(self) -> bool:
        """Whether the call failed."""
        return self.status in FAILED


class EvidenceLink(msgspec.Struct, frozen=True):
    """A place that a verdict points to."""

    words: str
    place: str


class VerdictCard(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, and what leads on from it."""

    verdict: Verdict
    reasons: list[str]
    more_reasons: int
    evidence: list[EvidenceLink]
    more_evidence: int
    judges: list[JudgeLine]
    page: str | None
    """The address of the page on it."""
    page_name: str = ""


class SingleRunPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows beside the transcript."""

    run_id: str
    record: RunRecord
    title: str
    """The case; of a run of the run service, which has none, its thread."""
    experiment: Experiment | None
    case: Case | None
    findings: RunFindings
    trials: list[RunSummary]
    """Those of the case by the same agent; none when this is the only one."""
    more_trials: int
    passing: str | None
    """The nearest run of the case that passed."""
    facts: list[RunFact]
    banners: list[RunBanner]
    asked: SaidText | None
    answered: SaidText | None
    timeline: Timeline
    outline: list[OutlineLine]
    outline_before: str | None
    outline_after: str | None
    verdicts: list[VerdictCard]
    grading: int | None
    """Which grading the verdicts are of, where it is not the latest."""
    gradings: list[GradingSummary]
    known_metadata: list[tuple[str, str]]
    metadata: list[tuple[str, str]]
    more_metadata: int
    notes: RunNotes
    notes_total: int
    attempts: list[tuple[int, Attempt]]
    """Each with the number of its exchange."""
    more_attempts: int
    has_body: bool
    """Whether an attempt brought bytes that are kept."""
    reviews: list[ReviewedRun]
    """The latest of what people say of it."""
    changes: tuple[str, list[str], str, bool] | None
    """What the agent changed in its workspace: in words, by file, the patch, and whether that is only its beginning."""
    at: str | None
    so_far: LiveState | None = None
    """How far it has come, of a run that is running."""

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return is_running(self.record)

    @property
    def letters(self) -> list[tuple[str, RunFinding]]:
        """The findings with their letters."""
        return findings_letters(self.findings)


def run_page(
    store: Store,
    run_id: str,
    *,
    at: str | None = None,
    axis: Axis = "time",
    window: tuple[float | None, float | None] = (None, None),
    lanes: Sequence[str] = (),
    grading: int | None = None,
    now: float = 0.0,
) -> SingleRunPage:
    """One run, without what it may have any amount of; of a running one, what a `RunningStore` has of it."""
    record = store.run_record(run_id)
    key, summary = record.key, record.summary
    experiment, case = belongs_to(store, record)
    short = record.messages <= MAX_MESSAGES and (summary.steps or 0) <= MAX_STEPS
    lines = store.step_lines(run_id, 0, MAX_STEPS) if short else None
    notes = store.run_notes([run_id], limit=MAX_NOTES).get(run_id) or RunNotes(None, [], {})
    found = stored_findings(store, record, experiment, case, lines=lines, codes={code for code, _ in notes.counts})
    of_case = [] if experiment is None or case is None else store.case_runs(experiment.experiment_id, case.id)
    own = [run for run in of_case if run.agent == summary.agent]
    if is_running(record):
        words = expectations(store, summary, experiment, case, own)
        found = msgspec.structs.replace(found, sentence=RunSentence(words))
    gradings = store.gradings(run_id) if record.grade is not None else []
    older = older_grading(gradings, grading)
    verdicts = record.verdicts if older is None else store.verdicts_of(run_id, older)
    head = _outline_head(store, record)
    outline, before, after = _outline(store, record, lines, found, at, head)
    attempts = [(exchange.number, attempt) for exchange in record.exchanges for attempt in exchange.attempts]
    known, rest = _metadata(record)
    return SingleRunPage(
        run_id=run_id,
        record=record,
        title=key.case_id if isinstance(key, RunKey) else key.thread_id,
        experiment=experiment,
        case=case,
        findings=found,
        trials=own[:MAX_TRIALS] if len(own) > 1 else [],
        more_trials=max(0, len(own) - MAX_TRIALS),
        passing=_passing(of_case, summary),
        facts=[*_facts(record, experiment, own)],
        banners=[*_banners(store, record, experiment, notes)][:MAX_BANNERS],
        asked=_asked(store, record, case, head),
        answered=None if is_running(record) else _answered(store, record),
        timeline=run_timeline(
            store, record, found.findings, axis=axis, start=window[0], end=window[1], lanes=lanes, lines=lines
        ),
        outline=outline,
        outline_before=before,
        outline_after=after,
        verdicts=[_card(run_id, verdict, older) for verdict in _sorted(verdicts)],
        grading=older,
        gradings=gradings if len(gradings) > 1 else [],
        known_metadata=known,
        metadata=rest[:MAX_METADATA],
        more_metadata=max(0, len(rest) - MAX_METADATA),
        notes=notes,
        notes_total=sum(notes.counts.values()),
        attempts=attempts[-MAX_ATTEMPTS:],
        more_attempts=max(0, len(attempts) - MAX_ATTEMPTS),
        has_body=any(attempt.body_hash is not None for _, attempt in attempts),
        reviews=store.run_reviews(run_id)[-MAX_REVIEWS:],
        changes=_changes(record),
        at=at,
        so_far=live_state(store, run_id, now) if isinstance(store, RunningStore) else None,
    )


def belongs_to(store: Store, record: RunRecord) -> tuple[Experiment | None, Case | None]:
    """The experiment and the case of a run, where it has these."""
    if record.experiment_id is None or not isinstance(record.key, RunKey):
        return None, None
    experiment = store.resolve_experiment(record.experiment_id)
    try:
        return experiment, store.case(record.experiment_id, record.key.case_id)
    except SeatrialError:
        return experiment, None  # the case is damaged; the run is not


def _passing(runs: Sequence[RunSummary], summary: RunSummary) -> str | None:
    """The run of this case that passed and is nearest: by the same agent, else by another one."""
    others = [run for run in runs if run.outcome == "passed" and run.run_id != summary.run_id]
    others.sort(key=lambda run: (run.agent != summary.agent, abs(run.trial - summary.trial)))
    return others[0].run_id if others else None


def _facts(record: RunRecord, experiment: Experiment | None, own: Sequence[RunSummary]) -> Iterator[RunFact]:
    summary = record.summary
    agents = {} if experiment is None else experiment.suite.get("agents")
    config = agents.get(summary.agent) if isinstance(agents, dict) else None
    config = config if isinstance(config, dict) else {}
    yield RunFact("agent", summary.agent, str(config.get("kind") or ""))
    model = record.source_metadata.get("model") or config.get("model")
    yield RunFact("model", str(model)[:80] if isinstance(model, str | int) else numbers.UNKNOWN)
    if summary.status != "completed" and not is_running(record):
        yield RunFact("status", summary.status.replace("_", " "), summary.error_class or "")
    times = sorted([run.duration_ms for run in own if run.duration_ms is not None])
    median = f"median here {numbers.duration(times[len(times) // 2])}" if len(times) >= _FEW else ""
    if is_running(record):
        yield RunFact("elapsed", numbers.duration(summary.duration_ms), median)
        yield RunFact("steps", numbers.UNKNOWN if summary.steps is None else numbers.count(summary.steps), "so far")
    else:
        yield RunFact("duration", numbers.duration(summary.duration_ms), median)
        yield RunFact("steps", *_steps(record))
    tokens = [
        numbers.UNKNOWN if some is None else numbers.count(some)
        for some in (summary.input_tokens, summary.output_tokens)
    ]
    known = summary.input_tokens is not None or summary.output_tokens is not None
    yield RunFact("tokens in → out", " → ".join(tokens) if known else numbers.UNKNOWN)
    yield RunFact("cost", *_cost(record))
    if summary.attempts > 1:
        yield RunFact("attempts", numbers.count(summary.attempts))
    if len(record.exchanges) > 1:
        yield RunFact("exchanges", numbers.count(len(record.exchanges)))
    graded = [run for run in own if run.outcome in ("passed", "failed")]
    if len(own) > 1:
        passed = sum([run.outcome == "passed" for run in own])
        left = f"{len(own) - len(graded)} not counted" if len(own) > len(graded) else ""
        yield RunFact("passes of this case", f"{passed} of {len(graded)}" if graded else numbers.UNKNOWN, left)
    yield RunFact("started", numbers.UNKNOWN, time=summary.started_at)


def _steps(record: RunRecord) -> tuple[str, str]:
    """How many, and how much is known of them."""
    steps = record.summary.steps
    if record.format is None and record.completeness is None:
        return numbers.UNKNOWN, "no answer to read"
    known = known_calls(record.completeness)
    source = _SOURCES.get(known.source or "", f"from its {known.source}" if known.source else "the agent has no tools")
    if known.level == "complete":
        return (numbers.UNKNOWN if steps is None else numbers.count(steps)), f"all known, {source}"
    count = numbers.UNKNOWN if steps is None else f"at least {numbers.count(steps)}"
    return count, "not all known" if known.level == "partial" else "unknown: nothing lists them"


def _cost(record: RunRecord) -> tuple[str, str]:
    """That of the agent, and that of asking models to judge it."""
    costs = model_costs(record.verdicts)
    if not costs.asked:
        return numbers.money(record.summary.cost_usd), ""
    sign = "" if costs.usd_is_all else "at least "
    judged = numbers.UNKNOWN if not costs.usd_is_all and not costs.known_usd else sign + numbers.money(costs.known_usd)
    return numbers.money(record.summary.cost_usd), f"+ {judged} judges"


def _banners(store: Store, record: RunRecord, experiment: Experiment | None, notes: RunNotes) -> Iterator[RunBanner]:
    """What must be known first, the most serious before the others."""
    summary, fault = record.summary, record.fault
    if fault is not None:
        agents = fault.blame == "agent"
        text = "" if agents else " The run is not counted: the fault was not the agent's."
        yield RunBanner("fail" if agents else "", fault.error_class, f"{fault.message}.{text}", fault.detail)
    known = known_calls(record.completeness)
    if summary.status == "completed" and known.level != "complete" and (summary.calls or record.completeness):
        text = f"{what_is_missing(known)}. To do: {what_to_do(known)}."
        yield RunBanner("", "Not all calls are known", _capital(text))
    attempts = [attempt for exchange in record.exchanges for attempt in exchange.attempts]
    observed = sum([attempt.observed_calls for attempt in attempts])
    if summary.status == "completed" and not observed and _has_world(experiment, summary.agent):
        below = " The steps below are what the agent says it did." if summary.steps else ""
        yield RunBanner("", "No observed calls", f"Completed, but no tool call came through the proxy.{below}")
    serious = [note for note in notes.notes if note.serious and note not in known.reasons]
    if serious:
        total = sum([count for (_, weight), count in notes.counts.items() if weight == "serious"])
        head = numbers.plural(total, "serious note")
        yield RunBanner("", _capital(head), _capital(f"{serious[0].message} ({serious[0].code})."))
    if (first := _first_event(store, record.summary.run_id)) > 0:
        kept = "The transcript and the verdicts are kept."
        yield RunBanner("", "Events removed", f"Events before {numbers.count(first)} were removed. {kept}")


def _first_event(store: Store, run_id: str) -> int:
    try:
        head = store.run_head(run_id)
    except SeatrialError:
        return 0
    return head.first if head.following > head.first else 0


def _has_world(experiment: Experiment | None, agent: str) -> bool:
    agents = {} if experiment is None else experiment.suite.get("agents")
    config = agents.get(agent) if isinstance(agents, dict) else None
    return isinstance(config, dict) and config.get("tool_access") == "world"


def _asked(store: Store, record: RunRecord, case: Case | None, head: bool) -> SaidText | None:
    if case is not None:
        return _said(case.instruction, "/messages/0" if head else "")
    for item in store.items(record.summary.run_id, 0, 4) if record.messages else ():
        if isinstance(item.message, UserMessage):
            return _said(item.message.plain_text(), f"/messages/{item.index}")
    return None


def _answered(store: Store, record: RunRecord) -> SaidText | None:
    if record.answer:
        return _said(record.answer, "/answer")
    given = frozenset(record.given)
    first = max(0, record.messages - ANSWER_AMONG)
    for item in reversed(store.items(record.summary.run_id, first, ANSWER_AMONG) if record.messages else ()):
        if not isinstance(item.message, AssistantMessage) or item.index in given:
            continue
        if (said := _said(item.message.plain_text(), f"/messages/{item.index}")) is not None:
            return said
    return None


def _said(text: str, place: str) -> SaidText | None:
    text = text.strip()
    if not text:
        return None
    shown = text[:MAX_SAID]
    return SaidText(shown, len(shown) > FOLDED_AT or shown.count("\n") > 2, len(text) > len(shown), place)


def _outline_head(store: Store, record: RunRecord) -> bool:
    """Whether the user speaks first."""
    return bool(record.messages) and store.outline(record.summary.run_id, 0, 1)[0].kind == "user"


def _outline(
    store: Store,
    record: RunRecord,
    lines: Sequence[StepLine] | None,
    found: RunFindings,
    at: str | None,
    asked: bool,
) -> tuple[list[OutlineLine], str | None, str | None]:
    """The steps, or those around a place; and the places of those before and behind them."""
    total = record.summary.steps or 0
    step = step_of(at)
    focus = step if step is not None else (step_of(found.sentence.place) or 0)
    first = 0 if total <= MAX_OUTLINE else max(0, min(focus - MAX_OUTLINE // 3, total - MAX_OUTLINE))
    if lines is None:
        some: Sequence[StepLine] = store.step_lines(record.summary.run_id, first, MAX_OUTLINE) if total else []
    else:
        some = lines[first : first + MAX_OUTLINE]
    wrong = {finding.step for finding in found.findings if finding.wrong}
    shown: list[OutlineLine] = []
    if first == 0 and asked:
        shown.append(OutlineLine("/messages/0", "user asks", here=at == "/messages/0"))
    actor: str | None = None
    for line in some:
        if line.actor is not None and actor is not None and line.actor != actor:
            shown.append(OutlineLine(f"/steps/{line.index}", f"→ {line.actor}"))
        actor = line.actor or actor
        took = line.duration_ms if line.duration_ms is not None else elapsed(line.started_at, line.ended_at)
        shown.append(
            OutlineLine(
                f"/steps/{line.index}",
                line.name,
                line.index,
                "" if took is None else numbers.duration(took),
                line.status,
                line.index in wrong,
                line.index == step,
            )
        )
    last = first + len(some)
    if last >= total and record.messages and not is_running(record):
        shown.append(OutlineLine("/answer", "answer" if not record.fault else "end", here=at == "/answer"))
    before = f"/steps/{max(0, first - 2 * MAX_OUTLINE // 3)}" if first else None
    after = f"/steps/{min(last + MAX_OUTLINE // 3, total - 1)}" if last < total else None
    return shown, before, after


def _sorted(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """What failed first; a required grader before the others."""
    order: dict[Outcome, int] = {"failed": 0, "errored": 1, "skipped": 2, "passed": 3}
    return sorted(verdicts, key=lambda verdict: (order[verdict.outcome], not verdict.required))


def _card(run_id: str, verdict: Verdict, grading: int | None) -> VerdictCard:
    reasons = [
        reason if len(reason) <= MAX_REASON else f"{reason[: MAX_REASON - 1]}…" for reason in verdict.reasons[:3]
    ]
    judges = judge_lines(verdict)
    name = "expected against actual" if match_result(verdict) is not None else "ballots" if judges else ""
    return VerdictCard(
        verdict=verdict,
        reasons=reasons,
        more_reasons=max(0, len(verdict.reasons) - len(reasons)),
        evidence=[EvidenceLink(place_text(place), place) for place in verdict.evidence[:MAX_EVIDENCE]],
        more_evidence=max(0, len(verdict.evidence) - MAX_EVIDENCE),
        judges=judges,
        page=address("runs", run_id, "verdicts", verdict.grader, grading=grading) if verdict.grader else None,
        page_name=name or "more",
    )


def older_grading(gradings: Sequence[GradingSummary], wanted: int | None) -> int | None:
    """The grading that was asked for, unless it is the latest, or there is none such."""
    numbers_of = [grading.number for grading in gradings]
    return wanted if wanted is not None and wanted in numbers_of[:-1] else None


def _metadata(record: RunRecord) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The keys that everybody knows, and the others."""
    both = {**record.metadata, **record.source_metadata}
    known = [(name, _value(both[name])) for name in KNOWN_METADATA if both.get(name) is not None]
    return known, [(name, _value(value)) for name, value in both.items() if name not in KNOWN_METADATA]


def _value(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = value if isinstance(value, str) else value_text(value)
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 1]}…"


def _changes(record: RunRecord) -> tuple[str, list[str], str, bool] | None:
    if record.diff is None:
        return None
    patch = record.diff.patch
    cut = len(patch) > MAX_PATCH or any(text.pointer == "/diff/patch" for text in record.long_texts)
    return summary_text(record.diff), file_lines(record.diff)[:MAX_METADATA], patch[:MAX_PATCH], cut


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
