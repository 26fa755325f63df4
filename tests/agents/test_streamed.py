"""The events of a run, read in turns with everything else."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from typing import Any

import pytest

from agents.setting import collecting
from seatrial.agents import off_loop, streamed
from seatrial.agents.agent import EVENT_WORK, Reply
from seatrial.agents.streamed import StreamedRun
from seatrial.errors import SeatrialError
from seatrial.events import Event, encode_event, encode_sse
from seatrial.events.types import RunFinished, RunStarted, TextMessageChunk
from seatrial.formats import agui

START = encode_sse(encode_event(RunStarted(thread_id="t", run_id="r")))
PIECE = encode_sse(encode_event(TextMessageChunk(message_id="m", delta="a")))
END = encode_sse(encode_event(RunFinished(thread_id="t", run_id="r")))


def chunk(text: str, message_id: str = "m") -> bytes:
    return encode_event(TextMessageChunk(message_id=message_id, delta=text))


async def put_text(run: StreamedRun, text: str, message_id: str = "m") -> None:
    piece = TextMessageChunk(message_id=message_id, delta=text)
    await run.put(encode_event(piece), piece)


def test_others_have_their_turn_while_a_large_chunk_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(off_loop, "TURN_S", 0.0)
    chunk = START + PIECE * 10_000 + END
    turns = 0

    async def look_on() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def play() -> list[Event]:
        run = StreamedRun(collecting([]), "agui")
        onlooker = asyncio.create_task(look_on())
        await run.feed(chunk)
        onlooker.cancel()
        return run._events.all()

    assert len(asyncio.run(play())) == 10_002
    assert turns >= len(chunk) // streamed.SLICE_BYTES


@pytest.mark.parametrize(("pieces", "beside"), [(1, False), (10_000, True)])
def test_a_large_stream_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch, pieces: int, beside: bool) -> None:
    read_in: list[int] = []
    emitted_in: set[int] = set()

    def reading_of(*arguments: Any) -> Any:
        read_in.append(threading.get_ident())
        return agui.reading_of(*arguments)

    monkeypatch.setattr(streamed, "reading_of", reading_of)

    async def play() -> str | None:
        async def emit(event: Event) -> None:
            emitted_in.add(threading.get_ident())

        run = StreamedRun(emit, "agui")
        await run.feed(START + PIECE * pieces + END)
        reply = await run.reply(None)
        assert reply.fault is None
        assert reply.reading is not None
        return reply.reading.transcript.final_text()

    assert asyncio.run(play()) == "a" * pieces
    assert (read_in != [threading.get_ident()]) == beside
    assert emitted_in == {threading.get_ident()}


def test_no_more_events_are_taken_than_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "MAX_EVENTS", 100)

    async def play() -> None:
        run = StreamedRun(collecting([]), "agui")
        with pytest.raises(SeatrialError, match="more than 100 events"):
            await run.feed(START + b'data: {"type":"NO_SUCH"}\n\n' * 1_000)
        assert run.count == 100

    asyncio.run(play())


OPENING = [
    '{"type":"TOOL_CALL_START","toolCallId":"%d","toolCallName":"a"}',
    '{"type":"TEXT_MESSAGE_START","messageId":"%d","role":"assistant"}',
    '{"type":"REASONING_MESSAGE_START","messageId":"%d","role":"reasoning"}',
    '{"type":"STEP_STARTED","stepName":"%d"}',
    '{"type":"SUBAGENT_STARTED","subagentRunId":"%d","agentName":"a"}',
]


@pytest.mark.parametrize("opening", OPENING)
def test_no_more_may_be_open_at_once_than_can_be_ended_in_time(monkeypatch: pytest.MonkeyPatch, opening: str) -> None:
    monkeypatch.setattr(streamed, "MAX_OPEN", 100)

    async def play() -> None:
        run = StreamedRun(collecting([]), "agui")
        with pytest.raises(SeatrialError, match="more than 100 messages, calls and steps are open") as caught:
            await run.feed(START + b"".join([b"data: " + (opening % n).encode() + b"\n\n" for n in range(1_000)]))
        assert caught.value.code == "too_large"
        assert run.count <= 101

    asyncio.run(play())


def test_calls_that_end_may_be_as_many_as_one_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "MAX_OPEN", 100)
    ending = '{"type":"TOOL_CALL_END","toolCallId":"%d"}'

    async def play() -> None:
        run = StreamedRun(collecting([]), "agui")
        pairs = [(form % n).encode() for n in range(1_000) for form in (OPENING[0], ending)]
        await run.feed(START + b"".join([b"data: " + pair + b"\n\n" for pair in pairs]))
        assert run.count == 2_001

    asyncio.run(play())


def test_text_that_came_in_pieces_is_kept_as_one_chunk_and_all_else_as_it_came() -> None:
    custom = b'{"type" : "CUSTOM", "name": "n", "value": 1}'

    async def play() -> tuple[Reply, list[Event]]:
        events: list[Event] = []
        run = StreamedRun(collecting(events), "agui", RunStarted(thread_id="t", run_id="r"))
        for text in ("caf", "\u00e9 ", ""):
            await put_text(run, text)
        await run.put(custom)
        for text, message_id in (("a", "m"), ("b\n", "m"), ("c", "n")):
            await put_text(run, text, message_id)
        await run.finish()
        return await run.reply(None), events

    reply, events = asyncio.run(play())
    assert reply.body is not None
    assert reply.body.splitlines() == [chunk("café "), custom, chunk("ab\n"), chunk("c", "n")]
    said = [event.delta for event in events if isinstance(event, TextMessageChunk)]
    assert said == ["caf", "\u00e9 ", "", "a", "b\n", "c"]
    assert reply.reading is not None
    again = agui.read(reply.body)
    assert again.transcript.final_text() == reply.reading.transcript.final_text()


def test_half_a_character_in_a_piece_is_replaced_in_the_body_as_it_is_in_the_log() -> None:
    async def play() -> Reply:
        run = StreamedRun(collecting([]), "agui", RunStarted(thread_id="t", run_id="r"))
        for text in ("a\ud83d", "b"):
            await put_text(run, text)
        await run.finish()
        return await run.reply(None)

    reply = asyncio.run(play())
    assert reply.body == chunk("a\ufffdb") + b"\n"
    assert reply.reading is not None
    assert reply.reading.transcript.final_text() == "a\ufffdb"


def test_what_is_held_of_a_piece_of_text_is_little_more_than_the_text_twice() -> None:
    count, text = 10_000, "x" * 20

    async def emit(event: Event) -> None:
        pass

    async def play() -> int:
        run = StreamedRun(emit, "agui", RunStarted(thread_id="t", run_id="r"))
        await put_text(run, text)
        tracemalloc.start(1)
        try:
            for _ in range(count):
                await put_text(run, text)
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    assert asyncio.run(play()) < 2 * count * (len(text) + 15)


def test_a_reply_of_many_small_events_is_as_much_work_as_it_would_be_with_their_frames() -> None:
    async def play() -> Reply:
        run = StreamedRun(collecting([]), "agui", RunStarted(thread_id="t", run_id="r"))
        for _ in range(1_000):
            await put_text(run, "a")
        return await run.reply(None)

    reply = asyncio.run(play())
    assert reply.body is not None
    assert len(reply.body) < 2_000
    assert reply.size >= 1_000 * EVENT_WORK
