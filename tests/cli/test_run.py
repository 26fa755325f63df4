"""`seatrial run` as a user has it: a process of its own."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from strategies import command, records
from strategies.databases import database, mounted_disk

from seatrial.cli import main
from seatrial.engine import RunEnd
from seatrial.reports.progress import RunProgress
from seatrial.runs import Experiment, RunKey
from seatrial.store import Store, open_store

AGENT = """
import asyncio, os, pathlib

async def asked(case_id):
    with open("asked.txt", "a") as file:
        file.write(case_id + "\\\\n")
    with open("asked.txt") as file:
        count = len(file.readlines())
    if count > int(os.environ.get("AT_MOST", "1000000")):
        while not pathlib.Path("go_on").exists():
            await asyncio.sleep(0.02)

async def answer(instruction, case_id):
    await asked(case_id)
    await asyncio.sleep(float(os.environ.get("SLEEP", "0")))
    return instruction if pathlib.Path("mended").exists() else instruction.replace("good", "ok")

async def stream(instruction, case_id):
    await asked(case_id)
    yield "o"
    await asyncio.sleep(float(os.environ.get("SLEEP", "0")))
    yield "k"

async def large(instruction):
    import random
    return "ok " + random.Random(instruction).randbytes(30_000).hex()
""".replace("\\\\n", "\\n")


@pytest.fixture
def harbour(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an agent and an empty store in it, where commands are run."""
    (tmp_path / "crew.py").write_text(AGENT)
    shutil.copy(empty_store, tmp_path / "runs.db")
    monkeypatch.chdir(tmp_path)
    # Commands that run in this process import it, and every test has its own.
    monkeypatch.delitem(sys.modules, "crew", raising=False)
    return tmp_path


def write_suite(count: int, target: str = "crew:answer", **keys: object) -> None:
    cases = [{"id": f"case-{number:03}", "instruction": "good"} for number in range(count)]
    suite = {
        "agents": {"crew": {"kind": "python", "target": target}},
        "cases": cases,
        "graders": [{"kind": "contains", "value": "ok"}],
        **keys,
    }
    Path("s.suite.yaml").write_text(json.dumps(suite))  # JSON is YAML, too


def seatrial(*arguments: str, store: str = "runs.db", **environment: str) -> subprocess.CompletedProcess[str]:
    return command.seatrial("run", "s.suite.yaml", "--store", store, *arguments, env={**os.environ, **environment})


def start(*arguments: str, store: str = "runs.db", **environment: str) -> command.Started:
    return command.Started("run", "s.suite.yaml", "--store", store, *arguments, env={**os.environ, **environment})


def asked() -> list[str]:
    path = Path("asked.txt")
    return path.read_text().split() if path.exists() else []


def wait_for_calls(process: command.Started, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(asked()) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def latest_runs(store: Store) -> list[tuple[str, str]]:
    """(case, outcome) of every run of the latest experiment, in order; no run is there twice."""
    rows = store.runs(store.resolve_experiment("latest").experiment_id, limit=10_000)
    assert len({row.key for row in rows}) == len(rows)
    return [(row.key.case_id, row.outcome) for row in rows]


def stopped_as(where: str = "runs.db") -> str:
    """The status of the latest experiment."""
    with open_store(where, create=False) as store:
        return store.resolve_experiment("latest").status


def outcomes(where: str = "runs.db") -> dict[str, int]:
    """How many runs of the latest experiment came out how."""
    with open_store(where, create=False) as store:
        found = [outcome for _, outcome in latest_runs(store)]
    return {outcome: found.count(outcome) for outcome in found}


def test_a_suite_is_run_graded_and_summed_up(harbour: Path) -> None:
    write_suite(3, trials=2)
    done = seatrial("--ctrf", "report.json", "--trials", "3")
    assert done.returncode == 0, done.stderr
    assert "9 runs, finished" in done.stdout
    assert "9 runs" in done.stderr
    assert json.loads(Path("report.json").read_text())["results"]["summary"]["tests"] == 9


def test_the_report_is_data_on_standard_output_when_asked(harbour: Path) -> None:
    write_suite(2)
    done = seatrial("--json", "--csv", "runs.csv")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["runs"]) == 2
    assert "csv: runs.csv" in done.stderr


