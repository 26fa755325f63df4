"""One program for all cases: lines are taken while it runs, and a bad one costs nothing but itself."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from strategies.unhurried import UnhurriedLoop, run_unhurried

from agents.setting import a_case, a_request, error_class
from agents.test_process import wait_until_dead
from seatrial.agents.agent import AnsweredAgain, BatchAgent, EndedBadly, Reply, RunRequest
from seatrial.agents.cli import process
from seatrial.agents.cli.batch import MAX_NOTES, CliBatchAgent
from seatrial.agents.cli.config import CliConfig
from seatrial.trajectory import extract

PYTHON = [sys.executable, "-I", "-S"]

# Reads the cases; `say` writes one line of output.
HEAD = """
import json, os, sys, time
source = open(sys.argv[1]) if sys.argv[1] else sys.stdin
out = open(sys.argv[2], "w") if sys.argv[2] else sys.stdout
cases = [json.loads(line) for line in source]
def say(id, **fields):
    print(json.dumps({"id": id, **(fields or {"text": "answer to " + str(id)})}), file=out, flush=True)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def an_agent(
    folder: Path, script: str, *, files: bool = True, timeout_s: float | None = 20.0, **config: Any
) -> CliBatchAgent:
    """An agent that is a Python script, with files or on standard input and output."""
    (folder / "agent.py").write_text(HEAD + script)
    arguments = ["{PROMPT_FILE}", "{OUTPUT_FILE}"] if files else ["", ""]
    command = [*PYTHON, str(folder / "agent.py"), *arguments, "{ATTEMPT}"]
    return CliBatchAgent(CliConfig(command=command, batch=True, **config), directory=folder, timeout_s=timeout_s)


def requests(*ids: str, **fields: Any) -> list[RunRequest]:
    return [a_request(a_case(case_id, f"do {case_id}", **fields), run_id=f"run-{case_id}") for case_id in ids]


def batched(
    agent: CliBatchAgent,
    asked: Iterable[RunRequest],
    begun: Callable[[], bool] | None = None,
    again: list[str] | None = None,
) -> dict[str, Reply]:
    """The replies by run id; every request has exactly one. Those that were answered again are in `again`, and those
    whose program ended badly after that have its fault."""
    replies: dict[str, Reply] = {}

    async def play() -> None:
        async with agent:
            async for request, reply in agent.run_batch(asked):
                if isinstance(reply, AnsweredAgain):
                    assert again is not None
                    again.append(request.run_id)
                    continue
                if isinstance(reply, EndedBadly):
                    replies[request.run_id].fault = reply.fault
                    continue
                assert request.run_id not in replies
                replies[request.run_id] = reply

    run_unhurried(play(), begun)
    return replies


def answers(replies: dict[str, Reply]) -> dict[str, str | None]:
    return {
        run_id: reply.reading.transcript.final_text() if reply.reading and not reply.fault else error_class(reply)
        for run_id, reply in replies.items()
    }


def test_a_batch_agent_is_one(tmp_path: Path) -> None:
    assert isinstance(an_agent(tmp_path, ""), BatchAgent)


@pytest.mark.parametrize("files", [True, False])
def test_every_case_is_answered_in_whatever_order(tmp_path: Path, temporary: Path, files: bool) -> None:
    agent = an_agent(tmp_path, "for case in reversed(cases): say(case['id'])", files=files)
    replies = batched(agent, requests("a", "b", "c"))
    assert answers(replies) == {f"run-{n}": f"answer to {n}" for n in "abc"}
    assert replies["run-a"].body == b'{"id": "a", "text": "answer to a"}'
    assert agent.notes == []
    assert list(temporary.iterdir()) == []


def test_a_batch_that_is_read_slowly_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "DRAIN_S", 0.05)
    agent = an_agent(tmp_path, "for case in cases: say(case['id'], text='x' * 1000)", files=False)

    async def play() -> list[str | None]:
        faults: list[str | None] = []
        async with agent:
            async for _, reply in agent.run_batch(requests(*map(str, range(600)))):
                if len(faults) % 100 == 0:
                    await asyncio.sleep(0.2)
                assert isinstance(reply, Reply)
                faults.append(error_class(reply))
        return faults

    assert run_unhurried(play()) == [None] * 600


