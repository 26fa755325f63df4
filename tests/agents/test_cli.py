"""Programs as agents: what they are given, what they may answer, and how every way to fail is told."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from strategies.unhurried import run_unhurried

from agents.setting import a_case, a_request, ask, error_class
from agents.test_process import wait_until_dead
from seatrial.agents.agent import Reply, RunRequest
from seatrial.agents.cli.agent import CliAgent
from seatrial.agents.cli.config import CliConfig
from seatrial.errors import SeatrialError
from seatrial.runs import Case
from seatrial.trajectory import extract
from seatrial.transcript import Note

PYTHON = [sys.executable, "-I", "-S"]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs have their files, to look at what is left of them."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def an_agent(folder: Path, script: str, *arguments: str, timeout_s: float | None = 20.0, **config: Any) -> CliAgent:
    """An agent that is a Python script with these arguments."""
    (folder / "agent.py").write_text(script)
    command = [*PYTHON, str(folder / "agent.py"), *arguments]
    return CliAgent(CliConfig(command=command, **config), directory=folder, timeout_s=timeout_s)


def replied(
    agent: CliAgent,
    case: Case | None = None,
    request: RunRequest | None = None,
    begun: Callable[[], bool] | None = None,
) -> Reply:
    async def play() -> Reply:
        async with agent:
            return await ask(agent, a_request(case) if request is None else request)

    return run_unhurried(play(), begun)


def answer_of(reply: Reply) -> str | None:
    assert reply.fault is None, reply.fault
    assert reply.reading is not None
    return reply.reading.transcript.final_text()


ECHO = "import json, sys; print(json.dumps({'text': json.dumps(sys.argv[1:])}))"
NASTY = 'a "b" $HOME `id` {EVAL_ID} {{x}} \\ \n; rm -rf / | & * ~ ä 日本 {'


# What a program is given


@pytest.mark.parametrize("prompt", ["hello", NASTY, "", "--help", "x" * 100_000])
def test_each_placeholder_is_one_argument_whatever_it_contains(tmp_path: Path, prompt: str) -> None:
    agent = an_agent(tmp_path, ECHO, "-p", "{PROMPT}", "--id={EVAL_ID}", "{{literal}}")
    reply = replied(agent, a_case("käse 1", prompt))
    assert json.loads(answer_of(reply) or "") == ["-p", prompt, "--id=käse 1", "{literal}"]


def test_every_placeholder_has_its_value(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "a b.txt").touch()
    script = """
