"""One request for a tool, as it is recorded: when it comes, what it asks for, and how it is answered.

It is recorded when it comes, and not when it is answered: an agent that asks for something forbidden and leaves, or
whose run ends before the answer, has asked for it nevertheless.
"""

from __future__ import annotations

import time
from typing import Any

from seatrial._support import wire
from seatrial.events.types import CustomEvent, Event
from seatrial.trajectory.observed import ObservedCalls
from seatrial.trajectory.step import ProxyMode, Step
from seatrial.world.tools import ToolAnswer

MAX_ID = 256
"""Characters of an id that are kept."""
_MODE: dict[Any, ProxyMode] = {
    "odyssey": "simulated",
    "ledger_read": "simulated",
    "injected": "injected",
    "passthrough": "passthrough",
    "transport_error": "passthrough",
}
_FAILED_SOURCES = ("error", "transport_error")
"""How a tool says that it could not answer (dispatch.md 5.2)."""


class OpenCall:
    """A call that has no answer yet."""

    def __init__(self, calls: ObservedCalls, name: str, call_id: str | None) -> None:
        self._calls = calls
        self._began = time.monotonic()
        self.step = Step(
            0,
            name,
            None,
            None if call_id is None else call_id[:MAX_ID],
            source="observed",
            arguments_text="",
            started_at=round(time.time() * 1000),
        )
        """What is known of it. Until its body was read, nobody knows its arguments."""
        self.recorded = calls.begin(self.step)
        """Whether it is in the record; otherwise the run has made too many calls."""
        self._whole = self.recorded

    def take_arguments(self, arguments: Any, body: bytes) -> None:
        """The arguments, and the text that they were read from."""
        if self._has_room(body):
            self.step.arguments, self.step.arguments_text = arguments, None

    def take_text(self, body: bytes) -> None:
        """A body that is not JSON."""
        if self._has_room(body):
            self.step.arguments_text = body.decode("utf-8", "replace")

    def drop(self) -> None:
        """Take it out of the record: a client asked once more for the answer to a call that is in it."""
        if self.recorded:
            self._calls.drop(self.step)

    def close(self, answer: ToolAnswer | None) -> Event | None:
        """Record the answer, or that there was none before the run ended; gives the event that says so."""
        step = self.step
        step.duration_ms = (time.monotonic() - self._began) * 1000
        if answer is not None:
            body = answer.body
            if answer.status >= 400:
                detail = body.get("detail")
                step.status = "error"
                step.error = _text(detail.get("message") if isinstance(detail, dict) else detail)
                result: Any = body
            else:
                result = body.get("response", body)
                source = body.get("source")
                step.mode = _MODE.get(source) if isinstance(source, str) else None
                # The result's own fields, such as the `status` of an order, say nothing about the call.
                error = result.get("error") if isinstance(result, dict) else None
                step.status = "error" if error or source in _FAILED_SOURCES else "ok"
                step.error = _text(error.get("message") if isinstance(error, dict) else error)
            if self._has_room(wire.encode(result)):
                step.result = result
        return self._event(answer) if self.recorded and not (answer is not None and answer.recorded) else None

    def _event(self, answer: ToolAnswer | None) -> Event:
        step = self.step
        value: dict[str, Any] = {"tool": step.name, "arguments": step.arguments}
        if step.arguments_text is not None:
            value["arguments_text"] = step.arguments_text
        if step.actor is not None:
            value["actor"] = step.actor
        if answer is not None and answer.status == 404:
            return CustomEvent(name="tool.not_found", value=value)
        value["status"] = step.status
        if step.error is not None:
            value["error"] = step.error
        return CustomEvent(name="tool.call", value=value)

    def _has_room(self, data: bytes) -> bool:
        if not self.recorded:
            return False
        fits = self._calls.fits(data)
        if not fits and self._whole:
            self._whole = False
            self._calls.incomplete += 1
        return fits


def _text(value: Any) -> str | None:
    return value[:1000] if isinstance(value, str) else None
