"""What the run service takes and gives, as data: the server, its client and its OpenAPI document have it from here."""

from seatrial.api.resources import (
    CreateRun,
    EventPage,
    Problem,
    PushEvents,
    PushResult,
    RunInput,
    RunPage,
    Thread,
    check_chosen_id,
)

__all__ = [
    "CreateRun",
    "EventPage",
    "Problem",
    "PushEvents",
    "PushResult",
    "RunInput",
    "RunPage",
    "Thread",
    "check_chosen_id",
]
