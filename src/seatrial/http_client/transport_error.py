"""How an exchange over HTTP fails."""

from __future__ import annotations

from typing import Literal, TypeAlias

FailureKind: TypeAlias = Literal["forbidden", "unreachable", "lost", "cut_off", "silent", "malformed"]
"""How an exchange failed.

- `forbidden`: the server's address may not be connected to
- `unreachable`: no connection was made (DNS, refused, TLS, too slow)
- `lost`: the connection ended before the response began
- `cut_off`: the connection ended in the middle of the response
- `silent`: the server sent nothing for too long
- `malformed`: what was sent is not HTTP, or not encoded as it says
"""


class TransportError(Exception):
    """An exchange failed. The message is safe to show; the detail may hold anything that the server sent."""

    def __init__(self, kind: FailureKind, message: str, detail: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.detail = detail
