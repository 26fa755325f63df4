"""How a chat model is reached. Text may name variables, as `${NAME}`; a client is given the filled copy."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from seatrial._support.registry import where
from seatrial.graders.chat_model import ChatModel

if TYPE_CHECKING:
    from seatrial.models.api import ChatApi

Price = Annotated[float, Meta(ge=0)]
"""US dollars for a million tokens."""


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


class HttpModelConfig(ModelKind):
    """What all chat models behind HTTP have in common."""

    model: str
    """The model's name at that endpoint."""
    base_url: str
    """Where the endpoint is."""
    api_key: str | None = None
    """Names a variable: `${OPENAI_API_KEY}`."""
    timeout_s: Annotated[float, Meta(gt=0, le=86_400)] = 60.0
    """How long one answer may take."""
    attempts: Annotated[int, Meta(ge=1, le=100)] = 4
    """Tries in all, where the endpoint is busy (429), fails (5xx) or cannot be reached; 1 means never again."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """How freely it answers; the endpoint's own default when absent."""
    input_usd_per_mtok: Price | None = None
    """Price of a million input tokens, for the budget and the reports."""
    output_usd_per_mtok: Price | None = None
    """Price of a million output tokens."""

    def open(self) -> AbstractAsyncContextManager[ChatModel]:
        from seatrial.models.client import ModelClient

        return ModelClient(self)

    @abstractmethod
    def api(self) -> ChatApi:
        """How it is asked."""

    def __repr__(self) -> str:
        # Never the key, whether or not it still is a `${NAME}`.
        return f"{type(self).__name__}(model={self.model!r}, api_key={'None' if self.api_key is None else '...'})"


class ModelConfig(HttpModelConfig):
    """A chat model behind any OpenAI-compatible endpoint."""

    kind: ClassVar[str] = "openai"

    base_url: str
    """The endpoint, up to and without `/chat/completions`."""
    structured_output: Literal["json_schema", "json_object", "none"] = "json_schema"
    """How the endpoint is asked for JSON. The answer is checked in any case."""
    cache_read_usd_per_mtok: Price | None = None
    """Price of a million input tokens that the endpoint had in its cache; that of all input tokens when absent."""

    def api(self) -> ChatApi:
        from seatrial.models.completions import ChatCompletions

        return ChatCompletions(self)


class AnthropicConfig(HttpModelConfig):
    """A chat model behind Anthropic's Messages API, or a server that speaks it."""

    kind: ClassVar[str] = "anthropic"

    base_url: str = "https://api.anthropic.com"
    """The endpoint, up to and without `/v1/messages`."""
    api_key: str | None = None
    """Names a variable: `${ANTHROPIC_API_KEY}`."""
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    """How freely it answers; the endpoint's own default when absent. Models later than Claude Opus 4.6 refuse it."""
    max_tokens: Annotated[int, Meta(ge=1, le=1_000_000)] = 8192
    """How long an answer may be, with what the model thinks before it. One that is cut off does not count."""
    structured_output: Literal["json_schema", "none"] = "json_schema"
    """How the endpoint is asked for JSON; `none` for models that do not know structured outputs. The answer is checked
    in any case."""
    cache_read_usd_per_mtok: Price | None = None
    """Price of a million input tokens that are read from a cache. When it is absent and there are such, the cost is
    unknown."""
    cache_write_usd_per_mtok: Price | None = None
    """Price of a million input tokens that are written to a cache; in the same way."""

    def api(self) -> ChatApi:
        from seatrial.models.anthropic import AnthropicMessages

        return AnthropicMessages(self)
