"""The page of a running run, in a browser that looks at it while it runs."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from strategies import records

from explorer.browser.chromium import View, barriers, faults_of, opened_context, sideways
from explorer.browser.conftest import server
from seatrial.formats.reading import Reading
from seatrial.runs import Experiment, RunKey
from seatrial.store import Store, open_store
from seatrial.transcript import AssistantMessage, StopReason, TextBlock, Transcript, UserMessage

RUN = "run-live"


class Running:
    """A run in a store that another process serves, whose events come when a test says so."""

    def __init__(self, path: Path) -> None:
        self.store: Store = open_store(path)
        experiment: Experiment = records.experiment()
        experiment.suite = {"agents": {"crew": {"kind": "stream"}}, "timeouts": {"run_s": 60}}
        self.store.create_experiment(experiment, records.cases(2))
        self.count = 0
        self.said: list[str] = []
        self.store.begin_run("exp-1", RunKey("crew", "case-0", 1), RUN, started_at=int(time.time() * 1000)).wait()
        self.send([{"type": "RUN_STARTED", "threadId": "t", "runId": RUN}])

    def send(self, events: Sequence[Mapping[str, object]]) -> None:
        now = int(time.time() * 1000)
        encoded = [json.dumps({**event, "timestamp": now}).encode() for event in events]
        self.store.append_events(RUN, encoded, first=self.count).wait()
        self.count += len(events)

    def say(self, text: str) -> None:
        """A message, in three events."""
        at = f"m{len(self.said)}"
        self.said.append(text)
        start = {"type": "TEXT_MESSAGE_START", "messageId": at, "role": "assistant"}
        content = {"type": "TEXT_MESSAGE_CONTENT", "messageId": at, "delta": text}
        self.send([start, content, {"type": "TEXT_MESSAGE_END", "messageId": at}])

    def call(self, name: str) -> None:
        self.send(
            [
                {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": name},
                {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"order": "A-1"}'},
                {"type": "TOOL_CALL_END", "toolCallId": "c1"},
            ]
        )

    def answer(self, text: str) -> None:
        self.send([{"type": "TOOL_CALL_RESULT", "messageId": "r1", "toolCallId": "c1", "content": text}])

    def end(self) -> None:
        said = [AssistantMessage([TextBlock(text)], StopReason.END_TURN) for text in self.said]
        reading = Reading("agui", Transcript([UserMessage("Say it."), *said]), [])
        run = records.run(run_id=RUN, reading=reading, steps=[])
        last = json.dumps({"type": "RUN_FINISHED", "threadId": "t", "runId": RUN}).encode()
        self.store.record_run(run, events=[last], first=self.count).wait()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    found = Running(tmp_path / "store.db")
    yield found
    found.store.close()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def opened(page: Page, url: str) -> None:
    page.goto(f"{url}/runs/{RUN}")
    page.evaluate("window.opened = true")
    expect(page.locator("[data-word]")).to_have_text("Live")


def test_a_running_run_is_shown_as_it_goes_on_and_then_as_it_ended(
    chromium: Browser, running: Running, tmp_path: Path
) -> None:
    running.say("The first thing.")
    with server(tmp_path / "store.db") as url, opened_context(chromium, url) as context:
        page = context.new_page()
        faults = faults_of(page)
        opened(page, url)
        expect(page.locator(".ts")).to_contain_text("The first thing.")
        expect(page.locator(".say2")).to_contain_text("so far. The limit is 1 m 00 s.")
        running.call("find_order")
        expect(page.locator(".cl")).to_contain_text("No result yet.")
        expect(page.locator(".out2")).to_contain_text("find_order")
        running.answer("it is <b>here</b>")
        expect(page.locator(".cl")).to_contain_text("it is <b>here</b>")
        expect(page.locator(".cl")).not_to_contain_text("No result yet.")
        running.say("The last thing.")
        expect(page.locator(".ts")).to_contain_text("The last thing.")
        expect(page.locator("[data-said]")).to_contain_text(f"event {running.count - 1}")
        assert page.evaluate("window.opened") is True
        running.end()
        expect(page.locator("h1 .bd")).to_have_text("passed")
        expect(page.locator("#live")).to_have_count(0)
        assert faults == []


def test_a_page_catches_up_without_a_reload_when_its_server_was_killed_and_comes_back(
    chromium: Browser, running: Running, tmp_path: Path
) -> None:
    port = free_port()
    with opened_context(chromium, f"http://127.0.0.1:{port}") as context:
        page = context.new_page()
        with server(tmp_path / "store.db", port=port) as url:
            opened(page, url)
            running.say("Before.")
            expect(page.locator(".ts")).to_contain_text("Before.")
        expect(page.locator("[data-word]")).to_have_text("Not connected")
        expect(page.locator("#live")).to_contain_text("nothing is lost")
        for number in range(60):
            running.say(f"Meanwhile {number}.")
        with server(tmp_path / "store.db", port=port) as url:
            expect(page.locator("[data-word]")).to_have_text("Live")
            expect(page.locator(".ts").last).to_contain_text("Meanwhile 59.")
            assert page.evaluate("window.opened") is True
            running.end()
            expect(page.locator("h1 .bd")).to_have_text("passed")
            # Nothing is missing.
            expect(page.locator(".ts .it.assistant")).to_have_count(len(running.said))
            shown = page.locator(".ts .it.assistant .tx").all_inner_texts()
            assert shown == running.said


def test_tabs_of_one_browser_share_a_stream_and_go_on_when_the_one_that_has_it_closes(
    chromium: Browser, running: Running, tmp_path: Path
) -> None:
    with server(tmp_path / "store.db") as url, opened_context(chromium, url) as context:
        streams: list[str] = []
        context.on("request", lambda request: streams.append(request.url) if "/stream" in request.url else None)
        first, second = context.new_page(), context.new_page()
        opened(first, url)
        opened(second, url)
        running.say("To both.")
        for page in (first, second):
            expect(page.locator(".ts")).to_contain_text("To both.")
        assert len(streams) == 1
        first.close()
        running.say("To the other.")
        expect(second.locator(".ts")).to_contain_text("To the other.")
        assert len(streams) == 2


def test_following_keeps_the_end_in_view_until_one_scrolls_up(
    chromium: Browser, running: Running, tmp_path: Path
) -> None:
    for number in range(40):
        running.say(f"Line {number}.\n\nAnd more.")
    with server(tmp_path / "store.db") as url, opened_context(chromium, url) as context:
        page = context.new_page()
        opened(page, url)
        running.say("The newest.")
        expect(page.locator(".ts").get_by_text("The newest.")).to_be_in_viewport()
        page.mouse.wheel(0, -2000)
        expect(page.locator("[data-follow]")).to_have_attribute("aria-pressed", "false")
        running.say("Unseen.")
        expect(page.locator("[data-follow]")).to_contain_text("1 new item")
        expect(page.locator(".ts").get_by_text("Unseen.")).not_to_be_in_viewport()
        page.keyboard.press("g")
        running.say("Seen.")
        expect(page.locator(".ts").get_by_text("Seen.", exact=True)).to_be_in_viewport()


@pytest.mark.parametrize("view", [View(1440, "light"), View(400, "dark")], ids=str)
def test_the_pages_of_what_is_running_fit_their_window_and_have_no_barrier(
    chromium: Browser, running: Running, tmp_path: Path, view: View
) -> None:
    running.say("A word. " * 40)
    running.call("find_order")
    with server(tmp_path / "store.db") as url, opened_context(chromium, url, view) as context:
        page = context.new_page()
        faults = faults_of(page)
        opened(page, url)
        assert sideways(page) == 0
        assert barriers(page) == []
        page.goto(f"{url}/live")
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody")).to_contain_text("case-0")
        assert sideways(page) == 0
        assert barriers(page) == []
        assert faults == []
