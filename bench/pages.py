"""**Looking in the browser**: the page of a run of 100,000 events and 50 MB of text, in Debian's Chromium. The first
paint with content after the address was entered, medians of fresh browser contexts; the bytes of the first answer; the
memory that the page's own process alone has (PSS); a place in the middle by its address; a word of one message looked
for in the whole run. Then the page of a running run that gets 1,000 events a second: how often it asks in a second,
and its longest task.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from bench.figure import Level
from bench.store_growth import _case, _experiment, _talk
from seatrial.runs import RunKey
from seatrial.store import Store, open_store
from seatrial.transcript import AssistantMessage, StopReason, TextBlock

EVENTS = 100_000
MESSAGES = 12_480
TEXT = "The order was delivered on Tuesday, and two of the three mugs are broken. " * 55
"""About 4 KB."""
RARE = "xylophone"
ROUNDS = 5
LIVE_S, EACH_S = 6, 1000
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
CHROMIUM = "/usr/bin/chromium"


def measure() -> list[Level]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        with open_store(path) as store:
            store.create_experiment(_experiment("small"), [_case(0)])
            _long(store)
            with _serving(path) as url, sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
                try:
                    return [*_looked(browser, url), *_live(browser, url, store)]
                finally:
                    browser.close()


def _looked(browser: Browser, url: str) -> Iterator[Level]:
    run = f"{url}/runs/run-1"
    work = f"page of a run of {EVENTS:,} events, 50 MB of text"
    paints = [_painted(browser, run)[0] for _ in range(ROUNDS + 1)][1:]
    yield Level(f"{work}: first useful paint", median(paints) * 1e6, 400e6, "ns")
    yield Level(f"{work}: first answer", len(_fetched(run)), 120_000, "bytes")
    yield Level(f"{work}: memory of the page", _painted(browser, run)[1], 150e6, "bytes")
    places = [_painted(browser, f"{run}?at=/messages/{MESSAGES // 2 + number}")[0] for number in range(ROUNDS)]
    yield Level(f"{work}: paint of a place in the middle", median(places) * 1e6, 400e6, "ns")
    spent = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter_ns()
        assert RARE in _fetched(f"{run}/find?q={RARE}").decode()
        spent.append(time.perf_counter_ns() - began)
    yield Level(f"{work}: find in all of it", median(spent[1:]), 300e6, "ns")


def _painted(browser: Browser, address: str) -> tuple[float, float]:
    """When the first content is there, in milliseconds, and the memory of the page when it is at rest."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(".ts .it")
    paint = page.wait_for_function("performance.getEntriesByName('first-contentful-paint')[0]?.startTime").json_value()
    page.wait_for_timeout(1000)
    memory = _memory(browser)
    context.close()
    return float(paint), memory


def _memory(browser: Browser) -> float:
    """What the largest renderer has for itself, and its share of what it has with others."""
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    renderers = [each["id"] for each in found["processInfo"] if each["type"] == "renderer"]
    return max([_pss(number) for number in renderers], default=0.0)


def _pss(process: int) -> float:
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0.0


def _live(browser: Browser, url: str, store: Store) -> Iterator[Level]:
    store.begin_run("small", RunKey("crew", "case-0", 99), "run-live", started_at=_now()).wait()
    count = _send(store, 0, [{"type": "RUN_STARTED", "threadId": "t", "runId": "run-live"}])
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    asked: list[float] = []
    page.on("request", lambda request: asked.append(time.monotonic()) if "/live?" in request.url else None)
    page.add_init_script(
        "window.tasks = [0]; new PerformanceObserver((list) => list.getEntries().forEach("
        "(each) => tasks.push(each.duration))).observe({entryTypes: ['longtask']})"
    )
    page.goto(f"{url}/runs/run-live")
    page.wait_for_selector("#live")
    page.evaluate("tasks.length = 1")
    said = _stream(page, store, count)
    last = page.locator(".ts .tx").last
    page.wait_for_function(
        "(text) => [...document.querySelectorAll('.ts .tx')].pop()?.textContent.endsWith(text)", arg=said
    )
    assert last.text_content() is not None
    most = max([sum(start <= each < start + 1 for each in asked) for start in asked], default=0)
    yield Level(f"page of a running run, {EACH_S:,} events a second: fetches in a second", most, 4, "count")
    longest = float(page.evaluate("Math.max(...tasks)"))
    yield Level(f"page of a running run, {EACH_S:,} events a second: longest task", longest * 1e6, 100e6, "ns")
    context.close()


def _stream(page: Page, store: Store, count: int) -> str:
    """Send the events; gives what was said last."""
    said = ""
    ends = time.monotonic() + LIVE_S
    number = 0
    while time.monotonic() < ends:
        began = time.monotonic()
        at = f"m{number}"
        events: list[dict[str, Any]] = [{"type": "TEXT_MESSAGE_START", "messageId": at, "role": "assistant"}]
        events += [
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": at, "delta": f"word {number} "}
            for _ in range(EACH_S // 10 - 3)
        ]
        said = f"end {number}."
        events.append({"type": "TEXT_MESSAGE_CONTENT", "messageId": at, "delta": said})
        events.append({"type": "TEXT_MESSAGE_END", "messageId": at})
        count = _send(store, count, events)
        number += 1
        page.wait_for_timeout(max(0.0, 100 - (time.monotonic() - began) * 1000))
    return said


def _send(store: Store, first: int, events: list[dict[str, Any]]) -> int:
    now = _now()
    store.append_events(
        "run-live", [json.dumps({**each, "timestamp": now}).encode() for each in events], first=first
    ).wait()
    return first + len(events)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _long(store: Store) -> None:
    run = _talk(0)
    run.run_id = "run-1"
    assert run.reading is not None
    said = run.reading.transcript.messages
    more = [AssistantMessage([TextBlock(f"{number}. {TEXT}")], StopReason.END_TURN) for number in range(MESSAGES)]
    more[MESSAGES // 3] = AssistantMessage([TextBlock(f"A {RARE}. {TEXT}")], StopReason.END_TURN)
    said[1:-1] = [*said[1:-1], *more]
    events = [
        b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-%d","delta":"A few words."}' % (index // 8)
        for index in range(EVENTS)
    ]
    store.record_run(run, events=events).wait()


def _fetched(address: str) -> bytes:
    request = urllib.request.Request(address, headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: bytes = answer.read()
        return found


@contextmanager
def _serving(path: Path) -> Iterator[str]:
    command = [str(Path(sys.executable).with_name("seatrial")), "serve", "--store", str(path), "--port", "0"]
    options = ["--rate", "0", "--drain-s", "1", "--json"]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        try:
            assert running.stdout is not None
            yield str(json.loads(running.stdout.readline())["url"])
        finally:
            running.terminate()
