"""A count before and now, in a cell of a table. The numbers stand beside it."""

from __future__ import annotations

from markupsafe import Markup

WIDTH = 100
_EDGE = 4


def dumbbell(before: int | None, now: int, most: int, *, toned: bool = True) -> Markup:
    """A count now as a dot, joined to a line where it was; without a before, to zero. Without a tone, a
    change is neither good nor bad."""

    def at(count: int) -> str:
        return f"{_EDGE + count / max(most, 1) * (WIDTH - 2 * _EDGE):.1f}"

    tone = "" if before is None or before == now or not toned else "bad" if now > before else "good"
    was = Markup('<path class="was" d="M{} 3V13"/>').format(at(before)) if before is not None else ""
    return Markup(
        '<svg class="ivp {}" width="{}" height="16" aria-hidden="true"><path class="hl" d="M{} 8H{}"/>'
        '<path class="iv" d="M{} 8H{}"/>{}<circle class="pt" cx="{}" cy="8" r="3.5"/></svg>'
    ).format(tone, WIDTH, _EDGE, WIDTH - _EDGE, at(before or 0), at(now), was, at(now))