def test_each_line_has_id_prompt_files_and_input(tmp_path: Path) -> None:
    agent = an_agent(tmp_path, "for case in cases: say(case['id'], text=json.dumps(case))")
    replies = batched(agent, requests("a", files=["x.txt"], input={"n": 1}, expected="secret"))
    assert json.loads(answers(replies)["run-a"] or "") == {
        "id": "a",
        "prompt": "do a",
        "files": [str(tmp_path.resolve() / "x.txt")],
        "input": {"n": 1},
    }


def test_a_conversation_is_told_too(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hello"}]
    agent = an_agent(tmp_path, "say('a', text=json.dumps(cases[0]['messages']))")
    assert answers(batched(agent, requests("a", messages=messages)))["run-a"] == json.dumps(messages)


def test_further_trials_of_a_case_are_told_apart(tmp_path: Path) -> None:
    asked = [a_request(a_case("a"), run_id=f"run-{trial}", trial=trial) for trial in (1, 2, 3)]
    replies = batched(an_agent(tmp_path, "for case in cases: say(case['id'])"), asked)
    assert answers(replies) == {"run-1": "answer to a", "run-2": "answer to run-2", "run-3": "answer to run-3"}


@pytest.mark.parametrize("files", [True, False])
def test_lines_are_taken_while_the_program_runs(tmp_path: Path, files: bool) -> None:
    go_on = tmp_path / "go on"
    script = f"""
say("a")
while not os.path.exists({str(go_on)!r}): time.sleep(0.01)
say("b")
"""

    async def play() -> list[str]:
        came = []
        async with an_agent(tmp_path, script, files=files) as agent:
            async for request, _ in agent.run_batch(requests("a", "b")):
                came.append(request.case.id)
                go_on.touch()
        return came

    assert asyncio.run(play()) == ["a", "b"]


@pytest.mark.parametrize("files", [True, False])
def test_a_bad_line_affects_that_record_alone(tmp_path: Path, files: bool) -> None:
    script = """
say("a")
print("not JSON", file=out)
print("{\\"id\\": \\"b\\", \\"text\\": ", file=out)
print(file=out)
say("c", nothing="of the kind")
say("d")
"""
    agent = an_agent(tmp_path, script, files=files)
    replies = batched(agent, requests("a", "b", "c", "d"))
    assert answers(replies) == {
        "run-a": "answer to a",
        "run-b": "agent_output_missing",
        "run-c": "agent_bad_response",
        "run-d": "answer to d",
    }
    assert [(note.code, note.pointer) for note in agent.notes] == [
        ("batch_line_unusable", "/2"),
        ("batch_line_unusable", "/3"),
    ]
    missing = replies["run-b"].fault
    assert missing is not None
    assert "line 2" in missing.message
    assert replies["run-c"].body == b'{"id": "c", "nothing": "of the kind"}'


def test_unknown_repeated_and_missing_ids_affect_those_records_alone(tmp_path: Path) -> None:
    script = """
say("a")
say("a", text="again")
say("a", text="and again")
say("stranger")
say(None)
say(7)
"""
    agent = an_agent(tmp_path, script)
    again: list[str] = []
    replies = batched(agent, requests("a", "b", "7"), again=again)
    assert answers(replies) == {"run-a": "answer to a", "run-b": "agent_output_missing", "run-7": "answer to 7"}
    assert [(note.code, note.pointer) for note in agent.notes] == [
        ("batch_id_repeated", "/2"),
        ("batch_id_repeated", "/3"),
        ("batch_id_unknown", "/4"),
        ("batch_line_unusable", "/5"),
    ]
    assert again == ["run-a"], "however often"


def test_lines_beyond_the_last_note_are_counted_in_it(tmp_path: Path) -> None:
    agent = an_agent(tmp_path, "say('a')\nfor number in range(150): say('stranger')")
    again: list[str] = []
    batched(agent, requests("a"), again=again)
    assert again == ["run-a"], "however many"
    assert len(agent.notes) == MAX_NOTES
    assert agent.notes[-1].pointer == "/151"
    assert agent.notes[-1].message.endswith("; 50 such lines before it have no note")


def doubted(script: str, folder: Path, **config: Any) -> dict[str, list[str]]:
    """Which runs of four are in doubt, and by which notes; the script is run between the answers to b and c."""
    answered = "say('a'); say('b')", "say('c'); say('d')"
    agent = an_agent(folder, "\n".join([answered[0], script, answered[1]]), **config)
    again: list[str] = []
    replies = batched(agent, requests("a", "b", "c", "d"), again=again)
    found = {run_id: ["again"] for run_id in again}
    for run_id, reply in replies.items():
        assert all(note.serious for note in reply.doubts)
        if reply.doubts:
            found[run_id] = [note.code for note in reply.doubts]
    return found


CALL = '"output_messages": [{"role": "assistant", "tool_calls": [{"id": "1", "name": "delete_all"}]}]'


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f'{{"id": "x", {CALL}}}', "batch_id_unknown"),
        (f"{{{CALL}}}", "batch_line_unusable"),
        (f'{{"id": null, {CALL}}}', "batch_line_unusable"),
        (f'{{{CALL}, "id": "a"', "batch_line_unusable"),
        (f'{{"id": "x", {CALL}', "batch_line_unusable"),
        (f'{{"id": "a\\q", {CALL}', "batch_line_unusable"),
        (f'[{{"id": "a", {CALL}}}]', "batch_line_unusable"),
        ("{", "batch_line_unusable"),
    ],
)
def test_a_line_that_may_be_of_any_run_leaves_all_of_them_in_doubt(tmp_path: Path, line: str, code: str) -> None:
    script = f"print({line!r}, file=out, flush=True)\n" * 3
    assert doubted(script, tmp_path) == {"run-a": ["again"], "run-b": ["again"], "run-c": [code], "run-d": [code]}


