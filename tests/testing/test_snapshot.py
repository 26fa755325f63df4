"""Snapshots of calls, and the files that they are written into, in sessions of pytest of their own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seatrial.errors import SeatrialError
from seatrial.testing import NoVerdictError, snapshot
from seatrial.testing.snapshot import SnapshotUpdates, end_updates, start_updates
from seatrial.trajectory import Completeness, Step
from seatrial.trajectory.calls import Calls

pytest_plugins = ["pytester"]

OTHER_PLUGINS = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "schemathesis", "faker", "anyio")]
STEPS = [Step(0, "find_order", {"order": "A-1"}), Step(1, "refund", {"amount": 9.5, "why": None, "now": True})]


@pytest.fixture
def updates() -> SnapshotUpdates:
    """Where a session of pytest with `--seatrial-update` keeps what is to be written."""
    return start_updates()


@pytest.fixture(autouse=True)
def _end_updates() -> Iterator[None]:
    yield
    end_updates()


class Written:
    """A file of tests: functions that are called with `steps`."""

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        path.write_text(source, encoding="utf-8", newline="")

    @property
    def text(self) -> str:
        return self.path.read_bytes().decode()

    def call(self, steps: object = STEPS, name: str = "test") -> None:
        found: dict[str, object] = {}
        exec(compile(self.text, str(self.path), "exec"), found)
        function = found[name]
        assert callable(function)
        function(steps)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Written]:
    def written(body: str) -> Written:
        return Written(tmp_path / "test_shop.py", f"from seatrial.testing import snapshot\n\n\n{body}")

    return written


ONE = "def test(steps):\n    assert steps == snapshot()  # as it is\n"


def test_an_empty_snapshot_is_an_error_that_says_how_to_fill_it() -> None:
    with pytest.raises(SeatrialError, match=r"the snapshot is empty.*--seatrial-update"):
        assert snapshot() == STEPS


def test_a_snapshot_is_equal_to_just_its_calls_in_their_order() -> None:
    saved = snapshot([{"tool": "find_order", "args": {"order": "A-1"}}, "refund"])
    assert saved == STEPS
    assert not saved == STEPS[:1]  # noqa: SIM201 - `!=` is refused
    assert not saved == STEPS[::-1]  # noqa: SIM201
    assert not snapshot([]) == STEPS  # noqa: SIM201
    assert snapshot([]) == []


def test_a_snapshot_is_not_compared_with_unequal() -> None:
    with pytest.raises(TypeError, match="compared with `==`"):
        assert snapshot([]) != STEPS


def test_an_update_writes_the_calls_between_the_parentheses(
    updates: SnapshotUpdates, write: Callable[[str], Written]
) -> None:
    tests = write(ONE)
    tests.call()
    assert [*updates.finish()] == [(str(tests.path), 1)]
    assert tests.text.endswith(
        """def test(steps):
    assert steps == snapshot(
        [
            {"tool": "find_order", "args": {"order": "A-1"}},
            {"tool": "refund", "args": {"amount": 9.5, "why": None, "now": True}},
        ]
    )  # as it is
