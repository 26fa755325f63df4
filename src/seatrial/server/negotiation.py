"""Which form of a stream a client accepts."""

from __future__ import annotations

from seatrial.server.block import Form
from seatrial.server.problems import RefusedError

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"

_FORMS: dict[Form, str] = {"sse": SSE, "ndjson": NDJSON}


def chosen_form(accept: str | None) -> Form:
    """The form that an Accept header prefers, and server-sent events where it does not care."""
    if not accept or not accept.strip():
        return "sse"
    wishes = [wish for part in accept.split(",") if (wish := _wish(part)) is not None]
    # Python's `max` gives the first of equals.
    best = max(_FORMS, key=lambda form: _quality(_FORMS[form], wishes))
    if _quality(_FORMS[best], wishes) == 0:
        raise RefusedError(406, "invalid_request", f"a stream comes as {SSE} or {NDJSON}", hint="name one in Accept")
    return best


def _wish(part: str) -> tuple[str, float] | None:
    media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
    quality = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return None
            if not 0 <= quality <= 1:
                return None
    return media_type, quality


def _quality(media_type: str, wishes: list[tuple[str, float]]) -> float:
    """What the most particular wish that fits gives the type."""
    kind = media_type.partition("/")[0]
    for fitting in (media_type, f"{kind}/*", "*/*"):
        found = [quality for wish, quality in wishes if wish == fitting]
        if found:
            return max(found)
    return 0.0
