"""One run's world: its state, its clock, its ids. Every call of every gateway goes through `WorldSession.call`."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from random import Random
from typing import Any

import msgspec

from seatrial._support import wire
from seatrial._support.excerpt import exception_excerpt
from seatrial._support.threads import ends_us
from seatrial.events.types import CustomEvent
from seatrial.ledger.changes import LedgerDiff, Violation
from seatrial.ledger.ledger import Ledger
from seatrial.ledger.record import WorldCall, WorldCallStatus, WorldRecord
from seatrial.ledger.transaction import LedgerTransaction, Refusal
from seatrial.trajectory.values import key
from seatrial.world.compiled import CompiledWorld, StartState
from seatrial.world.grant import Emit
from seatrial.world.tool import OngoingCall, ToolHandler, WorldTool
from seatrial.world.tools import ToolAnswer, refusal
from seatrial.world.user_handler import WorldContext

MAX_NAME = 128
MAX_RECORDED_BYTES = 64 * 1024 * 1024
"""Of the answers and the changes of one run."""
MAX_REFUSALS = 5_000
"""How many refused attempts of one run are recorded."""
_INTERNAL = {"error": {"code": 500, "message": "internal error"}}
_SOURCES: dict[str, str] = {"ledger_read": "ledger_read"}


class HandlerFault(msgspec.Struct, frozen=True):
    """The world is broken: the run says nothing of the agent."""

    tool: str
    call: int
    message: str
    detail: str | None = None


class _Outcome(msgspec.Struct):
    """How a call ended."""

    status: WorldCallStatus
    response: Any
    source: str
    ledger: Ledger
    diff: LedgerDiff | None = None
    made: list[str] = []


class WorldSession:
    """Opened for one attempt at a run, and closed with it."""

    def __init__(self, world: CompiledWorld, start: StartState, *, case_id: str, trial: int, emit: Emit) -> None:
        self.world = world
        self.fault: HandlerFault | None = None
        """The first, if the world broke."""
        self.limit_reached = False
        """Whether the agent called more often than it may."""
        self._emit = emit
        self._case_id = case_id
        self._ledger = start.ledger
        id_fields = {each.type: each.id_field for each in world.schema.entities if each.id_field != "id"}
        self._record = WorldRecord(start.text, sorted(start.ledger.flags), id_fields)
        self._bytes_left = MAX_RECORDED_BYTES
        self._refusals = 0
        self._seed = _hashed(world.definition.seed, case_id, trial)
        self._clock = datetime.fromisoformat(world.definition.clock.start).astimezone(UTC)
        self._numbers: Counter[str] = Counter()
        self._calls = 0
        self._valid: Counter[str] = Counter()
        self._queue = asyncio.Lock()
        self._waiting = 0
        self._ended = False
        self._answered: dict[str, tuple[bytes, asyncio.Future[ToolAnswer]]] = {}
        self._handlers: dict[str, ToolHandler] = {
            name: of_user(self._context) for name, of_user in world.user_handlers.items()
        }

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        *,
        gateway: str,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> ToolAnswer:
        """Answer one call of the agent. It is in the run's record before this returns."""
        if not idempotency_key:
            return await self._queued(name, arguments, gateway, actor)
        body = key([name, arguments])
        known = self._answered.get(idempotency_key)
        if known is not None:
            if known[0] != body:
                text = "this key was used for another call"
                return await self._refused(name, actor, refusal(409, "idempotency_conflict", text))
            first = await asyncio.shield(known[1])
            return ToolAnswer(first.status, first.body, recorded=True, replayed=True)
        future: asyncio.Future[ToolAnswer] = asyncio.get_running_loop().create_future()
        self._answered[idempotency_key] = (body, future)
        try:
            answer = await self._queued(name, arguments, gateway, actor)
        except BaseException:
            self._answered.pop(idempotency_key, None)
            future.cancel()
            raise
        if answer.status != 200:
            # It did not reach the tool: a client that tries again gets through.
            del self._answered[idempotency_key]
        future.set_result(answer)
        return answer

    def described(self, actor: str | None = None) -> list[dict[str, Any]]:
        """The tool definitions that the agent, or one of its sub-agents, sees."""
        return [tool.described() for tool in self.world.tools.values() if tool.visible_to(actor)]

    def close(self) -> WorldRecord:
        """End it; what still runs has no effect. Gives what it recorded."""
        self._ended = True
        self._record.root = self._ledger.root
        return self._record

    async def _queued(self, name: str, arguments: dict[str, Any], gateway: str, actor: str | None) -> ToolAnswer:
        limits = self.world.definition.limits
        if self._waiting >= limits.queue_length:
            text = f"{self._waiting} calls of this run are waiting"
            return await self._refused(name, actor, refusal(503, "lock_contention", text))
        began = time.monotonic()
        self._waiting += 1
        try:
            await asyncio.wait_for(self._queue.acquire(), limits.queue_wait_s)
        except TimeoutError:
            text = f"another call of this run took longer than {limits.queue_wait_s:g} s"
            return await self._refused(name, actor, refusal(503, "lock_contention", text))
        finally:
            self._waiting -= 1
        try:
            return await self._answer(name, arguments, gateway, actor, (time.monotonic() - began) * 1000)
        finally:
            self._queue.release()

    async def _answer(
        self, name: str, arguments: dict[str, Any], gateway: str, actor: str | None, waited_ms: float
    ) -> ToolAnswer:
        if self._is_over():
            return refusal(401, "run_token_expired", "the run of this token has ended")
        if self._calls >= self.world.definition.limits.max_calls:
            self.limit_reached = True
            text = f"a run may make {self.world.definition.limits.max_calls:,} calls"
            return await self._refused(name, actor, refusal(401, "run_token_rejected", text))
        tool = self.world.tools.get(name)
        if tool is None or not tool.visible_to(actor):
            text = f"there is no tool {name[:MAX_NAME]!r}"
            return await self._refused(name, actor, refusal(404, "tool_not_found", text))
        began = time.monotonic()
        self._calls += 1
        number = self._calls
        self._clock += timedelta(milliseconds=self.world.definition.clock.per_call_ms)
        head: dict[str, Any] = {"call": number, "tool": name, "by": "agent", "gateway": gateway, "arguments": arguments}
        if actor is not None:
            head["actor"] = actor
        called = {**head, "at": self._now, "waited_ms": round(waited_ms, 1)}
        await self._emit(CustomEvent(name="tool.called", value=called))
        outcome = await self._outcome(tool, arguments, number, actor)
        if self._is_over():
            return refusal(401, "run_token_expired", "the run of this token has ended")
        latency_ms = round((time.monotonic() - began) * 1000, 3)
        return await self._commit(tool, outcome, number, actor, latency_ms)

    async def _outcome(self, tool: WorldTool, arguments: dict[str, Any], number: int, actor: str | None) -> _Outcome:
        wrong = tool.wrong_arguments(arguments)
        if wrong is not None:
            error = {"error": {"code": 422, "message": wrong}}
            return _Outcome("invalid", error, "error", self._ledger)
        self._valid[tool.name] += 1
        transaction = LedgerTransaction(self._ledger)
        numbers = self._numbers.copy()
        call = OngoingCall(
            transaction, arguments, number, self._now, actor, self._new_id(transaction), self.world.id_field
        )
        source = _SOURCES.get(tool.handled, "odyssey")
        try:
            if (told := tool.refused_by(call)) is not None:
                return _Outcome("refused", {"error": told}, source, self._ledger)
            handler = self._handlers.get(tool.name, tool.handler)
            async with asyncio.timeout(self.world.definition.limits.handler_timeout_s):
                response = await handler(call)
            return self._checked(tool, call, response, source)
        except Refusal as no:
            self._numbers = numbers
            return _Outcome("refused", {"error": {"code": no.code, "message": no.message}}, source, self._ledger)
        except TimeoutError:
            limit_s = self.world.definition.limits.handler_timeout_s
            return self._faulted(tool, number, f"it took longer than {limit_s:g} s")
        except BaseException as error:  # a handler of the author may raise anything
            if ends_us(error, ran_here=True):
                raise
            message, detail = exception_excerpt(error, error.__traceback__)
            return self._faulted(tool, number, message, detail)

    def _checked(self, tool: WorldTool, call: OngoingCall, response: Any, source: str) -> _Outcome:
        """The outcome of a handler that answered, if what it answered and did is right."""
        try:
            written = wire.encode(response)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            return self._faulted(tool, call.number, f"its answer is not JSON: {error}")
        if len(written) > self.world.definition.limits.max_answer_bytes:
            if tool.handled != "python":
                # What an agent stored is the agent's doing, also where it is too much to be read.
                raise Refusal(413, f"the answer has {len(written):,} bytes")
            return self._faulted(tool, call.number, f"its answer has {len(written):,} bytes")
        # What is recorded cannot change any more, whatever the handler keeps of it.
        response = wire.decode(written)
        is_error = isinstance(response, dict) and "error" in response
        if tool.result is not None and not is_error:
            wrong = tool.result.problems(response, len(written))
            if wrong:
                return self._faulted(tool, call.number, f"its answer breaks the `output_schema`: {wrong[0]}")
        transaction = call.transaction
        violations = self.world.schema.violations(transaction.written(), transaction)
        violations += self.world.schema.dangling(transaction.removed, transaction)
        violations += self._flag_violations(transaction)
        if violations:
            return self._faulted(tool, call.number, f"what it did breaks the schema: {violations[0].message}")
        changes = transaction.changes()
        size = len(written) + (len(wire.encode(changes)) if changes else 0)
        if size > self._bytes_left:
            self.limit_reached = True
            raise Refusal(413, "this run has used up what its calls may store")
        self._bytes_left -= size
        ledger = transaction.committed()
        diff = LedgerDiff(self._ledger.version, ledger.version, changes) if changes else None
        return _Outcome("ok", response, source, ledger, diff, call.made)

    def _flag_violations(self, transaction: LedgerTransaction) -> list[Violation]:
        new = sorted(transaction.flags - self._ledger.flags)
        return [
            Violation("unknown_flag", "", f"there is no flag {flag!r}")
            for flag in new
            if not self.world.schema.takes_flag(flag)
        ]

    def _faulted(self, tool: WorldTool, number: int, message: str, detail: str | None = None) -> _Outcome:
        if self.fault is None:
            self.fault = HandlerFault(tool.name, number, f"the tool {tool.name!r} of the world: {message}", detail)
        return _Outcome("faulted", _INTERNAL, "error", self._ledger)

    async def _commit(
        self, tool: WorldTool, outcome: _Outcome, number: int, actor: str | None, latency_ms: float
    ) -> ToolAnswer:
        self._ledger = outcome.ledger
        changes = [] if outcome.diff is None else outcome.diff.changes
        self._record.calls.append(WorldCall(number, tool.name, outcome.status, "agent", actor, changes, outcome.made))
        value: dict[str, Any] = {
            "call": number,
            "tool": tool.name,
            "by": "agent",
            "status": outcome.status,
            "response": outcome.response,
            "source": outcome.source,
            "mode": "stubbed" if tool.handled == "stub" else "simulated",
            "handler": tool.handled,
            "ledger_root": outcome.ledger.root,
            "latency_ms": latency_ms,
        }
        if outcome.status != "invalid":
            value["n"] = self._valid[tool.name]
        if actor is not None:
            value["actor"] = actor
        if outcome.diff is not None:
            value["diff"] = msgspec.to_builtins(outcome.diff)
        await self._emit(CustomEvent(name="tool.answered", value=value))
        body = {
            "tool_name": tool.name,
            "response": outcome.response,
            "source": outcome.source,
            "latency_ms": latency_ms,
        }
        return ToolAnswer(200, body, recorded=True)

    async def _refused(self, name: str, actor: str | None, answer: ToolAnswer) -> ToolAnswer:
        """Record an attempt that never reached a tool."""
        answer.recorded = True
        self._refusals += 1
        if self._refusals > MAX_REFUSALS:
            self.limit_reached = True
            return answer
        value = {"tool": name[:MAX_NAME], "status": answer.status, "error_class": answer.body["detail"]["error_class"]}
        if actor is not None:
            value["actor"] = actor
        await self._emit(CustomEvent(name="tool.refused", value=value))
        return answer

    def _is_over(self) -> bool:
        return self._ended

    @property
    def _now(self) -> str:
        return self._clock.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _new_id(self, transaction: LedgerTransaction) -> Callable[[str], str]:
        def next_id(prefix: str) -> str:
            while True:
                self._numbers[prefix] += 1
                made = f"{prefix}-{self._numbers[prefix]}"
                if not any(transaction.row(name, made) for name in self._ledger.entities):
                    return made

        return next_id

    def _context(self, call: OngoingCall) -> WorldContext:
        return WorldContext(call, Random(_hashed(self._seed, call.number)), self._case_id)  # noqa: S311


def _hashed(*parts: object) -> int:
    """A number that depends on all of these, the same on every machine."""
    written = wire.encode([str(part) for part in parts])
    return int.from_bytes(blake2b(written, digest_size=8).digest())
