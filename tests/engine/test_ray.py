"""The executor `ray`, with a real Ray, on the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from strategies.databases import database
from strategies.harbour import GONE, IMPATIENT_MAIN, KEY, MATE, Harbour, a_cluster, rows_of

from seatrial.engine import ray_executor
from seatrial.store import open_store


@pytest.fixture
def harbour(tmp_path: Path, postgres_server: str) -> Iterator[Harbour]:
    with database(postgres_server) as url:
        harbour = Harbour(tmp_path, url)
        yield harbour
        shutil.rmtree(harbour.environment["TMPDIR"])


def processes_with(text: str) -> list[str]:
    """Command lines and environments of processes with this text in them."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                command = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            except OSError:
                continue
            if text.encode() in command:
                found.append(process.name)
    return found


def listening(processes: list[str]) -> set[str]:
    """Addresses that these processes listen on, in hexadecimal."""
    sockets = set()
    for process in processes:
        try:
            sockets |= {os.readlink(file) for file in Path("/proc", process, "fd").iterdir()}
        except OSError:
            continue  # it has ended meanwhile
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.add(fields[1])
    return found


def is_loopback(address: str) -> bool:
    host = address.partition(":")[0]
    return host.endswith("0100007F") or host == "00000000000000000000000001000000"


def test_a_ray_of_its_own_gives_what_local_gives_and_leaves_nothing_behind(harbour: Harbour) -> None:
    batch = {"kind": "cli", "command": [sys.executable, "crew.py"], "batch": True}
    agents = {"mate": MATE, "batch": batch, "gone": GONE}
    harbour.suite("a", "wrong-b", "c", agents=agents, trials=2, retry={"attempts": 2, "first_wait_s": 0})
    harbour.go()
    local, _, _ = harbour.run("--executor", "local")
    process = harbour.start("--executor", "ray", "--workers", "2")
    harbour.wait_begun(7, process)
    heard = listening(processes_with(str(harbour.folder)))
    [folder] = Path(harbour.environment["TMPDIR"]).glob(f"{ray_executor.FOLDER}*")
    mode = folder.stat().st_mode
    out, err = process.communicate(timeout=300)
    assert (process.returncode, local) == (1, 1), err
    with open_store(harbour.url) as store:
        first, second = [each.experiment_id for each in reversed(store.experiments())]
        assert rows_of(store, first) == rows_of(store, second)
        assert len(rows_of(store, second)) == 18
    assert mode & 0o777 == 0o700
    assert heard
    assert all(is_loopback(address) for address in heard), heard
    assert "Ray" not in err
    assert "raylet" not in err
    assert "here is" not in out
    assert processes_with(str(harbour.folder)) == []
    assert not list(Path(harbour.environment["TMPDIR"]).iterdir())
    assert not (harbour.folder / ".ray").exists()


def test_usage_errors_say_what_to_do(harbour: Harbour) -> None:
    harbour.suite("a")
    code, _, err = harbour.run("--executor", "ray", "--store", "runs.db")
    assert (code, "postgresql://" in err) == (2, True)
    assert not (harbour.folder / "runs.db").exists()
    code, _, err = harbour.run("--executor", "rai")
    assert (code, "did you mean `ray`" in err) == (2, True)
    code, _, err = harbour.run("--ray-address", "127.0.0.1:6379")
    assert (code, "--executor ray" in err) == (2, True)
    code, _, err = harbour.run("--executor", "ray", "--workers", "0")
    assert (code, "--workers" in err) == (2, True)


def test_without_ray_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], harbour: Harbour
) -> None:
    from seatrial.cli import main

    monkeypatch.setattr(ray_executor, "find_spec", lambda name: None)
    monkeypatch.setenv("SEATRIAL_STORE", harbour.url)
    assert main(["run", str(harbour.suite("a")), "--executor", "ray"]) == 2
    assert "pip install '.[ray]'" in capsys.readouterr().err


def test_a_stop_is_obeyed_by_workers_elsewhere_and_a_resume_runs_the_rest(harbour: Harbour) -> None:
    harbour.suite(*(f"slow-{number}" for number in range(6)), *(f"c-{number}" for number in range(30)), concurrency=6)
    with a_cluster(harbour) as cluster:
        ray = ("--executor", "ray", "--ray-address", cluster.address)
        process = harbour.start(*ray, "--grace-s", "60")
        harbour.wait_begun(6, process)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        for line in process.stderr:
            if "waiting up to" in line:
                break
        harbour.go()
        out, err = process.communicate(timeout=300)
        assert process.returncode == 143, err
        assert "--executor ray --ray-address" in out
        code, _, err = harbour.run(*ray, "--resume", "latest")
        assert code == 0, err
    with open_store(harbour.url) as store:
        rows = rows_of(store)
        assert len(rows) == len(set(rows)) == 36
    assert set(harbour.asked().values()) == {1}


def test_a_function_that_ends_its_worker_or_keeps_it_costs_its_own_run_alone(harbour: Harbour) -> None:
    harbour.suite("a", "exits", "b", "keeps", "c", concurrency=3)
    suite = json.loads((harbour.folder / "harbour.suite.yaml").read_text())
    suite["cases"][3]["timeout_s"] = 1
    # The others have a deadline, too: a worker that does not respond is not lost before it has passed for all.
    suite["timeouts"] = {"run_s": 10}
    (harbour.folder / "harbour.suite.yaml").write_text(json.dumps(suite))
    code, _, err = harbour.run("--executor", "ray", "--workers", "2", main=IMPATIENT_MAIN)
    assert (code, "Traceback" in err) == (1, False), err
    with open_store(harbour.url) as store:
        outcomes = {case: (outcome, error) for _, case, _, outcome, error in rows_of(store)}
    assert outcomes.pop("exits") == ("failed", "agent_exit")
    assert outcomes.pop("keeps") == ("failed", "deadline_exceeded")
    assert set(outcomes.values()) == {("passed", None)}, outcomes


def test_no_secret_reaches_ray(harbour: Harbour) -> None:
    # The agent with the secret is not run: whoever runs has the same environment.
    harbour.suite("a", "b", agents={"mate": MATE, "gone": GONE})
    harbour.go()
    with a_cluster(harbour) as cluster:
        code, out, err = harbour.run("--agent", "mate", "--executor", "ray", "--ray-address", cluster.address)
        assert code == 0, err
        files = [path for path in cluster.folder.rglob("*") if path.is_file() and not path.is_symlink()]
        logs = [path.read_bytes() for path in files]
    assert any(b"here is ${CREW_KEY}" in log for log in logs)
    assert all(KEY.encode() not in log for log in logs)
    assert KEY not in out + err


def test_what_a_killed_command_left_is_removed_and_what_is_in_use_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = ("left", "used", "open", "strange")
    left, used, opened, strange = [tmp_path / f"{ray_executor.FOLDER}{name}" for name in names]
    for folder in (left, used, opened, strange):
        folder.mkdir(mode=0o700)
    lock = ray_executor._locked(used)
    for folder in (left, opened):
        ray_executor._locked(folder).close()
    (left / "r").mkdir(mode=0o777)
    (left / "token").touch()
    opened.chmod(0o777)  # not as we make them
    (tmp_path / f"{ray_executor.FOLDER}linked").symlink_to(strange)
    ray_executor._remove_leftovers()
    assert not left.exists()
    assert used.exists()
    assert opened.exists()
    assert strange.exists()
    lock.close()
    ray_executor._remove_leftovers()
    assert not used.exists()
