"""Graders that are not Seatrial's: a class of the user's, in a suite file, in Python, or from an installed package."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from strategies import command
from strategies.plugin import install

from graders.subjects import subject
from seatrial.engine import create_experiment, launch
from seatrial.errors import SeatrialError
from seatrial.graders import (
    GRADERS,
    Check,
    Completion,
    Finding,
    Grader,
    GradingPlan,
    Subject,
    Surroundings,
    build_graders,
    grader_config,
    passed_if,
    prepare_all,
)
from seatrial.models import ScriptedModel
from seatrial.runs import Case, Verdict
from seatrial.store import open_store
from seatrial.suites import InvalidSuiteError, PythonConfig, Suite, load_suite, suite_hash, validate_suite
from seatrial.trajectory.step import Step


class Mentions(Grader):
    """Whether the answer has a word."""

    word: str

    def prepare(self) -> Check:
        return Check(self.find)

    def find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        return passed_if(self.word in (subject.answer or ""), f"looked for {self.word!r}")


class Clears(Mentions):
    """Forgets what it has seen."""

    def find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        subject.run.steps.clear()
        subject.case.tags.append("seen")
        return passed_if(True, "nothing to see")


MODULE = textwrap.dedent(
    """
    from seatrial.graders import Check, Grader, passed_if

    class Mentions(Grader):
        word: str

        def prepare(self):
            return Check(lambda subject, surroundings: passed_if(self.word in subject.answer, "looked"))
    """
)
AGENT = "def answer(instruction):\n    return instruction + ' is done'\n"


def judged(grader: Grader, answer: str = "done", surroundings: Surroundings | None = None) -> Verdict:
    async def judge() -> Verdict:
        (prepared,) = prepare_all(build_graders([grader]))
        found = prepared.judge(subject(answer), surroundings or Surroundings())
        assert isinstance(found, Awaitable)
        return await found

    return asyncio.run(judge())


def suite_file(folder: Path, *graders: dict[str, Any]) -> Path:
    (folder / "own_agent.py").write_text(AGENT)
    (folder / "own_checks.py").write_text(MODULE)
    suite = {
        "agents": {"mine": {"kind": "python", "target": "own_agent:answer"}},
        "cases": [{"id": "one", "instruction": "all"}],
        "graders": graders,
    }
    file = folder / "own.suite.yaml"
    file.write_text(json.dumps(suite))
    return file


def seatrial(folder: Path, *args: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": "" if path is None else str(path)}
    return command.seatrial(*args, cwd=folder, env=environment)


# In Python


@pytest.mark.parametrize(("word", "outcome"), [("done", "passed"), ("never", "failed")])
def test_a_grader_made_in_python_judges_the_runs_of_a_suite(
    word: str, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "own_agent", raising=False)

    class Local(Mentions):
        """Nobody could import it: it is taken as it is."""

    suite_file(tmp_path)
    suite = Suite(
        name="own",
        agents={"mine": PythonConfig(target="own_agent:answer")},
        cases=[Case(id="one", instruction="all")],
        graders=[Local(word=word)],
        file=tmp_path / "own.suite.yaml",
    )
    assert validate_suite(suite, grading="all") == []
    with open_store(tmp_path / "runs.db") as store:
        experiment = create_experiment(store, suite, variables={})
        tally = asyncio.run(launch(experiment, suite, store, variables={}))
        (run,) = store.whole_runs(experiment.experiment_id)
    assert dict(tally.outcomes) == {outcome: 1}
    assert (run.verdicts[0].outcome, run.verdicts[0].kind) == (outcome, Local.kind)
    assert experiment.suite["graders"] == [{"kind": Local.kind, "word": word}]


def test_a_suite_is_the_same_whether_a_grader_is_there_as_an_object_or_as_a_configuration() -> None:
    grader = Mentions(word="done", weight=2)
    as_object, as_config = Suite(graders=[grader]), Suite(graders=[grader_config(grader)])
    assert suite_hash(as_object, variables={}) == suite_hash(as_config, variables={})
    assert grader_config(grader) == {"kind": f"{__name__}:Mentions", "word": "done", "weight": 2}


def test_a_class_that_calls_itself_by_the_name_of_another_is_refused() -> None:
    class Contains(Mentions):
        kind: ClassVar[str] = "contains"

    class Unknown(Mentions):
        kind: ClassVar[str] = "mentions_nothing"

    for pretender in (Contains(word="x"), Unknown(word="x")):
        with pytest.raises(SeatrialError, match="under which it is not registered"):
            GradingPlan([pretender])
        (problem,) = validate_suite(
            Suite(
                agents={"a": PythonConfig(target="m:f")},
                cases=[Case(id="one", instruction="x")],
                graders=[pretender],
            ),
            grading="all",
        )
        assert "under which it is not registered" in problem.message


# What code of others may do


class Blocks(Mentions):
    def find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        while True:
            time.sleep(0.01)


class Gives(Grader):
    value: Any = None
    later: bool = False

    def prepare(self) -> Check:
        async def later(subject: Subject, surroundings: Surroundings) -> Finding:
            return self.value  # type: ignore[no-any-return]

        return Check(later if self.later else lambda subject, surroundings: self.value)


class Exits(Mentions):
    def find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        sys.exit(0)


def test_a_grader_that_changes_the_run_changes_it_for_nobody_else() -> None:
    given = subject("ok", steps=[Step(0, "delete_account", {})])

    async def judge() -> Verdict:
        (prepared,) = prepare_all(build_graders([Clears(word="x")]))
        found = prepared.judge(given, Surroundings())
        assert isinstance(found, Awaitable)
        return await found

    assert asyncio.run(judge()).outcome == "passed"
    assert (len(given.run.steps), given.case.tags) == (1, [])


def test_a_grader_that_never_returns_is_errored_at_its_time_limit() -> None:
    found = judged(Blocks(word="x", timeout_s=0.2))
    assert (found.outcome, found.code) == ("errored", "grader_timeout")
    assert "longer than 0.2 s" in found.reasons[0]


def test_a_grader_that_ends_the_process_costs_its_own_verdict_alone() -> None:
    found = judged(Exits(word="x"))
    assert (found.outcome, found.reasons) == ("errored", ["the grader raised SystemExit: 0"])


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (True, "passed"),
        (False, "failed"),
        (0.5, "failed"),
        ({"passed": True, "reason": "yes"}, "passed"),
        (None, "errored"),
        ("passed", "errored"),
        ([], "errored"),
        (2, "errored"),
        ({"outcome": "ok"}, "errored"),
        (float("nan"), "errored"),
    ],
)
def test_what_a_grader_gives_is_a_verdict_or_an_error(value: Any, outcome: str, later: bool) -> None:
    assert judged(Gives(value=value, later=later)).outcome == outcome


class Prepares(Mentions):
    def prepare(self) -> Check:
        if self.word == "raise":
            raise KeyError("oops")
        return True  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("word", "said"),
    [("raise", "`prepare` of the grader raised KeyError: 'oops'"), ("give", "must return a `Check`")],
)
def test_a_class_that_cannot_be_prepared_is_told_before_anything_runs(word: str, said: str) -> None:
    with pytest.raises(SeatrialError, match=said):
        GradingPlan([Prepares(word=word)])


class LongError(Exception):
    """Says as much as an exception may."""

    asked = 0

    def __str__(self) -> str:
        LongError.asked += 1
        return "x" * 20_000_000


class PreparesLong(Mentions):
    def prepare(self) -> Check:
        raise LongError


class FindsLong(Mentions):
    def find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        raise LongError


def test_what_the_exception_of_a_class_says_is_asked_for_once_and_cut() -> None:
    LongError.asked = 0
    with pytest.raises(SeatrialError) as caught:
        GradingPlan([PreparesLong(word="x")])
    assert "`prepare` of the grader raised" in caught.value.message
    assert len(caught.value.message) < 600
    found = judged(FindsLong(word="x"))
    assert (found.outcome, LongError.asked) == ("errored", 2)
    assert len(found.reasons[0]) < 600


class Asks(Grader):
    def prepare(self) -> Check:
        return Check(self.find, asks_model=True)

    async def find(self, subject: Subject, surroundings: Surroundings) -> Finding:
        assert surroundings.model is not None
        answer = await surroundings.model.complete([{"role": "user", "content": str(subject.answer)}])
        return passed_if(answer.text == "fine", answer.text)


def test_a_grader_can_ask_the_model_of_the_suite() -> None:
    model = ScriptedModel(["fine"])
    assert judged(Asks(), surroundings=Surroundings(model=model)).outcome == "passed"
    assert model.asked == [[{"role": "user", "content": "done"}]]


def test_what_a_grader_asks_the_model_of_the_suite_is_counted() -> None:
    answer = Completion(text="fine", model="m", input_tokens=3, output_tokens=2, cost_usd=0.5)
    found = judged(Asks(), surroundings=Surroundings(model=ScriptedModel([answer])))
    assert (found.cost_usd, found.tokens) == (0.5, 5)
    found = judged(Asks(), surroundings=Surroundings(model=ScriptedModel([SeatrialError("model_failed", "down")])))
    assert (found.outcome, found.cost_usd, found.least_cost_usd) == ("errored", None, 0)


# Verdicts are known by their content: those of code that may have changed are not


class Versioned(Mentions):
    version: ClassVar[int] = 3


@pytest.mark.parametrize(("kind", "reused"), [(Mentions, False), (Versioned, True)])
def test_verdicts_of_a_class_are_reused_only_when_it_has_a_version(kind: type[Mentions], reused: bool) -> None:
    (prepared,) = prepare_all([kind(word="x")])
    assert bool(prepared.key(b"content", Surroundings())) is reused
    composite = {"kind": "composite", "graders": [{"kind": f"{__name__}:{kind.__name__}", "word": "x"}]}
    (around,) = prepare_all(build_graders([composite]))
    assert bool(around.key(b"content", Surroundings())) is reused


def test_two_classes_of_one_name_in_two_modules_have_verdicts_of_their_own() -> None:
    class Versioned(Mentions):
        version: ClassVar[int] = 3

    (one,), (other,) = prepare_all([Versioned(word="x")]), prepare_all([globals()["Versioned"](word="x")])
    assert one.key(b"content", Surroundings()) != other.key(b"content", Surroundings())


# In a suite file


@pytest.mark.parametrize(("word", "code"), [("done", 0), ("never", 1)])
def test_a_class_beside_the_suite_judges_and_is_graded_again(word: str, code: int, tmp_path: Path) -> None:
    file = suite_file(tmp_path, {"kind": "own_checks:Mentions", "word": word, "name": "mine"})
    ran = seatrial(tmp_path, "run", file.name, "--quiet")
    assert ran.returncode == code, ran.stderr
    again = seatrial(tmp_path, "grade", "latest", "--json")
    assert again.returncode == code, again.stderr
    assert json.loads(again.stdout)["computed"] == 1  # its code may have changed
    assert seatrial(tmp_path, "report", "latest").returncode in (0, 1)


def test_a_class_that_is_gone_when_runs_are_graded_again_is_a_clear_error(tmp_path: Path) -> None:
    file = suite_file(tmp_path, {"kind": "own_checks:Mentions", "word": "done"})
    assert seatrial(tmp_path, "run", file.name, "--quiet").returncode == 0
    (tmp_path / "own_checks.py").unlink()
    again = seatrial(tmp_path, "grade", "latest")
    assert again.returncode == 2
    assert "the grader class `own_checks` cannot be imported: ModuleNotFoundError" in again.stderr
    assert "install it, or let it be importable" in again.stderr
    # What was found before still stands, and can be shown.
    assert seatrial(tmp_path, "report", "latest").returncode == 0


def test_a_class_of_a_single_case_that_is_gone_makes_the_run_errored(tmp_path: Path) -> None:
    file = suite_file(tmp_path, {"kind": "contains", "value": "done"})
    suite = json.loads(file.read_text())
    suite["cases"][0]["graders"] = [{"kind": "own_checks:Mentions", "word": "done"}]
    suite["judge"] = None
    file.write_text(json.dumps(suite))
    assert seatrial(tmp_path, "run", file.name, "--quiet").returncode == 0
    (tmp_path / "own_checks.py").unlink()
    again = seatrial(tmp_path, "grade", "latest", "--skip-judges")
    assert again.returncode == 3
    assert "1 errored" in again.stdout


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"kind": "own_checks:Mentoins", "word": "x"}, "has no `Mentoins` (did you mean `Mentions`?)"),
        ({"kind": "nowhere_at_all:Mentions"}, "the grader class `nowhere_at_all` cannot be imported"),
        ({"kind": "own_checks:passed_if"}, "`own_checks:passed_if` is not a subclass of `seatrial.graders.Grader`"),
        ({"kind": "own_checks:Mentions"}, "the key `word` is missing"),
        ({"kind": "own_checks:Mentions", "wrod": "x"}, "unknown key `wrod` (did you mean `word`?)"),
        ({"kind": "own_checks:Mentions", "word": 3}, "`word` must be text, not a whole number"),
        ({"kind": "contians", "value": "x"}, "unknown kind `contians` (did you mean `contains`?)"),
    ],
)
def test_what_is_wrong_with_a_class_is_told_with_its_place(config: dict[str, Any], said: str, tmp_path: Path) -> None:
    file = suite_file(tmp_path, config)
    ran = seatrial(tmp_path, "run", file.name)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert f"{file.name}:1:" in ran.stderr


def test_no_code_of_the_suite_runs_when_it_is_only_read(tmp_path: Path) -> None:
    file = suite_file(tmp_path, {"kind": "own_checks_not_run:Mentions", "word": "x", "anything": 1})
    (tmp_path / "own_checks_not_run.py").write_text("raise SystemExit('it was run')")
    load_suite(file, variables={})
    wrong = suite_file(tmp_path, {"kind": "own_checks_not_run:Mentions", "weight": "heavy"})
    with pytest.raises(InvalidSuiteError, match="`weight` must be a number"):
        load_suite(wrong, variables={})


# From an installed package

PACKAGE = MODULE.replace("class Mentions", '@grader("mentions")\nclass Mentions').replace(
    "import Check", "import grader, Check"
)


def test_an_installed_package_offers_kinds_by_name(tmp_path: Path) -> None:
    site = install(tmp_path / "site", "checks", {"checks": MODULE}, {"seatrial.graders": {"says": "checks:Mentions"}})
    file = suite_file(tmp_path, {"kind": "says", "word": "done"})
    ran = seatrial(tmp_path, "run", file.name, "--quiet", path=site)
    assert ran.returncode == 0, ran.stderr
    assert seatrial(tmp_path, "grade", "latest", path=site).returncode == 0
    gone = seatrial(tmp_path, "grade", "latest")
    assert (gone.returncode, "unknown kind of grader 'says'" in gone.stderr) == (2, True)
    assert '"const": "says"' in seatrial(tmp_path, "schema", "suite", path=site).stdout


def test_an_entry_point_and_a_decorator_may_agree(tmp_path: Path) -> None:
    offers = {"seatrial.graders": {"mentions": "checks:Mentions"}}
    site = install(tmp_path / "site", "checks", {"checks": PACKAGE}, offers)
    file = suite_file(tmp_path, {"kind": "mentions", "word": "done"}, {"kind": "checks:Mentions", "word": "done"})
    ran = seatrial(tmp_path, "run", file.name, "--quiet", path=site)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", ["contains", "says"])
def test_a_name_that_two_packages_claim_is_an_error_where_it_is_used(name: str, tmp_path: Path) -> None:
    for package in ("checks", "more_checks"):
        offers = {"seatrial.graders": {"says": f"{package}:Mentions", "contains": f"{package}:Mentions"}}
        install(tmp_path / "site", package, {package: MODULE}, offers)
    file = suite_file(tmp_path, {"kind": name, "word": "done"})
    ran = seatrial(tmp_path, "run", file.name, path=tmp_path / "site")
    assert ran.returncode == 2
    assert f"the name '{name}' is taken" in ran.stderr
    assert "checks 1.0" in ran.stderr
    assert "more_checks 1.0" in ran.stderr
    unrelated = suite_file(tmp_path, {"kind": "ends_with", "value": "done"})
    assert seatrial(tmp_path, "run", unrelated.name, "--quiet", path=tmp_path / "site").returncode == 0


def test_every_kind_of_seatrial_is_called_as_it_is_registered() -> None:
    assert {name: kind.kind for name, kind in GRADERS.built_in().items()} == {name: name for name in GRADERS.built_in()}
