"""An agent that is a Python function: `module:function`, sync or async, that returns an answer or yields events."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

from msgspec import UNSET

from seatrial._support import wire
from seatrial._support.target import load_target
from seatrial._support.threads import Threads, ends_us, restore_recursion_limit
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.config import MAX_RESPONSE_BYTES
from seatrial.agents.limit import time_limit
from seatrial.agents.off_loop import off_loop
from seatrial.agents.python.calling import Calling
from seatrial.agents.python.config import PythonConfig
from seatrial.agents.python.exception import exception_class, exception_fault
from seatrial.agents.python.objects import check_size, plain_text, to_json_values
from seatrial.agents.python.returned import Returned, encode_returned
from seatrial.agents.streamed import StreamedRun
from seatrial.errors import SeatrialError
from seatrial.events import encode_event
from seatrial.events.types import BaseEvent, RunStarted, TextMessageChunk
from seatrial.runs import Fault

if TYPE_CHECKING:
    # Brings an HTTP server with it, which most functions have no use for.
    from seatrial.world.grant import RunGrant

T = TypeVar("T")

MAX_RECORDS = 200_000
"""Messages, chunks or updates of a framework that one function may yield."""
PIECES_AHEAD = 64
"""How many things a function in a thread may have yielded that were not read yet."""


class PythonAgent:
    """Calls a function for each run: in the loop when it is async, in a thread when it is not."""

    def __init__(
        self,
        config: PythonConfig,
        *,
        directory: Path,
        timeout_s: float | None,
        function: Callable[..., Any] | None = None,
    ) -> None:
        """`function` is what the target names, where it is at hand already."""
        self._function: Callable[..., Any] = load_target(config.target, directory) if function is None else function
        self._calling = Calling(self._function, directory)
        if config.tool_access == "world" and not self._calling.needs_grant:
            raise SeatrialError(
                "invalid_config",
                "`tool_access: world` says that the function has the tools of the world, and it does not take them",
                hint="give it the parameters `proxy_url` and `run_token`, or write `tool_access: none`",
            )
        self._timeout_s = timeout_s
        self._infrastructure_errors = tuple(exception_class(name, directory) for name in config.infrastructure_errors)
        self._threads: Threads | None = None
        self._name = config.target

    @property
    def uses_world(self) -> bool:
        return self._calling.needs_grant

    @property
    def uses_workspace(self) -> bool:
        """Whether it works in the workspace of a case that has one."""
        return "workspace" in self._calling.case_keys

    async def __aenter__(self) -> Self:
        self._threads = Threads(self._name)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._threads is not None:
            self._threads.close()

    async def run(self, request: RunRequest, emit: Emit) -> Reply:
        grant = request.grant
        limit = time_limit(request, self._timeout_s)
        value: Any = None
        returned: Returned | Reply | None = None
        stream: StreamedRun | None = None
        pieces = _Pieces(f"{request.run_id}-answer")
        fault: Fault | None = None
        try:
            async with asyncio.timeout(limit.seconds) as timeout:
                value = await self._call(request, grant)
                # By its type, as Python does it: to ask the object itself may run code of the agent here.
                if hasattr(type(value), "__anext__") or hasattr(type(value), "__next__"):
                    stream = StreamedRun(emit, "agui", RunStarted(thread_id=request.run_id, run_id=request.run_id))
                    fault = await _in_own_task(self._take_events(value, stream, pieces))
                    if pieces.records is not None:
                        stream = None
                        returned = encode_returned(pieces.records, yielded=True)
                else:
                    returned = await self._encoded(value)
        except TimeoutError as error:
            # The function may raise one of its own; and one that has said that its run is over cannot be late.
            if not timeout.expired():
                fault = self._raised(error)
            elif stream is None or not stream.ended:
                fault = limit.fault()
        except BaseException as error:  # whatever an agent raises is a finding, sys.exit() too
            if ends_us(error, ran_here=self._calling.is_async):
                raise
            fault = self._raised(error)
        if pieces.records and returned is None:
            # What a function yielded before it failed may list calls.
            kept = encode_returned(list(pieces.records), yielded=True)
            return Reply(body=None if isinstance(kept, Reply) else kept.body, cut=True, fault=fault)
        if stream is not None:
            return await stream.reply(fault)
        if fault is not None or returned is None:
            return Reply(fault=fault)
        return returned if isinstance(returned, Reply) else await off_loop(len(returned.body), returned.reply)

    async def _encoded(self, value: Any) -> Returned | Reply:
        """What a function returned, as bytes; objects of frameworks are converted in a thread."""
        try:
            return encode_returned(value, convert=False)
        except TypeError:
            encoded: Returned | Reply = await self._in_thread(partial(encode_returned, value))
            return encoded

    def _raised(self, error: BaseException) -> Fault:
        return exception_fault(error, self._infrastructure_errors)

    async def _call(self, request: RunRequest, grant: RunGrant | None) -> Any:
        positional, named = self._calling.arguments(request, grant)
        if self._calling.is_async:
            value = self._function(*positional, **named)
        else:
            value = await self._in_thread(partial(self._function, *positional, **named))
        return await _in_own_task(value) if inspect.isawaitable(value) else value

    async def _take_events(self, items: Any, stream: StreamedRun, pieces: _Pieces) -> Fault | None:
        """Hand on what a function yields; the fault of something that is no event, or too much."""
        try:
            if not hasattr(type(items), "__anext__"):
                await self._take_in_thread(items, stream, pieces)
            elif hasattr(items, "aclose"):
                async with aclosing(items):
                    async for item in items:
                        await pieces.of(item).put_into(stream)
            else:
                async for item in items:
                    await pieces.of(item).put_into(stream)
            if pieces.records is None:
                with _ours():
                    await stream.finish()
        except _UnusableItemError as unusable:
            error = unusable.error
            if error.code == "too_large":
                return Fault("response_too_large", f"the function yielded too much: {error.message}")
            return Fault("agent_bad_response", f"the function yielded something that is not an event: {error}")
        return None

    async def _take_in_thread(self, items: Iterator[Any], stream: StreamedRun, pieces: _Pieces) -> None:
        """Take what a function yields in a thread, which waits when it is far ahead of the loop."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[_Piece | None] = asyncio.Queue()
        slots = threading.Semaphore(PIECES_AHEAD)
        given_up = False

        def consume() -> BaseException | None:
            try:
                try:
                    for item in items:
                        piece = pieces.of(item)
                        slots.acquire()
                        if given_up:
                            break
                        loop.call_soon_threadsafe(queue.put_nowait, piece)
                finally:
                    # A generator that is not closed runs its `finally` where its last reference goes: in our loop.
                    if callable(close := getattr(items, "close", None)):
                        close()
            except BaseException as error:  # noqa: BLE001 - whatever a function raises, its task must not
                return error
            return None

        consuming = asyncio.ensure_future(self._in_thread(consume))
        consuming.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (piece := await queue.get()) is not None:
                slots.release()
                await piece.put_into(stream)
            if (error := await consuming) is not None:
                raise error
        finally:
            given_up = True
            slots.release()
            consuming.cancel()

    async def _in_thread(self, function: Callable[[], Any]) -> Any:
        if self._threads is None:
            raise RuntimeError("the agent was not entered")
        return await self._threads.call(function)