import json, os, sys
prompt, prompt_file, case, attempt, files, work, suite = sys.argv[1:]
print(json.dumps({'text': json.dumps([
    prompt, open(prompt_file).read(), case, attempt, files, os.listdir(work), suite, os.getcwd()
])}))
"""
    names = ["PROMPT", "PROMPT_FILE", "EVAL_ID", "ATTEMPT", "FILES", "WORKDIR", "SUITE_FILE"]
    agent = an_agent(tmp_path, script, *[f"{{{name}}}" for name in names])
    request = a_request(a_case(files=["a b.txt", "/absolute"]), attempt=2)
    request.suite_file = tmp_path / "shop.suite.yaml"
    told = json.loads(answer_of(replied(agent, request=request)) or "")
    assert told == [
        "Book a table for two.",
        "Book a table for two.",
        "case-1",
        "2",
        f"{tmp_path}/a b.txt\n/absolute",
        [],
        f"{tmp_path}/shop.suite.yaml",
        str(tmp_path),
    ]
    assert list(temporary.iterdir()) == []


def test_an_unknown_placeholder_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(SeatrialError, match="PROMT"):
        an_agent(tmp_path, ECHO, "{PROMT}")


@pytest.mark.parametrize(
    ("mode", "argument", "expected"),
    [
        ("stdin", "", ["", "hello"]),
        (None, "", ["", "hello"]),
        (None, "{PROMPT}", ["hello", ""]),
        ("stdin", "{PROMPT}", ["hello", "hello"]),
        ("arg", "{PROMPT}", ["hello", ""]),
    ],
)
def test_the_instruction_comes_the_way_that_was_asked_for(
    tmp_path: Path, mode: Any, argument: str, expected: list[str]
) -> None:
    script = "import json, sys; print(json.dumps({'text': json.dumps([sys.argv[1], sys.stdin.read()])}))"
    agent = an_agent(tmp_path, script, argument, input=mode)
    assert json.loads(answer_of(replied(agent, a_case(instruction="hello"))) or "") == expected


def test_a_prompt_file_has_the_instruction_byte_for_byte(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read().hex().encode())"
    prompt = "a\r\nb\n\x00ä"
    reply = replied(an_agent(tmp_path, script, "{PROMPT_FILE}"), a_case(instruction=prompt))
    assert bytes.fromhex(answer_of(reply) or "") == prompt.encode()


def test_variables_and_directory_are_those_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", "outer")
    (tmp_path / "below").mkdir()
    script = "import os; print(os.environ['FROM_OUTSIDE'], os.environ['API_KEY'], os.getcwd())"
    agent = an_agent(tmp_path, script, cwd="below", env={"API_KEY": "k"})
    assert answer_of(replied(agent)) == f"outer k {tmp_path}/below\n"


def test_no_shell_is_involved(tmp_path: Path) -> None:
    config = CliConfig(command="/bin/echo '$HOME; ls' {PROMPT}")
    agent = CliAgent(config, directory=tmp_path, timeout_s=20.0)
    assert answer_of(replied(agent, a_case(instruction="`id`"))) == "$HOME; ls `id`\n"


# What it may answer


def test_a_provider_response_on_standard_output_is_read(tmp_path: Path) -> None:
    body = {"text": "Done.", "output_messages": [{"role": "assistant", "tool_calls": [{"tool": "book", "input": {}}]}]}
    reply = replied(an_agent(tmp_path, f"print({json.dumps(json.dumps(body))})"))
    assert answer_of(reply) == "Done."
    assert reply.body == json.dumps(body).encode() + b"\n"
    assert reply.reading is not None
    assert [step.name for step in extract(reply.reading).steps] == ["book"]


def test_a_provider_response_in_the_output_file_is_read_and_output_is_only_a_log(tmp_path: Path) -> None:
    script = "import sys; print('working'); open(sys.argv[1], 'w').write('{\"text\": \"Done.\"}')"
    reply = replied(an_agent(tmp_path, script, "{OUTPUT_FILE}"))
    assert answer_of(reply) == "Done."
    assert reply.body == b'{"text": "Done."}'


@pytest.mark.parametrize(
    "text", ["Hello, world.", "42", "true", '"quoted"', "{braces} are text", "[a link](http://x)", "{{mustache}}", "ä"]
)
@pytest.mark.parametrize("argument", ["", "{OUTPUT_FILE}"])
def test_plain_text_that_is_not_json_is_the_answer(tmp_path: Path, text: str, argument: str) -> None:
    script = f"import sys; (open(sys.argv[1], 'w') if sys.argv[1] else sys.stdout).write({text!r})"
    assert answer_of(replied(an_agent(tmp_path, script, argument))) == text


@pytest.mark.parametrize(
    "text",
    ["{}", '{"txet": "x"}', "[1, 2]", '{"a":' * 100_000],
    ids=["empty object", "misspelled", "array", "100000 deep"],
)
def test_what_was_meant_as_json_and_is_no_response_is_a_bad_response(tmp_path: Path, text: str) -> None:
    (tmp_path / "text").write_text(text)
    script = f"print(open({str(tmp_path / 'text')!r}).read())"
    reply = replied(an_agent(tmp_path, script))
    assert error_class(reply) == "agent_bad_response"
    assert reply.body == text.encode() + b"\n"


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ('[{"role": "assistant", "content": "hi"}]', "openai"),
        ('{"messages": [{"role": "assistant", "content": "hi"}]}', "openai"),
        ('{"object": "response", "output": [{"type": "message", "role": "assistant", "content": "hi"}]}', "responses"),
    ],
)
def test_what_a_framework_writes_is_read_as_it_is(tmp_path: Path, text: str, format: str) -> None:
    reply = replied(an_agent(tmp_path, f"print({text!r})"))
    assert answer_of(reply) == "hi"
    assert reply.reading is not None
    assert reply.reading.format == format


def test_a_format_that_is_not_read_is_named(tmp_path: Path) -> None:
    reply = replied(an_agent(tmp_path, """print('{"resourceSpans": []}')"""))
    assert reply.fault is not None
    assert reply.fault.error_class == "agent_bad_response"
    assert "an OpenTelemetry (OTLP) trace" in reply.fault.message


@pytest.mark.parametrize(
    "text", ['{"text": "half', '{"text": ', '{"text" "x"}', '[{"role": "assistant"', '["a", ', "{", '{"text": "x"} {']
)
@pytest.mark.parametrize("argument", ["", "{OUTPUT_FILE}"])
def test_broken_json_is_a_bad_response(tmp_path: Path, text: str, argument: str) -> None:
    script = f"import sys; (open(sys.argv[1], 'w') if sys.argv[1] else sys.stdout).write({text!r})"
    reply = replied(an_agent(tmp_path, script, argument))
    assert error_class(reply) == "agent_bad_response"
    assert reply.fault is not None
    assert reply.fault.blame == "agent"
    assert "broken JSON" in reply.fault.message
    assert reply.body == text.encode()


# How it may fail


def test_a_non_zero_exit_is_told_with_its_code_and_the_last_lines_of_stderr(tmp_path: Path) -> None:
    script = "import sys\nfor n in range(50): print('line', n, file=sys.stderr)\nprint('half'); sys.exit(7)"
    reply = replied(an_agent(tmp_path, script))
    assert reply.fault is not None
    assert reply.fault.error_class == "agent_exit"
    assert reply.fault.blame == "agent"
    assert "code 7" in reply.fault.message
    assert reply.fault.detail is not None
    assert reply.fault.detail.splitlines() == [f"line {n}" for n in range(30, 50)]
    assert reply.body == b"half\n"


def test_what_a_program_wrote_to_its_output_file_before_it_failed_is_kept(tmp_path: Path) -> None:
    script = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('half'); sys.exit(7)"
    reply = replied(an_agent(tmp_path, script, "{OUTPUT_FILE}"))
    assert reply.fault is not None
    assert (reply.fault.error_class, reply.body) == ("agent_exit", b"half")


def test_a_program_that_is_killed_is_told_with_the_signal(tmp_path: Path) -> None:
    reply = replied(an_agent(tmp_path, "import os; os.kill(os.getpid(), 11)"))
    assert reply.fault is not None
    assert "SIGSEGV" in reply.fault.message


@pytest.mark.parametrize(
    ("own_s", "left_s", "expected"), [(0.3, 20.0, "agent_timeout"), (20.0, 0.3, "deadline_exceeded")]
)
def test_a_program_that_hangs_is_ended_with_all_it_started_and_its_files(
    tmp_path: Path, temporary: Path, own_s: float, left_s: float, expected: str
) -> None:
    script = f"""
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child == 0:
    time.sleep(60)
