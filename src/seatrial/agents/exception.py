"""What an agent function raised, as a finding about the agent."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

import seatrial
from seatrial.agents.excerpt import MAX_DETAIL
from seatrial.runs import Fault
from seatrial.world.grant import RunGrant

MAX_TRACEBACK = 16_000
"""How much of a traceback is kept, in characters; its end says most."""

_OURS = str(Path(seatrial.__file__).parent)


def exception_fault(error: BaseException, grant: RunGrant | None = None) -> Fault:
    """The fault of an exception, with the traceback from the agent's first line on, and without the run's token."""
    told = traceback.TracebackException(type(error), error, _theirs(error.__traceback__))
    text = "".join(told.format())
    head = "".join(told.format_exception_only()).strip()
    if grant is not None:
        # Before they are cut: a part of a token must not stay either.
        text, head = grant.redact_text(text), grant.redact_text(head)
    if len(text) > MAX_TRACEBACK:
        text = f"[...]\n{text[-MAX_TRACEBACK:]}"
    return Fault("agent_exception", head[:MAX_DETAIL], detail=text)


def _theirs(frames: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames that led from us to the agent."""
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    return frames