"""
    )
    end_updates()
    tests.call()
    with pytest.raises(AssertionError):
        tests.call([Step(0, "delete", {})])


def test_short_calls_stay_on_the_line(updates: SnapshotUpdates, write: Callable[[str], Written]) -> None:
    tests = write(ONE)
    tests.call([Step(0, "greet", {})])
    assert [*updates.finish()]
    assert 'steps == snapshot([{"tool": "greet", "args": {}}])  # as it is' in tests.text


def test_a_run_without_calls_gives_an_empty_list(updates: SnapshotUpdates, write: Callable[[str], Written]) -> None:
    tests = write(ONE)
    tests.call([])
    assert [*updates.finish()]
    assert "steps == snapshot([])" in tests.text
    end_updates()
    tests.call([])


def test_what_an_agent_sent_stays_text(updates: SnapshotUpdates, write: Callable[[str], Written]) -> None:
    nasty = "\"'\n}])\nimport os  \u202e\ud800 \\ {x}"
    steps = [
        Step(0, "find_*[a]", {nasty: [nasty, {"deep": [1, [2, {"$gt": 1}]]}], "long": "x" * 200}),
        Step(1, "bad", None, arguments_text="{"),
    ]
    tests = write("def test(steps):\n    ä = 1; assert steps == snapshot(), ä\n")
    tests.call(steps)
    assert [*updates.finish()]
    ast.parse(tests.text)
    end_updates()
    tests.call(steps)
    with pytest.raises(AssertionError):
        tests.call([Step(0, "find_xa", steps[0].arguments), steps[1]])


def test_several_snapshots_of_a_file_and_of_a_line_are_told_apart(
    updates: SnapshotUpdates, write: Callable[[str], Written]
) -> None:
    tests = write(
        "def test(steps):\n"
        "    assert steps[:1] == snapshot() and steps[1:] == snapshot([\n        'other'])\n"
        "    assert steps == snapshot(\n    )\n"
    )
    tests.call()
    assert [*updates.finish()] == [(str(tests.path), 3)]
    end_updates()
    tests.call()


def test_a_snapshot_that_still_fits_stays_as_people_left_it(
    updates: SnapshotUpdates, write: Callable[[str], Written]
) -> None:
    tests = write("def test(steps):\n    assert steps == snapshot(['find_order', {'tool': 'refund'}])\n")
    before = tests.text
    tests.call()
    assert [*updates.finish()] == []
    assert tests.text == before


def test_lines_keep_their_endings(updates: SnapshotUpdates, write: Callable[[str], Written]) -> None:
    tests = write(ONE.replace("\n", "\r\n"))
    tests.call()
    assert [*updates.finish()]
    assert "\n" not in tests.text.partition("def test")[2].replace("\r\n", "")


@pytest.mark.parametrize("known", [STEPS, []])
def test_calls_that_are_not_all_known_are_not_written(
    known: list[Step], updates: SnapshotUpdates, write: Callable[[str], Written]
) -> None:
    tests = write(ONE)
    with pytest.raises(NoVerdictError, match="calls_unknown"):
        tests.call(Calls(known, Completeness("partial")))
    assert [*updates.finish()] == []


def test_a_call_with_a_secret_is_not_written(updates: SnapshotUpdates, write: Callable[[str], Written]) -> None:
    tests = write(ONE)
    shown = [Step(0, "login", {"key": "[redacted]"})]
    calls = Calls([Step(0, "login", {"key": "s3cret"})], Completeness("complete", "messages"), shown)
    with pytest.raises(SeatrialError, match="secret"):
        tests.call(calls)
    assert [*updates.finish()] == []


@pytest.mark.parametrize("saved", ["", "['find_order', 'refund']"])
def test_runs_that_differ_do_not_fit_one_snapshot(
    saved: str, updates: SnapshotUpdates, write: Callable[[str], Written]
) -> None:
    tests = write(
        f"def test(steps):\n    for made in (steps, steps[:1], steps):\n        assert made == snapshot({saved})\n"
    )
    before = tests.text
    with pytest.raises(SeatrialError, match="different calls"):
        tests.call()
    assert [*updates.finish()] == []
    assert tests.text == before


def test_a_file_that_changed_in_the_meantime_is_left_alone(
    updates: SnapshotUpdates, write: Callable[[str], Written]
) -> None:
    tests = write(ONE)
    tests.call()
    tests.path.write_text("# mine\n")
    with pytest.raises(SeatrialError, match="was changed while the tests were running"):
        [*updates.finish()]
    assert tests.text == "# mine\n"


def test_a_test_without_a_file_says_so(updates: SnapshotUpdates) -> None:
    code = compile("from seatrial.testing import snapshot\nassert steps == snapshot()\n", "<string>", "exec")
    with pytest.raises(SeatrialError, match="cannot be read"):
        exec(code, {"steps": STEPS})


AGENT = """
def answer(instruction):
    calls = [{"id": "1", "name": "find_order", "arguments": {"order": instruction}}]
    return {"messages": [{"role": "assistant", "tool_calls": calls}, {"role": "assistant", "content": "done"}]}
"""
TEST = """
from shop_agent import answer
from seatrial.testing import snapshot

def test_one(seatrial):
    result = seatrial.run(answer, "A-1")
    assert result.calls == snapshot()

def test_two(seatrial):
    assert seatrial.run(answer, "A-2").calls == snapshot(["refund"])

def test_unknown(seatrial):
    assert seatrial.run(lambda instruction: "just text", "A-3").calls == snapshot()
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(shop_agent=AGENT)
    pytester.makepyfile(test_shop=TEST)
    pytester.syspathinsert()
    return pytester


def test_a_session_with_the_option_writes_what_rewritten_assertions_compared(project: pytest.Pytester) -> None:
    ran = project.runpytest(*OTHER_PLUGINS)
    ran.assert_outcomes(failed=3)
    ran.stdout.fnmatch_lines(["*the snapshot is empty*--seatrial-update*", "*If these calls are right*"])
    ran = project.runpytest(*OTHER_PLUGINS, "--seatrial-update")
    ran.assert_outcomes(passed=2, failed=1)
    ran.stdout.fnmatch_lines(["*calls_unknown*so there is no snapshot*", "2 snapshots written in *test_shop.py"])
    text = project.path.joinpath("test_shop.py").read_text()
    assert 'result.calls == snapshot([{"tool": "find_order", "args": {"order": "A-1"}}])' in text
    assert '"args": {"order": "A-2"}' in text
    assert text.endswith('"A-3").calls == snapshot()')
    project.runpytest(*OTHER_PLUGINS).assert_outcomes(passed=2, failed=1)


def test_workers_of_xdist_do_not_write(project: pytest.Pytester) -> None:
    ran = project.runpytest_subprocess("-n", "1", "--seatrial-update")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines(["*--seatrial-update*in one process*"])