@pytest.mark.parametrize("cut", ["b", "c"])
@pytest.mark.parametrize("rest", ["", ",", ', "text": "x', f", {CALL}", ', "text": 1} {'])
def test_a_line_that_is_cut_off_after_its_id_leaves_that_run_alone_in_doubt(
    tmp_path: Path, cut: str, rest: str
) -> None:
    line = f'{{"id": "{cut}"{rest}'
    expected = {"b": {"run-b": ["again"]}, "c": {"run-c": ["batch_line_unusable"]}}
    assert doubted(f"print({line!r}, file=out, flush=True)\n" * 2, tmp_path) == expected[cut]


@pytest.mark.parametrize("line", ["loading the model", "[INFO] started", "12 %", "Traceback (most recent call last):"])
def test_a_line_of_plain_text_leaves_no_run_in_doubt(tmp_path: Path, line: str) -> None:
    assert doubted(f"print({line!r}, file=out, flush=True)", tmp_path) == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("json.dumps({'id': 'c', 'text': 'x' * 3000000})", {"run-c": ["batch_line_unusable"]}),
        (
            "json.dumps({'text': 'x' * 3000000, 'id': 'c'})",
            {
                "run-a": ["again"],
                "run-b": ["again"],
                "run-c": ["batch_line_unusable"],
                "run-d": ["batch_line_unusable"],
            },
        ),
        ("'x' * 3000000", {}),
    ],
)
def test_a_line_that_is_too_long_leaves_in_doubt_whom_it_may_belong_to(
    tmp_path: Path, line: str, expected: dict[str, list[str]]
) -> None:
    assert doubted(f"print({line}, file=out, flush=True)", tmp_path, max_response_bytes=2**20) == expected


def test_a_run_without_a_line_is_in_doubt_too_as_it_may_be_tried_again(tmp_path: Path) -> None:
    replies = batched(an_agent(tmp_path, "say('stranger')"), requests("a"))
    assert answers(replies) == {"run-a": "agent_output_missing"}
    assert [note.code for note in replies["run-a"].doubts] == ["batch_id_unknown"]


def test_a_last_line_without_its_end_counts(tmp_path: Path) -> None:
    agent = an_agent(tmp_path, 'out.write(json.dumps({"id": "a", "text": "x"})); out.close()')
    assert answers(batched(agent, requests("a"))) == {"run-a": "x"}


def test_a_program_that_writes_half_a_line_and_dies_fails_all_of_its_runs(tmp_path: Path) -> None:
    script = """
say("a")
out.write('{"id": "b", "te'); out.flush()
print("out of memory", file=sys.stderr, flush=True)
os.kill(os.getpid(), 9)
"""
    replies = batched(an_agent(tmp_path, script), requests("a", "b", "c"))
    assert answers(replies) == {"run-a": "agent_signal", "run-b": "agent_signal", "run-c": "agent_signal"}
    assert replies["run-a"].body == b'{"id": "a", "text": "answer to a"}'
    fault = replies["run-c"].fault
    assert fault is not None
    assert "SIGKILL" in fault.message
    assert fault.detail == "out of memory"


