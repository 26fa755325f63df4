"""Every kind of grader, and graders from configurations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from seatrial import wire
from seatrial.errors import SeatrialError
from seatrial.graders.answer import (
    Contains,
    ContainsAll,
    ContainsAny,
    EndsWith,
    Equals,
    IContains,
    Regex,
    StartsWith,
)
from seatrial.graders.code import Code
from seatrial.graders.composite import Composite
from seatrial.graders.contract import Contract
from seatrial.graders.field_accuracy import FieldAccuracy
from seatrial.graders.grader import Grader
from seatrial.graders.honesty import Honesty
from seatrial.graders.json_answer import IsJson, JsonSchema
from seatrial.graders.judge import Judge
from seatrial.graders.metrics import Cost, Latency, ModelCalls, Steps, Tokens
from seatrial.graders.python import Python
from seatrial.graders.tool_trajectory import ToolTrajectory
from seatrial.transcript.note import pointer

GRADERS: dict[str, type[Grader]] = {
    kind.kind: kind
    for kind in (
        *(ToolTrajectory, Honesty, Contract),
        *(Equals, Contains, ContainsAny, ContainsAll, IContains, Regex, StartsWith, EndsWith),
        *(IsJson, JsonSchema, FieldAccuracy),
        *(Latency, Cost, Tokens, Steps, ModelCalls),
        *(Judge, Code, Python, Composite),
    )
}
"""Every kind that a suite can name."""


def build_graders(configs: Iterable[Mapping[str, Any]], kinds: Mapping[str, type[Grader]] = GRADERS) -> list[Grader]:
    """Graders of configurations, each a mapping with its `kind`. Raises `SeatrialError("invalid_config")`."""
    return [_build(config, kinds, index) for index, config in enumerate(configs)]


def _build(config: Mapping[str, Any], kinds: Mapping[str, type[Grader]], index: int) -> Grader:
    kind = config.get("kind") if isinstance(config, Mapping) else None
    if not isinstance(kind, str) or kind not in kinds:
        message = "a grader needs a `kind`" if kind is None else f"there is no grader of the kind {str(kind)[:60]!r}"
        raise SeatrialError("invalid_config", message, pointer=pointer(index), hint=_nearest(kind, kinds))
    own = {key: value for key, value in config.items() if key != "kind"}
    struct = kinds[kind]
    for key in own:
        if key not in struct.__struct_encode_fields__:
            hint = _nearest(key, struct.__struct_encode_fields__)
            raise SeatrialError(
                "invalid_config", f"`{kind}` has no key {str(key)[:60]!r}", pointer=pointer(index, key), hint=hint
            )
    try:
        return msgspec.convert(own, struct)
    except msgspec.ValidationError as error:
        told = wire.invalid_document(error)
        at = pointer(index) + (told.pointer or "")
        raise SeatrialError("invalid_config", f"`{kind}`: {told.message}", pointer=at) from None


def _nearest(word: object, known: Iterable[str]) -> str:
    known = list(known)
    near = get_close_matches(str(word)[:60].lower(), known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"one of: {', '.join(known)}"
