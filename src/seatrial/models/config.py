"""How a chat model is reached. Text may name variables, as `${NAME}`; a client is given the filled copy."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from seatrial._support.registry import where
from seatrial.graders.chat_model import ChatModel


class _ModelMeta(msgspec.StructMeta, ABCMeta):
    """Structs with an abstract method."""


class ModelKind(msgspec.Struct, metaclass=_ModelMeta, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A kind of model that judges can ask. A kind is a subclass with its own keys and an `open`."""

    kind: ClassVar[str]
    """What suites call it: the name it is registered under, else `package.module:Class`."""

    def __init_subclass__(cls) -> None:
        if "kind" not in vars(cls):
            cls.kind = where(cls)

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[ChatModel]:
        """The model, for as long as the block lasts; raises `SeatrialError("invalid_config")`."""


class ModelConfig(ModelKind):
    """A chat model behind any OpenAI-compatible endpoint."""

    kind: ClassVar[str] = "openai"

    model: str
    """The model's name at that endpoint."""
    base_url: str
    """The endpoint, up to and without `/chat/completions`."""
    api_key: str | None = None
    """Names a variable: `${OPENAI_API_KEY}`."""
    timeout_s: Annotated[float, Meta(gt=0, le=86_400)] = 60.0
    """How long one answer may take."""
    attempts: Annotated[int, Meta(ge=1, le=100)] = 4
    """Tries in all, where the endpoint is busy (429), fails (5xx) or cannot be reached; 1 means never again."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """How freely it answers; the endpoint's own default when absent."""
    structured_output: Literal["json_schema", "json_object", "none"] = "json_schema"
    """How the endpoint is asked for JSON. The answer is checked in any case."""
    input_usd_per_mtok: Annotated[float, Meta(ge=0)] | None = None
    """Price of a million input tokens, for the budget and the reports."""
    output_usd_per_mtok: Annotated[float, Meta(ge=0)] | None = None
    """Price of a million output tokens."""

    def open(self) -> AbstractAsyncContextManager[ChatModel]:
        from seatrial.models.client import ModelClient

        return ModelClient(self)

    def __repr__(self) -> str:
        # Never the key, whether or not it still is a `${NAME}`.
        return f"ModelConfig(model={self.model!r}, api_key={'None' if self.api_key is None else '...'})"
