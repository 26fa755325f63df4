"""The timeline of a run: who did what when, in lanes of actors, on an axis of time or of steps.

It is made of the outline of the run and of its steps without their arguments, so it costs little however much a run
says. Of a run of many messages, ranges of messages stand in it as one span each, until one looks closer. Nothing is
made up from the order: what has no time is not on the axis of time, and where nothing was recorded, that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from seatrial.explorer import numbers
from seatrial.reports.findings import MISSING, RunFinding, step_of
from seatrial.store import OutlineEntry, RunRecord, StepLine, Store
from seatrial.trajectory.step import FAILED, Moment, Status, milliseconds

Axis: TypeAlias = Literal["time", "steps"]
SpanRow: TypeAlias = Literal["user", "model", "tool"]

MAX_MESSAGES = 1000
"""Messages that are drawn one by one; of more, a span is a range."""
MAX_STEPS = 5000
MAX_LANES = 10
GAP_MS = 1000
"""Longer times in which nothing was recorded are marked."""
USER = "user"
OTHERS = "others"
_WORST: tuple[Status | None, ...] = (None, "ok", "unknown", "cancelled", "timeout", "error")


class TimelineSpan(msgspec.Struct, frozen=True, gc=False):
    """Something that was done, or several such things."""

    lane: str
    row: SpanRow
    start: float
    """Milliseconds from the beginning of the axis, or a place on the axis of steps; so is the end."""
    end: float
    place: str
    """JSON pointer to it, or to the first of it."""
    name: str = ""
    """The tool."""
    status: Status | None = None
    step: int | None = None
    count: int = 1
    """How many messages or steps it stands for."""
    wrong: bool = False
    """Whether a finding says that it is wrong."""

    @property
    def failed(self) -> bool:
        """Whether it, or something in it, failed."""
        return self.status in FAILED

    @property
    def bad(self) -> bool:
        """Whether it is drawn as wrong or failed."""
        return self.wrong or self.failed


class TimelineFlag(msgspec.Struct, frozen=True):
    """Findings of one place."""

    letters: str
    at: float
    place: str
    wrong: bool


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """What a timeline is drawn of."""

    run_id: str
    axis: Axis
    timed: bool
    """Whether there are times at all; without them, the axis is that of steps."""
    whole: float
    """The length of the whole axis, which begins at 0."""
    start: float
    end: float
    """The part that is shown."""
    lanes: list[str]
    spans: list[TimelineSpan]
    everything: list[TimelineSpan] = []
    """The whole run, coarsely, where only a part is shown."""
    gaps: list[tuple[float, float]] = []
    flags: list[TimelineFlag] = []
    merged: bool = False
    """Whether spans are ranges of messages."""
    items: int = 0
    """Messages and steps of the whole run."""
    untimed: int = 0
    """Steps without a time, which are not on the axis of time."""
    left_out: int = 0
    """Steps that are too many to be drawn."""
    went: str = ""
    """Where the time went, in words."""

    @property
    def zoomed(self) -> bool:
        """Whether only a part is shown."""
        return self.start > 0 or self.end < self.whole

    @property
    def remarks(self) -> list[str]:
        """What is not drawn, and why."""
        told = []
        if not self.timed and self.spans:
            told.append("The agent gave no times, so this shows the order of its steps.")
        if self.untimed and self.axis == "time":
            have, is_ = ("has", "is") if self.untimed == 1 else ("have", "are")
            told.append(f"{numbers.plural(self.untimed, 'step')} {have} no time, and {is_} not shown here.")
        if self.left_out:
            told.append(f"{numbers.plural(self.left_out, 'more step')} at the end are not drawn.")
        if self.merged:
            told.append(f"{numbers.plural(self.items, 'item')}, shown as {numbers.plural(len(self.spans), 'range')}.")
        return told


def run_timeline(
    store: Store,
    record: RunRecord,
    findings: Sequence[RunFinding] = (),
    *,
    axis: Axis = "time",
    start: float | None = None,
    end: float | None = None,
    lanes: Sequence[str] = (),
    lines: Sequence[StepLine] | None = None,
) -> Timeline:
    """The timeline of a run, or of a part of it; `lines` are all its steps, where they are at hand."""
    return _Maker(store, record, lines).timeline(findings, axis, start, end, lanes)


class _Maker:
    def __init__(self, store: Store, record: RunRecord, lines: Sequence[StepLine] | None) -> None:
        self._store = store
        self._record = record
        self._run_id = record.summary.run_id
        self._agent = record.key.agent
        self._steps = record.summary.steps or 0
        self._long = record.messages > MAX_MESSAGES
        self._coarse = store.overview(self._run_id) if self._long else []
        self._entries: list[OutlineEntry] = []
        self._lines: list[StepLine] = [*lines] if lines is not None and not self._long else []
        if not self._long:
            self._entries = store.outline(self._run_id, 0, MAX_MESSAGES) if record.messages else []
            if lines is None and self._steps:
                self._lines = store.step_lines(self._run_id, 0, MAX_STEPS)

    def timeline(
        self,
        findings: Sequence[RunFinding],
        axis: Axis,
        start: float | None,
        end: float | None,
        wanted: Sequence[str],
    ) -> Timeline:
        origin, last = self._range()
        timed = origin is not None and last is not None and last > origin
        axis = axis if timed else "steps"
        self._origin = origin or 0.0
        spans = [*(self._over_time(self._coarse) if axis == "time" else self._over_steps(self._coarse))]
        whole = max([span.end for span in spans], default=0.0)
        if axis == "time" and last is not None:
            whole = max(whole, last - self._origin)
        begin, stop = _window(start, end, whole)
        zoomed = begin > 0 or stop < whole
        shown, merged = spans, self._long
        if self._long and zoomed:
            closer = self._closer(spans, begin, stop, axis)
            shown, merged = (closer, False) if closer is not None else (spans, True)
        shown = [span for span in shown if span.end >= begin and span.start <= stop]
        # Where a call is missing, the one that stands there is not what is wrong.
        wrong = {each.step for each in findings if each.wrong and each.title != MISSING and each.step is not None}
        if wrong and not merged:
            shown = [msgspec.structs.replace(span, wrong=True) if span.step in wrong else span for span in shown]
        found = list(dict.fromkeys(span.lane for span in shown))
        chosen = [lane for lane in found if not wanted or lane in wanted] or found
        if len(chosen) > MAX_LANES:
            others = {*chosen[MAX_LANES - 1 :]}
            shown = [msgspec.structs.replace(span, lane=OTHERS) if span.lane in others else span for span in shown]
            chosen = [*chosen[: MAX_LANES - 1], OTHERS]
        gaps = [*_gaps(spans)] if axis == "time" and not self._long else []
        return Timeline(
            run_id=self._run_id,
            axis=axis,
            timed=timed,
            whole=whole,
            start=begin,
            end=stop,
            lanes=chosen,
            spans=[span for span in shown if span.lane in chosen],
            everything=spans if zoomed else [],
            gaps=[(max(low, begin), min(high, stop)) for low, high in gaps if high > begin and low < stop],
            flags=[*_flags(findings, spans, whole)],
            merged=merged,
            items=self._record.messages + self._steps,
            untimed=sum([_times(line) is None for line in self._lines]),
            left_out=0 if self._long else max(0, self._steps - len(self._lines)),
            went=self._went(gaps),
        )

    def _range(self) -> tuple[float | None, float | None]:
        """The first and the last moment that was recorded."""
        moments = [at for entry in (self._entries or self._coarse) if not entry.given for at in _ends(entry)]
        moments += [at for line in self._lines if (times := _times(line)) is not None for at in times]
        if not moments:
            return None, None
        first, last = min(moments), max(moments)
        began, took = self._record.summary.started_at, self._record.summary.duration_ms
        # Our clock and that of the agent may differ; where they agree, the axis is that of the run.
        if began is not None and took is not None and began <= first and last <= began + took + GAP_MS:
            return float(began), max(last, began + took)
        return first, last

    def _over_time(self, coarse: Sequence[OutlineEntry]) -> Iterator[TimelineSpan]:
        if coarse:
            for entry in coarse:
                if entry.started_at is not None and entry.ended_at is not None and not entry.given:
                    yield self._range_span(entry, entry.started_at - self._origin, entry.ended_at - self._origin)
            return
        yield from self._said(self._entries)
        for line in self._lines:
            times = _times(line)
            if times is not None:
                yield self._step_span(line, times[0] - self._origin, times[1] - self._origin)

    def _said(self, entries: Iterable[OutlineEntry]) -> Iterator[TimelineSpan]:
        """What was said by the user and by models, where that has a time of its own."""
        first = {line.index: _times(line) for line in self._lines}
        for entry in entries:
            if entry.started_at is None or entry.given or entry.kind not in ("user", "assistant", "call"):
                continue
            at = entry.started_at - self._origin
            called = first.get(entry.step) if entry.step is not None else None
            if entry.kind == "call" and called is not None and called[0] <= entry.started_at:
                continue  # that is the time of its call
            end = at if entry.ended_at is None or entry.kind == "call" else entry.ended_at - self._origin
            yield self._said_span(entry, at, end)

    def _over_steps(self, coarse: Sequence[OutlineEntry]) -> Iterator[TimelineSpan]:
        if coarse:
            for entry in coarse:
                yield self._range_span(entry, entry.first, entry.first + entry.count)
            return
        at = 0
        calls = [entry.step for entry in self._entries if entry.kind == "call" and entry.step is not None]
        told = [entry for entry in self._entries if entry.kind in ("user", "assistant", "call")]
        # Steps that are in no message stand before what was said last.
        apart = not calls
        for number, entry in enumerate(told):
            if apart and number == len(told) - 1 and entry.kind == "assistant":
                for line in self._lines:
                    yield self._step_span(line, at, at + 1)
                    at += 1
                apart = False
            yield self._said_span(entry, at, at + 1)
            at += 1
            if entry.kind == "call" and entry.step is not None:
                following = next((step for step in calls if step > entry.step), self._steps)
                for line in self._lines[entry.step : following]:
                    yield self._step_span(line, at, at + 1)
                    at += 1
        if apart:
            for line in self._lines:
                yield self._step_span(line, at, at + 1)
                at += 1

    def _closer(self, spans: Sequence[TimelineSpan], start: float, end: float, axis: Axis) -> list[TimelineSpan] | None:
        """The messages of a part of a long run, one by one; None while they are too many."""
        inside = [
            entry
            for entry, span in zip(self._shown_coarse(axis), spans, strict=True)
            if span.end >= start and span.start <= end
        ]
        count = sum([entry.count for entry in inside])
        if not inside or count > MAX_MESSAGES:
            return None
        entries = self._store.outline(
            self._run_id, inside[0].first, inside[-1].first + inside[-1].count - inside[0].first
        )
        found: list[TimelineSpan] = []
        for entry in entries:
            if entry.kind not in ("user", "assistant", "call"):
                continue
            if axis == "steps":
                low, high = float(entry.first), float(entry.first + 1)
            elif entry.started_at is None or entry.ended_at is None:
                continue
            else:
                low, high = entry.started_at - self._origin, entry.ended_at - self._origin
            if entry.kind == "call":
                found.append(self._range_span(entry, low, high))
            else:
                found.append(self._said_span(entry, low, high))
        return found

    def _shown_coarse(self, axis: Axis) -> list[OutlineEntry]:
        if axis == "steps":
            return self._coarse
        return [entry for entry in self._coarse if None not in (entry.started_at, entry.ended_at) and not entry.given]

    def _range_span(self, entry: OutlineEntry, start: float, end: float) -> TimelineSpan:
        place = f"/messages/{entry.first}" if entry.step is None else f"/steps/{entry.step}"
        row: SpanRow = "model" if entry.step is None and entry.status is None else "tool"
        lane = USER if entry.kind == "user" else entry.actor or self._agent
        return TimelineSpan(
            lane,
            "user" if entry.kind == "user" else row,
            start,
            end,
            place,
            entry.name or "",
            entry.status,
            entry.step,
            entry.count,
        )

    def _said_span(self, entry: OutlineEntry, start: float, end: float) -> TimelineSpan:
        place = f"/messages/{entry.first}"
        if entry.kind == "user":
            return TimelineSpan(USER, "user", start, end, place)
        return TimelineSpan(entry.actor or self._agent, "model", start, end, place)

    def _step_span(self, line: StepLine, start: float, end: float) -> TimelineSpan:
        lane = USER if line.executed_by == "user" else line.actor or self._agent
        return TimelineSpan(lane, "tool", start, end, f"/steps/{line.index}", line.name, line.status, line.index)

    def _went(self, gaps: Sequence[tuple[float, float]]) -> str:
        times = [found for line in self._lines if (found := _times(line)) is not None]
        if times:
            tools: float | None = _covered(times)
        else:
            known = [line.duration_ms for line in self._lines if line.duration_ms is not None and line.duration_ms >= 0]
            tools = sum(known) if known else None
        told = [f"tools {numbers.duration(tools)}"] if tools is not None else []
        if gaps:
            told.append(f"nothing recorded {numbers.duration(sum([high - low for low, high in gaps]))}")
        return ", ".join(told)


def _window(start: float | None, end: float | None, whole: float) -> tuple[float, float]:
    begin = min(max(start or 0.0, 0.0), whole)
    stop = min(whole if end is None else end, whole)
    return (begin, stop) if stop > begin else (0.0, whole)


def _ends(entry: OutlineEntry) -> Iterator[float]:
    if entry.started_at is not None:
        yield entry.started_at
    if entry.ended_at is not None:
        yield entry.ended_at


def _times(line: StepLine) -> tuple[float, float] | None:
    """When a step began and ended; the same moment twice where only one is known."""
    start, end = _moment(line.started_at), _moment(line.ended_at)
    took = line.duration_ms if line.duration_ms is not None and line.duration_ms >= 0 else None
    if start is None and end is not None and took is not None:
        start = end - took
    if end is None and start is not None and took is not None:
        end = start + took
    if start is None or end is None or end < start:
        only = start if start is not None else end
        return None if only is None else (only, only)
    return start, end


def _moment(moment: Moment | None) -> float | None:
    return None if moment is None else milliseconds(moment)


def _gaps(spans: Sequence[TimelineSpan]) -> Iterator[tuple[float, float]]:
    """Times in which nothing was recorded, between what was."""
    reached: float | None = None
    for span in sorted(spans, key=lambda span: span.start):
        if reached is not None and span.start - reached > GAP_MS:
            yield reached, span.start
        reached = span.end if reached is None else max(reached, span.end)


def _covered(times: Iterable[tuple[float, float]]) -> float:
    """The time in which at least one of these was going on."""
    total = 0.0
    reached: float | None = None
    for start, end in sorted(times):
        if reached is None or start > reached:
            total += end - start
            reached = end
        elif end > reached:
            total += end - reached
            reached = end
    return total


def _flags(findings: Sequence[RunFinding], spans: Sequence[TimelineSpan], whole: float) -> Iterator[TimelineFlag]:
    """A flag for each place that has findings."""
    by_place: dict[str, list[tuple[str, RunFinding]]] = {}
    for letter, finding in zip("abcde", findings, strict=False):
        if finding.place is not None:
            by_place.setdefault(finding.place, []).append((letter, finding))
    for place, some in by_place.items():
        at = _where(place, spans, whole)
        if at is not None:
            yield TimelineFlag(
                " ".join(letter for letter, _ in some), at, place, any(finding.wrong for _, finding in some)
            )


def _where(place: str, spans: Sequence[TimelineSpan], whole: float) -> float | None:
    step = step_of(place)
    if step is not None:
        some = [span for span in spans if span.step is not None and span.step <= step]
        span = max(some, key=lambda span: span.step or 0, default=None)
        return None if span is None else (span.start + span.end) / 2
    if place == "/answer":
        said = [span for span in spans if span.row == "model"]
        return (said[-1].start + said[-1].end) / 2 if said else whole
    exact = next((span for span in spans if place == span.place), None)
    return None if exact is None else (exact.start + exact.end) / 2


def worst(statuses: Iterable[Status | None]) -> Status | None:
    """The worst of these."""
    return max(statuses, key=_WORST.index, default=None)
