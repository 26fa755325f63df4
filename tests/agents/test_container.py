"""Programs in containers. A program that stands in for Podman keeps what it is asked for, and runs the command here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seatrial.agents.cli.container import ContainerSandbox, container_program
from seatrial.suites import InvalidSuiteError, load_suite

PODMAN = """\
#!{python} -ISB
import json, os, sys

asked = sys.argv[1:]
with open(os.environ["ASKED"], "a") as file:
    file.write(json.dumps({{"asked": asked, "key": os.environ.get("API_KEY"), "home": os.environ["HOME"]}}) + "\\n")
if asked[0] == "rm":
    sys.exit("Error: no such container")
if asked[0] == "ps":
    print(os.environ.get("LEFT", ""))
    sys.exit(0)
options = [word for word in asked[1:] if word.startswith("--")]
image, *command = asked[1 + len(options) :]
if image != "coders:1":
    print("Error: " + image + ": image not known", file=sys.stderr)
    sys.exit(125)
if "BROKEN" in os.environ and command[0] != "/bin/sh":
    print("Error: cannot connect to the service", file=sys.stderr)
    sys.exit(125)
named = [word.partition("=")[2] for word in options if word.startswith("--env=")]
parts = [word.partition("=") for word in named]
environment = {{name: value if equals else os.environ[name] for name, equals, value in parts}}
place = next(word.partition("=")[2] for word in options if word.startswith("--workdir="))
os.chdir(os.environ.get("ELSEWHERE", place))
os.execvpe(command[0], command, {{"PATH": os.environ["PATH"], **environment}})
"""
AGENT = """
test "$API_KEY" = s3cret-key || exit 3
test -z "$ASKED" || exit 4
test "$(ls -A "$HOME")" = "" || exit 5
echo b >a.txt && echo done
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    directory = tmp_path / "suite"
    for made in ("project", "bin"):
        (directory / made).mkdir(parents=True)
    (directory / "project" / "a.txt").write_text("a\n")
    podman = directory / "bin" / "podman"
    podman.write_text(PODMAN.format(python=sys.executable))
    podman.chmod(0o755)
    (directory / "agent.sh").write_text(AGENT)
    (directory / "my.suite.yaml").write_text(
        "agents:\n"
        "  coder:\n"
        "    kind: cli\n"
        "    command: [sh, '{SUITE_DIR}/agent.sh', '{PROMPT}']\n"
        "    sandbox: container\n"
        "    image: coders:1\n"
        "    env: {API_KEY: '${AGENT_KEY}'}\n"
        "graders:\n"
        "  - {kind: allowed_paths, paths: [a.txt]}\n"
        "  - {kind: command, command: grep b a.txt}\n"
        "cases: [{id: fix, instruction: Fix it., workspace: project}]\n"
    )
    return directory


def seatrial(suite: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(suite / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "ASKED": str(suite / "asked"), "AGENT_KEY": "s3cret-key", **variables}
    command = ["seatrial", *arguments]
    return subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True, check=False)


def asked(suite: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (suite / "asked").read_text().splitlines()]


def changed(suite: Path, *replaced: tuple[str, str]) -> None:
    text = (suite / "my.suite.yaml").read_text()
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    (suite / "my.suite.yaml").write_text(text)