def test_a_line_beyond_the_limit_costs_nothing_but_itself(tmp_path: Path) -> None:
    script = "say('a', text='x' * 3000000); say('b')"
    agent = an_agent(tmp_path, script, max_response_bytes=2**20)
    assert answers(batched(agent, requests("a", "b"))) == {"run-a": "agent_output_missing", "run-b": "answer to b"}
    assert [note.code for note in agent.notes] == ["batch_line_unusable"]


@pytest.mark.parametrize("files", [True, False])
def test_a_program_that_falls_silent_is_ended(tmp_path: Path, temporary: Path, files: bool) -> None:
    pid = tmp_path / "pid"
    script = f"say('a'); print(os.getpid(), file=open({str(pid)!r}, 'w'), flush=True); time.sleep(60)"
    agent = an_agent(tmp_path, script, files=files, timeout_s=0.4)
    replies = batched(agent, requests("a", "b"), begun=lambda: pid.exists() and pid.read_text().endswith("\n"))
    assert answers(replies) == {"run-a": "agent_timeout", "run-b": "agent_timeout"}
    wait_until_dead(int(pid.read_text()))
    assert list(temporary.iterdir()) == []


def test_a_program_that_goes_on_after_its_last_line_is_ended(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    script = f"say('a'); out.close(); os.close(1); open({str(closed)!r}, 'w'); time.sleep(60)"
    replies = batched(an_agent(tmp_path, script, files=False, timeout_s=0.3), requests("a", "b"), begun=closed.exists)
    assert answers(replies) == {"run-a": "agent_timeout", "run-b": "agent_timeout"}


def test_a_deadline_counts_from_line_to_line(tmp_path: Path) -> None:
    """The program is as quick as it can; the clock says that each of its lines took the most of what it may."""
    script = f"""
for case in cases:
    say(case['id'])
    while not os.path.exists(os.path.join({str(tmp_path)!r}, case['id'])): time.sleep(0.005)
"""
    asked = requests("a", "b", "c", "d")
    for request in asked:
        request.timeout_s = 60.0

    async def play() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, UnhurriedLoop)
        came = []
        async with an_agent(tmp_path, script, timeout_s=None) as agent:
            async for request, reply in agent.run_batch(asked):
                assert isinstance(reply, Reply)
                assert reply.fault is None
                came.append(request.case.id)
                loop.call_later(0, loop.skip, 40.0)  # when the next line is waited for
                loop.call_later(1, (tmp_path / request.case.id).touch)
        return came

    assert run_unhurried(play()) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("command", "fault"), [("/no/such/program", "agent_not_started"), ("/bin/false", "agent_exit")]
)
def test_a_program_that_does_not_work_at_all_leaves_every_run_without_an_answer(
    tmp_path: Path, command: str, fault: str
) -> None:
    agent = CliBatchAgent(CliConfig(command=[command], batch=True), directory=tmp_path, timeout_s=None)
    assert answers(batched(agent, requests("a", "b"))) == {"run-a": fault, "run-b": fault}


def test_a_further_batch_is_told_its_attempt_and_its_notes_tell_it_too(tmp_path: Path) -> None:
    script = "say('stranger'); say(cases[0]['id'], text=sys.argv[3])"
    agent = an_agent(tmp_path, script)
    for attempt in (1, 2):
        asked = [a_request(a_case("a"), run_id="run-a", attempt=attempt), a_request(a_case("b"), run_id="run-b")]
        asked[1].attempt = attempt
        replies = batched(agent, asked)
        assert answers(replies)["run-a"] == str(attempt)
    assert [note.message for note in agent.notes] == ["the id is 'stranger'", "the id is 'stranger', in attempt 2"]
    missing = replies["run-b"].fault
    assert missing is not None
    assert missing.message.endswith("the first is line 1: the id is 'stranger', in attempt 2")


