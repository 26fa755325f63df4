"""Messages by their role: those of a known role are opened, others are kept whole."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, TypeVar

import msgspec

from seatrial.errors import SeatrialError
from seatrial.formats.chat import MESSAGE_DROPPED_NO_ROLE
from seatrial.formats.parts import At
from seatrial.formats.shape import Shape, members, value
from seatrial.formats.tally import Tally
from seatrial.transcript import CustomMessage, Message
from seatrial.transcript.salvage import MESSAGE_DROPPED, ROLE_UNKNOWN


class RoleTagged(msgspec.Struct, forbid_unknown_fields=True):
    """A message of any chat API."""

    role: Any = None


M = TypeVar("M", bound=RoleTagged)


def open_message(
    data: msgspec.Raw, shape: Shape[M], roles: Container[str], messages: list[Message], tally: Tally, at: At
) -> M | None:
    """The message in these bytes if its role is one of `roles`; another role goes to `messages` as a custom message."""
    message = shape.fit(data)
    given = _members(data, tally, at) if message is None else {}
    if given is None:
        return None
    role = message.role if message is not None else _role(given, tally, at)
    if type(role) is not str or not role:
        tally.add(MESSAGE_DROPPED_NO_ROLE, at, "dropped a message without a role")
        return None
    if role not in roles:
        tally.add(ROLE_UNKNOWN, (*at, "role"), f"kept a message of the unknown role {role[:100]!r} as a custom message")
        messages.append(CustomMessage(role, value(data, tally, at)))
        return None
    return message if message is not None else shape.walk(given, tally, at)


def _members(data: msgspec.Raw, tally: Tally, at: At) -> dict[str, msgspec.Raw] | None:
    try:
        given = members(data, tally, at)
    except SeatrialError as error:
        # A line of a file of lines; what stands in a document is JSON.
        tally.add(MESSAGE_DROPPED, at, error.message)
        return None
    if given is None:
        tally.add(MESSAGE_DROPPED, at, "dropped a message that is not an object")
    return given


def _role(given: dict[str, msgspec.Raw], tally: Tally, at: At) -> Any:
    return value(given["role"], tally, (*at, "role")) if "role" in given else None
