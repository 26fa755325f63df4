"""**Answers that are as large as they may be**: a server that runs an HTTP agent which answers with up to 48 MB of
messages of one kind, and is asked for `/healthz` all the while. Its peak of memory is that of the whole process, less
what it had before; the time is the longest that a single request for `/healthz` took, by the clock.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from aiohttp import web

from bench.figure import Level
from seatrial.formats.chat.limits import LEAST_PIECES

SIZE = 48_000_000
LONGEST_NS = 500e6
KINDS = {
    "empty objects": b"{}",
    "numbers": b"1",
    "numbers of two digits": b"12",
    "nested arrays": b"[[[[[[[[]]]]]]]]",
    "short messages": b'{"role":"user","content":"a"}',
    "calls": b'{"role":"assistant","tool_calls":[{"id":"1","name":"f","arguments":"{}"}]}',
    "as many calls as are read": b'{"role":"assistant","tool_calls":[{"id":"1","name":"f","arguments":""}]}',
    "as many texts as are read": b'{"role":"assistant","content":"a"}',
    "messages of 160 bytes": b'{"role":"assistant","content":"' + b"w" * 120 + b'"}',
    "calls of 320 bytes": b'{"role":"assistant","tool_calls":[{"id":"1","name":"f","arguments":"'
    + b"w" * 240
    + b'"}]}',
    "long texts": b'{"role":"assistant","content":"' + b"words and more words " * 5_000 + b'"}',
}
COMMAND = "import sys; from seatrial.cli import main; sys.exit(main())"


def measure() -> list[Level]:
    return asyncio.run(_measure())


def body(kind: str, unit: bytes) -> bytes:
    count = SIZE // (len(unit) + 1)
    if kind.startswith("as many"):
        count = min(count, LEAST_PIECES // 2 - 1)
    return b'{"final_response":"Done.","messages":[' + (unit + b",") * (count - 1) + unit + b"]}"


async def _measure() -> list[Level]:
    bodies = {kind.replace(" ", "-"): body(kind, unit) for kind, unit in KINDS.items()}
    runner = web.AppRunner(_agents(bodies))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    levels: list[Level] = []
    try:
        for name, sent in bodies.items():
            levels += await _measure_one(name, sent, port)
    finally:
        await runner.cleanup()
    return levels


def _agents(bodies: dict[str, bytes]) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=bodies[request.match_info["name"]], content_type="application/json")

    app = web.Application()
    app.router.add_post("/{name}", answer)
    return app


async def _measure_one(name: str, sent: bytes, port: int) -> list[Level]:
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder, "large.suite.yaml")
        suite.write_text(
            f'agents: {{large: {{kind: http, endpoint_url: "http://127.0.0.1:{port}/{name}"}}}}\n'
            "cases: [{id: a, instruction: Go., graders: [{kind: icontains, value: done}]}]\n"
        )
        arguments = ["serve", str(suite), "--port", "0", "--json", "--store", str(Path(folder, "store.db"))]
        server = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder
        )
        try:
            assert server.stdout is not None
            url = json.loads(await asyncio.to_thread(server.stdout.readline))["url"]
            before = _peak(server.pid)
            longest = await _run(url)
            used = _peak(server.pid) - before
        finally:
            server.terminate()
            await asyncio.to_thread(server.wait)
    work = f"an answer of {len(sent) / 1e6:.0f} MB, {name.replace('-', ' ')}"
    return [
        Level(f"{work}: peak memory", used, 20 * len(sent) + 100e6, "bytes"),
        Level(f"{work}: longest `/healthz`", longest, LONGEST_NS, "ns"),
    ]


async def _run(url: str) -> float:
    """Ask for a run, and for the health of the server until it has ended: how long the longest took, in nanoseconds."""
    async with aiohttp.ClientSession() as session:
        asking = asyncio.create_task(_longest(session, f"{url}/healthz"))
        try:
            asked = {"agent": "large", "input": {"messages": [{"id": "m1", "role": "user", "content": "Go."}]}}
            async with session.post(f"{url}/v1/runs", json=asked) as response:
                run_id = (await response.json())["runId"]
            ends = time.monotonic() + 120
            while time.monotonic() < ends:
                async with session.get(f"{url}/v1/runs/{run_id}") as response:
                    if (await response.json())["status"] in ("completed", "failed", "cancelled"):
                        break
                await asyncio.sleep(0.05)
            else:
                raise TimeoutError("the run did not end")
        finally:
            asking.cancel()
            longest = await asking
    return longest


async def _longest(session: aiohttp.ClientSession, url: str) -> float:
    """Ask one time after the other, so that no moment is missed in which the server does not answer."""
    longest = 0.0
    begun = time.perf_counter_ns()
    try:
        while True:
            begun = time.perf_counter_ns()
            async with session.get(url) as response:
                await response.read()
            longest = max(longest, time.perf_counter_ns() - begun)
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        return max(longest, time.perf_counter_ns() - begun)


def _peak(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError("the kernel does not say what the process took")
