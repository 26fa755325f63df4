"""What the OpenAPI document says of an operation beyond its signature."""

from __future__ import annotations

from typing import Any

import msgspec

_KEY = "contract"


class Contract(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation takes, and what it answers with besides its result."""

    body: type[msgspec.Struct] | None = None
    """What the body is, for operations that decode it themselves."""
    also: dict[int, str] = {}
    """Further statuses of success with the same result (204: with none), and when they come."""
    headers: dict[str, str] = {}
    """Headers of successes, and what they say."""
    streams: dict[str, str] = {}
    """Media types that the result is streamed in, and what a stream is made of."""
    bare: bool = False
    """Whether a stream has the events alone, without envelopes and frames of ours."""
    problems: tuple[str, ...] = ()
    """Codes of errors that are not every operation's."""
    refusals: dict[int, str] = {}
    """Statuses of errors that say more than their code."""

    @property
    def opt(self) -> dict[str, Any]:
        """For the `opt` of a Litestar handler."""
        return {_KEY: self}


def contract_of(opt: dict[str, Any]) -> Contract:
    """The contract in the `opt` of a handler."""
    found = opt[_KEY]
    if not isinstance(found, Contract):
        raise TypeError(f"{found!r} is not a contract")
    return found