async def _in_own_task(awaitable: Awaitable[T]) -> T:
    """Wait for what runs an agent's code: a function that cancels its task must not cancel ours."""

    async def caught() -> tuple[T | None, BaseException | None]:
        try:
            return await awaitable, None
        except BaseException as error:  # noqa: BLE001 - a task that raises SystemExit would end the event loop
            return None, error
        finally:
            restore_recursion_limit()

    value, error = await asyncio.ensure_future(caught())
    if error is not None:
        raise error
    return cast("T", value)


class _UnusableItemError(Exception):
    """What a function yielded cannot be used. Not a `SeatrialError`, which a function may raise itself."""

    def __init__(self, error: SeatrialError) -> None:
        super().__init__(str(error))
        self.error = error


class _Piece(NamedTuple):
    """What a function yielded, as bytes: an event, or a part of a stream of them; nothing for a record."""

    data: bytes
    is_event: bool
    text: TextMessageChunk | None = None
    """The event, where it is ours: around a piece of text."""

    async def put_into(self, stream: StreamedRun) -> None:
        # Nothing, too: it gives others their turn of the event loop.
        with _ours():
            await (stream.put(self.data, self.text) if self.is_event else stream.feed(self.data))


class _Pieces:
    """Makes bytes of all that one function yields, and keeps count of them.

    Text is a piece of the message `answer_id`, which no other run of a conversation has. What a framework streams that
    is no event, as the updates of a graph, is collected, and read as a list when all of it is there.
    """

    def __init__(self, answer_id: str) -> None:
        self.records: list[Any] | None = None
        self._answer_id = answer_id
        self._left = MAX_RESPONSE_BYTES
        self._begun = False

    def of(self, item: Any) -> _Piece:
        """An event in any form, a part of a stream of them, or a piece of the answer."""
        with _ours():
            return self._of(item)

    def _of(self, item: Any) -> _Piece:
        item = plain_text(item)
        if _is_event_object(item):
            item = to_json_values(item)
        if not self._begun:
            self._begun = True
            self.records = [] if _is_record(item) else None
        if self.records is not None:
            record = to_json_values(item)
            self._left -= len(_written(record))
            if self._left < 0 or len(self.records) >= MAX_RECORDS:
                raise _too_much()
            self.records.append(record)
            return _Piece(b"", False)
        if isinstance(item, bytes | str) and len(item) > self._left:
            raise _too_much()
        if isinstance(item, bytes):
            piece = _Piece(item, False)
        elif isinstance(item, str):
            text = TextMessageChunk(message_id=self._answer_id, delta=item)
            piece = _Piece(encode_event(text), True, text)
        else:
            piece = _Piece(_encoded(item), True)
        self._left -= len(piece.data)
        if self._left < 0:
            raise _too_much()
        return piece


