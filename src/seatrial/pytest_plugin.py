"""The pytest plugin: fixtures and a marker that put agents to cases, and `*.suite.yaml` files collected as tests.

pytest loads this module in every project that Seatrial is installed in: it imports nothing until a test needs it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from seatrial.models.registry import JudgeModel
    from seatrial.runs import Case
    from seatrial.suites import Grading, Suite
    from seatrial.testing import RunResult
    from seatrial.testing.asked import Asked, Given, GivenGrader, SuiteCase
    from seatrial.testing.session import Plan, Session
    from seatrial.testing.snapshot import SnapshotUpdates
    from seatrial.testing.trial_results import Passes, TrialResults
    from seatrial.trajectory.completeness import ToolAccess

T = TypeVar("T")

SUITE_ENDINGS = (".suite.yaml", ".suite.yml")

_MARKER = (
    "seatrial(agent, case, *, suite=None, graders=(), judge=None, tool_access=None, check=True, **fields): "
    "runs the agent before the test; the fixture `result` is its `RunResult`. With trials=5, at_least=4 it runs "
    "several times; the fixture `results` is its `TrialResults`"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("seatrial", "sea trials for AI agents")
    group.addoption(
        "--seatrial-store",
        metavar="WHERE",
        help="keep the runs: a SQLite file or a postgresql:// URL (default: they are forgotten)",
    )
    group.addoption(
        "--seatrial-skip-judges",
        action="store_true",
        help="ask no model in suite files: a test whose judge is required is an error then, and does not pass",
    )
    group.addoption(
        "--seatrial-update",
        action="store_true",
        help="write the calls of the runs into tests: fill each `snapshot()`, and change those that do not fit",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    config.stash[_STAGE] = Stage(config)
    if config.option.seatrial_update:
        if hasattr(config, "workerinput") or getattr(config.option, "dist", "no") != "no":
            raise pytest.UsageError(
                "--seatrial-update changes files of tests, so it runs them in one process: with -n 0"
            )
        from seatrial.testing.snapshot import start_updates

        config.stash[_UPDATES] = start_updates()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _UPDATES in config.stash:
        from seatrial.testing.snapshot import end_updates

        end_updates()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if (updates := session.config.stash.get(_UPDATES, None)) is not None:
        session.config.stash[_UPDATED] = _finish(updates, session)
    # Here and not later: xdist ends a worker soon after its session has finished.
    if (stage := session.config.stash.get(_STAGE, None)) is not None:
        stage.close()


def _finish(updates: SnapshotUpdates, session: pytest.Session) -> list[str]:
    """Write the snapshots; lines on what was written."""
    from seatrial._support.printable import printable
    from seatrial.errors import SeatrialError

    lines = []
    try:
        for path, count in updates.finish():
            lines.append(printable(f"{count} snapshot{'s' if count > 1 else ''} written in {path}"))
    except SeatrialError as error:
        lines.append(printable(f"not all snapshots were written: {error}"))
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
    return lines


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash.get(_UPDATED, None):
        terminalreporter.section("seatrial")
        for line in lines:
            terminalreporter.write_line(line)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteCollector | None:
    return SuiteCollector.from_parent(parent, path=file_path) if file_path.name.endswith(SUITE_ENDINGS) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test with the marker has its run, also when it does not look at the result."""
    marker = item.get_closest_marker("seatrial")
    if isinstance(item, pytest.Function) and marker is not None:
        fixture = "results" if "trials" in marker.kwargs else "result"
        if fixture not in item.fixturenames:
            item.fixturenames.append(fixture)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Fail a test whose marked run did not pass: here, so that it is a failure, and not an error of the setup."""
    if (failure := item.stash.get(_FAILURE, None)) is not None:
        pytest.fail(failure, pytrace=False)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tell each suite file which of its tests are left, and store its experiment before any worker looks for it."""
    left: dict[SuiteCollector, list[SuiteItem]] = {}
    for item in session.items:
        if isinstance(item, SuiteItem):
            left.setdefault(item.collector, []).append(item)
    if left and not session.config.option.collectonly:
        for collector, items in left.items():
            collector.plan_for(items)
        session.config.stash[_STAGE].prepare([collector.plan for collector in left])


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Show how calls differ from the expected ones, instead of two long lists."""
    module = sys.modules.get("seatrial.testing.expected")
    if module is None or op != "==":
        return None
    expected, made = (left, right) if isinstance(left, module.Expected) else (right, left)
    if not isinstance(expected, module.Expected) or not isinstance(made, list | module.Calls):
        return None
    return [f"calls == {expected!r}", *expected.explain(made)]


@pytest.fixture
def seatrial(request: pytest.FixtureRequest) -> Trials:
    """Puts agents to cases: `seatrial.run(agent, "What the user asks")` gives a `RunResult`."""
    return Trials(request.config.stash[_STAGE], request.node.nodeid, request.path)


@pytest.fixture
def result(request: pytest.FixtureRequest, seatrial: Trials) -> RunResult:
    """The result of the agent and the case that the marker `seatrial` names."""
    arguments, options, check = _marked(request)
    if "trials" in options:
        raise pytest.UsageError("the marker has `trials`, so ask for the fixture `results`")
    result = _or_error(lambda: seatrial.run(*arguments, check=False, **options))
    if check:
        if result.outcome == "errored":
            pytest.fail(str(result), pytrace=False)
        if result.run.status == "failed" or result.outcome == "failed":
            request.node.stash[_FAILURE] = str(result)
    return result


@pytest.fixture
def results(request: pytest.FixtureRequest, seatrial: Trials) -> TrialResults:
    """The results of the agent and the case that the marker `seatrial` names, when it has `trials`."""
    arguments, options, check = _marked(request)
    if "trials" not in options:
        raise pytest.UsageError("the marker has no `trials`, so ask for the fixture `result`")
    results = _or_error(lambda: seatrial.run_trials(*arguments, check=False, **options))
    if check and results.passed < results.at_least:
        if results.passed + results.undecided >= results.at_least:
            pytest.fail(str(results), pytrace=False)
        request.node.stash[_FAILURE] = str(results)
    return results


_UPDATES = pytest.StashKey["SnapshotUpdates"]()
_UPDATED = pytest.StashKey[list[str]]()
_FAILURE = pytest.StashKey[str]()
"""Why the run of a test's marker did not pass."""