print("half an answer", flush=True)
print("still thinking", file=sys.stderr, flush=True)
open({str(tmp_path / "pids")!r}, "w").write(f"{{os.getpid()}} {{child}}.")
time.sleep(60)
"""
    pids = tmp_path / "pids"
    agent, request = an_agent(tmp_path, script, timeout_s=own_s), a_request(timeout_s=left_s)
    reply = replied(agent, request=request, begun=lambda: pids.exists() and pids.read_text().endswith("."))
    assert error_class(reply) == expected
    assert reply.fault is not None
    assert reply.fault.detail == "still thinking"
    assert reply.body == b"half an answer\n"
    for pid in pids.read_text().rstrip(".").split():
        wait_until_dead(int(pid))
    assert list(temporary.iterdir()) == []


def test_a_cancelled_run_ends_the_program_and_removes_its_files(tmp_path: Path, temporary: Path) -> None:
    script = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}}.'); time.sleep(60)"

    async def play() -> None:
        async with an_agent(tmp_path, script) as agent:
            task = asyncio.create_task(ask(agent))
            while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith(".")):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            (scratch,) = temporary.iterdir()
            assert [path.name for path in scratch.iterdir()] == [".seatrial"]

    asyncio.run(play())
    wait_until_dead(int((tmp_path / "pid").read_text().rstrip(".")))


def test_a_missing_output_file_is_told(tmp_path: Path) -> None:
    reply = replied(an_agent(tmp_path, "print('Done.')", "{OUTPUT_FILE}"))
    assert error_class(reply) == "agent_output_missing"
    assert reply.fault is not None
    assert reply.fault.blame == "agent"


@pytest.mark.parametrize("script", ["", "print(' ')", "import sys; open(sys.argv[1], 'w')"])
def test_empty_output_is_no_answer(tmp_path: Path, script: str) -> None:
    argument = "{OUTPUT_FILE}" if "argv" in script else ""
    assert error_class(replied(an_agent(tmp_path, script, argument))) == "agent_output_missing"


def test_a_pipe_in_place_of_the_output_file_is_not_waited_for(tmp_path: Path) -> None:
    reply = replied(an_agent(tmp_path, "import os, sys; os.mkfifo(sys.argv[1])", "{OUTPUT_FILE}"))
    assert error_class(reply) == "agent_output_missing"


@pytest.mark.parametrize("argument", ["", "{OUTPUT_FILE}"])
def test_output_beyond_the_limit_is_not_taken(tmp_path: Path, argument: str) -> None:
    script = "import sys\nout = open(sys.argv[1], 'w') if sys.argv[1] else sys.stdout\nout.write('x' * 3000000)"
    reply = replied(an_agent(tmp_path, script, argument, max_response_bytes=2**20))
    assert error_class(reply) == "response_too_large"
    assert reply.body is None


def test_endless_output_ends_the_program(tmp_path: Path) -> None:
    begun = time.monotonic()
    reply = replied(an_agent(tmp_path, "while True: print('x' * 1000)", timeout_s=None, max_response_bytes=2**20))
    assert error_class(reply) == "response_too_large"
    assert time.monotonic() - begun < 60


def test_a_program_that_writes_half_a_line_and_dies_did_not_answer(tmp_path: Path) -> None:
    script = 'import os, sys; sys.stdout.write(\'{"text": "ha\'); sys.stdout.flush(); os.kill(os.getpid(), 9)'
    reply = replied(an_agent(tmp_path, script))
    assert error_class(reply) == "agent_signal"
    assert reply.body == b'{"text": "ha'


def test_a_program_that_fills_the_disk_quota_is_told_with_what_it_said(tmp_path: Path, temporary: Path) -> None:
    script = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
with open(sys.argv[1], "wb", buffering=0) as file:
    while True:
        if file.write(b"x" * 65536) < 65536:
            sys.exit("No space left on device")
"""
    reply = replied(an_agent(tmp_path, script, "{OUTPUT_FILE}"))
    assert error_class(reply) == "agent_exit"
    assert reply.fault is not None
    assert reply.fault.detail == "No space left on device"
    assert list(temporary.iterdir()) == []


