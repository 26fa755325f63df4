"""Chat models: those behind HTTP, for any OpenAI-compatible endpoint and for Anthropic's, and one that reads out a
script. `@model("name")` registers a kind of one's own.
"""

from seatrial.models.client import ModelClient
from seatrial.models.config import AnthropicConfig, ModelConfig, ModelKind
from seatrial.models.registry import MODELS, model, open_model
from seatrial.models.scripted import ScriptedModel

__all__ = [
    "MODELS",
    "AnthropicConfig",
    "ModelClient",
    "ModelConfig",
    "ModelKind",
    "ScriptedModel",
    "model",
    "open_model",
]
