"""Timelines as SVG: percentages across, so that one drawing fits a wide page and a narrow one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from math import floor, log10

from markupsafe import Markup, escape

from seatrial.explorer import numbers
from seatrial.explorer.markup import visible
from seatrial.explorer.timeline import USER, Timeline, TimelineSpan, worst

MAX_SHAPES = 400
MERGE_PX = 3
"""Spans of a row that are nearer to each other are drawn as one."""
MIN_PX, MAX_PX = 200, 4000

TOP = 40
"""Above the lanes: the axis, and the flags below it."""
USER_LANE = 22
LANE = 42
_CHARACTER = 6.4
"""Pixels of a character of a label, about."""
_TICK_PX = 110


class _Drawing:
    """The window of a timeline on so many pixels."""

    def __init__(self, timeline: Timeline, px: int, base: str) -> None:
        self.timeline = timeline
        self.px = px
        self.base = base
        self.length = (timeline.end - timeline.start) or 1.0

    def x(self, at: float) -> float:
        """Percent from the left."""
        return min(max((at - self.timeline.start) / self.length * 100, -1.0), 101.0)

    def pixels(self, span: float) -> float:
        return span / self.length * self.px

    def link(self, place: str) -> str:
        return f"{self.base}at={place}#{place.strip('/').replace('/', '-')}"


def timeline_svg(timeline: Timeline, px: int = 1180, base: str = "?", limit: int = MAX_SHAPES) -> Markup:
    """The drawing, on about so many pixels; `base` is the beginning of the address that a place is added to."""
    drawing = _Drawing(timeline, min(max(px, MIN_PX), MAX_PX), base)
    height = TOP + sum(map(lane_height, timeline.lanes))
    parts = [
        f'<svg class="tl" width="100%" height="{height}" role="group" '
        f'aria-label="{escape(visible(summary(timeline)))}" '
        f'data-start="{timeline.start:g}" data-end="{timeline.end:g}" data-whole="{timeline.whole:g}">',
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path class="hl" d="M0 0v6"/></pattern></defs>',
        *_axis(drawing, height),
    ]
    y = TOP
    tops: dict[str, int] = {}
    for lane in timeline.lanes:
        tops[lane] = y
        parts.append(f'<path class="ll" d="M0 {y}H9999"/>')
        y += lane_height(lane)
    for low, high in timeline.gaps:
        parts.append(_gap(drawing, low, high, height))
    rows = [
        (lane, row, [span for span in timeline.spans if span.lane == lane and span.row == row])
        for lane in timeline.lanes
        for row in ("user", "model", "tool")
    ]
    left = max(limit - len(timeline.gaps) - len(timeline.flags), 40)
    gap = MERGE_PX
    merged = [(lane, row, _merged(drawing, some, gap)) for lane, row, some in rows]
    while sum([len(some) for _, _, some in merged]) > left:
        gap *= 2
        merged = [(lane, row, _merged(drawing, some, gap)) for lane, row, some in rows]
    for lane, row, some in merged:
        top = tops[lane]
        if row == "tool":
            parts += _bars(drawing, some, top + (3 if lane == USER else 18))
        else:
            kind = "us" if row == "user" else "mo"
            parts += [_thin(drawing, span, top + 8, kind) for span in some]
    parts += [_flag(drawing, flag.letters, flag.at, flag.place, flag.wrong, height) for flag in timeline.flags]
    parts.append("</svg>")
    return Markup("".join(parts))  # noqa: S704 - numbers, and text that was escaped


def minimap_svg(timeline: Timeline, px: int = 1180) -> Markup:
    """The whole run in one row, and which part of it is shown."""
    whole = timeline.whole or 1.0
    spans = timeline.everything or timeline.spans
    buckets: list[list[TimelineSpan]] = [[] for _ in range(min(120, max(px // 8, 20)))]
    for span in spans:
        buckets[min(int(span.start / whole * len(buckets)), len(buckets) - 1)].append(span)
    most = max([sum([span.count for span in some]) for some in buckets], default=1) or 1
    width = 100 / len(buckets)
    parts = ['<svg class="mini" width="100%" height="30" aria-hidden="true">']
    for index, some in enumerate(buckets):
        if some:
            height = 4 + round(20 * sum([span.count for span in some]) / most)
            kind = "ba" if any(span.bad for span in some) else "mo"
            parts.append(
                f'<rect class="{kind}" x="{index * width:.2f}%" y="{28 - height}" width="{width * 0.8:.2f}%" '
                f'height="{height}"/>'
            )
    low, high = timeline.start / whole * 100, timeline.end / whole * 100
    parts.append(
        f'<rect class="br" x="{low:.2f}%" y="1" width="{max(high - low, 0.4):.2f}%" height="28" rx="3"/></svg>'
    )
    return Markup("".join(parts))  # noqa: S704 - numbers


def lane_height(lane: str) -> int:
    """Pixels of a lane."""
    return USER_LANE if lane == USER else LANE


def summary(timeline: Timeline) -> str:
    """The timeline in a sentence, for those who do not see it."""
    steps = [span for span in timeline.spans if span.row == "tool"]
    failed = sum([span.failed for span in steps])
    length = (
        f"{numbers.duration(timeline.end - timeline.start)} of time"
        if timeline.axis == "time"
        else "the order of steps"
    )
    lanes = numbers.plural(len(timeline.lanes), "lane")
    bad = f", {numbers.count(failed)} failed" if failed else ""
    spans = numbers.plural(len(steps), "span")
    return f"Timeline over {length}: {lanes}, {spans} of calls{bad}. The list of steps says the same."


def _axis(drawing: _Drawing, height: int) -> Iterator[str]:
    start, end = drawing.timeline.start, drawing.timeline.end
    step = _nice(drawing.length / max(drawing.px / _TICK_PX, 2), whole=drawing.timeline.axis == "steps")
    at = -(-start // step) * step
    while at <= end and step > 0:
        x = drawing.x(at)
        label = _tick(at, step) if drawing.timeline.axis == "time" else numbers.count(round(at))
        yield f'<line class="ll" x1="{x:.2f}%" x2="{x:.2f}%" y1="14" y2="{height}"/>'
        if x < 96:
            yield f'<text x="{x:.2f}%" dx="3" y="11">{escape(label)}</text>'
        at += step


def _nice(rough: float, *, whole: bool) -> float:
    """1, 2 or 5 times a power of ten; of milliseconds from a minute on, what clocks have."""
    if rough <= 0:
        return 1.0
    if not whole and rough > 10_000:
        for step in (15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000):
            if step >= rough:
                return float(step)
    power = 10 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    return max(step, 1.0) if whole else float(step)


def _tick(at: float, step: float) -> str:
    if step >= 15_000:
        minutes, seconds = divmod(round(at / 1000), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    if step >= 1000:
        return f"{at / 1000:g}{numbers.NBSP}s"
    return f"{at / 1000:.3g}{numbers.NBSP}s" if step >= 10 else f"{at:g}{numbers.NBSP}ms"


def _merged(drawing: _Drawing, spans: Sequence[TimelineSpan], gap: float) -> list[TimelineSpan]:
    """Spans of one row; those that are too near to each other as one, which is as bad as the worst of them."""
    found: list[TimelineSpan] = []
    some: list[TimelineSpan] = []
    reached = 0.0

    def close() -> None:
        if len(some) == 1:
            found.append(some[0])
        elif some:
            first, names = some[0], {span.name for span in some}
            bad = next((span for span in some if span.bad), first)
            found.append(
                TimelineSpan(
                    first.lane,
                    first.row,
                    first.start,
                    reached,
                    bad.place,
                    names.pop() if len(names) == 1 else "",
                    worst([span.status for span in some]),
                    bad.step,
                    sum([span.count for span in some]),
                )
            )

    for span in sorted(spans, key=lambda span: span.start):
        near = bool(some) and drawing.pixels(span.start - reached) < gap
        if near and min(drawing.pixels(span.end - span.start), drawing.pixels(reached - some[0].start)) < gap:
            some.append(span)
            reached = max(reached, span.end)
            continue
        close()
        some, reached = [span], span.end
    close()
    return found


def _thin(drawing: _Drawing, span: TimelineSpan, y: int, kind: str) -> str:
    x, width = drawing.x(span.start), max(drawing.x(span.end) - drawing.x(span.start), 0.2)
    return f'<rect class="{kind}" x="{x:.2f}%" y="{y}" width="{width:.2f}%" height="6"/>'


def _bars(drawing: _Drawing, spans: Sequence[TimelineSpan], y: int) -> Iterator[str]:
    for span, following in zip_longest(spans, spans[1:]):
        x, width = drawing.x(span.start), max(drawing.x(span.end) - drawing.x(span.start), 0.25)
        kind = "ba" if span.bad else "to" if span.status == "ok" else "uk"
        one = f"{span.step} {span.name}".strip()
        named = visible(one if span.count == 1 and span.step is not None else span.name)
        room = drawing.pixels(span.end - span.start)
        until = drawing.timeline.end if following is None else following.start
        label, inside = "", False
        for text in (named, str(span.step) if span.step is not None else ""):
            size = len(text) * _CHARACTER + 8
            if text and size < room:
                label, inside = text, True
                break
            if text and size + 6 < drawing.pixels(until - span.end):
                label = text
                break
        yield (
            f'<a href="{escape(drawing.link(span.place))}" tabindex="-1" data-at="{span.place}" '
            f'aria-label="{escape(visible(_words(drawing.timeline, span)))}">'
            f'<rect class="{kind}" x="{x:.2f}%" y="{y}" width="{width:.2f}%" height="14" rx="2"/>'
        )
        if label:
            place = f'x="{x:.2f}%" dx="4"' if inside else f'x="{x + width:.2f}%" dx="5"'
            yield f'<text {place} y="{y + 11}"{" class=w" if inside else ""}>{escape(visible(label))}</text>'
        yield "</a>"


def _words(timeline: Timeline, span: TimelineSpan) -> str:
    name = span.name or "calls"
    took = f", {numbers.duration(span.end - span.start)}" if timeline.axis == "time" and span.end > span.start else ""
    status = f", {span.status}" if span.status is not None else ""
    if span.count > 1:
        return f"{numbers.count(span.count)} items, {name}{took}{', some failed' if span.failed else ''}"
    return f"Step {span.step}, {name}{took}{status}" if span.step is not None else f"{name}{took}{status}"


def _gap(drawing: _Drawing, low: float, high: float, height: int) -> str:
    x, width = drawing.x(low), drawing.x(high) - drawing.x(low)
    words = f"{numbers.duration(high - low)} in which nothing was recorded"
    shape = (
        f'<rect class="ga" x="{x:.2f}%" y="{TOP}" width="{max(width, 0):.2f}%" height="{height - TOP}">'
        f"<title>{escape(visible(words))}</title></rect>"
    )
    if drawing.pixels(high - low) > 150:
        text = f"{numbers.duration(high - low)} nothing recorded"
        shape += f'<text x="{x + width / 2:.2f}%" y="{height - 4}" text-anchor="middle">{escape(text)}</text>'
    return shape


def _flag(drawing: _Drawing, letters: str, at: float, place: str, wrong: bool, height: int) -> str:
    if not drawing.timeline.start <= at <= drawing.timeline.end:
        return ""
    width = 16 + 10 * (len(letters.split()) - 1)
    kind = "fb" if wrong else "fl"
    return (
        f'<svg class="fg" x="{drawing.x(at):.2f}%" overflow="visible"><a class="{kind}" '
        f'href="{escape(drawing.link(place))}" aria-label="Finding {escape(letters)}">'
        f'<path d="M0 36V{height}" stroke-dasharray="2 3"/>'
        f'<rect x="{-width / 2:g}" y="19" width="{width}" height="16" rx="8"/>'
        f'<text class="w" y="31" text-anchor="middle">{escape(letters)}</text></a></svg>'
    )
