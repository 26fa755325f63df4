"""The beginning or the end of something long, to show with a fault."""

from __future__ import annotations

from traceback import TracebackException
from types import TracebackType

MAX_DETAIL = 500
"""Characters of a body that are shown (dispatch.md 14)."""

CUT_BEGINNING = "[...]\n"
"""What stands before the end of a text whose beginning is left out."""
MAX_TRACEBACK = 16_000
"""How much of a traceback is kept, in characters; its end says most."""
MAX_EXCEPTIONS = 1_000
"""How many exceptions are shown with one: its causes, and the members of groups."""


def excerpt(body: bytes) -> str | None:
    """The beginning of a body, for people; None when there is nothing in it."""
    return body[: MAX_DETAIL * 4].decode("utf-8", "replace")[:MAX_DETAIL] or None


def exception_excerpt(error: BaseException, frames: TracebackType | None) -> tuple[str, str]:
    """The beginning of what an exception says, and the end of its traceback.

    An exception of others may say as much as it likes: it is asked once, and what it says is cut before it is copied.
    """
    told = TracebackException(type(error), error if _is_small(error) else _stand_in(error), frames)
    left = [told]
    while left:
        each = left.pop()
        # Private, but the same in all versions; where it is not, only memory is lost.
        if isinstance(text := getattr(each, "_str", None), str) and len(text) > MAX_TRACEBACK:
            each._str = text[:MAX_TRACEBACK]  # type: ignore[attr-defined]
        left += [other for other in (each.__cause__, each.__context__, *(each.exceptions or ())) if other is not None]
    head = "".join([line[:MAX_TRACEBACK] for line in told.format_exception_only()]).strip()[:MAX_DETAIL]
    text = "".join([line[-MAX_TRACEBACK:] for line in told.format()])
    return head, text if len(text) <= MAX_TRACEBACK else f"{CUT_BEGINNING}{text[-MAX_TRACEBACK:]}"


def _is_small(error: BaseException) -> bool:
    """Whether there are not too many exceptions behind or in one to show them all.

    One that is in a group twice is shown twice, unlike a cause: a group of two groups of two groups is without bound.
    """
    left, count, seen = [error], 0, set[int]()
    while left:
        each = left.pop()
        seen.add(id(each))
        inner = [other for other in (each.__cause__, each.__context__) if other is not None and id(other) not in seen]
        seen.update(map(id, inner))
        inner += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        count += len(inner)
        if count > MAX_EXCEPTIONS:
            return False
        left += inner
    return True


def _stand_in(error: BaseException) -> BaseException:
    try:
        said = str(error)[:MAX_TRACEBACK]
    except Exception:  # noqa: BLE001 (whatever an exception of others raises)
        said = "<its text cannot be had>"
    return Exception(f"{said} (the exceptions in it and before it, more than {MAX_EXCEPTIONS:,}, are not shown)")
