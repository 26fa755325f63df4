"""Notices of what other processes commit, so that nobody has to ask the store again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeAlias

import msgspec

MAX_NOTICE_BYTES = 7900
"""PostgreSQL takes 7,999."""

Callback: TypeAlias = Callable[[str], None]
"""Takes the id of a run that another process has changed; called in the listener's thread, so it must be quick."""

_IDS = msgspec.json.Decoder(list[str])


class Listener(Protocol):
    """Calls back until it is closed. Notices that come while it is not live are missed."""

    @property
    def live(self) -> bool:
        """Whether notices come in now; otherwise the store has to be asked."""

    def close(self) -> None:
        """No call begins after this has returned."""


class Silence:
    """The listener of a store that gives no notices."""

    live = False

    def close(self) -> None:
        """There is nothing to end."""


def written(run_ids: Iterable[str]) -> Iterator[str]:
    """Notices that name these runs, each as long as it may be."""
    size = 0
    some: list[bytes] = []
    for run_id in dict.fromkeys(run_ids):
        name = msgspec.json.encode(run_id)
        if some and size + len(name) > MAX_NOTICE_BYTES:
            yield _notice(some)
            size, some = 0, []
        some.append(name)
        size += len(name) + 1
    if some:
        yield _notice(some)


def read(notice: str) -> list[str]:
    """The ids in a notice; none when it is not one of ours."""
    try:
        return _IDS.decode(notice)
    except msgspec.DecodeError:
        return []


def _notice(names: list[bytes]) -> str:
    return f"[{b','.join(names).decode()}]"
