"""Models of a suite's `judge` that are not behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seatrial._support.environment import names_secret
from seatrial._support.target import is_target
from seatrial.errors import SeatrialError
from seatrial.models.registry import KIND, MODELS, model_class
from seatrial.problems import Problems
from seatrial.suites.shape import choose, fit


def other_model(judge: object) -> dict[str, Any] | None:
    """The configuration of a model of another kind than ours."""
    if not isinstance(judge, dict) or judge.get(KIND, "openai") == "openai":
        return None
    return judge


def with_our_model(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a suite, with `judge` only when it is of our own kind, which needs no name."""
    judge = plain.get("judge")
    if not isinstance(judge, dict) or KIND not in judge:
        return plain
    ours = {key: value for key, value in judge.items() if key != KIND}
    return {**plain, "judge": None if other_model(judge) is not None else ours}


def check_other_model(judge: dict[str, Any], problems: Problems, directory: Path | None) -> None:
    """Tell everything that is wrong with it; its class is imported from `directory`, if there is one."""
    for key, value in judge.items():
        if isinstance(value, str) and names_secret(str(key)) and "${" not in value:
            hint = "write `${NAME}` and set the variable; `${NAME:-text}` if it is not a secret"
            problems.add((key,), f"`{key}` holds a secret, and a suite is stored and shown", hint)
    kind = judge[KIND]
    if not (isinstance(kind, str) and is_target(kind)):
        if choose(judge, KIND, dict.fromkeys(MODELS, KIND), (), problems) is None:
            return
    elif directory is None:
        return
    try:
        struct = model_class(kind, directory)
        fit({key: value for key, value in judge.items() if key != KIND}, struct, (), problems)
    except SeatrialError as error:
        problems.add((KIND,), error.message, error.hint)
    except (TypeError, NameError) as error:
        problems.add((KIND,), f"`{kind}` cannot be read from a suite: {error}")
