"""Following runs: from the store, then live, without a gap and without a repetition."""

from __future__ import annotations

import asyncio
import itertools
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import records

from seatrial.errors import SeatrialError
from seatrial.runs import RunHead, RunKey
from seatrial.server import feed as feed_module
from seatrial.server.feed import Feeds
from seatrial.server.run_feed import PAGE_EVENTS
from seatrial.store import Store, open_store
from server.following import RUN, THREAD, Driven, event, followed, numbered, taken, until

_numbers = itertools.count()


@asynccontextmanager
async def following(store: Store, **given: Any) -> AsyncIterator[Feeds]:
    feeds = Feeds(store, **given)
    try:
        yield feeds
    finally:
        await feeds.close()
        assert not feeds.subscribers


class Counting:
    """A store that counts what is read of it."""

    def __init__(self, store: Store) -> None:
        self.heads = 0
        self.pages = 0
        self._store = store

    def run_head(self, run_id: str) -> RunHead:
        self.heads += 1
        return self._store.run_head(run_id)

    def events(self, run_id: str, *, after: int = -1, limit: int = 1000) -> list[tuple[int, bytes]]:
        self.pages += 1
        return self._store.events(run_id, after=after, limit=limit)


def refused(code: str) -> Any:
    return pytest.raises(SeatrialError, check=lambda error: error.code == code)


def test_a_run_is_followed_from_its_first_event_to_its_end(store: Store) -> None:
    async def scenario() -> None:
        async with following(store) as feeds:
            run = Driven(store, feeds)
            await run.say(3)
            subscription = await feeds.open(RUN, after=None)
            reading = asyncio.create_task(followed(subscription))
            for _ in range(5):
                await run.say(2)
                await asyncio.sleep(0)
            await run.end()
            assert await reading == numbered(run.events)
            assert subscription.status == "completed"
            assert not subscription.interrupted
            assert await subscription.next(1) is None, "the end stays the end"
            subscription.close()

    asyncio.run(scenario())


def test_every_position_is_a_cursor(store: Store) -> None:
    async def scenario() -> None:
        async with following(store) as feeds:
            run = Driven(store, feeds)
            await run.say(30)
            early = await feeds.open(RUN, after=None)
            assert await taken(early, 30) == numbered(run.events)
            await run.say(10)
            live = [await feeds.open(RUN, after=after if after >= 0 else None) for after in range(-1, 40)]
            await run.end(5, status="failed")
            late = [await feeds.open(RUN, after=after if after >= 0 else None) for after in range(-1, 45)]
            for after, subscription in enumerate(live, -1):
                assert await followed(subscription) == numbered(run.events, after)
            for after, subscription in enumerate(late, -1):
                assert await followed(subscription) == numbered(run.events, after)
                assert subscription.status == "failed"
            for subscription in (early, *live, *late):
                subscription.close()

    asyncio.run(scenario())


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.lists(st.integers(0, 6), min_size=1, max_size=12))
def test_whenever_somebody_comes_there_is_no_gap_and_no_repetition(
    shared: Store, seed: int, batches: list[int]
) -> None:
    """Commits, publications that are late, missing or doubled, and readers, in any order."""
    chance = random.Random(seed)
    run_id = f"run-{next(_numbers)}"

    async def pause() -> None:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        if chance.random() < 0.1:
            await asyncio.sleep(0.003)

    async def scenario() -> None:
        async with following(shared, poll_s=0.01, recheck_s=0.02) as feeds:
            begin(shared, run_id)
            log: list[bytes] = []
            committed = 0  # of the log, at least: a reader may see a commit before whoever made it goes on

            async def read() -> None:
                await pause()
                after = chance.randrange(committed) if committed and chance.random() < 0.5 else None
                subscription = await feeds.open(run_id, after=after)
                try:
                    assert await followed(subscription) == numbered(log, -1 if after is None else after)
                    assert subscription.status == "completed"
                finally:
                    subscription.close()

            async with asyncio.TaskGroup() as group:
                for number, count in enumerate(batches):
                    first = len(log)
                    new = [event(first + index) for index in range(count)]
                    log += new
                    if number == len(batches) - 1:
                        run = records.run(run_id, run_id=run_id, experiment_id=run_id)
                        assert await shared.record_run(run, events=new, first=first)
                    else:
                        await shared.append_events(run_id, new, first=first)
                    committed = len(log)
                    await pause()
                    for _ in range(chance.choice((0, 1, 1, 1, 2))):
                        feeds.publish(run_id, first, new)
                    for _ in range(chance.randrange(3)):
                        group.create_task(read())
                    await pause()
                group.create_task(read())
                if chance.random() < 0.5:
                    feeds.ended(run_id)

    asyncio.run(scenario())


