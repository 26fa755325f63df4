from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from engine.setting import TestClock
from seatrial.engine import recorder as module
from seatrial.engine.recorder import Recorder
from seatrial.engine.redaction import Redaction
from seatrial.errors import SeatrialError
from seatrial.events import encode_event
from seatrial.events.types import RunError, RunFinished, RunStarted, TextMessageChunk
from seatrial.runs import Fault
from seatrial.transcript import AssistantMessage, StopReason, TextBlock, ToolCall, Transcript, UserMessage

FAULT = Fault("agent_unreachable", "gone")


class Taken:
    """What the store was given, and when it refuses."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int]] = []
        self.refuses = False

    def append(self, events: list[bytes], first: int) -> None:
        if self.refuses:
            raise SeatrialError("store_unavailable", "closed")
        self.batches.append((first, len(events)))


def recorded(scene: Callable[[Recorder], None]) -> list[str]:
    """The kinds of the events that a scene leaves."""
    recorder = Recorder("run", "thread", TestClock(), Redaction(None), Taken().append)

    async def play() -> list[bytes]:
        scene(recorder)
        return recorder.close()

    return [event.split(b'"type":"')[1].split(b'"')[0].decode() for event in asyncio.run(play())]


def chunk() -> TextMessageChunk:
    return TextMessageChunk(message_id="m", delta="x")


def test_a_run_is_started_for_an_agent_that_does_not_say_so() -> None:
    def scene(recorder: Recorder) -> None:
        recorder.emit(chunk())
        recorder.emit(RunStarted(thread_id="t", run_id="r"))
        recorder.emit(chunk())
        recorder.finish(None)

    assert recorded(scene) == ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "TEXT_MESSAGE_CHUNK", "RUN_FINISHED"]


def test_an_agent_that_starts_and_finishes_its_run_is_taken_at_its_word() -> None:
    def scene(recorder: Recorder) -> None:
        recorder.emit(RunStarted(thread_id="t", run_id="r"))
        recorder.emit(RunFinished(thread_id="t", run_id="r"))
        recorder.finish(None)

    assert recorded(scene) == ["RUN_STARTED", "RUN_FINISHED"]


def test_every_attempt_that_failed_has_an_end_of_its_own() -> None:
    def scene(recorder: Recorder) -> None:
        recorder.emit(chunk())
        recorder.fail(FAULT)
        recorder.fail(FAULT)
        recorder.emit(RunError(message="by itself"))
        recorder.fail(FAULT)
        recorder.fail(FAULT)

    assert recorded(scene) == [
        *("RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_ERROR"),
        *("RUN_STARTED", "RUN_ERROR"),
        *("RUN_STARTED", "RUN_ERROR"),
        *("RUN_STARTED", "RUN_ERROR"),
    ]


def test_an_event_that_comes_after_the_end_is_dropped() -> None:
    async def scene() -> None:
        taken = Taken()
        recorder = Recorder("run", "thread", TestClock(), Redaction(None), taken.append)
        recorder.emit(chunk())
        left = list(recorder.close())
        recorder.emit(chunk())
        await asyncio.sleep(2 * module.FLUSH_S)
        assert recorder.close() == left
        assert taken.batches == []

    asyncio.run(scene())


def test_what_a_store_refuses_while_the_run_goes_on_is_kept_for_its_end() -> None:
    async def scene() -> None:
        taken = Taken()
        recorder = Recorder("run", "thread", TestClock(), Redaction(None), taken.append)
        recorder.emit(chunk())
        await asyncio.sleep(2 * module.FLUSH_S)
        assert (taken.batches, recorder.appended) == ([(0, 2)], 2)
        taken.refuses = True
        recorder.emit(chunk())
        await asyncio.sleep(2 * module.FLUSH_S)
        recorder.emit(chunk())
        assert recorder.appended == 2
        assert len(recorder.close()) == 2

    asyncio.run(scene())


def test_an_end_that_cannot_be_written_whole_leaves_nothing_of_itself_in_the_log() -> None:
    call = ToolCall("c", object(), {})  # type: ignore[arg-type]  # what no reader should make, and a bug may
    transcript = Transcript([UserMessage("a"), AssistantMessage([TextBlock("b"), call], StopReason.TOOL_USE)])

    def scene(recorder: Recorder) -> None:
        recorder.emit(chunk())
        with pytest.raises(TypeError):
            recorder.finish(transcript)
        recorder.fail(FAULT)

    assert recorded(scene) == ["RUN_STARTED", "TEXT_MESSAGE_CHUNK", "RUN_ERROR"]


def test_an_event_that_tells_its_time_keeps_it() -> None:
    async def scene() -> None:
        recorder = Recorder("run", "thread", TestClock(5), Redaction(None), Taken().append)
        event = TextMessageChunk(message_id="m", delta="x", timestamp=7)
        recorder.emit(event)
        started, told = recorder.close()
        assert b'"timestamp":5' in started
        assert told == encode_event(event)

    asyncio.run(scene())