def test_no_room_for_the_files_of_a_run_is_our_fault(tmp_path: Path, temporary: Path) -> None:
    async def play() -> Reply:
        async with an_agent(tmp_path, ECHO) as agent:
            (scratch,) = temporary.iterdir()
            (scratch / "1").touch()
            return await ask(agent)

    reply = asyncio.run(play())
    assert error_class(reply) == "internal_error"


@pytest.mark.parametrize("program", ["/no/such/program", "/", "/etc/passwd"])
def test_a_program_that_cannot_be_started_is_told(tmp_path: Path, program: str) -> None:
    agent = CliAgent(CliConfig(command=[program]), directory=tmp_path, timeout_s=None)
    reply = replied(agent)
    assert error_class(reply) == "agent_not_started"
    assert reply.fault is not None
    assert "started" in reply.fault.message


@pytest.mark.parametrize("prompt", ["a\x00b", "\ud800", "x" * 200_000], ids=["NUL", "surrogate", "too long"])
def test_a_prompt_that_no_argument_can_have_is_told_without_being_shown(tmp_path: Path, prompt: str) -> None:
    reply = replied(an_agent(tmp_path, ECHO, "{PROMPT}"), a_case(instruction=prompt))
    assert error_class(reply) == "agent_not_started"
    assert reply.fault is not None
    assert len(reply.fault.message) < 200


