"""Chat models: those behind HTTP, for any OpenAI-compatible endpoint and for Anthropic's, and one that reads out a
script. `@model("name")` registers a kind of one's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.models.client import ModelClient as ModelClient
    from seatrial.models.config import AnthropicConfig as AnthropicConfig
    from seatrial.models.config import ModelConfig as ModelConfig
    from seatrial.models.config import ModelKind as ModelKind
    from seatrial.models.registry import MODELS as MODELS
    from seatrial.models.registry import model as model
    from seatrial.models.registry import open_model as open_model
    from seatrial.models.scripted import ScriptedModel as ScriptedModel

__getattr__, __all__ = attach(
    __name__,
    {
        "client": "ModelClient",
        "config": "AnthropicConfig ModelConfig ModelKind",
        "registry": "MODELS model open_model",
        "scripted": "ScriptedModel",
    },
)
