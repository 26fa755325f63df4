"""What lets one run use the proxy: a secret that lives as long as the run."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from seatrial._support import wire
from seatrial.events.types import Event
from seatrial.trajectory.observed import ObservedCalls
from seatrial.world.agent_tools import Access, ToolError
from seatrial.world.observation import OpenCall
from seatrial.world.tools import ToolAnswer

if TYPE_CHECKING:
    from seatrial.world.session import WorldSession

Emit: TypeAlias = Callable[[Event], Awaitable[None]]
"""Hands one event of the run to its recorder, which stores it; waits while the store is behind."""
Refused: TypeAlias = Literal["run_token_invalid", "run_token_expired"]

MAX_RUN_BYTES = 64 * 1024 * 1024
"""What one run may post in all."""
_REMEMBERED = 10_000
"""How many expired tokens are remembered, to be told apart from invalid ones."""
_TOKEN_BYTES = 32
_JTI_BYTES = 8


class RunGrant(msgspec.Struct, frozen=True):
    """A run's access to the proxy."""

    run_id: str
    url: str
    """Where the proxy is."""
    token: str
    """The secret. It is neither logged nor stored; the proxy itself keeps a hash of it."""
    jti: str
    """Names the token without being one; may be logged."""
    access: Access | None = None
    """The way to the tools of the world inside this process; None when the run has no world."""

    def __repr__(self) -> str:
        return f"RunGrant(run_id={self.run_id!r}, url={self.url!r}, jti={self.jti!r})"


class LiveRun(msgspec.Struct):
    """What the proxy knows of a run that is running."""

    run_id: str
    emit: Emit
    digest: bytes
    bytes_left: int
    """What it may still post."""
    calls: ObservedCalls
    """What it asked of tools."""
    live: bool = True
    """Whether it is still running: it may end while a request of its agent is being read."""
    next_sequence: int = 0
    open_calls: set[OpenCall] = set()
    session: WorldSession | None = None
    """Its world, if there is one."""

    async def call_in_process(self, name: str, arguments: dict[str, Any], actor: str | None) -> Any:
        """Call a tool of the world from a function of this process; gives its response."""
        if self.session is None or not self.live:
            raise ToolError("the run has ended")
        call = self.begin_call(name, None)
        call.step.actor = actor
        call.take_arguments(arguments, wire.encode(arguments))
        answer: ToolAnswer | None = None
        try:
            # As over a socket: the call completes even if the caller stops waiting.
            asked = asyncio.ensure_future(self.session.call(name, arguments, gateway="python", actor=actor))
            answer = await asyncio.shield(asked)
        finally:
            await self.end_call(call, answer)
        if answer.status != 200:
            detail = answer.body["detail"]
            raise ToolError(f"{detail['message']} ({detail['error_class']})", detail)
        return answer.body["response"]

    def begin_call(self, name: str, call_id: str | None) -> OpenCall:
        """Record that a tool is asked for."""
        call = OpenCall(self.calls, name, call_id)
        self.open_calls.add(call)
        return call

    async def end_call(self, call: OpenCall, answer: ToolAnswer | None) -> None:
        """Record how a call was answered, or that it was not. What happens after the end of the run is not recorded:
        its calls are part of the record already."""
        if call in self.open_calls:
            self.open_calls.discard(call)
            if answer is not None and answer.replayed:
                call.drop()
            elif (event := call.close(answer)) is not None:
                await self.emit(event)


class Grants:
    """The runs that may use the proxy now."""

    def __init__(self, max_run_bytes: int = MAX_RUN_BYTES) -> None:
        self._max_run_bytes = max_run_bytes
        self._by_digest: dict[bytes, LiveRun] = {}
        self._by_run: dict[str, LiveRun] = {}
        self._dead: OrderedDict[bytes, None] = OrderedDict()

    def open(
        self,
        run_id: str,
        url: str,
        emit: Emit,
        calls: ObservedCalls | None = None,
        session: WorldSession | None = None,
    ) -> RunGrant:
        """Give a run access; its tool calls are added to `calls`. An earlier grant of the same run expires."""
        calls = ObservedCalls() if calls is None else calls
        if calls.steps is None:
            calls.steps = []
        if (earlier := self._by_run.get(run_id)) is not None:
            self._forget(earlier)
        # Hexadecimal: it is written in the same way everywhere, and is soon found not to be in a text.
        token = secrets.token_hex(_TOKEN_BYTES)
        run = LiveRun(run_id, emit, _digest(token), self._max_run_bytes, calls, session=session)
        self._by_digest[run.digest] = self._by_run[run_id] = run
        access = None
        if session is not None:
            access = Access(run.call_in_process, session.described, asyncio.get_running_loop())
        return RunGrant(run_id, url, token, secrets.token_hex(_JTI_BYTES), access)

    async def close(self, run_id: str) -> WorldSession | None:
        """End a run's access, and record the calls that were not answered; gives its session, which is to be closed."""
        run = self._by_run.get(run_id)
        if run is not None:
            self._forget(run)
            for call in sorted(run.open_calls, key=lambda call: call.step.index):
                await run.end_call(call, None)
        return None if run is None else run.session

    def _forget(self, run: LiveRun) -> None:
        run.live = False
        del self._by_run[run.run_id], self._by_digest[run.digest]
        self._dead[run.digest] = None
        if len(self._dead) > _REMEMBERED:
            self._dead.popitem(last=False)

    def find(self, token: str) -> LiveRun | Refused:
        """The run of a token, or why there is none."""
        # Looked up by its hash, so that the time this takes does not show how close a guess is.
        digest = _digest(token)
        run = self._by_digest.get(digest)
        if run is not None:
            return run
        return "run_token_expired" if digest in self._dead else "run_token_invalid"


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "replace")).digest()
