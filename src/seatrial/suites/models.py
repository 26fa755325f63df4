"""The model of a suite's `judge`: what is wrong with it, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seatrial._support.environment import names_secret
from seatrial._support.target import is_target
from seatrial.agents.checks import check_secret, check_url
from seatrial.errors import SeatrialError
from seatrial.models.config import AnthropicConfig, HttpModelConfig
from seatrial.models.registry import KIND, MODELS, model_class
from seatrial.problems import Problems
from seatrial.suites.shape import choose, fit

_BEHIND_HTTP = {AnthropicConfig.kind: AnthropicConfig}
"""Kinds of Seatrial's own, besides the one that needs no name."""
_CACHE_PRICES = ("cache_read_usd_per_mtok", "cache_write_usd_per_mtok")


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


def check_other_model(
    judge: dict[str, Any], variables: Mapping[str, str], problems: Problems, directory: Path | None
) -> None:
    """Tell everything that is wrong with it; its class is imported from `directory`, if there is one."""
    if (ours := _BEHIND_HTTP.get(judge[KIND]) if isinstance(judge[KIND], str) else None) is not None:
        found = fit({key: value for key, value in judge.items() if key != KIND}, ours, (), problems)
        if found is not None:
            check_http_model(found, variables, problems)
        return
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


def check_http_model(config: HttpModelConfig, variables: Mapping[str, str], problems: Problems) -> None:
    """Tell everything that is wrong with a model behind HTTP."""
    if (config.input_usd_per_mtok is None) != (config.output_usd_per_mtok is None):
        problems.add(
            (), "a price needs both `input_usd_per_mtok` and `output_usd_per_mtok`", "write 0 for what is free"
        )
    for key in _CACHE_PRICES:
        if config.input_usd_per_mtok is None and getattr(config, key, None) is not None:
            problems.add((key,), f"`{key}` does nothing without `input_usd_per_mtok`")
    check_url(config.base_url, ("base_url",), variables, problems)
    check_secret(config.api_key, ("api_key",), problems)
