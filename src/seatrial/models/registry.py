"""The kinds of models that judges ask, open to others.

A kind is a `ModelKind`: keys of the suite's `judge`, and how such a model is opened. `judge` without a `kind` is an
OpenAI-compatible endpoint. Others are registered with `@model("name")`, offered by an entry point in the group
`seatrial.models`, or called by where they are: `package.module:Class`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from inspect import isabstract
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from seatrial._support import wire
from seatrial._support.registry import Registry, nearest, where
from seatrial._support.target import is_target, load_target
from seatrial.errors import SeatrialError
from seatrial.graders.chat_model import ChatModel
from seatrial.models.config import ModelConfig, ModelKind

M = TypeVar("M", bound=type[ModelKind])

JudgeModel: TypeAlias = ModelConfig | ModelKind | ChatModel | dict[str, Any]
"""What a suite names as its judge: a configuration, as an object or as a mapping with its `kind`, or a model itself."""

KIND = "kind"


def _accept(name: str, value: object) -> type[ModelKind]:
    if not isinstance(value, type) or not issubclass(value, ModelKind):
        raise TypeError(f"`{where(value)}` is not a subclass of `seatrial.models.ModelKind`")
    if isabstract(value):
        raise TypeError(f"`{where(value)}` has no method `open`")
    if value.kind not in (name, where(value)):
        raise TypeError(f"its `kind` is {value.kind!r}")
    value.kind = name
    return value


MODELS: Registry[type[ModelKind]] = Registry(
    "kind of model",
    "seatrial.models",
    {"openai": "seatrial.models.config:ModelConfig", "anthropic": "seatrial.models.config:AnthropicConfig"},
    _accept,
)
"""Every kind of model that a suite can name."""


def model(name: str) -> Callable[[M], M]:
    """Register a kind of model under a name, which is its `kind` in suites: `@model("local")`."""
    return MODELS.register(name)


def model_class(kind: str, directory: Path | None = None) -> type[ModelKind]:
    """The class of a kind: a name, or `package.module:Class`, which is looked for in `directory` first.

    Raises `SeatrialError("invalid_config")`.
    """
    if not is_target(kind):
        MODELS.check_name(kind)
        return MODELS.find(kind)
    found = load_target(kind, directory)
    try:
        accepted = _accept(getattr(found, KIND, kind), found)
        MODELS.check_kind(accepted)
    except TypeError as error:
        raise SeatrialError(
            "invalid_config", f"the model {kind!r} cannot be used: {error}", hint="name another one under `judge`"
        ) from error
    return accepted


def model_config(judge: JudgeModel) -> Any:
    """A judge as it is stored. A model that was there already is only named: it cannot be opened again."""
    if isinstance(judge, ModelConfig | dict):
        return judge
    if isinstance(judge, ModelKind):
        MODELS.check_kind(type(judge))
        return {KIND: judge.kind, **msgspec.to_builtins(judge)}
    return {KIND: where(type(judge)), "model": judge.name}


def open_model(judge: JudgeModel, directory: Path | None = None) -> AbstractAsyncContextManager[ChatModel]:
    """The model of a configuration whose variables are filled in. Raises `SeatrialError("invalid_config")`."""
    if isinstance(judge, dict):
        judge = _build(judge, directory)
    return judge.open() if isinstance(judge, ModelKind) else nullcontext(judge)


def _build(config: Mapping[str, Any], directory: Path | None) -> ModelKind:
    kind = config.get(KIND, "openai")
    struct = model_class(str(kind), directory)
    own = {key: value for key, value in config.items() if key != KIND}
    for key in own:
        if key not in struct.__struct_encode_fields__:
            hint = nearest(str(key), struct.__struct_encode_fields__)
            raise SeatrialError("invalid_config", f"the model {kind!r} has no key {str(key)[:60]!r}", hint=hint)
    try:
        return msgspec.convert(own, struct)
    except msgspec.ValidationError as error:
        found = wire.invalid_document(error)
        raise SeatrialError("invalid_config", f"the model {kind!r}: {found.message}", pointer=found.pointer) from None