def begin(store: Store, run_id: str) -> None:
    """A run in an experiment of its own, with a case of its own, all of the same name."""
    (case,) = records.cases(1)
    case.id = run_id
    store.create_experiment(records.experiment(run_id), [case])
    store.begin_run(run_id, RunKey("crew", run_id, 1), run_id).wait()


def test_those_who_keep_up_cost_the_store_nothing(store: Store) -> None:
    async def scenario() -> None:
        counting = Counting(store)
        # Looking again now and then is not what it costs, and how often that is depends on how long all this takes.
        never = {"poll_s": 1000, "recheck_s": 1000}
        async with following(counting, **never) as feeds:  # type: ignore[arg-type]  # all that feeds need of a store
            run = Driven(store, feeds)
            await run.say(1)
            first = await feeds.open(RUN, after=None)
            assert await taken(first, 1) == numbered(run.events)
            assert (counting.heads, counting.pages) == (1, 1)
            others = [await feeds.open(RUN, after=0) for _ in range(50)]
            for _ in range(10):
                await run.say(3)
                for subscription in (first, *others):
                    assert len(await taken(subscription, 3)) == 3
            assert (counting.heads, counting.pages) == (1, 1)
            for subscription in (first, *others):
                subscription.close()

    asyncio.run(scenario())


