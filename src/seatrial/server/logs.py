"""The log of a server: one line for each request and for each transition of a run, without any of their content."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from traceback import FrameSummary
from typing import TextIO

from seatrial._support import wire
from seatrial._support.printable import one_line
from seatrial.server.settings import LogFormat

logger = logging.getLogger("seatrial.server")

REQUEST = "request"
"""The event that a request was answered."""

occurrences: Counter[tuple[str, str]] = Counter()
"""How often each thing has happened in this process, by its name and its status."""

_FIELDS = "seatrial_fields"
_MAX_FIELD = 256


def log(event: str, *, level: int = logging.INFO, **fields: str | float | None) -> None:
    """Write one line: ids, codes, counts and durations. A field that is None is left out.

    How often is counted, with the status or else the code that it has; of requests there are figures of their own.
    """
    if event != REQUEST:
        occurrences[event, str(fields.get("status") or fields.get("code") or "")] += 1
    if logger.isEnabledFor(level):
        logger.log(level, event, extra={_FIELDS: {key: value for key, value in fields.items() if value is not None}})


def log_fault(where: str, kind: str, frames: list[FrameSummary]) -> None:
    """Write where in the code something went wrong; not the message, in which there may be content."""
    trace = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames[-8:]))
    log("fault", level=logging.ERROR, where=where, kind=kind, trace=trace)


def start_logging(form: LogFormat, stream: TextIO | None = None) -> None:
    """Write the log of the server, and the warnings of uvicorn and asyncio, to a stream in this form."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(_JsonLines() if form == "json" else _TextLines())
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        foreign = logging.getLogger(name)
        foreign.handlers = [handler] if name != "uvicorn.error" else []
        foreign.setLevel(logging.WARNING)
        foreign.propagate = name == "uvicorn.error"


class _Lines(logging.Formatter):
    def fields(self, record: logging.LogRecord) -> dict[str, object]:
        """The fields beside the event; of an exception that is not ours only its type and its location."""
        said: dict[str, object] = dict(getattr(record, _FIELDS, {}))
        if record.name != logger.name:
            said["logger"] = record.name
        if record.exc_info is not None and record.exc_info[0] is not None:
            said["kind"] = record.exc_info[0].__name__
            trace = record.exc_info[2]
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            if trace is not None:
                said["trace"] = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        return {key: value[:_MAX_FIELD] if isinstance(value, str) else value for key, value in said.items()}


class _JsonLines(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": _stamp(record.created), "level": record.levelname.lower(), "event": _event(record)}
        return wire.encode({**line, **self.fields(record)}).decode()


class _TextLines(_Lines):
    def format(self, record: logging.LogRecord) -> str:
        said = " ".join(f"{key}={one_line(str(value), _MAX_FIELD)}" for key, value in self.fields(record).items())
        return f"{_stamp(record.created)} {record.levelname.lower():7} {_event(record)} {said}".rstrip()


def _event(record: logging.LogRecord) -> str:
    # Further lines of others' messages show values.
    return one_line(record.getMessage().strip().partition("\n")[0])


def _stamp(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds * 1000) % 1000:03d}Z"
