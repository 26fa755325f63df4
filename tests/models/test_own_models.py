"""Models that are not behind our client: a kind of one's own in a suite, and a model as an object."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from strategies import command
from strategies.plugin import install

from seatrial.errors import SeatrialError
from seatrial.graders import ChatModel
from seatrial.models import MODELS, ModelConfig, ModelKind, ScriptedModel, open_model
from seatrial.runs import Case
from seatrial.suites import PythonConfig, Suite, stored_form, stored_suite, validate_suite

MODULE = textwrap.dedent(
    """
    from contextlib import asynccontextmanager
    from seatrial.models import ModelKind, ScriptedModel

    class Local(ModelKind):
        verdict: bool
        token: str = ""

        @asynccontextmanager
        async def open(self):
            ballot = {"outcome_met": self.verdict, "criteria": {}, "reasoning": "because", "evidence": []}
            yield ScriptedModel(lambda messages: ballot, name="local")
    """
)
JUDGE = {"kind": "judge"}


class Local(ModelKind):
    word: str = "yes"

    def open(self) -> AbstractAsyncContextManager[ChatModel]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[ChatModel]:
            yield ScriptedModel([self.word])

        return opened()


def seatrial(folder: Path, *args: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": "" if path is None else str(path), "SECRET": "s3cret-value"}
    return command.seatrial(*args, cwd=folder, env=environment)


def write_suite(folder: Path, judge: dict[str, Any]) -> None:
    (folder / "judged_agent.py").write_text("def answer(instruction):\n    return instruction\n")
    suite = {
        "agents": {"mine": {"kind": "python", "target": "judged_agent:answer"}},
        "cases": [{"id": "one", "instruction": "hello", "expected_outcome_detail": "it greets"}],
        "graders": [JUDGE],
        "judge": judge,
    }
    (folder / "s.suite.yaml").write_text(json.dumps(suite))


@pytest.mark.parametrize(("verdict", "code"), [(True, 0), (False, 1)])
def test_a_model_class_beside_the_suite_is_asked(verdict: bool, code: int, tmp_path: Path) -> None:
    (tmp_path / "local_model.py").write_text(MODULE)
    write_suite(tmp_path, {"kind": "local_model:Local", "verdict": verdict, "token": "${SECRET}"})
    ran = seatrial(tmp_path, "run", "s.suite.yaml", "--quiet")
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert seatrial(tmp_path, "grade", "latest").returncode == code
    (tmp_path / "local_model.py").unlink()
    gone = seatrial(tmp_path, "grade", "latest")
    assert (gone.returncode, "`local_model` cannot be imported" in gone.stderr) == (2, True)


def test_an_installed_kind_of_model_is_asked_by_its_name(tmp_path: Path) -> None:
    offers = {"seatrial.models": {"local": "local_model:Local"}}
    site = install(tmp_path / "site", "local_model", {"local_model": MODULE}, offers)
    write_suite(tmp_path, {"kind": "local", "verdict": True})
    assert seatrial(tmp_path, "run", "s.suite.yaml", "--quiet", path=site).returncode == 0
    without = seatrial(tmp_path, "run", "s.suite.yaml", "--quiet")
    assert (without.returncode, "unknown kind `local`" in without.stderr) == (2, True)


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ({"kind": "opneai", "model": "m"}, "unknown kind `opneai` (did you mean `openai`?)"),
        ({"kind": "local_model:Local"}, "the key `verdict` is missing"),
        ({"kind": "local_model:Local", "verdict": True, "url": "x"}, "unknown key `url`"),
        ({"kind": "local_model:Local", "verdict": True, "token": "plain"}, "`token` holds a secret"),
        ({"kind": "local_model:Local", "verdict": True, "token": "${NOT_SET}"}, "`NOT_SET` is not set"),
        ({"kind": "local_model:ScriptedModel"}, "is not a subclass of `seatrial.models.ModelKind`"),
        ({"kind": "openai", "model": "m"}, "the key `base_url` is missing"),
    ],
)
def test_what_is_wrong_with_a_judge_is_told_before_anything_runs(
    judge: dict[str, Any], said: str, tmp_path: Path
) -> None:
    (tmp_path / "local_model.py").write_text(MODULE)
    write_suite(tmp_path, judge)
    ran = seatrial(tmp_path, "run", "s.suite.yaml")
    assert ran.returncode == 2
    assert said in ran.stderr


@pytest.mark.parametrize("judge", [ScriptedModel(["x"]), Local(), ModelConfig(model="m", base_url="http://x")])
def test_a_suite_made_in_python_takes_a_model_or_a_configuration(judge: Any) -> None:
    suite = Suite(
        agents={"a": PythonConfig(target="m:f")},
        cases=[Case(id="one", instruction="x", expected_outcome_detail="y")],
        graders=[JUDGE],
        judge=judge,
    )
    assert validate_suite(suite, variables={}, grading="all", import_graders=True) == []
    again = stored_suite(stored_form(suite))
    assert again.judge is not None
    assert stored_form(again)["judge"] == stored_form(suite)["judge"]
    if isinstance(judge, ScriptedModel):
        assert open_model(judge) is not None
        with pytest.raises(SeatrialError, match="is not a subclass of"):
            open_model(again.judge)


def test_our_own_kind_may_be_named() -> None:
    judge = {"kind": "openai", "model": "m", "base_url": "http://x"}
    assert "ModelClient" in repr(open_model(judge))
    assert MODELS["openai"] is ModelConfig


def test_a_test_gives_its_judge_a_script(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from seatrial.models import ScriptedModel

        def ballot(met):
            return {"outcome_met": met, "criteria": {}, "reasoning": "because", "evidence": []}

        @pytest.mark.parametrize("met", [True, False])
        def test_judged(seatrial, met):
            model = ScriptedModel([ballot(met)])
            outcome = seatrial.run(
                lambda: "hello", "hi", expected_outcome_detail="it greets",
                graders=[{"kind": "judge"}], judge=model, check=False,
            )
            assert outcome.passed is met
            assert len(model.asked) == 1
        """
    )
    others = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "schemathesis", "faker", "anyio")]
    pytester.runpytest(*others).assert_outcomes(passed=2)


pytest_plugins = ["pytester"]
