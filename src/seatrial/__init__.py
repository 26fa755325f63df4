"""Sea trials for AI agents."""

from seatrial._version import __version__

__all__ = ["__version__"]
