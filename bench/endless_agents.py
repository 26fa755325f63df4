"""**Agents that never end**, with `run_timeout_s: 3`: a function that yields text, in a thread and in the event loop,
one that yields whole events as fast as it can, and a server that streams events, as SSE and as NDJSON. The time is from
asking until the run is stored and graded, by the clock; the memory is the peak of the process, less what it had after
a run of an agent of the same kind that ends, so that imports do not count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.figure import Level

DEADLINE_S = 3
LONGEST_NS = 4.5e9
MOST_BYTES = 60e6

AGENTS = """
import asyncio

def ends(prompt):
    yield "x"

def sync(prompt):
    while True:
        yield "x" * 20

async def in_loop(prompt):
    while True:
        yield "x" * 20

async def tiny(prompt):
    yield {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
    for number in range(1_000_000):
        yield {"type": "CUSTOM", "name": "n", "value": number}
"""
SERVER = """
import asyncio, sys

async def talk(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    asked = head.split(b"\\r\\n")[0]
    sse = b"/sse" in asked
    kind = b"text/event-stream" if sse else b"application/x-ndjson"
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: " + kind + b"\\r\\nConnection: close\\r\\n\\r\\n")
    frame = b"data: %s\\n\\n" if sse else b"%s\\n"
    writer.write(frame % b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}')
    writer.write(frame % b'{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}')
    if b"/ends" in asked:
        writer.write(frame % b'{"type":"TEXT_MESSAGE_END","messageId":"m"}')
        writer.write(frame % b'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}')
        writer.close()
        return
    piece = frame % b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"xxxxxxxxxxxxxxxxxxxx"}'
    try:
        while True:
            writer.write(piece * 100)
            await writer.drain()
    except ConnectionError:
        pass

async def main():
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.wait_for(server.serve_forever(), 120)

asyncio.run(main())
"""
RUN = """
import asyncio, json, re, sys, time
from seatrial.engine.launch import create_experiment, launch
from seatrial.store import open_store
from seatrial.suites import load_suite

def resident(key):
    with open("/proc/self/status") as status:
        return 1024 * int(re.search(key + r":\\s+(\\d+)", status.read()).group(1))

def run(file):
    suite = load_suite(file)
    with open_store("store.db") as store:
        begun = time.perf_counter_ns()
        experiment = create_experiment(store, suite, variables={})
        asyncio.run(launch(experiment, suite, store, variables={}))
        took = time.perf_counter_ns() - begun
        (row,) = store.runs(experiment.experiment_id)
        return took, row.status, store.run(row.run_id).fault

run("warm.suite.yaml")
before = resident("VmRSS")
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
took, status, fault = run("endless.suite.yaml")
print(json.dumps({"took": took, "used": resident("VmHWM") - before, "status": status, "fault": str(fault)[:300]}))
"""


def measure() -> list[Level]:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        python = "{kind: python, target: 'endless:%s'"
        stream = f"{{kind: stream, url: 'http://127.0.0.1:{port}/%s'"
        agents = {
            "a function in a thread": (python % "sync", python % "ends"),
            "a function in the event loop": (python % "in_loop", python % "ends"),
            "a million tiny events": (python % "tiny", python % "ends"),
            "SSE": (stream % "sse", stream % "sse/ends"),
            "NDJSON": (stream % "ndjson", stream % "ndjson/ends"),
        }
        return [level for name, (agent, warm) in agents.items() for level in _measure_one(name, agent, warm)]
    finally:
        server.terminate()
        server.wait()


def _measure_one(name: str, agent: str, warm: str) -> list[Level]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "endless.py").write_text(AGENTS)
        for file, config in (("warm", warm), ("endless", agent)):
            Path(folder, f"{file}.suite.yaml").write_text(
                f"agents: {{crew: {config}, run_timeout_s: {DEADLINE_S}}}}}\n"
                "cases: [{id: a, instruction: Go., graders: [{kind: contains, value: x}]}]\n"
            )
        ran = subprocess.run([sys.executable, "-c", RUN], cwd=folder, stdout=subprocess.PIPE, timeout=120, check=True)
    measured = json.loads(ran.stdout)
    if measured["status"] != "failed":
        raise RuntimeError(f"the run of {name} is {measured['status']}: {measured['fault']}")
    return [
        Level(f"endless agent, {name}: until it has ended", measured["took"], LONGEST_NS, "ns"),
        Level(f"endless agent, {name}: memory", measured["used"], MOST_BYTES, "bytes"),
    ]