def test_no_room_for_the_files_errors_every_run(tmp_path: Path, temporary: Path) -> None:
    async def play() -> list[str | None]:
        async with an_agent(tmp_path, "") as agent:
            (scratch,) = temporary.iterdir()
            (scratch / "1").touch()
            replies = [reply async for _, reply in agent.run_batch(requests("a", "b"))]
            return [error_class(reply) for reply in replies if isinstance(reply, Reply)]

    assert asyncio.run(play()) == ["internal_error", "internal_error"]


def test_whoever_stops_asking_ends_the_program(tmp_path: Path, temporary: Path) -> None:
    script = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); say('a'); time.sleep(60)"

    async def play() -> None:
        async with an_agent(tmp_path, script) as agent:
            async with aclosing(agent.run_batch(requests("a", "b"))) as replies:
                async for _ in replies:
                    break
            wait_until_dead(int((tmp_path / "pid").read_text()))

    asyncio.run(play())
    assert list(temporary.iterdir()) == []


def test_leaving_the_agent_ends_a_program_that_nobody_listens_to(tmp_path: Path) -> None:
    script = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); say('a'); time.sleep(60)"

    async def play() -> None:
        async with an_agent(tmp_path, script) as agent:
            replies = agent.run_batch(requests("a", "b"))
            await anext(replies)
        wait_until_dead(int((tmp_path / "pid").read_text()))
        await replies.aclose()

    asyncio.run(play())


def test_a_trace_file_is_read_in_a_batch_too(tmp_path: Path) -> None:
    script = """
with open(os.path.dirname(sys.argv[2]) + "/t.json", "w") as file:
    json.dump([{"type": "tool_call", "name": "search"}], file)
say("a", text="x", trace_ref="t.json")
"""
    reply = batched(an_agent(tmp_path, script), requests("a"))["run-a"]
    assert reply.reading is not None
    trajectory = extract(reply.reading, trace_file=reply.trace_file)
    assert [step.name for step in trajectory.steps] == ["search"]


def test_a_line_with_final_response_is_an_agent_response_whatever_is_beside_it(tmp_path: Path) -> None:
    script = """
say("a", final_response="ok", trace=[])
say("b", final_response="ok", trace=[{"type": "tool_call", "name": "search"}], text="no")
"""
    replies = batched(an_agent(tmp_path, script), requests("a", "b"))
    assert answers(replies) == {"run-a": "ok", "run-b": "ok"}
    for name, called in (("run-a", []), ("run-b", ["search"])):
        reading = replies[name].reading
        assert reading is not None
        assert (replies[name].fault, reading.format) == (None, "agent-response")
        assert [step.name for step in extract(reading).steps] == called


def test_a_program_faster_than_its_reader_has_to_wait(tmp_path: Path) -> None:
    script = "for case in cases: say(case['id'], text='x' * 100000)"
    ids = [str(n) for n in range(200)]

    async def play() -> int:
        peak = 0
        async with an_agent(tmp_path, script, files=False) as agent:
            tracemalloc.start()
            try:
                async for _, reply in agent.run_batch(requests(*ids)):
                    assert isinstance(reply, Reply)
                    assert reply.fault is None
                    await asyncio.sleep(0)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
        return peak

    assert asyncio.run(play()) < 8 * 2**20


def test_memory_does_not_grow_with_the_batch(tmp_path: Path) -> None:
    """What is kept for a request that waits is its id and where it is, not what is in it."""

    def many(count: int) -> Iterator[RunRequest]:
        for number in range(count):
            yield a_request(a_case(str(number), "x" * 10_000), run_id=f"run-{number}")

    async def play() -> int:
        async with an_agent(tmp_path, "for case in cases: say(case['id'])") as agent:
            tracemalloc.start()
            try:
                count = 0
                async for _ in agent.run_batch(many(2_000)):
                    count += 1
                assert count == 2_000
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    assert asyncio.run(play()) < 4 * 2**20


def test_an_empty_batch_is_over_at_once(tmp_path: Path) -> None:
    assert batched(an_agent(tmp_path, ""), []) == {}


def test_waiting_for_a_batch_costs_little(tmp_path: Path) -> None:
    async def play() -> float:
        async with an_agent(tmp_path, "time.sleep(0.6); say('a')") as agent:
            begun = time.process_time()
            async for _ in agent.run_batch(requests("a")):
                pass
            return time.process_time() - begun

    assert asyncio.run(play()) < 0.2
