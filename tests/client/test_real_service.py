"""The client and `seatrial tail` against `seatrial serve`, a process of its own."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from faults.tcp_proxy import Conduct, TcpProxy, one_after_the_other
from strategies.command import Started

from client.scripted import HASTY, sequences
from seatrial.cli import main
from seatrial.client import Client, EventStream, SyncClient
from seatrial.client.follow import StreamForm
from seatrial.errors import SeatrialError
from seatrial.events.types import RunFinished, RunStarted, TextMessageContent

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
AGENT = """
import asyncio

async def talk(instruction):
    count, pause = instruction.split()
    yield {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}
    for number in range(int(count)):
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": f"word {number} "}
        await asyncio.sleep(float(pause))
    yield {"type": "TEXT_MESSAGE_END", "messageId": "m"}

def answer(instruction):
    return f"You asked: {instruction}"
"""
SUITE = {
    "agents": {
        "talker": {"kind": "python", "target": "client_test_crew:talk"},
        "shop": {"kind": "python", "target": "client_test_crew:answer"},
    },
    "cases": [{"id": "one", "instruction": "1 0"}],
    "graders": [{"kind": "contains", "value": "word"}],
}


@contextmanager
def a_server(directory: Path, *options: str) -> Iterator[str]:
    """The URL of a server with a talker."""
    (directory / "client_test_crew.py").write_text(AGENT)
    (directory / "crew.suite.yaml").write_text(json.dumps(SUITE))
    with (directory / "serve.log").open("w+") as log:
        words = ["serve", "crew.suite.yaml", "--store", "store.db", "--port", "0", *options]
        process = Started(*words, cwd=directory, stderr=log)
        try:
            assert process.stdout is not None
            url = re.search(r"http://[0-9.:]+", process.stdout.readline())
            assert url is not None, (directory / "serve.log").read_text()
            yield url[0]
        finally:
            process.terminate()
            process.communicate(timeout=90)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with a_server(tmp_path_factory.mktemp("server"), "--keepalive-s", "0.1", "--rate", "0") as url:
        yield url


def client_of(url: str, **options: Any) -> Client:
    return Client(url, **{**HASTY, "patience_s": 10.0, **options})


async def code_of(stream: EventStream) -> tuple[str, dict[str, Any]]:
    with pytest.raises(SeatrialError) as caught:
        await sequences(stream)
    return caught.value.code, caught.value.details


@pytest.mark.parametrize("form", ["sse", "ndjson"])
async def test_a_run_is_asked_for_and_followed_while_it_goes_on(url: str, form: StreamForm) -> None:
    async with client_of(url) as client:
        run = await client.create_run("talker", "20 0.01")
        stream = client.events(run.run_id, form=form)
        found = [envelope async for envelope in stream]
        assert [envelope.sequence for envelope in found] == list(range(24))
        assert {envelope.thread_id for envelope in found} == {run.thread_id}
        assert isinstance(found[0].event, RunStarted)
        assert isinstance(found[-1].event, RunFinished)
        said = [envelope.event.delta for envelope in found if isinstance(envelope.event, TextMessageContent)]
        assert said == [f"word {number} " for number in range(20)]
        assert (stream.status, stream.connections, stream.duplicates) == ("completed", 1, 0)
        assert stream.notes == []
        assert (await client.run(run.run_id)).status == "completed"
        thread = await client.thread(run.thread_id)
        assert [message["role"] for message in thread.messages] == ["user", "assistant"]
        page = await client.events_page(run.run_id, after=21)
        assert ([json.loads(bytes(event))["sequence"] for event in page.events], page.closed) == ([22, 23], True)
        assert run.run_id in [listed.run_id for listed in (await client.runs(status=["completed"], limit=5)).runs]


@pytest.mark.parametrize("form", ["sse", "ndjson"])
async def test_an_ended_run_is_followed_from_any_event(url: str, form: StreamForm) -> None:
    async with client_of(url) as client:
        run = await client.create_run("talker", "4 0")
        assert await sequences(client.events(run.run_id)) == list(range(8))
        for after in range(8):
            stream = client.events(run.run_id, after=after, form=form)
            assert await sequences(stream) == list(range(after + 1, 8))
            assert stream.status == "completed"


async def test_only_some_types_are_followed_and_the_position_moves_on(url: str) -> None:
    async with client_of(url) as client:
        run = await client.create_run("elsewhere", push=True)
        start, *said = [
            {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
            *[{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": f"word {number} "} for number in range(30)],
        ]
        await client.push(run.run_id, [start, *said])
        stream = client.events(run.run_id, types=["TEXT_MESSAGE_START", "RUN_FINISHED"])
        assert (await anext(stream)).sequence == 1
        while stream.position != 31:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 0.3)
        end = {"type": "TEXT_MESSAGE_END", "messageId": "m"}
        finished = {"type": "RUN_FINISHED", "threadId": run.thread_id, "runId": run.run_id}
        await client.push(run.run_id, [end, finished])
        assert await sequences(stream) == [33]
        assert stream.status == "completed"


async def test_what_the_service_refuses_is_told_with_its_code(url: str) -> None:
    async with client_of(url) as client:
        assert (await code_of(client.events("nobody")))[0] == "not_found"
        run = await client.create_run("talker", "100000 0.2", thread_id="busy")
        with pytest.raises(SeatrialError) as caught:
            await client.create_run("talker", "4 0", thread_id="busy")
        assert (caught.value.code, caught.value.details["runId"]) == ("thread_busy", run.run_id)
        code, details = await code_of(client.events(run.run_id, after=1000))
        assert code == "cursor_ahead"
        assert isinstance(details["head"], int)
        assert (await code_of(client.events(run.run_id, types=["NO_SUCH"])))[0] == "invalid_request"
        await client.cancel(run.run_id)


async def test_a_cancelled_run_ends_its_stream_as_cancelled(url: str) -> None:
    async with client_of(url) as client:
        run = await client.create_run("talker", "100000 0.01")
        stream = client.events(run.run_id)
        assert (await anext(stream)).sequence == 0
        await client.cancel(run.run_id)
        rest = await sequences(stream)
        assert rest == list(range(1, len(rest) + 1))
        assert stream.status == "cancelled"
        assert (await client.cancel(run.run_id)).status == "cancelled"


async def test_leaving_a_stream_does_not_cancel_the_run(url: str) -> None:
    async with client_of(url) as client:
        run = await client.create_run("talker", "10 0.02")
        async with client.events(run.run_id) as stream:
            async for _ in stream:
                break
        again = client.events(run.run_id, after=stream.position)
        assert await sequences(again) == list(range(1, 14))
        assert again.status == "completed"


async def test_pushed_events_are_stored_once_though_every_answer_is_lost(url: str) -> None:
    port = int(url.rpartition(":")[2])
    lost = Conduct(cut_after=0)
    plan = one_after_the_other([lost, Conduct(), lost, Conduct(), lost])
    async with client_of(url) as direct, TcpProxy(port, plan) as proxy, client_of(proxy.url) as client:
        run = await client.create_run("outside", push=True)
        for events in (
            [{"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}],
            [
                {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hello"},
                {"type": "TEXT_MESSAGE_END", "messageId": "m"},
                {"type": "RUN_FINISHED", "threadId": run.thread_id, "runId": run.run_id},
            ],
        ):
            await proxy.cut_all()
            await client.push(run.run_id, events)
        stream = direct.events(run.run_id)
        assert await sequences(stream) == [0, 1, 2, 3, 4]
        assert stream.status == "completed"
        assert len((await direct.runs(agent="outside")).runs) == 1


async def test_a_live_run_survives_a_proxy_that_cuts_every_connection(url: str) -> None:
    port = int(url.rpartition(":")[2])
    async with (
        client_of(url) as direct,
        TcpProxy(port, lambda number: Conduct(cut_after=8_000 + number)) as proxy,
        client_of(proxy.url, patience_s=30.0) as client,
    ):
        run = await direct.create_run("talker", "150 0.002")
        # Lines have no `retry`, for which frames would have to wait two seconds each time.
        stream = client.events(run.run_id, form="ndjson")
        assert await sequences(stream) == list(range(154))
        assert (stream.status, stream.duplicates) == ("completed", 0)
        assert stream.connections > 3


def test_the_client_without_await(url: str) -> None:
    with SyncClient(url) as client:
        run = client.create_run("talker", "5 0.01")
        stream = client.events(run.run_id)
        assert [envelope.sequence for envelope in stream] == list(range(9))
        assert stream.status == "completed"


def test_tail_shows_a_run(url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEATRIAL_KEY", raising=False)
    with SyncClient(url) as client:
        run = client.create_run("talker", "3 0", thread_id="tailed")
    assert main(["tail", run.run_id, "--url", url]) == 0
    assert capsys.readouterr() == (
        "     0  run started thread tailed\n     2  assistant word 0 word 1 word 2 \n     6  run finished\n",
        f"{run.run_id}: completed\n",
    )


@pytest.mark.parametrize("example", re.findall(r"^```py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
def test_an_example_of_the_page_runs(example: str, url: str) -> None:
    program = example.replace("http://127.0.0.1:8765", url)
    assert program != example
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("kind", [Client, SyncClient])
def test_every_method_and_option_is_on_the_page(kind: type) -> None:
    methods = [name for name, member in vars(kind).items() if inspect.isfunction(member) and not name.startswith("_")]
    options = list(inspect.signature(kind).parameters)[1:]
    assert {*methods, *options} - {"close"} <= set(re.findall(r"`(\w+)", PAGE))


def test_a_key_opens_the_door(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "store.db")
    secrets = {}
    for name, scope in (("reader", "read"), ("runner", "run")):
        assert main(["keys", "add", name, "--scope", scope, "--store", store, "--json"]) == 0
        secrets[name] = re.search(r"st_[0-9A-Za-z_-]+", json.dumps(json.loads(capsys.readouterr().out)["secret"]))
    reader, runner = (found[0] for found in secrets.values() if found is not None)
    with a_server(tmp_path) as url:
        for key, code in ((None, "unauthorized"), ("st_no_such", "unauthorized"), (reader, "forbidden")):
            with SyncClient(url, key) as client, pytest.raises(SeatrialError) as caught:
                client.create_run("talker", "1 0")
            assert caught.value.code == code
            assert key is None or key not in str(caught.value)
        with SyncClient(url, runner) as client:
            run_id = client.create_run("talker", "1 0").run_id
            assert len(list(client.events(run_id))) == 5