def test_a_crowd_that_comes_back_reads_each_page_once(store: Store) -> None:
    async def scenario() -> None:
        counting = Counting(store)
        async with following(counting) as feeds:  # type: ignore[arg-type]
            run = Driven(store, feeds)
            for _ in range(4):
                await run.say(500)
            crowd = [await feeds.open(RUN, after=None) for _ in range(60)]
            counting.heads = counting.pages = 0
            for events in await asyncio.gather(*(taken(subscription, 2000) for subscription in crowd)):
                assert events == numbered(run.events)
            assert counting.pages <= -(-2000 // PAGE_EVENTS) + 3
            for subscription in crowd:
                subscription.close()

    asyncio.run(scenario())


def test_those_who_ask_at_the_same_time_share_an_answer(store: Store) -> None:
    async def scenario() -> None:
        counting = Counting(store)
        async with following(counting) as feeds:  # type: ignore[arg-type]
            run = Driven(store, feeds)
            await run.say(1)
            await asyncio.gather(*(feeds.open(RUN, after=None) for _ in range(100)))
            assert counting.heads <= 2

    asyncio.run(scenario())


def test_somebody_who_falls_out_of_the_window_goes_on_from_the_store(store: Store) -> None:
    async def scenario() -> None:
        async with following(store) as feeds:
            run = Driven(store, feeds)
            await run.say(1)
            slow, quick = [await feeds.open(RUN, after=None) for _ in range(2)]
            assert await taken(slow, 1) == await taken(quick, 1) == numbered(run.events)
            for _ in range(30):
                await run.say(10, size=10_000)
                assert await taken(quick, 10)
            await run.end()
            assert await followed(slow) == numbered(run.events, 0)
            for subscription in (slow, quick):
                subscription.close()

    asyncio.run(scenario())


def test_what_nobody_published_is_found_in_the_store(store: Store) -> None:
    async def scenario() -> None:
        async with following(store, poll_s=0.02, recheck_s=0.05) as feeds:
            run = Driven(store, feeds)
            await run.say(2)
            subscription = await feeds.open(RUN, after=None)
            assert await taken(subscription, 2)
            await run.say(2)
            assert await taken(subscription, 2)
            await run.say(3, publish=False)  # a wake-up that is missed
            assert await taken(subscription, 3) == numbered(run.events, 3)
            await run.say(1, publish=False)
            await run.say(1)  # of which the one before is missing here
            assert await taken(subscription, 2) == numbered(run.events, 6)
            await run.end(publish=False)
            assert await followed(subscription) == numbered(run.events, 8)
            subscription.close()

    asyncio.run(scenario())


def test_a_wake_up_is_enough(store: Store) -> None:
    async def scenario() -> None:
        async with following(store, poll_s=1000, recheck_s=1000) as feeds:
            run = Driven(store, feeds)
            await run.say(1)
            subscription = await feeds.open(RUN, after=0)
            reading = asyncio.create_task(followed(subscription))
            await asyncio.sleep(0.01)
            await run.say(2, publish=False)
            feeds.wake(RUN)
            await until(lambda: subscription.position == 2)
            await run.end(publish=False)
            feeds.wake(RUN)
            assert await reading == numbered(run.events, 0)
            feeds.wake("a run that nobody follows")
            feeds.publish("a run that nobody follows", 0, [b"{}"])
            subscription.close()

    asyncio.run(scenario())


def test_a_failed_attempt_is_not_the_end_of_a_run(store: Store) -> None:
    async def scenario() -> None:
        async with following(store, poll_s=0.02) as feeds:
            run = Driven(store, feeds)
            started, failed = b'{"type":"RUN_STARTED"}', b'{"type":"RUN_ERROR","message":"x"}'
            subscription = await feeds.open(RUN, after=None)
            reading = asyncio.create_task(followed(subscription))
            await run.commit([started, failed])
            feeds.ended(RUN)
            await asyncio.sleep(0.1)
            assert not reading.done()
            await run.commit([started])
            await run.end(status="failed")
            assert await reading == numbered(run.events)
            assert subscription.status == "failed"
            subscription.close()

    asyncio.run(scenario())


def test_a_hint_that_a_run_has_ended_is_not_believed(store: Store) -> None:
    async def scenario() -> None:
        async with following(store) as feeds:
            run = Driven(store, feeds)
            await run.say(1)
            subscription = await feeds.open(RUN, after=None)
            assert await taken(subscription, 1)
            feeds.ended(RUN)
            assert await subscription.next(0.2) == []
            assert subscription.status is None
            subscription.close()

    asyncio.run(scenario())


APPENDING = """
import sys, time
from seatrial.store import open_store
from server.following import RUN, event
from strategies import records
with open_store(sys.argv[1]) as store:
    for number in range(int(sys.argv[2])):
        store.append_events(RUN, [event(number)], first=number).wait()
        time.sleep(0.002)
    store.record_run(records.run(0, run_id=RUN), events=[event(int(sys.argv[2]))], first=int(sys.argv[2])).wait()
"""


def test_a_run_that_goes_on_in_another_process_is_followed(store: Store, tmp_path: Any) -> None:
    async def scenario() -> None:
        async with following(store, poll_s=0.02) as feeds:
            Driven(store, feeds)
            subscription = await feeds.open(RUN, after=None)
            argv = [sys.executable, "-c", APPENDING, str(tmp_path / "store.db"), "100"]
            with subprocess.Popen(argv, env={"PYTHONPATH": ":".join(sys.path)}) as process:
                events = await followed(subscription, 120)
            assert process.returncode == 0
            assert events == numbered([event(number) for number in range(101)])
            assert subscription.status == "completed"
            subscription.close()

    asyncio.run(scenario())


def test_a_run_that_ended_long_ago_is_read_and_ends(store: Store) -> None:
    async def scenario() -> None:
        async with following(store) as feeds:
            run = Driven(store, feeds)
            await run.say(1500)
            await run.end(status="cancelled")
        async with following(store) as feeds:
            for after in (None, 0, 700, 1499, 1500):
                subscription = await feeds.open(RUN, after=after)
                assert await followed(subscription) == numbered(run.events, -1 if after is None else after)
                assert subscription.status == "cancelled"
                subscription.close()
            tail = await feeds.open(RUN, after=None, tail=True)
            assert await followed(tail) == []
            assert (tail.status, tail.position) == ("cancelled", 1500)
            tail.close()

    asyncio.run(scenario())


def test_the_tail_begins_with_what_comes_next(store: Store) -> None:
    async def scenario() -> None:
        async with following(store) as feeds:
            run = Driven(store, feeds)
            empty = await feeds.open(RUN, after=None, tail=True)
            assert empty.position == -1
            await run.say(5)
            subscription = await feeds.open(RUN, after=None, tail=True)
            assert subscription.position == 4
            await run.say(2)
            assert await taken(subscription, 2) == numbered(run.events, 4)
            assert await taken(empty, 7) == numbered(run.events)
            for each in (empty, subscription):
                each.close()

    asyncio.run(scenario())


def test_a_cursor_that_cannot_be_followed_is_refused(store: Store) -> None:
    async def scenario() -> None:
        async with following(store) as feeds:
            run = Driven(store, feeds)
            with refused("cursor_ahead") as caught:
                await feeds.open(RUN, after=0)
            assert caught.value.details == {"head": None}
            await run.say(5)
            with refused("cursor_ahead") as caught:
                await feeds.open(RUN, after=5)
            assert caught.value.details == {"head": 4}
            with refused("invalid_cursor"):
                await feeds.open(RUN, after=-1)
            with refused("not_found"):
                await feeds.open("nothing", after=None)
            await run.end()
            with refused("cursor_ahead") as caught:
                await feeds.open(RUN, after=6)
            assert caught.value.details == {"head": 5}

    asyncio.run(scenario())


def test_events_that_are_not_kept_are_an_error_and_not_a_gap(store: Store) -> None:
    async def scenario() -> None:
        async with following(store) as feeds:
            run = Driven(store, feeds)
            for _ in range(10):
                await run.say(2)
            behind = await feeds.open(RUN, after=1)
            await run.end()
            await store.forget_events(RUN, 10)
            for after in (None, 0, 8):
                with refused("cursor_expired") as caught:
                    await feeds.open(RUN, after=after)
                assert caught.value.details == {"first": 10}
            kept, tail = await feeds.open(RUN, after=9), await feeds.open(RUN, after=None, tail=True)
            assert await followed(kept) == numbered(run.events, 9)
            assert await followed(tail) == []
            assert await followed(behind) == [], "what was there when it was opened is gone"
            assert behind.interrupted
            for subscription in (kept, tail, behind):
                subscription.close()

    asyncio.run(scenario())


def test_a_run_that_is_removed_interrupts_those_who_follow_it(store: Store) -> None:
    async def scenario(begin_anew: Callable[[], Awaitable[None]]) -> None:
        async with following(store, poll_s=0.02, recheck_s=0.05) as feeds:
            await feeds.open(RUN, after=None)
            subscription = await feeds.open(RUN, after=1)
            assert await subscription.next(0) == []
            await begin_anew()
            assert await followed(subscription) == []
            assert subscription.interrupted
            assert subscription.status is None
            subscription.close()

    async def another_run() -> None:
        await store.begin_run(THREAD, RunKey("crew", "case-0", 1), "another")

    async def the_same_run() -> None:
        await store.begin_run(THREAD, RunKey("crew", "case-0", 1), RUN)
        await store.append_events(RUN, [event(100)], first=0)

    async def prepared() -> None:
        await Driven(store, Feeds(store)).say(2)

    for begin_anew in (the_same_run, another_run):
        asyncio.run(prepared())
        asyncio.run(scenario(begin_anew))


def test_when_the_server_stops_everything_that_waits_ends_without_a_status(store: Store) -> None:
    async def scenario() -> None:
        feeds = Feeds(store)
        run = Driven(store, feeds)
        await run.say(1)
        waiting, unread = [await feeds.open(RUN, after=0) for _ in range(2)]
        reading = asyncio.create_task(followed(waiting))
        reading.add_done_callback(lambda _: waiting.close())
        await asyncio.sleep(0.01)
        await feeds.close()
        assert await reading == []
        assert waiting.interrupted
        assert waiting.status is None
        assert await unread.next(1) is None
        assert unread.interrupted
        with refused("shutting_down"):
            await feeds.open(RUN, after=0)

    asyncio.run(scenario())


@pytest.mark.parametrize("answer_s", [0.0, 0.3])
def test_when_the_server_stops_whoever_follows_a_run_that_has_just_ended_is_told_so(
    store: Store, monkeypatch: pytest.MonkeyPatch, answer_s: float
) -> None:
    monkeypatch.setattr(feed_module, "LEAVING_S", 60.0)
    heads = store.run_head

    def slowly(run_id: str) -> RunHead:
        time.sleep(answer_s)
        return heads(run_id)

    async def scenario() -> None:
        feeds = Feeds(store)
        run = Driven(store, feeds)
        await run.say(1)
        subscription = await feeds.open(RUN, after=0)
        reading = asyncio.create_task(followed(subscription))
        reading.add_done_callback(lambda _: subscription.close())
        await asyncio.sleep(0.01)
        monkeypatch.setattr(store, "run_head", slowly)
        await run.end(2)
        await feeds.close()
        assert await reading == numbered(run.events, 0)
        assert subscription.status == "completed"
        assert not subscription.interrupted

    asyncio.run(scenario())


def test_a_time_out_gives_nothing_and_loses_nothing(store: Store) -> None:
    async def scenario() -> None:
        async with following(store, keepalive_s=0.2) as feeds:
            run = Driven(store, feeds)
            await run.say(1)
            subscription = await feeds.open(RUN, after=0)
            begun = asyncio.get_running_loop().time()
            assert await subscription.next(0.1) == []
            assert 0.1 <= asyncio.get_running_loop().time() - begun < 30
            waiting = asyncio.create_task(subscription.next(10))
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await run.say(2)
            assert await subscription.next(0) == numbered(run.events, 0)
            subscription.close()

    asyncio.run(scenario())


def test_closing_a_subscription_ends_whoever_waits_in_it(store: Store) -> None:
    async def scenario() -> None:
        async with following(store) as feeds:
            run = Driven(store, feeds)
            await run.say(1)
            subscription = await feeds.open(RUN, after=0)
            waiting = asyncio.create_task(subscription.next(10))
            await asyncio.sleep(0.01)
            assert feeds.subscribers == 1
            subscription.close()
            assert await waiting is None
            assert not subscription.interrupted
            assert feeds.subscribers == 0
            await run.say(1)
            assert await subscription.next(10) is None

    asyncio.run(scenario())


def test_feeds_that_nobody_reads_are_dropped(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "UNUSED_S", 0.05)

    async def scenario() -> None:
        async with following(store, poll_s=0.01) as feeds:
            run = Driven(store, feeds)
            await run.say(3)
            with refused("not_found"):
                await feeds.open("nothing", after=None)
            late = await feeds.open(RUN, after=0)
            subscription = await feeds.open(RUN, after=0)
            assert await taken(subscription, 2)
            subscription.close()
            await until(lambda: not feeds._feeds and not feeds._tasks)
            await run.say(1)
            assert await taken(late, 3) == numbered(run.events, 0), "one that was never read can still be"
            late.close()

    asyncio.run(scenario())


def test_a_store_that_is_away_interrupts_readers_of_the_store_and_nobody_else(store: Store) -> None:
    class Away(Counting):
        away = False

        def run_head(self, run_id: str) -> RunHead:
            if self.away:
                raise SeatrialError("store_unavailable", "away")
            return super().run_head(run_id)

        def events(self, run_id: str, *, after: int = -1, limit: int = 1000) -> list[tuple[int, bytes]]:
            if self.away:
                raise SeatrialError("store_unavailable", "away")
            return super().events(run_id, after=after, limit=limit)

    async def scenario() -> None:
        away = Away(store)
        async with following(away, poll_s=0.01, recheck_s=0.01) as feeds:  # type: ignore[arg-type]
            run = Driven(store, feeds)
            await run.say(3)
            early, live = await feeds.open(RUN, after=None), await feeds.open(RUN, after=2)
            assert await live.next(0) == []
            away.away = True
            await asyncio.sleep(0.1)
            assert await followed(early) == []
            assert early.interrupted
            await run.say(1)
            assert await taken(live, 1) == numbered(run.events, 2)
            with refused("store_unavailable"):
                await feeds.open(RUN, after=None)
            await run.end()
            assert await taken(live, 1) == numbered(run.events, 3)
            assert await live.next(0.05) == []
            away.away = False
            assert await followed(live) == []
            assert live.status == "completed"
            for subscription in (early, live):
                subscription.close()

    asyncio.run(scenario())


def test_the_head_of_a_run_can_be_asked_for(store: Store) -> None:
    async def scenario() -> None:
        async with following(store) as feeds:
            run = Driven(store, feeds)
            await run.say(2)
            head = await feeds.head(RUN)
            assert (head.first, head.following, head.closed, head.thread_id) == (0, 2, False, THREAD)
            with refused("not_found"):
                await feeds.head("nothing")

    asyncio.run(scenario())


def test_stores_can_be_opened_twice(store: Store, tmp_path: Any) -> None:
    """What one store commits another one reads: the ground that following other processes stands on."""
    Driven(store, Feeds(store))
    with open_store(tmp_path / "store.db") as other:
        store.append_events(RUN, [event(0)], first=0).wait()
        assert other.run_head(RUN).following == 1