def test_a_program_in_a_container_gets_its_own_folders_and_named_variables_alone(suite: Path) -> None:
    ran = seatrial(suite, "run", "my.suite.yaml")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    tried, agent, grader = [each for each in asked(suite) if each["asked"][0] == "run"]
    words = agent["asked"]
    assert words[-4:] == ["coders:1", "sh", str(suite / "agent.sh"), "Fix it."]
    assert {"--rm", "--pull=never", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--entrypoint="} <= {*words}
    assert f"--user={os.getuid()}:{os.getgid()}" in words
    mounts = [word.removeprefix("--mount=type=bind,source=") for word in words if word.startswith("--mount=")]
    read_only = [mount for mount in mounts if mount.endswith(",readonly")]
    assert read_only == [f"{suite / 'agent.sh'},target={suite / 'agent.sh'},readonly"]
    assert len(mounts) == 5
    assert not any(mount.startswith((f"{suite},", f"{Path.home()},")) for mount in mounts)
    # The client has the value and its own home; the command line, which others can see, has neither value nor PATH.
    assert agent["key"] == "s3cret-key"
    assert agent["home"] == os.environ["HOME"]
    assert "--env=API_KEY" in words
    assert "s3cret-key" not in " ".join(words)
    assert not any(word.startswith("--env=PATH") for word in words)
    assert "--env=API_KEY" not in grader["asked"]
    assert grader["asked"][-4:] == ["coders:1", "grep", "b", "a.txt"]
    assert tried["asked"][-4:-2] != agent["asked"][-4:-2]


def test_a_container_is_removed_when_its_client_is_killed(suite: Path) -> None:
    (suite / "agent.sh").write_text("trap '' TERM; sleep 60")
    changed(suite, ("image: coders:1", "image: coders:1\n    timeout_s: 0.5"))
    ran = seatrial(suite, "run", "my.suite.yaml")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    words = [each["asked"] for each in asked(suite)]
    (name,) = [word.partition("=")[2] for word in words[3] if word.startswith("--name=")]
    assert words[4] == ["rm", "--force", name]
    assert words[5] == ["ps", "--all", "--quiet", "--filter", f"name={name}"]


def test_while_a_container_may_be_running_nobody_knows_what_it_changes(suite: Path) -> None:
    ran = seatrial(suite, "run", "my.suite.yaml", "--json", LEFT="4f1c0ffee")
    assert ran.returncode == 3, ran.stdout + ran.stderr
    (run,) = json.loads(ran.stdout)["runs"]
    assert [verdict["code"] for verdict in run["detail"]["verdicts"]] == ["diff_unknown", "diff_unknown"]
    assert [note["code"] for note in run["notes"]] == ["processes_left"]


@pytest.mark.parametrize(
    ("variables", "replaced", "said"),
    [
        ({}, ("image: coders:1", "image: others:1"), "others:1: image not known (fetch it yourself"),
        ({}, ("command: [sh,", "command: [no-such-program,"), "'no-such-program' is not in the sandbox (use an image"),
        ({"ELSEWHERE": "project"}, ("coders:1", "coders:1"), "does not arrive here"),
    ],
    ids=["image", "program", "service"],
)
def test_what_is_wrong_with_a_container_is_found_before_anything_runs(
    suite: Path, variables: dict[str, str], replaced: tuple[str, str], said: str
) -> None:
    changed(suite, replaced)
    found = seatrial(suite, "doctor", "my.suite.yaml", **variables)
    assert found.returncode == 3, found.stdout + found.stderr
    assert said in " ".join((found.stdout + found.stderr).split())


def test_a_service_that_fails_is_not_the_agents_fault(suite: Path) -> None:
    ran = seatrial(suite, "run", "my.suite.yaml", "--json", BROKEN="1")
    assert ran.returncode == 3, ran.stdout + ran.stderr
    (run,) = json.loads(ran.stdout)["runs"]
    assert (run["outcome"], run["error_class"]) == ("errored", "agent_not_started")


def test_without_podman_and_docker_a_suite_that_wants_a_container_is_refused(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", "s3cret-key")
    monkeypatch.setenv("PATH", str(suite / "project"))
    with pytest.raises(InvalidSuiteError, match="neither `podman` nor `docker` on this machine"):
        load_suite(suite / "my.suite.yaml")
    docker = suite / "project" / "docker"
    docker.write_text("#!/bin/sh\n")
    docker.chmod(0o755)
    assert container_program() == str(docker)
    load_suite(suite / "my.suite.yaml")


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        (("    image: coders:1\n", ""), "`sandbox: container` needs an `image`"),
        (("image: coders:1", "image: --privileged"), "cannot be the name of an image"),
        (("sandbox: container", "sandbox: bubblewrap"), "`image` does nothing with `sandbox: bubblewrap`"),
        (("    sandbox: container\n", ""), "`image` does nothing without a `sandbox`"),
        ((", workspace: project", ""), "no `workspace` to keep it to"),
    ],
)
def test_a_container_that_would_do_nothing_is_refused(
    suite: Path, monkeypatch: pytest.MonkeyPatch, replaced: tuple[str, str], said: str
) -> None:
    monkeypatch.setenv("AGENT_KEY", "s3cret-key")
    monkeypatch.setenv("PATH", str(suite / "bin"), prepend=os.pathsep)
    changed(suite, replaced)
    with pytest.raises(InvalidSuiteError) as refused:
        load_suite(suite / "my.suite.yaml")
    assert said in str(refused.value)


def test_a_path_with_a_comma_is_one_path(tmp_path: Path) -> None:
    folder = str(tmp_path / 'a, "b"')
    words = ContainerSandbox("i", tmp_path).wrap(["true"], folder, [], {}).argv
    quoted = folder.replace('"', '""')
    assert f'--mount=type=bind,"source={quoted}","target={quoted}"' in words