@contextmanager
def _ours() -> Iterator[None]:
    """Tell errors of ours, about what a function yielded, from those that the function raises."""
    try:
        yield
    except SeatrialError as error:
        raise _UnusableItemError(error) from error


def _is_record(item: Any) -> bool:
    """Whether this is a message, a chunk or an update of some framework; the types of events are in capital letters."""
    if isinstance(item, str | bytes | int | float | BaseEvent) or item is None:
        return False
    return not _is_event_type(dict.get(item, "type") if issubclass(type(item), dict) else None)


def _is_event_object(item: Any) -> bool:
    """Whether this is an event of the package `ag_ui`, a pydantic model."""
    if isinstance(item, str | bytes | dict | BaseEvent | type) or not callable(getattr(item, "model_dump", None)):
        return False
    kind = getattr(item, "type", None)
    return _is_event_type(kind.value if isinstance(kind, Enum) else kind)


def _is_event_type(kind: Any) -> bool:
    return type(kind) is str and kind.isupper()


def _encoded(item: Any) -> bytes:
    if not isinstance(item, BaseEvent | dict):
        raise SeatrialError("invalid_document", f"a {type(item).__name__}; expected an event, bytes or text")
    try:
        if isinstance(item, BaseEvent):
            fields = [getattr(item, field) for field in item.__struct_fields__]
            check_size([value for value in fields if value is not UNSET])
        else:
            check_size(item)
    except TypeError:
        item = to_json_values(item)
    return _written(item)


def _written(value: Any) -> bytes:
    try:
        return wire.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SeatrialError("invalid_document", f"an object that is not JSON: {error}") from None


def _too_much() -> SeatrialError:
    return SeatrialError("too_large", f"more than {MAX_RESPONSE_BYTES:,} bytes")
