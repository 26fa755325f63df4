"""Chat models: one behind HTTP, for any OpenAI-compatible endpoint, and one that reads out a script."""

from seatrial.models.client import ModelClient
from seatrial.models.config import ModelConfig
from seatrial.models.scripted import ScriptedModel

__all__ = ["ModelClient", "ModelConfig", "ScriptedModel"]
