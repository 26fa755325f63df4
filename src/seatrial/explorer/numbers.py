"""Numbers as pages show them: three digits that count, and no line break before a unit."""

from __future__ import annotations

from datetime import UTC, datetime

from seatrial.reports import figures

NBSP = "\N{NO-BREAK SPACE}"
UNKNOWN = "–"
TIMES = "×"
_MANY = 100
"""Runs from which on a tenth of a percent says something."""
_SEPARATED = 10_000


def count(number: int) -> str:
    """`2220`, `1,034,118`."""
    return f"{number:,}" if number >= _SEPARATED else str(number)


def plural(number: int, noun: str, several: str | None = None) -> str:
    """`1 case`, `2 cases`, on one line."""
    return f"{count(number)}{NBSP}{noun if number == 1 else several or noun + 's'}"


def step(index: int) -> str:
    """A step in words: `step 4` is `/steps/4`, as in verdicts, in the terminal and in the addresses of pages."""
    return f"step{NBSP}{count(index)}"


def percent(share: float | None, of: int = _MANY + 1) -> str:
    """A rate of so many runs: `78.1%`, and `78%` of few. 0% and 100% only when it is none or all."""
    if share is None:
        return UNKNOWN
    if of > _MANY or share in (0, 1):
        return figures.percent(share)
    return f"{min(max(round(share * 100), 1), 99)}%"


def points(difference: float) -> str:
    """A difference of two rates, in points: `−6.2`."""
    return figures.points(difference)


def change(difference: float) -> str:
    """A difference with its sign: `−0.80`, `+30`."""
    text = f"{difference:+d}" if isinstance(difference, int) else f"{difference:+.2f}"
    return "0" if not difference else text.replace("-", "−")


def score(value: float | None) -> str:
    """A score, or a difference between two."""
    return figures.decimal(value)


def duration(milliseconds: float | None) -> str:
    """`842 ms`, `22.4 s`, `14 min`, `1 h 4 min`; `–` when nobody knows."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 999.5:
        return f"{_three(milliseconds)}{NBSP}ms"
    seconds = milliseconds / 1000
    if seconds < 99.95:
        return f"{_three(seconds)}{NBSP}s"
    minutes = round(seconds / 60)
    if minutes < 10:
        return f"{int(seconds) // 60}{NBSP}min{NBSP}{int(seconds) % 60}{NBSP}s"
    return f"{minutes}{NBSP}min" if minutes < 60 else f"{minutes // 60}{NBSP}h{NBSP}{minutes % 60}{NBSP}min"


def money(usd: float | None) -> str:
    """`$11.42`, `$0.0121`; `–` when nobody knows."""
    if usd is None:
        return UNKNOWN
    if usd == 0 or usd >= 1:
        return f"${usd:,.2f}"
    return f"${_three(usd)}" if usd >= 0.00001 else f"${usd:.2g}"


def size(octets: int) -> str:
    """`512 B`, `212 KB`, `44.1 MB`."""
    if octets < 1000:
        return f"{octets}{NBSP}B"
    value, units = octets / 1000, ["KB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{_three(value)}{NBSP}{units[0]}"


def when(milliseconds: int | None) -> str:
    """`16 Nov 09:38`, of a time in ms since the epoch; UTC, which the browser turns into the reader's time."""
    if milliseconds is None:
        return UNKNOWN
    time = _time(milliseconds)
    return f"{time.day}{NBSP}{time:%b}{NBSP}{time:%H:%M}"


def day(milliseconds: int | None) -> str:
    """`2026-11-16 09:38:12 UTC`."""
    return UNKNOWN if milliseconds is None else f"{_time(milliseconds):%Y-%m-%d %H:%M:%S} UTC"


def iso(milliseconds: int) -> str:
    """For the attribute of a `time` element."""
    return f"{_time(milliseconds):%Y-%m-%dT%H:%M:%SZ}"


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _three(value: float) -> str:
    """Three digits that count, never as a power of ten."""
    text = f"{value:.3g}"
    return f"{float(text):f}".rstrip("0").rstrip(".")
