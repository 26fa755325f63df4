from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from engine.setting import TestClock

from seatrial._support import wire
from seatrial.driver import Recorder, Redaction
from seatrial.driver import recorder as module
from seatrial.errors import SeatrialError
from seatrial.events import encode_event
from seatrial.events.order import Terminal
from seatrial.events.types import (
    CancelledOutcome,
    Interrupt,
    InterruptOutcome,
    RunError,
    RunFinished,
    RunStarted,
    TextMessageChunk,
    TextMessageContent,
    ToolCallEnd,
    ToolCallStart,
)
from seatrial.runs import Fault
from seatrial.suites import Secrets
from seatrial.transcript import AssistantMessage, StopReason, TextBlock, ToolCall, Transcript, UserMessage

FAULT = Fault("agent_unreachable", "gone")
STARTED = RunStarted(thread_id="thread", run_id="run")


class Sink:
    """What the store was given, and whether it takes more."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[bytes]]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.failure: SeatrialError | None = None

    async def append(self, events: list[bytes], first: int) -> None:
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        self.batches.append((first, events))


def a_recorder(sink: Sink | None = None, clock: TestClock | None = None, **options: Any) -> Recorder:
    options.setdefault("flush_after_s", 60.0)
    redaction = options.pop("redaction", Redaction(None))
    return Recorder("run", "thread", clock or TestClock(), redaction, sink or Sink(), **options)


def recorded(scene: Callable[[Recorder], Awaitable[None]], **options: Any) -> list[dict[str, Any]]:
    """The events that a scene leaves, none of which went to the store before."""

    async def play() -> list[dict[str, Any]]:
        recorder = a_recorder(**options)
        await scene(recorder)
        await recorder.close()
        return [wire.decode(event) for event in recorder.pending]

    return asyncio.run(play())


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def chunk(text: str = "x") -> TextMessageChunk:
    return TextMessageChunk(message_id="m", delta=text)


def test_a_run_is_started_for_an_agent_that_does_not_say_so() -> None:
    async def scene(recorder: Recorder) -> None:
        await recorder.emit(chunk())
        await recorder.emit(RunStarted(thread_id="t", run_id="r"))
        await recorder.emit(chunk())
        recorder.finish()
        assert recorder.notes == []

    assert kinds(recorded(scene)) == ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "TEXT_MESSAGE_CHUNK", "RUN_FINISHED"]


def test_an_agent_that_starts_and_finishes_its_run_is_taken_at_its_word() -> None:
    async def scene(recorder: Recorder) -> None:
        await recorder.emit(RunStarted(thread_id="t", run_id="r"))
        await recorder.emit(RunFinished(thread_id="t", run_id="r"))
        recorder.finish()

    events = recorded(scene)
    assert kinds(events) == ["RUN_STARTED", "RUN_FINISHED"]
    assert {event["runId"] for event in events} == {"r"}


def test_an_agent_may_have_several_runs_in_one_stream() -> None:
    async def scene(recorder: Recorder) -> None:
        for number in range(2):
            await recorder.emit(RunStarted(thread_id="t", run_id=f"r{number}"))
            await recorder.emit(RunFinished(thread_id="t", run_id=f"r{number}"))
        recorder.finish()
        assert recorder.notes == []

    assert kinds(recorded(scene)) == ["RUN_STARTED", "RUN_FINISHED"] * 2


def test_every_attempt_that_failed_has_an_end_of_its_own() -> None:
    async def scene(recorder: Recorder) -> None:
        await recorder.emit(chunk())
        recorder.fail(FAULT)
        recorder.fail(FAULT)
        await recorder.emit(RunError(message="by itself"))
        recorder.fail(FAULT)
        recorder.fail(FAULT)

    events = recorded(scene)
    assert kinds(events) == [
        *("RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_ERROR"),
        *("RUN_STARTED", "RUN_ERROR"),
        *("RUN_STARTED", "RUN_ERROR"),
        *("RUN_STARTED", "RUN_ERROR"),
    ]
    assert [event["message"] for event in events if event["type"] == "RUN_ERROR"] == [
        "gone",
        "gone",
        "by itself",
        "gone",
    ]


def test_an_event_that_breaks_the_order_is_kept_as_raw_with_a_note() -> None:
    async def scene(recorder: Recorder) -> None:
        await recorder.emit(STARTED)
        await recorder.emit(TextMessageContent(message_id="never begun", delta="secret plan"))
        recorder.finish()
        (note,) = recorder.notes
        assert (note.code, note.weight, note.pointer) == ("event_out_of_order", "look", "/1")

    events = recorded(scene)
    assert kinds(events) == ["RUN_STARTED", "RAW", "RUN_FINISHED"]
    assert events[1]["event"]["delta"] == "secret plan"


@pytest.mark.parametrize("one_run", [True, False])
def test_what_comes_after_the_end_is_kept_as_raw_before_it(one_run: bool) -> None:
    async def scene(recorder: Recorder) -> None:
        await recorder.emit(STARTED)
        await recorder.emit(RunFinished(thread_id="thread", run_id="run"))
        await recorder.emit(ToolCallStart(tool_call_id="c", tool_call_name="delete_account"))
        await recorder.emit(RunFinished(thread_id="thread", run_id="run"))
        recorder.finish()
        noted = [(note.code, note.weight) for note in recorder.notes]
        assert noted == [("event_after_end", "serious"), ("second_terminal", "look")]
        assert recorder.has_calls

    events = recorded(scene, started=STARTED if one_run else None)
    assert kinds(events)[-3:] == ["RAW", "RAW", "RUN_FINISHED"]
    assert events[-3]["event"]["toolCallName"] == "delete_account"


FINISHED = RunFinished(thread_id="thread", run_id="run")
INTERRUPTED = RunFinished(thread_id="thread", run_id="run", outcome=InterruptOutcome([Interrupt("i", "sure?")]))
CANCELLED = RunFinished(thread_id="thread", run_id="run", outcome=CancelledOutcome())
FAILED = RunError(message="boom")


def without_time(event: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key != "timestamp"}


@pytest.mark.parametrize("one_run", [True, False])
@pytest.mark.parametrize(("better", "worse"), [*pairwise([FINISHED, INTERRUPTED, CANCELLED, FAILED])])
@pytest.mark.parametrize("worse_first", [True, False])
def test_the_worst_end_of_a_run_is_the_end_of_its_log(
    one_run: bool, better: Terminal, worse: Terminal, worse_first: bool
) -> None:
    ends = copy.deepcopy([worse, better] if worse_first else [better, worse])

    async def scene(recorder: Recorder) -> None:
        await recorder.emit(STARTED)
        for end in ends:
            await recorder.emit(end)
        recorder.finish()
        assert [note.code for note in recorder.notes] == ["second_terminal"]

    events = recorded(scene, started=STARTED if one_run else None)
    sent = [wire.decode(encode_event(end)) for end in (better, worse)]
    assert [without_time(event) for event in (events[-2]["event"], events[-1])] == sent
    assert kinds(events)[-2:] == ["RAW", "RUN_ERROR" if worse is FAILED else "RUN_FINISHED"]


def test_an_end_that_the_agent_announced_and_did_not_keep_stays_visible() -> None:
    async def scene(recorder: Recorder) -> None:
        await recorder.emit(STARTED)
        await recorder.emit(RunFinished(thread_id="thread", run_id="run"))
        recorder.fail(FAULT)

    events = recorded(scene)
    assert kinds(events) == ["RUN_STARTED", "RAW", "RUN_ERROR"]
    assert events[1]["event"]["type"] == "RUN_FINISHED"


def test_what_an_agent_leaves_open_is_closed_before_its_end() -> None:
    async def scene(recorder: Recorder) -> None:
        await recorder.emit(ToolCallStart(tool_call_id="c", tool_call_name="look"))
        recorder.fail(FAULT)

    assert kinds(recorded(scene)) == ["RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_END", "RUN_ERROR"]


def test_an_event_that_comes_after_closing_is_dropped() -> None:
    async def scene() -> None:
        sink = Sink()
        recorder = a_recorder(sink)
        await recorder.emit(chunk())
        await recorder.close()
        left = list(recorder.pending)
        await recorder.emit(chunk())
        await recorder.close()
        assert (recorder.pending, sink.batches) == (left, [])

    asyncio.run(scene())


def test_events_are_with_the_store_while_the_run_is_running_and_the_rest_is_left_for_its_end() -> None:
    async def scene() -> None:
        sink = Sink()
        recorder = a_recorder(sink, flush_after_s=0.0)
        await recorder.emit(chunk())
        while not sink.batches:
            await asyncio.sleep(0)
        assert [(first, len(events)) for first, events in sink.batches] == [(0, 2)]
        sink.open.clear()
        await recorder.emit(chunk())
        await asyncio.sleep(0)
        await recorder.emit(chunk())
        closing = asyncio.create_task(recorder.close())
        await asyncio.sleep(0)
        assert not closing.done()  # one is on its way
        sink.open.set()
        await closing
        assert (recorder.stored, len(recorder.pending)) == (3, 1)

    asyncio.run(scene())


def test_an_agent_that_is_faster_than_the_store_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BUFFER_BYTES", 10_000)

    async def scene() -> None:
        sink = Sink()
        sink.open.clear()
        recorder = a_recorder(sink)
        said = 0

        async def talk() -> None:
            nonlocal said
            while said < 100:
                await recorder.emit(chunk("x" * 1000))
                said += 1

        talking = asyncio.create_task(talk())
        for _ in range(1000):
            await asyncio.sleep(0)
        assert said < 20
        sink.open.set()
        await talking
        await recorder.close()
        assert sum(len(events) for _, events in sink.batches) + len(recorder.pending) == 101

    asyncio.run(scene())


def test_a_store_that_fails_lets_the_agent_go_on_and_is_reported() -> None:
    async def scene() -> None:
        failed: list[SeatrialError] = []
        sink = Sink()
        sink.failure = SeatrialError("store_full", "no room")
        recorder = a_recorder(sink, flush_after_s=0.0, on_failure=failed.append)
        await recorder.emit(chunk())
        while recorder.failure is None:
            await asyncio.sleep(0)
        for _ in range(10):
            await recorder.emit(chunk("x" * 1_000_000))  # which must not fill the memory, nor wait for ever
        await recorder.close()
        assert failed == [sink.failure]
        assert (recorder.stored, recorder.pending) == (0, [])

    asyncio.run(scene())


def test_an_abandoned_recorder_waits_for_nothing() -> None:
    async def scene() -> None:
        sink = Sink()
        sink.open.clear()
        recorder = a_recorder(sink, flush_after_s=0.0)
        await recorder.emit(chunk())
        await asyncio.sleep(0)
        await recorder.abandon()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(scene())


def test_an_answer_that_cannot_be_written_whole_leaves_nothing_of_itself_in_the_log() -> None:
    call = ToolCall("c", object(), {})  # type: ignore[arg-type]  # what no reader should make, and a bug may
    transcript = Transcript([UserMessage("a"), AssistantMessage([TextBlock("b"), call], StopReason.TOOL_USE)])

    async def scene(recorder: Recorder) -> None:
        await recorder.emit(chunk())
        with pytest.raises(TypeError):
            recorder.unfold(transcript)
        recorder.fail(FAULT)

    assert kinds(recorded(scene)) == ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_ERROR"]


@pytest.mark.parametrize(
    "said",
    [
        [TextBlock("it is hunter2")],
        [TextBlock("it is hun"), TextBlock("ter2")],
        [ToolCall("c", "log_in", {"key": "hunter2"})],
    ],
    ids=["whole", "in pieces", "in a call"],
)
def test_a_secret_in_an_answer_is_in_no_event(said: list[TextBlock | ToolCall]) -> None:
    async def scene(recorder: Recorder) -> None:
        recorder.unfold(Transcript([AssistantMessage([*said], StopReason.END_TURN)]))

    events = recorded(scene, redaction=Redaction(Secrets({"KEY": "hunter2"})))
    told = "".join(event.get("delta", "") for event in events)
    assert "${KEY}" in told
    assert "hunter2" not in told


def test_an_answer_without_secrets_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bytes] = []
    look = Redaction.raw

    def counted(self: Redaction, data: bytes) -> bytes:
        looked.append(data)
        return look(self, data)

    async def scene(recorder: Recorder) -> None:
        recorder.unfold(Transcript([AssistantMessage([TextBlock("ok")], StopReason.END_TURN)]))

    monkeypatch.setattr(Redaction, "raw", counted)
    monkeypatch.delattr(Redaction, "document")
    monkeypatch.delattr(Redaction, "transcript")
    events = recorded(scene, redaction=Redaction(Secrets({"KEY": "hunter2"})))
    assert [wire.decode(line) for line in b"".join(looked).split(b"\n")] == events


def test_a_secret_in_pieces_is_in_no_event_whatever_its_order() -> None:
    async def scene(recorder: Recorder) -> None:
        await recorder.emit(STARTED)
        for piece in ("my key is hun", "ter2"):
            await recorder.emit(chunk(piece))
        await recorder.emit(ToolCallEnd(tool_call_id="hunter2"))
        recorder.finish()

    events = recorded(scene, redaction=Redaction(Secrets({"KEY": "hunter2"})))
    assert "hunter2" not in str(events)
    assert kinds(events)[-2] == "RAW"
    assert events[-2]["event"]["toolCallId"] == "${KEY}"


@pytest.mark.parametrize("last", [" and more", None], ids=["goes on", "ends with the secret begun"])
def test_a_secret_in_pieces_that_come_after_the_end_is_in_no_event(last: str | None) -> None:
    async def scene(recorder: Recorder) -> None:
        await recorder.emit(STARTED)
        await recorder.emit(FINISHED)
        for piece in ("my key is hun", "ter2", last or " or hunt"):
            await recorder.emit(TextMessageContent(message_id="m", delta=piece))
        recorder.finish()
        assert [note.code for note in recorder.notes] == ["event_after_end"] * 3

    events = recorded(scene, redaction=Redaction(Secrets({"KEY": "hunter2"})))
    late = [event["event"]["delta"] for event in events if event["type"] == "RAW"]
    assert "".join(late) == f"my key is ${{KEY}}{last or ' or hunt'}"
    assert kinds(events)[-1] == "RUN_FINISHED"


def test_what_is_held_back_after_the_end_of_a_run_comes_before_the_next_run_of_the_stream() -> None:
    async def scene(recorder: Recorder) -> None:
        for event in (STARTED, FINISHED, TextMessageContent(message_id="m", delta="hun"), STARTED, FINISHED):
            await recorder.emit(copy.deepcopy(event))
        recorder.finish()

    events = recorded(scene, redaction=Redaction(Secrets({"KEY": "hunter2"})))
    assert kinds(events) == ["RUN_STARTED", "RAW", "RUN_FINISHED", "RUN_STARTED", "RUN_FINISHED"]


def test_an_event_that_says_its_time_keeps_it() -> None:
    event = TextMessageChunk(message_id="m", delta="x", timestamp=7)

    async def scene(recorder: Recorder) -> None:
        await recorder.emit(event)

    started, said = recorded(scene, clock=TestClock(5))
    assert started["timestamp"] == 5
    assert said == wire.decode(encode_event(event))