# The trace file


def traced(folder: Path, ref: str, script: str = "", argument: str = "{OUTPUT_FILE}") -> Reply:
    body = json.dumps({"text": "Done.", "trace_ref": ref})
    writing = f"{script}\nimport sys; (open(sys.argv[1], 'w') if sys.argv[1] else sys.stdout).write({body!r})"
    return replied(an_agent(folder, writing, argument))


TRACE = json.dumps([{"type": "tool_call", "name": "search", "input": {"q": "tea"}}])


def test_a_trace_file_beside_the_output_is_read(tmp_path: Path) -> None:
    script = f"import os, sys; open(os.path.dirname(sys.argv[1]) + '/trace.json', 'w').write({TRACE!r})"
    reply = traced(tmp_path, "trace.json", script)
    assert reply.trace_file == TRACE.encode()
    assert reply.reading is not None
    trajectory = extract(reply.reading, trace_file=reply.trace_file)
    assert [step.name for step in trajectory.steps] == ["search"]
    assert trajectory.source == "trace"


@pytest.mark.parametrize("argument", ["", "{OUTPUT_FILE}"])
def test_a_trace_file_below_the_suite_is_read(tmp_path: Path, argument: str) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "t.json").write_text(TRACE)
    ref = str(tmp_path / "traces" / "t.json") if argument else "traces/t.json"
    assert traced(tmp_path, ref, argument=argument).trace_file == TRACE.encode()


def test_an_object_with_final_response_is_an_agent_response_whatever_is_beside_it(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "ok"}]
    empty: list[Any] = []
    for beside in (
        {"trace": empty, "messages": messages},
        {"trace": empty},
        {"trace_ref": "t.json"},
        {"output": messages},
    ):
        (tmp_path / "t.json").write_text(TRACE)
        body = json.dumps({**beside, "final_response": "ok"})
        reply = replied(an_agent(tmp_path, f"print({body!r})"))
        assert (answer_of(reply), reply.fault) == ("ok", None)
        assert reply.reading is not None
        assert reply.reading.format == "agent-response"
        names = [step.name for step in extract(reply.reading, trace_file=reply.trace_file).steps]
        assert names == (["search"] if "trace_ref" in beside else [])


@pytest.mark.parametrize("ref", ["/etc/passwd", "../../../../etc/passwd", "missing.json", "", "a\0b", "."])
def test_any_other_trace_file_is_not_read_and_the_answer_stays(tmp_path: Path, ref: str) -> None:
    reply = traced(tmp_path, ref)
    assert answer_of(reply) == "Done."
    assert isinstance(reply.trace_file, Note)
    assert reply.trace_file.code == "trace_ref_not_read"


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    (tmp_path / "secret.json").write_text(TRACE)
    (suite / "trace.json").symlink_to(tmp_path / "secret.json")
    reply = traced(suite, str(suite / "trace.json"))
    assert isinstance(reply.trace_file, Note)


# The healthcheck


def test_a_healthcheck_that_passes_lets_the_agent_be_used(tmp_path: Path) -> None:
    assert answer_of(replied(an_agent(tmp_path, "print('hi')", healthcheck="/bin/true"))) == "hi\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/bin/sh -c 'echo no model >&2; exit 3'", "code 3\nno model"),
        ("/no/such/program", "started"),
        (["/bin/sh", "-c", "kill -9 $$"], "SIGKILL"),
    ],
)
def test_a_healthcheck_that_fails_is_an_error_before_the_first_case(
    tmp_path: Path, temporary: Path, command: Any, words: str
) -> None:
    with pytest.raises(SeatrialError) as caught:
        replied(an_agent(tmp_path, "print('hi')", healthcheck=command))
    assert caught.value.code == "agent_unhealthy"
    assert words in caught.value.message
    assert list(temporary.iterdir()) == []


