"""What an agent function raised: a finding about the agent, unless the exception says that it was not its doing."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from seatrial import errors
from seatrial._support.excerpt import exception_excerpt
from seatrial._support.target import load_target
from seatrial.errors import InfrastructureError, SeatrialError, lacking
from seatrial.runs import Fault

MAX_CAUSES = 20
"""How far the causes of an exception, and groups in groups, are followed: causes may form a circle."""

_NAME_ONE = "name an exception with its module, such as `openai.APIConnectionError`, that can be imported here"
_OURS = str(Path(errors.__file__).parent)


def exception_class(name: str, directory: Path) -> type[BaseException]:
    """The exception that a suite names as `package.module.Class`. Raises `SeatrialError` when there is none."""
    first: SeatrialError | None = None
    parts = name.split(".")
    # A class may stand in another one, so that not all but the last part is the module.
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found = load_target(f"{'.'.join(parts[:cut])}:{'.'.join(parts[cut:])}", directory)
        except SeatrialError as error:
            first = first or error
            continue
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
        raise SeatrialError("invalid_config", f"`{name}` is not an exception class", hint=_NAME_ONE)
    why = "it has no module" if first is None else first.message
    hint = _NAME_ONE if first is None or first.hint is None else first.hint
    raise SeatrialError("invalid_config", f"there is no exception `{name}`: {why}", hint=hint)


def exception_fault(
    error: BaseException,
    infrastructure_errors: tuple[type[BaseException], ...] = (),
) -> Fault:
    """The fault of an exception, with the traceback from the agent's first line on."""
    head, text = exception_excerpt(error, _theirs(error.__traceback__))
    if is_infrastructure(error, infrastructure_errors):
        error_class = "infrastructure_error"
    else:
        # Whoever used it up: how an agent behaves on a machine that has nothing left says nothing of it.
        error_class = "agent_exception" if lacking(error) is None else "out_of_resources"
    return Fault(error_class, head, detail=text)


def is_infrastructure(error: BaseException, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether an exception is none of the agent's doing: it, or what it was raised from, is of a named class.

    Only `raise ... from error` counts as a cause: an exception that came up while another was handled may have nothing
    to do with it. Of a group, every exception must be one: a single other one is the agent's.
    """
    return _is_infrastructure(error, (InfrastructureError, *kinds), MAX_CAUSES, {})


def _is_infrastructure(
    error: BaseException, kinds: tuple[type[BaseException], ...], depth: int, known: dict[int, bool]
) -> bool:
    """`known` has the answers for exceptions by their id: one may be in as many groups as one likes."""
    if depth <= 0:
        return False
    if isinstance(error, kinds):
        return True
    if id(error) not in known:
        if isinstance(error, BaseExceptionGroup):
            found = all(_is_infrastructure(each, kinds, depth - 1, known) for each in error.exceptions)
        else:
            cause = error.__cause__
            found = cause is not None and _is_infrastructure(cause, kinds, depth - 1, known)
        known[id(error)] = found
    return known[id(error)]


def _theirs(frames: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames that led from us to the agent."""
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    return frames