def test_a_report_that_cannot_be_written_does_not_hide_what_came_of_the_runs(harbour: Path) -> None:
    write_suite(2)
    done = seatrial("--html", "s.suite.yaml/report.html")
    assert done.returncode == 3
    assert "2 runs, finished" in done.stdout
    assert "s.suite.yaml/report.html cannot be written" in done.stderr


def test_what_functions_of_the_suite_print_is_no_part_of_what_the_commands_tell(harbour: Path) -> None:
    Path("crew.py").write_text("""
print("loaded")
def answer(instruction): print("agent"); return "ok"
def cases(): print("cases"); yield {"id": "a", "instruction": "x"}
def grade(run): print("grader"); return True
""")
    write_suite(0, cases=[{"from": "crew:cases"}], graders=[{"kind": "python", "target": "crew:grade"}])
    done = seatrial("--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["runs"]) == 1
    assert {"loaded", "agent", "cases", "grader"} <= set(done.stderr.splitlines())
    for words in (["doctor", "s.suite.yaml", "--deep", "--json"], ["grade", "latest", "--store", "runs.db", "--json"]):
        told = command.seatrial(*words)
        assert told.returncode == 0, told.stderr
        assert isinstance(json.loads(told.stdout), dict)


def test_lines_of_a_batch_that_belong_to_no_run_are_warned_of_even_when_quiet(harbour: Path) -> None:
    answers = [{"id": id, "text": "ok"} for id in ("case-000", "nobody", "case-000")]
    Path("answers.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    write_suite(1, agents={"crew": {"kind": "cli", "command": ["cat", "answers.jsonl"], "batch": True}})
    done = seatrial("--quiet")
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "warning: crew: line 2 belongs to no run: the id is 'nobody' [batch_id_unknown] (and 1 more)\n"
    )
    # The second one is on a run, too: what it said is not known.
    last = done.stdout.splitlines()[-1]
    assert last.startswith("1 note on 1 run and 2 that belong to no run need a look (3 serious: the calls of 1 run ")


NOTED = """
def answer(instruction):
    return {"final_response": "ok", "messages": [{"role": "assistant", "content": "ok"}, 42]}

def clean(instruction):
    return {"final_response": "ok", "messages": [{"role": "assistant", "content": "ok"}]}
"""


def test_the_last_line_says_how_many_notes_need_a_look_and_where_they_are(harbour: Path) -> None:
    Path("crew.py").write_text(NOTED)
    write_suite(2)
    done = seatrial("--name", "noted", "--junit", "junit.xml")
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[-1]
    with open_store("runs.db") as store:
        experiment_id = store.resolve_experiment("noted").experiment_id
    counted = "2 notes on 2 runs need a look (2 serious: the calls of 2 runs are not all known)"
    assert line == f"{counted}: seatrial report {experiment_id} --html report.html --store runs.db"
    reported = command.seatrial(*shlex.split(line.partition(": seatrial ")[2]))
    assert reported.returncode == 0
    assert "calls not all known" in Path("report.html").read_text()


def test_the_last_line_names_the_page_that_was_written_and_keeps_off_data(harbour: Path) -> None:
    Path("crew.py").write_text(NOTED)
    write_suite(1)
    done = seatrial("--html", "page.html")
    assert done.stdout.splitlines()[-1].endswith(" are not all known): page.html")
    done = seatrial("--json")
    assert json.loads(done.stdout)["notes"]["serious_runs"] == 1
    assert "1 note on 1 run needs a look" in done.stderr.splitlines()[-1]


def test_nothing_is_said_of_notes_when_there_are_none_to_look_at(harbour: Path) -> None:
    Path("crew.py").write_text(NOTED)
    write_suite(1, target="crew:clean")
    assert "a look" not in seatrial().stdout


def test_exit_codes_tell_failures_from_what_could_not_be_run(harbour: Path) -> None:
    write_suite(2)
    Path("mended").touch()
    assert seatrial().returncode == 1
    late: dict[str, Any] = {"target": "crew:stream", "timeouts": {"run_s": 0.01}, "retry": {"attempts": 1}}
    write_suite(1, **late)
    assert seatrial(SLEEP="5").returncode == 1
    assert outcomes() == {"failed": 1}
    write_suite(1, **late, faults={"deadline_exceeded": "infrastructure"})
    assert seatrial(SLEEP="5").returncode == 3
    assert outcomes() == {"errored": 1}


SOMETIMES_DIES = """
import json, os, sys
for line in sys.stdin if len(sys.argv) > 1 else [json.dumps({"id": "", "prompt": sys.stdin.read()})]:
    case = json.loads(line)
    if "die" in case["prompt"]:
        os.kill(os.getpid(), 11)
    print(json.dumps({"id": case["id"], "text": "ok"}), flush=True)
"""


@pytest.mark.parametrize(
    ("batch", "moved", "code", "counts", "rate"),
    [
        (False, False, 1, {"passed": 3, "failed": 4}, "42.9%"),
        (True, False, 1, {"failed": 7}, "0%"),  # it is one program for all of them
        (False, True, 3, {"passed": 3, "errored": 4}, "100%"),
    ],
    ids=["program", "batch", "moved to infrastructure"],
)
def test_a_program_that_segfaults_in_four_of_seven_cases_does_not_look_perfect(
    harbour: Path, batch: bool, moved: bool, code: int, counts: dict[str, int], rate: str
) -> None:
    Path("program.py").write_text(SOMETIMES_DIES)
    program = [sys.executable, "-I", "-S", str(harbour / "program.py"), *(["batch"] if batch else [])]
    cases = [{"id": f"case-{number}", "instruction": "ok" if number < 3 else "die"} for number in range(7)]
    agents = {"crew": {"kind": "cli", "command": program, "batch": batch, "retry": {"attempts": 1}}}
    write_suite(0, agents=agents, cases=cases, faults={"agent_signal": "infrastructure"} if moved else {})
    done = seatrial("--markdown", "summary.md", "--html", "page.html")
    assert done.returncode == code
    assert outcomes() == counts
    line = next(line for line in done.stdout.splitlines() if line.startswith("crew "))
    assert rate in line.split()
    sentence = "4 of 7 runs are not counted: agent_signal (4); of all runs, 42.9% passed."
    for text in (done.stdout, Path("summary.md").read_text(), Path("page.html").read_text()):
        assert (sentence in text) is moved
        assert "100%" not in re.sub("<[^>]*>", " ", text.rpartition("</style>")[2]) or sentence in text


def test_an_errored_run_among_passed_ones_does_not_end_with_0(harbour: Path) -> None:
    Path("crew.py").write_text("""
import seatrial
def answer(case_id):
    if case_id == "case-001":
        raise seatrial.InfrastructureError("no database")
    return "ok"
""")
    write_suite(3, retry={"attempts": 2, "first_wait_s": 0})
    done = seatrial()
    assert done.returncode == 3
    assert outcomes() == {"passed": 2, "errored": 1}
    assert "1 of 3 runs is not counted: infrastructure_error (1); of all runs, 66.7% passed." in done.stdout


JUDGE = {"kind": "judge", "name": "friendly"}
CONTAINS = {"kind": "contains", "value": "ok"}
UNKNOWN = {"kind": "cost", "max_usd": 1, "when_unknown": "skip"}


@pytest.mark.parametrize(
    ("graders", "options", "code", "judged"),
    [
        # A judge that is required is missed; one that is not may be absent.
        ([CONTAINS, JUDGE], ["--skip-judges"], 3, {"errored": 2}),
        ([JUDGE], ["--skip-judges"], 3, {"errored": 2}),
        ([CONTAINS, {**JUDGE, "required": False}], ["--skip-judges"], 0, {"passed": 2}),
        # A required grader that was skipped, or had nothing to go by, is missed as well.
        ([CONTAINS, UNKNOWN], [], 3, {"errored": 2}),
        ([UNKNOWN], [], 3, {"errored": 2}),
        ([{**UNKNOWN, "required": False}, {"kind": "judge", "required": False}], ["--no-grade"], 0, {"skipped": 2}),
        ([], ["--no-grade"], 0, {"skipped": 2}),
        ([{"kind": "contains", "value": "never"}], ["--no-grade"], 0, {"skipped": 2}),
    ],
)
def test_nothing_passes_by_silence(
    harbour: Path, graders: list[dict[str, object]], options: list[str], code: int, judged: dict[str, int]
) -> None:
    write_suite(2, graders=graders)
    done = seatrial("--quiet", *options)
    assert (done.returncode, outcomes()) == (code, judged), done.stderr


def test_runs_that_were_not_graded_can_be_graded_later_and_still_tell_failures(harbour: Path) -> None:
    write_suite(2)
    assert seatrial("--no-grade").returncode == 0
    done = command.seatrial("grade", "latest", "--store", "runs.db")
    assert (done.returncode, outcomes()) == (0, {"passed": 2})
    write_suite(1, target="crew:missing_argument")
    Path("crew.py").write_text("def missing_argument(instruction): raise KeyError(instruction)\n")
    assert seatrial("--no-grade").returncode == 1


def test_tags_choose_cases(harbour: Path) -> None:
    write_suite(3)
    suite = json.loads(Path("s.suite.yaml").read_text())
    suite["cases"][0]["tags"] = ["money", "slow"]
    suite["cases"][2]["tags"] = ["slow"]
    Path("s.suite.yaml").write_text(json.dumps(suite))
    assert seatrial("--tag", "slow").returncode == 0
    assert sorted(asked()) == ["case-000", "case-002"]
    assert seatrial("--tag", "slow", "--tag", "money", "--case", "*-000").returncode == 0
    assert sorted(asked()) == ["case-000", "case-000", "case-002"]
    for option, given, said in (
        ("--tag", "fast", "`--tag`: no case of the suite has the tag 'fast' (one of `money`, `slow`)"),
        ("--tag", "mony", "`--tag`: no case of the suite has the tag 'mony' (did you mean `money`?)"),
        ("--case", "case-00", "`--case`: 'case-00' fits no case of the suite (did you mean `case-00"),
    ):
        # Also beside one that fits: what was asked for is not left out in silence.
        none = seatrial("--tag", "slow", option, given)
        assert none.returncode == 2
        assert said in none.stderr


def test_a_case_may_have_a_key_for_another_agent_than_the_one_that_is_run(harbour: Path) -> None:
    Path("crew.py").write_text("def takes(instruction, input): return 'ok'\ndef leaves(instruction): return 'ok'\n")
    cases = [{"id": "one", "instruction": "hi", "input": {"a": 1}}]
    takes, leaves = ({"kind": "python", "target": f"crew:{name}"} for name in ("takes", "leaves"))
    write_suite(0, agents={"takes": takes, "leaves": leaves}, cases=cases)
    assert seatrial("--agent", "leaves").returncode == 0
    write_suite(0, agents={"leaves": leaves}, cases=cases)
    done = seatrial()
    assert done.returncode == 2
    assert "`input` of the case `one` reaches no agent: it is not taken by `leaves` (kind python)" in done.stderr


def test_only_what_failed_is_run_again_in_an_experiment_of_its_own(
    harbour: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(4)
    suite = json.loads(Path("s.suite.yaml").read_text())
    suite["cases"][2]["instruction"] = "bad"
    Path("s.suite.yaml").write_text(json.dumps(suite))
    assert seatrial().returncode == 1
    again = seatrial("--only", "failed")
    assert again.returncode == 1, again.stderr
    assert asked()[4:] == ["case-002"]
    assert main(["run", "s.suite.yaml", "--store", "runs.db", "--only", "errored"]) == 2
    assert "errored: there is nothing to run" in capsys.readouterr().err


def test_only_what_failed_is_run_with_as_many_trials_as_before_unless_others_are_asked_for(harbour: Path) -> None:
    write_suite(2, graders=[{"kind": "equals", "value": "good"}])
    assert seatrial("--trials", "3", "--name", "before").returncode == 1
    seatrial("--only", "failed")
    assert len(asked()[6:]) == 6
    seatrial("--only", "failed", "--of", "before", "--trials", "1")
    assert len(asked()[12:]) == 2


def test_only_with_an_agent_or_an_experiment_that_it_has_no_use_for_is_told(
    harbour: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = {name: {"kind": "python", "target": f"crew:{name}"} for name in ("answer", "stream")}
    write_suite(1, agents=agents, graders=[{"kind": "equals", "value": "good"}])
    assert seatrial("--agent", "answer").returncode == 1
    run = ["run", "s.suite.yaml", "--store", "runs.db"]
    assert main([*run, "--only", "failed", "--agent", "stream"]) == 2
    assert "by stream failed: there is nothing to run" in capsys.readouterr().err
    assert main([*run, "--of", "latest"]) == 2
    assert "--of names the experiment for --only" in capsys.readouterr().err


def test_a_secret_of_an_agent_that_is_not_run_is_none_of_the_stores_business_either(harbour: Path) -> None:
    Path("crew.py").write_text("import os\ndef answer(instruction): return 'ok ' + os.environ['SHOP_TOKEN']\n")
    shop = {"kind": "http", "endpoint_url": "http://127.0.0.1:9/", "auth_credential_value": "${SHOP_TOKEN}"}
    write_suite(1, agents={"crew": {"kind": "python", "target": "crew:answer"}, "shop": shop})
    done = seatrial("--agent", "crew", SHOP_TOKEN="s3cr3t-v4lu3")
    assert done.returncode == 0, done.stderr
    with open_store("runs.db", create=False) as store:
        row = store.runs(store.resolve_experiment("latest").experiment_id)[0]
        run = store.run(row.run_id)
    assert run is not None
    assert run.body == b"ok ${SHOP_TOKEN}"


def experiments_in(where: str = "runs.db") -> int:
    with open_store(where, create=False) as store:
        return len(store.experiments())


def test_only_the_agents_that_are_run_need_their_variables(harbour: Path) -> None:
    shop = {"kind": "http", "endpoint_url": "http://${SHOP_HOST}/", "auth_credential_value": "${SHOP_TOKEN}"}
    gone = {"kind": "replay", "path": "gone.jsonl"}
    nowhere = {"kind": "cli", "command": "no-such-program", "cwd": "gone"}
    lost = {"kind": "python", "target": "gone:answer", "infrastructure_errors": ["gone.Error"]}
    others = {"shop": shop, "gone": gone, "nowhere": nowhere, "lost": lost}
    write_suite(2, agents={"crew": {"kind": "python", "target": "crew:answer"}, **others})
    done = seatrial("--agent", "crew", SHOP_HOST="shop-host-of-mine")
    assert done.returncode == 0, done.stderr
    told = seatrial().stderr
    assert "the environment variable `SHOP_TOKEN` is not set" in told
    assert "the environment variable `SHOP_HOST` is not set" in told
    assert "there is no file or directory `gone.jsonl`" in told
    assert "there is no directory `gone`" in told
    assert experiments_in() == 1


def test_an_experiment_of_one_agent_is_resumed_without_the_variables_of_the_others(harbour: Path) -> None:
    shop = {"kind": "http", "endpoint_url": "http://127.0.0.1:9/", "auth_credential_value": "${SHOP_TOKEN}"}
    write_suite(3, agents={"crew": {"kind": "python", "target": "crew:answer"}, "shop": shop}, concurrency=1)
    process = start("--agent", "crew", AT_MOST="1")
    wait_for_calls(process, 2)
    process.kill()
    process.wait(60)
    process.communicate()
    done = seatrial("--resume", "latest")
    assert done.returncode == 0, done.stderr
    assert outcomes() == {"passed": 3}


def test_a_judge_that_is_not_asked_needs_no_key(harbour: Path) -> None:
    judge = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "${JUDGE_KEY}"}
    graders = [
        {"kind": "contains", "value": "ok"},
        {"kind": "judge", "criteria": [{"name": "kind"}], "required": False},
    ]
    write_suite(1, judge=judge, graders=graders)
    assert "the environment variable `JUDGE_KEY` is not set" in seatrial().stderr
    assert seatrial("--skip-judges").returncode == 0
    assert seatrial("--no-grade").returncode == 0


PYTHON = {"kind": "python", "target": "crew:answer"}
GONE: dict[str, tuple[dict[str, Any], str]] = {
    "a module": ({"agents": {"a": PYTHON | {"target": "gone:answer"}}}, "`gone` cannot be imported"),
    "a function": (
        {"agents": {"a": PYTHON | {"target": "crew:anwser"}}},
        "`crew` has no `anwser` (did you mean `answer`?)",
    ),
    "not a function": (
        {"agents": {"a": PYTHON | {"target": "crew:asyncio"}}},
        "the target is a module, and not a function",
    ),
    "an exception": ({"agents": {"a": PYTHON | {"infrastructure_errors": ["crew.Error"]}}}, "`crew` has no `Error`"),
    "tools": ({"agents": {"a": PYTHON | {"tool_access": "world"}}}, "it does not take them"),
    "a program": ({"agents": {"a": {"kind": "cli", "command": "${NAME:-no-such-program}"}}}, "there is no program"),
    "a batch": (
        {"agents": {"a": {"kind": "cli", "command": "./crew.py", "batch": True}}},
        "there is no program './crew.py'",
    ),
    "a record": ({"agents": {"a": {"kind": "replay", "path": "gone.jsonl"}}}, "there is no file or directory"),
    "records": ({"agents": {"a": {"kind": "replay", "path": "broken.json"}}}, "the JSON is cut off at byte 1"),
    "an experiment": ({"agents": {"a": {"kind": "replay", "experiment": "gone"}}}, "there is no experiment 'gone'"),
    "itself": ({"agents": {"a": {"kind": "replay", "experiment": "latest"}}}, "would be the new one itself"),
    "its name": ({"agents": {"a": {"kind": "replay", "experiment": "s"}}}, "would be the new one itself"),
    "a grader": ({"graders": [{"kind": "python", "target": "crew:judge"}]}, "`crew` has no `judge`"),
    "an inner grader": (
        {"graders": [{"kind": "composite", "graders": [{"kind": "python", "target": "gone:judge"}]}]},
        "`gone` cannot be imported",
    ),
    "no grader": ({"graders": [{"kind": "python", "target": "crew:asyncio"}]}, "`crew:asyncio` is not a function"),
    "a grader's program": ({"graders": [{"kind": "code", "command": "no-such-program"}]}, "there is no program"),
    "a case's grader": (
        {"cases": [{"id": "1", "instruction": "x", "graders": [{"kind": "python", "target": "gone:judge"}]}]},
        "`gone` cannot be imported",
    ),
    "cases": ({"cases": [{"id": "1", "instruction": "x"}, {"from": "crew:cases"}]}, "`crew` has no `cases`"),
    "a file of cases": (
        {"cases": [{"id": "1", "instruction": "x"}, {"from": "gone.csv"}]},
        "`gone.csv` cannot be read",
    ),
}


@pytest.mark.parametrize("gone", GONE)
def test_what_does_not_exist_is_found_before_an_experiment_is_made(
    harbour: Path, gone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    keys, told = GONE[gone]
    Path("broken.json").write_text("{")
    write_suite(1, **keys)
    assert main(["run", "s.suite.yaml", "--store", "runs.db"]) == 2
    assert told in capsys.readouterr().err
    assert experiments_in() == 0
    assert not Path("asked.txt").exists()


def test_graders_that_are_not_asked_need_not_exist(harbour: Path) -> None:
    write_suite(1, graders=[{"kind": "python", "target": "gone:judge"}])
    assert main(["run", "s.suite.yaml", "--store", "runs.db", "--no-grade", "--quiet"]) == 0
    # Grading by it later leaves everything as it was, when it cannot be done.
    assert main(["grade", "latest", "--suite", "s.suite.yaml", "--store", "runs.db"]) == 2
    assert outcomes() == {"skipped": 1}


def test_what_cannot_be_started_is_named_without_secrets(harbour: Path) -> None:
    write_suite(1, agents={"a": {"kind": "cli", "command": ["${SHOP_BIN}/agent"]}})
    done = seatrial(SHOP_BIN="/opt/s3cr3t-v4lu3")
    assert done.returncode == 2
    assert "there is no program '${SHOP_BIN}/agent' that can be started" in done.stderr
    assert "s3cr3t" not in done.stderr


def test_experiments_of_one_suite_file_with_other_agents_are_compared_without_a_warning(
    harbour: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = {name: {"kind": "python", "target": "crew:answer"} for name in ("crew", "mate")}
    write_suite(2, agents=agents)
    started = {"all": [], "crew": ["--agent", "crew"], "twice": ["--agent", "mate", "--trials", "2"]}
    for name, options in started.items():
        assert main(["run", "s.suite.yaml", "--store", "runs.db", "--name", name, *options]) == 0
    for a, b in (("all", "crew"), ("crew", "twice")):
        assert main(["compare", "--store", "runs.db", a, b]) == 0
        assert "not the same" not in capsys.readouterr().out
    write_suite(2, agents=agents, threshold=0.5)
    assert main(["run", "s.suite.yaml", "--store", "runs.db", "--name", "other"]) == 0
    assert main(["compare", "--store", "runs.db", "all", "other"]) == 0
    assert "not the same" in capsys.readouterr().out


def test_resume_takes_no_option_that_would_change_the_experiment(
    harbour: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_suite(1)
    for options in (
        ["--only", "failed"],
        ["--of", "latest"],
        ["--case", "*"],
        ["--trials", "2"],
        ["--agent", "crew"],
        ["--name", "x"],
    ):
        assert main(["run", "s.suite.yaml", "--store", "runs.db", "--resume", "latest", *options]) == 2
        assert f"{options[0]} cannot be used with it [usage]" in capsys.readouterr().err


def test_a_killed_run_is_resumed_with_nothing_lost_and_nothing_twice(harbour: Path) -> None:
    dice = random.Random(11)
    for target in ("crew:answer", "crew:stream"):
        Path("asked.txt").unlink(missing_ok=True)
        write_suite(80, target, concurrency=4)
        stored: dict[str, str] = {}
        resume: list[str] = []
        for calls in (dice.randrange(1, 50), dice.randrange(1, 20)):
            calls += len(asked())
            # However late it is killed, there is something left to do: only five calls more are answered.
            process = start(*resume, SLEEP="0.02" if target == "crew:answer" else "0.15", AT_MOST=str(calls + 5))
            wait_for_calls(process, calls)
            process.kill()
            process.communicate()
            resume = ["--resume", "latest"]
            with open_store("runs.db", create=False) as store:
                rows = store.runs(store.resolve_experiment("latest").experiment_id, limit=1000)
                now = {row.key.case_id: row.run_id for row in rows if row.outcome != "unfinished"}
            assert stored.items() <= now.items(), "what was stored stays, under the same id"
            stored = now
        assert len(stored) < 80
        before = len(asked())
        last = seatrial(*resume)
        assert last.returncode == 0, last.stderr
        assert f"{len(stored)} runs are there already" in last.stderr
        assert sorted(asked()[before:]) == sorted({f"case-{number:03}" for number in range(80)} - stored.keys())
        assert outcomes() == {"passed": 80}


@pytest.mark.parametrize(
    ("number", "reason"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")], ids=["ctrl-c", "sigterm"]
)
def test_a_signal_finishes_what_runs_and_says_how_to_resume(harbour: Path, number: signal.Signals, reason: str) -> None:
    write_suite(200, concurrency=3)
    process = start("--grace-s", "600", AT_MOST="3")  # more calls are answered only after the signal has come
    wait_for_calls(process, 4)
    process.send_signal(number)
    assert process.stderr is not None
    again = {signal.SIGINT: "press Ctrl-C again", signal.SIGTERM: "send SIGTERM again"}[number]
    while f"waiting up to 600 s for running cases; {again} to stop now" not in process.stderr.readline():
        assert process.poll() is None
    Path("go_on").touch()
    stdout, _ = process.communicate(timeout=120)
    begun = len(asked())
    assert process.returncode == 128 + number
    assert f"stopped after {begun} of 200 runs: {reason}; continue with" in stdout
    assert f", {begun} of 200 runs, stopped" in stdout
    assert outcomes() == {"passed": begun}
    found = re.search(r"continue with\n  seatrial (run .*)\n", stdout)
    assert found is not None
    resumed = command.seatrial(*found[1].split())
    assert resumed.returncode == 0, resumed.stderr
    assert outcomes() == {"passed": 200}
    assert len(asked()) == 200


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("second", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_stops_at_once(harbour: Path, first: signal.Signals, second: signal.Signals, code: int) -> None:
    write_suite(10, concurrency=3)
    process = start("--grace-s", "600", SLEEP="600")
    wait_for_calls(process, 3)
    process.send_signal(first)
    assert process.stderr is not None
    while "to stop now" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(second)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == code
    assert "--resume" in stderr
    assert "Traceback" not in stderr
    assert outcomes() == {}
    assert stopped_as() == "stopped"
    assert seatrial("--resume", "latest").returncode == 0
    assert outcomes() == {"passed": 10}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_experiment_that_another_process_runs_is_refused_and_no_case_is_asked_twice(
    harbour: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    write_suite(6, concurrency=2)
    with ExitStack() as stack:
        store = "runs.db"
        if kind == "postgres":
            store = stack.enter_context(database(request.getfixturevalue("postgres_server")))
        first = start(store=store, AT_MOST="2")  # the third call waits, until the process is killed
        wait_for_calls(first, 3)
        second = seatrial("--resume", "latest", store=store)
        assert second.returncode == 3
        assert f"is being run by process {first.pid} on" in second.stderr
        assert "Traceback" not in second.stderr
        assert len(asked()) <= 4
        first.kill()
        first.communicate()
        resumed = seatrial("--resume", "latest", store=store)
        assert resumed.returncode == 0, resumed.stderr
        with open_store(store) as opened:
            assert Counter(outcome for _, outcome in latest_runs(opened)) == {"passed": 6}
        if kind == "sqlite":
            assert sorted(path.name for path in harbour.glob("runs.db-run*")) == []


def test_two_processes_with_experiments_of_their_own_share_a_store(harbour: Path) -> None:
    write_suite(100)
    processes = [start(), start()]
    assert [(process.communicate(timeout=180), process.returncode)[1] for process in processes] == [0, 0]
    with open_store("runs.db") as store:
        assert [len(store.done_keys(experiment.experiment_id)) for experiment in store.experiments()] == [100, 100]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of twelve megabytes."""
    with mounted_disk(tmp_path / "disk", 12) as disk:
        yield disk


def test_a_full_disk_stops_the_experiment_which_goes_on_when_there_is_room(harbour: Path, small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 9_000_000)
    where = str(small_disk / "runs.db")
    write_suite(45, "crew:large", concurrency=2)
    full = seatrial(store=where)
    assert full.returncode == 3
    assert "[store_full]" in full.stderr
    assert "Traceback" not in full.stderr
    assert "--resume" in full.stderr
    before = outcomes(where).get("passed", 0)
    assert 0 < before < 45
    ballast.unlink()
    resumed = seatrial("--resume", "latest", store=where)
    assert resumed.returncode == 0, resumed.stderr
    assert outcomes(where) == {"passed": 45}


def experiment() -> Experiment:
    return records.experiment("exp-1")


def test_progress_off_a_terminal_is_a_plain_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("seatrial.reports.progress.time.monotonic", lambda: now[0])
    with RunProgress(experiment(), 10, quiet=False) as watcher:
        watcher.resumed(2)
        watcher.finished(RunEnd(RunKey("crew", "case-0", 0), "passed"))
        now[0] += 20
        watcher.finished(RunEnd(RunKey("crew", "case-1", 0), "failed"))
        watcher.stopping("interrupted")
    assert capsys.readouterr().err.splitlines() == [
        "experiment exp-1: 10 runs",
        "2 runs are there already",
        "4/10 runs: 1 passed, 1 failed (0.1/s, about 60 s left)",
        "interrupted: nothing new is started",
    ]


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_progress_on_a_terminal_is_one_line_that_fits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    now = [100.0]
    monkeypatch.setattr("seatrial.reports.progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    with RunProgress(experiment(), 10, quiet=False) as watcher:
        now[0] += 20
        watcher.finished(RunEnd(RunKey("crew", "case-0", 0), "passed"))
    line = capsys.readouterr().err.split("\r\x1b[K")[1]
    assert "1/10 runs: 1 passed" in line
    assert len(line) <= columns
    assert ("[##......" in line) == (columns == 200)


def test_progress_is_shown_while_no_run_ends_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.reports.progress.PLAIN_INTERVAL_S", 0.0)
    monkeypatch.setattr("seatrial.reports.progress.PLAIN_IDLE_S", 0.01)
    microseconds = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(microseconds) / 1e6)
    monkeypatch.setattr("seatrial.reports.progress.time", clock)
    lines: list[str] = []

    async def scene() -> None:
        with RunProgress(experiment(), 10, quiet=False) as watcher:
            showing = asyncio.create_task(watcher.keep_showing())
            async with asyncio.timeout(60):
                while len(lines) < 3:
                    await asyncio.sleep(0.01)
                    lines.extend(capsys.readouterr().err.splitlines())
            showing.cancel()

    asyncio.run(scene())
    assert lines[:3] == ["experiment exp-1: 10 runs", *["0/10 runs (0 s)"] * 2]


def test_a_single_run_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress(experiment(), 1, quiet=False) as watcher:
        watcher.resumed(1)
    assert capsys.readouterr().err.splitlines() == ["experiment exp-1: 1 run", "1 run is there already"]


def test_a_quiet_watcher_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress(experiment(), 10, quiet=True) as watcher:
        watcher.resumed(2)
        watcher.finished(RunEnd(RunKey("crew", "case-0", 0), "passed"))
        watcher.stopping("interrupted")
    assert capsys.readouterr().err == ""