def _marked(request: pytest.FixtureRequest) -> tuple[tuple[Any, ...], dict[str, Any], bool]:
    """The arguments of the marker, and whether the test fails when the run does."""
    if _FAILURE in request.node.stash:  # of the same test, when it is run again
        del request.node.stash[_FAILURE]
    marker = request.node.get_closest_marker("seatrial")
    if marker is None:
        raise pytest.UsageError(
            f"the fixture `{request.fixturename}` needs the marker @pytest.mark.seatrial(agent, case)"
        )
    options = dict(marker.kwargs)
    return marker.args, options, options.pop("check", True)


def _or_error(run: Callable[[], T]) -> T:
    """What it returns; an error of the test, in one sentence, when it raises."""
    from seatrial._support.printable import printable
    from seatrial.errors import SeatrialError

    try:
        return run()
    except SeatrialError as error:
        told = printable(str(error))
    # Out here, where it does not read as if one error came of another.
    pytest.fail(told, pytrace=False)


class Stage:
    """What all tests of this process play on; nothing is loaded or opened before the first of them needs it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        worker: Mapping[str, Any] = getattr(config, "workerinput", {})
        self._worker = worker.get("workerid", "")
        self.session_id: str = worker.get("testrunuid") or uuid.uuid4().hex
        """The same in all workers of one session of pytest."""
        self._session: Session | None = None
        self._closing = ExitStack()

    @property
    def session(self) -> Session:
        if self._session is None:
            from seatrial.testing.session import Session

            self._session = Session(self._where(), creates=self._creates())
            self._closing.callback(self._session.close)
        return self._session

    def prepare(self, plans: list[Plan]) -> None:
        """Store the experiments of suite files, if that is for this process to do."""
        if self._creates():
            for plan in plans:
                self.session.create(plan)

    def close(self) -> None:
        self._closing.close()

    def _creates(self) -> bool:
        # Workers share a store only when one was named; each of them knows all tests, so the first speaks for all.
        return self._worker in ("", "gw0") or not self._config.option.seatrial_store

    def _where(self) -> str | Path:
        if where := self._config.option.seatrial_store:
            return str(where)
        folder = tempfile.TemporaryDirectory(prefix="seatrial-pytest-")
        self._closing.callback(folder.cleanup)
        return Path(folder.name) / "runs.db"


_STAGE = pytest.StashKey[Stage]()


class Trials:
    """The fixture `seatrial`."""

    def __init__(self, stage: Stage, test: str, file: Path) -> None:
        self._stage = stage
        self._test = test
        self._file = file

    def run(
        self,
        agent: Given,
        case: str | Case | SuiteCase,
        *,
        suite: str | os.PathLike[str] | None = None,
        graders: Sequence[GivenGrader] = (),
        judge: JudgeModel | None = None,
        tool_access: ToolAccess | None = None,
        check: bool = True,
        **fields: Any,
    ) -> RunResult:
        """Run an agent on a case, and wait for the result.

        `agent` is a function, `module:function`, or an agent's configuration; `case` an instruction (`fields` are
        further keys of the case, as `input={...}`), a `Case`, or one of `suite_cases`. With `suite`, a file beside the
        test, `case` is an id in it, `agent` may be a name in it, and its graders judge. `graders` are configurations,
        values (`seatrial.contains(...)`) or functions; those that ask a model ask `judge`, which may be a
        `ScriptedModel`. `tool_access="none"` says that a function has no tools. An agent that raised, timed out or
        broke its contract raises `AgentFailedError` with its own traceback, and graders that did not pass it raise
        `AssertionError`; with `check=False` both are a result. One that cannot be reached raises `SeatrialError`.
        """
        __tracebackhide__ = True
        from seatrial.errors import SeatrialError

        try:
            asked = self._asked(agent, case, suite, graders, judge, tool_access, fields)
            [result] = self._stage.session.run(asked)
            return _answered(result, check)
        except SeatrialError as error:
            # Without the frames it came through: pytest prints what is in them, and the environment is in one.
            raise error.with_traceback(None) from None

    async def run_async(
        self,
        agent: Given,
        case: str | Case | SuiteCase,
        *,
        suite: str | os.PathLike[str] | None = None,
        graders: Sequence[GivenGrader] = (),
        judge: JudgeModel | None = None,
        tool_access: ToolAccess | None = None,
        check: bool = True,
        **fields: Any,
    ) -> RunResult:
        """The same as `run`, for tests that are async themselves; the agent runs in a loop of its own."""
        __tracebackhide__ = True
        from seatrial.errors import SeatrialError

        try:
            asked = self._asked(agent, case, suite, graders, judge, tool_access, fields)
            [result] = await self._stage.session.run_async(asked)
            return _answered(result, check)
        except SeatrialError as error:
            raise error.with_traceback(None) from None  # as above

    def run_trials(
        self,
        agent: Given,
        case: str | Case | SuiteCase,
        *,
        trials: int,
        at_least: int | None = None,
        passes: Passes | None = None,
        concurrency: int = 1,
        suite: str | os.PathLike[str] | None = None,
        graders: Sequence[GivenGrader] = (),
        judge: JudgeModel | None = None,
        tool_access: ToolAccess | None = None,
        check: bool = True,
        **fields: Any,
    ) -> TrialResults:
        """Run an agent on a case several times: `run_trials(agent, "...", trials=5, at_least=4, graders=[...])`.

        A trial passes when the agent answered, the graders passed it, and so did `passes`, a function of the result
        that returns true or false, or asserts. `at_least` of the trials must pass, all when absent: otherwise
        `AssertionError`, or `NoVerdictError` where that depends on trials that could not be decided. With
        `check=False` neither is raised. `concurrency` trials run at once. The rest is as for `run`.
        """
        __tracebackhide__ = True
        from seatrial.errors import SeatrialError

        try:
            asked = self._asked(agent, case, suite, graders, judge, tool_access, fields)
            at_least = _enough(trials, at_least, concurrency)
            results = self._stage.session.run(asked, trials=trials, concurrency=concurrency)
            return _counted(results, at_least, passes, check)
        except SeatrialError as error:
            raise error.with_traceback(None) from None  # as above

    async def run_trials_async(
        self,
        agent: Given,
        case: str | Case | SuiteCase,
        *,
        trials: int,
        at_least: int | None = None,
        passes: Passes | None = None,
        concurrency: int = 1,
        suite: str | os.PathLike[str] | None = None,
        graders: Sequence[GivenGrader] = (),
        judge: JudgeModel | None = None,
        tool_access: ToolAccess | None = None,
        check: bool = True,
        **fields: Any,
    ) -> TrialResults:
        """The same as `run_trials`, for tests that are async themselves."""
        __tracebackhide__ = True
        from seatrial.errors import SeatrialError

        try:
            asked = self._asked(agent, case, suite, graders, judge, tool_access, fields)
            at_least = _enough(trials, at_least, concurrency)
            results = await self._stage.session.run_async(asked, trials=trials, concurrency=concurrency)
            return _counted(results, at_least, passes, check)
        except SeatrialError as error:
            raise error.with_traceback(None) from None  # as above

    def _asked(
        self,
        agent: Given,
        case: str | Case | SuiteCase,
        suite: str | os.PathLike[str] | None,
        graders: Sequence[GivenGrader],
        judge: JudgeModel | None,
        tool_access: ToolAccess | None,
        fields: Mapping[str, Any],
    ) -> Asked:
        from seatrial.errors import SeatrialError
        from seatrial.testing.asked import SuiteCase, asked, asked_of_suite

        path = None if suite is None else self._file.parent / suite
        if isinstance(case, SuiteCase):
            if path is not None:
                raise SeatrialError("invalid_config", "the case knows its suite: leave `suite` out")
            path, case = case.suite, case.case
        if path is None:
            return asked(self._test, self._file, agent, case, graders, fields, tool_access, judge)
        if graders or fields or judge is not None:
            told = "a case of a suite is judged by the suite's graders and its judge, and has all its keys there"
            raise SeatrialError("invalid_config", told)
        return asked_of_suite(self._test, self._file, path, agent, case, tool_access)


class SuiteCollector(pytest.File):
    """A suite file: one test for each agent, case and trial."""

    suite: Suite
    plan: Plan

    def collect(self) -> Iterator[SuiteItem]:
        from seatrial._support.printable import printable
        from seatrial.errors import SeatrialError
        from seatrial.suites import load_suite, read_cases

        try:
            grading: Grading = "without_judges" if self.config.option.seatrial_skip_judges else "all"
            self.suite = load_suite(self.path, grading=grading, import_agents=True, import_graders=True)
            cases = list(read_cases(self.suite, grading=grading))
        except SeatrialError as error:
            raise self.CollectError(printable(str(error))) from None
        for agent in self.suite.agents:
            for case in cases:
                for trial in range(1, self.suite.trials + 1):
                    number = f"#{trial}" if self.suite.trials > 1 else ""
                    name = printable(f"{agent}/{case.id}{number}")
                    item: SuiteItem = SuiteItem.from_parent(
                        self, name=name, collector=self, agent=agent, case=case, trial=trial
                    )
                    # `-k` finds tags too.
                    item.extra_keyword_matches.update(case.tags)
                    yield item

    def plan_for(self, items: list[SuiteItem]) -> None:
        """Plan the experiment of those tests that are left."""
        import hashlib

        from seatrial.testing.session import Plan

        stage = self.config.stash[_STAGE]
        selected: dict[str, dict[str, None]] = {}
        for item in items:
            selected.setdefault(item.agent, {})[item.case.id] = None
        digest = hashlib.sha256(f"{stage.session_id} {self.nodeid}".encode()).hexdigest()
        self.plan = Plan(
            self.suite, f"pytest-{digest[:12]}", {name: list(cases) for name, cases in selected.items()}, len(items)
        )


class SuiteItem(pytest.Item):
    """One trial of a suite file.

    The run is made in the setup of the test and judged in its call: so pytest and its reports tell a run that errored
    (an error) from one that failed (a failure).
    """

    def __init__(self, *, collector: SuiteCollector, agent: str, case: Case, trial: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.collector = collector
        self.agent = agent
        self.case = case
        self.trial = trial
        self._result: RunResult | None = None

    def setup(self) -> None:
        from seatrial._support.printable import printable
        from seatrial.errors import SeatrialError

        stage = self.config.stash[_STAGE]
        try:
            result = stage.session.run_planned(self.collector.plan, self.agent, self.case, self.trial)
        except SeatrialError as error:
            pytest.fail(printable(str(error)), pytrace=False)
        self.user_properties += [("run_id", result.run.run_id), ("experiment_id", result.run.experiment_id)]
        if result.outcome in ("errored", "skipped"):
            pytest.fail(str(result), pytrace=False)
        self._result = result

    def runtest(self) -> None:
        if self._result is not None and not self._result.passed:
            pytest.fail(str(self._result), pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name


def _answered(result: RunResult, check: bool) -> RunResult:
    __tracebackhide__ = True
    run = result.run
    if run.status == "failed" and not run.errored and check:
        from seatrial.testing import AgentFailedError

        raise AgentFailedError(result)
    if run.errored or run.status not in ("completed", "failed"):
        from seatrial.errors import SeatrialError

        raise SeatrialError("agent_unhealthy", f"no verdict: the fault was not the agent's\n{result}")
    if check and result.outcome in ("failed", "errored"):
        result.check()
    return result


def _enough(trials: int, at_least: int | None, concurrency: int) -> int:
    """How many trials must pass, when the numbers make sense."""
    from seatrial.errors import SeatrialError

    for option, value, most in (("trials", trials, 10_000), ("concurrency", concurrency, 10_000)):
        if not isinstance(value, int) or not 1 <= value <= most:
            raise SeatrialError("usage", f"`{option}` is a number from 1 to {most:,}, got {value!r}")
    if at_least is None:
        return trials
    if not isinstance(at_least, int) or not 1 <= at_least <= trials:
        raise SeatrialError("usage", f"`at_least` is a number from 1 to `trials` ({trials}), got {at_least!r}")
    return at_least


def _counted(results: list[RunResult], at_least: int, passes: Passes | None, check: bool) -> TrialResults:
    __tracebackhide__ = True
    from seatrial.testing.trial_results import TrialResults

    counted = TrialResults(results, at_least=at_least, passes=passes)
    if check:
        counted.check()
    return counted
