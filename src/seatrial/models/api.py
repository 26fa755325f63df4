"""What tells the API of one provider from that of another: how a chat model is asked, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Protocol, TypeAlias, TypeVar

from seatrial.graders.chat_model import ChatMessage, Completion

N = TypeVar("N", int, float)
WithoutKey: TypeAlias = Callable[[str], str]
"""Takes the key out of a text. An endpoint may send it back: in what it complains of, or in an answer."""

MAX_SHOWN = 300
"""Characters of what an endpoint says."""


class FaultError(Exception):
    """One try that brought no answer."""

    def __init__(self, message: str, *, retryable: bool, wait_s: float | None = None, free: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.wait_s = wait_s
        self.free = free
        """Whether it cost nothing: no model was at work."""


class ChatApi(Protocol):
    """The API of a provider, for one model."""

    def url(self) -> str:
        """Where requests are sent."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """What the API needs besides the usual headers, with the key."""
        ...

    def request(self, messages: list[ChatMessage], schema: dict[str, Any] | None) -> dict[str, Any]:
        """The body of a request."""
        ...

    def completion(self, data: bytes, redacted: WithoutKey) -> Completion:
        """The answer in a body that came with status 200. Raises `FaultError` when there is none to be used."""
        ...


def possible(figure: N | None) -> N | None:
    """A figure of an endpoint, unless it cannot be one."""
    return figure if figure is not None and 0 <= figure < inf else None


def price(usd_per_mtok: float | None, tokens: int | None) -> float | None:
    """What so many tokens cost; None when it is not known, which it is of no tokens, and of those that are free."""
    if tokens == 0 or usd_per_mtok == 0:
        return 0.0
    return None if tokens is None or usd_per_mtok is None else usd_per_mtok * tokens / 1_000_000


def total(*parts: N | None) -> N | None:
    """A sum; None when a part of it is not known."""
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if len(known) == len(parts) else None
