"""The tour of `make demo`: the real commands on samples, bundled agents and a server; each shown before it runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from clerk_store import HISTORY, clerk_command

from seatrial.client import SyncClient

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = Path(".cache/demo")
TOUR: list[tuple[str, str, int]] = [
    ("An agent's answer, and everything that is wrong with it", "seatrial lint samples/agent-response-flawed.json", 0),
    (
        "An answer that lacks the messages its agent promised",
        "seatrial lint samples/agent-response-thin.json --response-mode rich --strictness strict",
        1,
    ),
    (
        "Convert a record to another format; what does not fit is reported",
        "seatrial convert samples/openrouter-request.json --to anthropic",
        0,
    ),
    ("The tool calls of a LangChain conversation, read as it is", "seatrial steps samples/langchain-messages.json", 0),
    ("A format that Seatrial does not read is refused by name", "seatrial steps examples/atif-trajectory.json", 3),
    ("A valid event stream, folded into messages", "seatrial events samples/agui-run.sse", 0),
    ("And an invalid one", "seatrial events samples/events-violation.ndjson", 1),
    ("Tool calls compared with what was expected", "seatrial match samples/match.jsonl --text", 1),
]
UNKNOWN_CALLS: list[tuple[str, str, int]] = [
    (
        "Did it make a refund? This agent returns only text, so nobody knows: errored, not passed",
        "seatrial run examples/calls.suite.yaml --quiet --name unknown --agent text-only",
        3,
    ),
    (
        "The remedy: the same agent returns its messages, and its refund is found; the other one is declared to have "
        "no tools (tool_access: none), and passes",
        "seatrial run examples/calls.suite.yaml --quiet --name known --agent with-messages --agent no-tools",
        1,
    ),
]
SUITE = "seatrial run examples/shop.suite.yaml --quiet --skip-judges"


def main() -> int:
    """Run the tour; 0 when every command ended as it should."""
    shutil.rmtree(ROOT / OUTPUT, ignore_errors=True)
    store = {"SEATRIAL_STORE": str(OUTPUT / "runs.db"), "SHOP_PYTHON": sys.executable}
    surprises = sum([not ran_as_expected(*stop) for stop in TOUR])
    surprises += sum([not ran_as_expected(*stop, store) for stop in UNKNOWN_CALLS])
    with listening("shop.stream_agent") as stream:
        with listening("shop.http_agent") as http:
            surprises += not ran_as_expected(
                "One suite, four kinds of agents, and why each failed run failed",
                f"{SUITE} --name before --html {OUTPUT}/report.html",
                1,
                {**store, "SHOP_HTTP_URL": http, "SHOP_STREAM_URL": stream},
            )
        with listening("shop.http_agent", "--careful") as http:
            surprises += not ran_as_expected(
                "The HTTP agent again, now fixed: it looks the order up before it refunds",
                f"{SUITE} --name after --agent http",
                0,
                {**store, "SHOP_HTTP_URL": http, "SHOP_STREAM_URL": stream},
            )
    surprises += not ran_as_expected(
        "Is it better, and how sure can we be?",
        "seatrial compare before:http after:http --fail-on regression",
        0,
        store,
    )
    for version in HISTORY:
        command, variables = clerk_command(version)
        title = f"A larger suite, five trials of each case: version {version} of a support clerk"
        surprises += not ran_as_expected(title, command, 1, {**store, **variables})
    surprises += not ran_as_expected(
        "Is the new version worse, how sure is that, and where?",
        "seatrial compare clerk-2.3.2:clerk clerk-2.4.0:clerk --fail-on significantly-worse",
        1,
        store,
    )
    surprises += not survives_a_killed_server(store)
    print(f"\nThe report: {ROOT / OUTPUT / 'report.html'}")
    print("Next: README.md, docs/, `seatrial init`, `seatrial --help`.")
    print("Why did version 2.4.0 of the clerk get worse? Everything above is in a store; look into it with")
    print(f"  {shlex.join(['seatrial', 'open', 'clerk-2.4.0', '--store', store['SEATRIAL_STORE']])}")
    return 1 if surprises else 0


def survives_a_killed_server(store: Mapping[str, str]) -> bool:
    """Follow a run whose server is killed in the middle of it, and say whether all of it arrived."""
    show("Follow a run while its server is killed and restarted: nothing is lost, nothing comes twice")
    with serving(store) as url:
        with SyncClient(url) as client:
            run_id = client.create_run("storyteller", push=True).run_id
            client.push(run_id, [{"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"}])
        print(f"$ seatrial tail {run_id}", flush=True)
        tail = subprocess.Popen([program("seatrial"), "tail", run_id, "--url", url])  # noqa: S603
        tell(url, run_id, "Out of the harbour, ", "round the lighthouse, ")
        wait_for_delivery(url, of=4)
        time.sleep(1)  # for it to be seen
    print("  (the server is killed and restarted)", flush=True)
    with serving(store, port=url.rpartition(":")[2]):
        tell(url, run_id, "and back.")
        with SyncClient(url) as client:
            thread_id = client.run(run_id).thread_id
            end = {"type": "RUN_FINISHED", "threadId": thread_id, "runId": run_id}
            client.push(run_id, [{"type": "TEXT_MESSAGE_END", "messageId": "m1"}, end])
            try:
                code = tail.wait(timeout=60)
            finally:
                tail.kill()
            said = [message.get("content") for message in client.thread(thread_id).messages]
    print(f"(exit code {code})", flush=True)
    return code == 0 and said == ["Out of the harbour, round the lighthouse, and back."]


def tell(url: str, run_id: str, *words: str) -> None:
    """Push text of the storyteller's message."""
    with SyncClient(url) as client:
        for delta in words:
            client.push(run_id, [{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": delta}])


def wait_for_delivery(url: str, *, of: int) -> None:
    """Wait until the follower has received so many events: on a busy machine a program takes long to start."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with urlopen(f"{url}/metrics") as answer:  # noqa: S310 (our own server)
            found = re.search(r"^seatrial_events_delivered_total (\S+)", answer.read().decode(), re.MULTILINE)
        if found is not None and float(found[1]) >= of:
            return
        time.sleep(0.1)


def show(title: str) -> None:
    """A headline."""
    print(f"\n\x1b[1m{title}\x1b[0m" if sys.stdout.isatty() else f"\n## {title}")


def program(name: str) -> Path:
    """A program of this virtual environment."""
    return Path(sys.executable).with_name(name)


def ran_as_expected(title: str, command: str, expected: int, variables: Mapping[str, str] | None = None) -> bool:
    """Show a command, run it, and say whether it ended with this code."""
    show(title)
    print(f"$ {command}", flush=True)
    name, *arguments = shlex.split(command)
    ended = subprocess.run(  # noqa: S603
        [program(name), *arguments],
        cwd=ROOT,
        env={**os.environ, **(variables or {})},
        check=False,
    )
    print(f"(exit code {ended.returncode})", flush=True)
    if ended.returncode != expected:
        print(f"expected exit code {expected}", file=sys.stderr)
    return ended.returncode == expected


@contextmanager
def listening(module: str, *arguments: str) -> Iterator[str]:
    """A server of the examples, for as long as the block lasts; gives its address."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=ROOT / "examples", stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            yield (server.stdout.readline() if server.stdout is not None else "").strip()
        finally:
            server.kill()


@contextmanager
def serving(store: Mapping[str, str], port: str = "0") -> Iterator[str]:
    """`seatrial serve` without agents of its own, killed at the end of the block; gives its address."""
    command = ["serve", "--port", port, "--json"]
    print(f"$ seatrial {' '.join(command)}", flush=True)
    with subprocess.Popen(  # noqa: S603
        [program("seatrial"), *command],
        cwd=ROOT,
        env={**os.environ, **store},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            yield json.loads(server.stdout.readline() if server.stdout is not None else "")["url"]
        finally:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
