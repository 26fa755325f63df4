"""When a comparison is to fail a build."""

from __future__ import annotations

import math

import msgspec

from seatrial.errors import SeatrialError
from seatrial.reports import figures
from seatrial.reports.compare import Comparison

# Rates are fractions of small numbers: a drop of exactly the limit must not pass it by rounding.
_ROUNDING = 1e-9


class Gate(msgspec.Struct, frozen=True):
    """What b may not do."""

    regression: bool = False
    """Pass any case less often than a."""
    drop: float | None = None
    """Have a pass rate that is lower than a's by more than this."""


def gate_of(conditions: list[str]) -> Gate:
    """The gate that `--fail-on` describes: `regression`, `drop=0.02`."""
    gate = Gate()
    for condition in conditions:
        name, _, value = condition.partition("=")
        if name == "regression" and not value:
            gate = msgspec.structs.replace(gate, regression=True)
        elif name == "drop" and (limit := _share(value)) is not None:
            gate = msgspec.structs.replace(gate, drop=limit)
        else:
            raise SeatrialError(
                "usage", f"--fail-on {condition!r} is not known", hint="`regression`, or `drop=0.02` for two points"
            )
    return gate


def objections(gate: Gate, comparison: Comparison) -> list[str]:
    """Why the gate is shut, in sentences; none when it is open."""
    found = []
    if gate.regression and comparison.worse:
        found.append(f"{figures.plural(comparison.worse, 'case')} passed less often than before")
    if gate.drop is not None and comparison.difference < -gate.drop - _ROUNDING:
        found.append(
            f"the pass rate dropped by {-comparison.difference * 100:.1f} points; {gate.drop * 100:g} are allowed"
        )
    return found


def _share(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= 1 else None