def test_files_that_cannot_be_removed_are_noted_and_cost_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.agents.cli.scratch.RUN_LIMIT_S", -1.0)
    script = "import sys, os\nopen(os.path.join(sys.argv[1], 'left'), 'w').close()\nprint('an answer', end='')"
    reply = replied(an_agent(tmp_path, script, "{WORKDIR}"))
    assert answer_of(reply) == "an answer"
    assert [note.code for note in reply.notes] == ["files_left"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has no way to find them")
def test_a_daemon_that_an_agent_leaves_is_ended_and_noted(tmp_path: Path) -> None:
    script = (
        "import os, sys, time\n"
        "read, write = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    os.write(write, b'x')\n"
        "    time.sleep(600)\n"
        "os.read(read, 1)\n"
        "print('an answer', end='')\n"
    )
    reply = replied(an_agent(tmp_path, script))
    assert answer_of(reply) == "an answer"
    assert [note.code for note in reply.notes] == ["processes_ended"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has no way to find them")
def test_what_a_program_left_is_noted_also_when_it_killed_its_supervisor_or_failed(tmp_path: Path) -> None:
    killed = replied(an_agent(tmp_path, "import os\nos.kill(os.getppid(), 9)\nimport time\ntime.sleep(600)"))
    assert killed.fault is not None
    assert [note.code for note in killed.notes] == ["processes_left"]
    script = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\ntime.sleep(1)\nos._exit(3)"
    failed = replied(an_agent(tmp_path, script))
    assert failed.fault is not None
    assert [note.code for note in failed.notes] == ["processes_ended"]


def test_a_program_that_removes_its_own_scratch_directory_keeps_its_answer_and_so_do_the_next(
    tmp_path: Path, temporary: Path
) -> None:
    temporary.chmod(0o1777)
    script = (
        "import os, shutil, sys\nshutil.rmtree(os.path.dirname(os.path.dirname(sys.argv[1])))\nprint('gone', end='')"
    )
    agent = an_agent(tmp_path, script, "{WORKDIR}")

    async def play() -> list[Reply]:
        async with agent:
            return [await ask(agent, a_request()) for _ in range(2)]

    assert [answer_of(reply) for reply in run_unhurried(play(), None)] == ["gone", "gone"]
    assert temporary.stat().st_mode & 0o7777 == 0o1777
    assert list(temporary.iterdir()) == []


def test_many_runs_at_once_do_not_meet(tmp_path: Path, temporary: Path) -> None:
    script = "import sys; open(sys.argv[2], 'w').write(open(sys.argv[1]).read())"

    async def play() -> None:
        async with an_agent(tmp_path, script, "{PROMPT_FILE}", "{OUTPUT_FILE}") as agent:
            requests = [a_request(a_case(str(n), f"prompt {n}"), run_id=f"run-{n}") for n in range(16)]
            replies = await asyncio.gather(*[ask(agent, request) for request in requests])
            assert [answer_of(reply) for reply in replies] == [f"prompt {n}" for n in range(16)]

    asyncio.run(play())
    assert list(temporary.iterdir()) == []


# Records of coding agents

SAMPLES = Path(__file__).parent.parent.parent / "samples"
RECORDS = {
    "claude-stream-json": "claude-stream-json.jsonl",
    "codex-exec": "codex-exec.jsonl",
    "claude-code": "claude-code-session.jsonl",
    "codex": "codex-rollout.jsonl",
}
PRINT = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
LEAVE = """
import os, shutil, sys
for name in sys.argv[3:]:
    path = os.path.join(sys.argv[1], "sessions", "2026", name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(sys.argv[2], path)
print("Not what counts.")
"""


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(("format", "name"), RECORDS.items())
def test_what_a_coding_agent_prints_is_read(tmp_path: Path, format: str, name: str, declared: bool) -> None:
    output = format if declared else None
    reply = replied(an_agent(tmp_path, PRINT, str(SAMPLES / name), output=output))
    assert answer_of(reply) == "One test fails."
    assert reply.reading is not None
    assert reply.reading.format == format
    assert [step.status for step in extract(reply.reading).steps] == ["error"]


def test_a_single_result_of_claude_is_an_answer_without_calls(tmp_path: Path) -> None:
    text = '{"type": "result", "is_error": false, "result": "Done.", "session_id": "s"}'
    reply = replied(an_agent(tmp_path, f"print({text!r})", output="claude-json"))
    assert answer_of(reply) == "Done."
    assert reply.reading is not None
    assert reply.reading.answer_only
    failed = text.replace("false", "true")
    assert (
        error_class(replied(an_agent(tmp_path, f"print({failed!r})", output="claude-json"))) == "agent_reported_error"
    )


@pytest.mark.parametrize("text", ["Done.", "[1, 2", "{}", '{"text": "Done."}', "Warning: old\n{}"])
@pytest.mark.parametrize("output", ["claude-stream-json", "codex-exec", "codex", "claude-code", "claude-json"])
def test_what_is_not_the_record_that_was_declared_is_never_taken_for_the_answer(
    tmp_path: Path, text: str, output: str
) -> None:
    reply = replied(an_agent(tmp_path, f"print({text!r})", output=output))
    assert error_class(reply) in ("agent_bad_response", "stream_truncated")
    assert reply.fault is not None
    assert reply.fault.blame == "agent"


def test_a_declared_record_without_its_end_is_a_failed_run(tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(b"\n".join((SAMPLES / "codex-exec.jsonl").read_bytes().splitlines()[:-1]))
    assert error_class(replied(an_agent(tmp_path, PRINT, str(tmp_path / "cut"), output="codex-exec"))) == (
        "stream_truncated"
    )


def test_text_that_is_declared_is_the_answer_whatever_it_looks_like(tmp_path: Path) -> None:
    text = '{"text": "x"}'
    assert answer_of(replied(an_agent(tmp_path, f"print({text!r})", output="text"))) == text + "\n"


def test_the_one_file_that_is_new_is_the_record(tmp_path: Path) -> None:
    arguments = ["{WORKDIR}", str(SAMPLES / "codex-rollout.jsonl"), "rollout-1.jsonl"]
    reply = replied(an_agent(tmp_path, LEAVE, *arguments, record="sessions/**/rollout-*.jsonl"))
    assert answer_of(reply) == "One test fails."
    assert reply.body == (SAMPLES / "codex-rollout.jsonl").read_bytes()


def test_a_record_below_the_home_directory_is_the_one_that_was_not_there_before(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "sessions" / "2026").mkdir(parents=True)
    (home / "sessions" / "2026" / "old.jsonl").write_text("{}")
    arguments = [str(home), str(SAMPLES / "claude-code-session.jsonl")]
    config: dict[str, Any] = {"env": {"HOME": str(home)}, "record": "~/sessions/*/*.jsonl"}
    reply = replied(an_agent(tmp_path, LEAVE, *arguments, "new.jsonl", **config))
    assert answer_of(reply) == "One test fails."
    reply = replied(an_agent(tmp_path, LEAVE, *arguments, **config))
    assert error_class(reply) == "agent_output_missing"
    assert reply.fault is not None
    assert "2 match that were there before" in reply.fault.message
    reply = replied(an_agent(tmp_path, LEAVE, *arguments, "a.jsonl", "b.jsonl", **config))
    assert reply.fault is not None
    assert (reply.fault.error_class, reply.fault.blame) == ("record_unreadable", "infrastructure")
    assert "matches 2: a.jsonl, b.jsonl" in reply.fault.message


def test_a_record_that_cannot_be_read_is_a_bad_response_and_the_text_is_not_the_answer(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("nothing")
    reply = replied(an_agent(tmp_path, LEAVE, "{WORKDIR}", str(tmp_path / "bad"), "a.jsonl", record="**/*.jsonl"))
    assert error_class(reply) == "agent_bad_response"


def test_the_record_of_a_program_that_failed_is_kept(tmp_path: Path) -> None:
    script = f"{LEAVE}\nsys.exit(1)"
    arguments = ["{WORKDIR}", str(SAMPLES / "codex-rollout.jsonl"), "a.jsonl"]
    reply = replied(an_agent(tmp_path, script, *arguments, record="**/*.jsonl"))
    assert error_class(reply) == "agent_exit"
    assert reply.body == (SAMPLES / "codex-rollout.jsonl").read_bytes()
