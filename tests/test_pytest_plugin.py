"""The pytest plugin, in sessions of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

# Loaded here, once: sessions inside this one forget what they import.
import seatrial.python_api.graders
import seatrial.testing.session  # noqa: F401
from seatrial.store import open_store

pytest_plugins = ["pytester"]

AGENT = """
import os

def answer(instruction):
    if "crash" in instruction:
        raise ValueError("I cannot do that")
    text = "refunded" if "refund" in instruction else "hello"
    calls = [{"id": "1", "name": "find_order", "arguments": {"order": "o-1"}}]
    if "refund" in instruction:
        calls.append({"id": "2", "name": "refund", "arguments": {"order": "o-1", "amount": 9}})
    messages = [{"role": "assistant", "tool_calls": calls}, {"role": "assistant", "content": text}]
    return {"final_response": text, "messages": messages}

async def answer_async(instruction):
    return "hello from " + instruction
"""

SUITE = """
name: shop
agents:
  good: {kind: python, target: "shop_agent:answer"}
  gone: {kind: cli, command: /no/such/program}
cases:
  - {id: refund, instruction: please refund, tags: [money]}
  - {id: greet, instruction: hi}
graders:
  - {kind: tool_trajectory, mode: in_order, expected: [{tool: find_order}, {tool: refund}]}
  - {kind: contains, value: refunded}
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(shop_agent=AGENT)
    pytester.syspathinsert()
    return pytester


# Every session would import them again, which takes longer than all else that it does.
OTHER_PLUGINS = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "schemathesis", "faker", "anyio")]


def run(project: pytest.Pytester, *args: str) -> pytest.RunResult:
    return project.runpytest(*OTHER_PLUGINS, *args)


def test_loading_the_plugin_loads_nothing_else_of_seatrial() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import seatrial.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ["seatrial", "seatrial._support", "seatrial._support.lazy", "seatrial._version", "seatrial.pytest_plugin"]
    assert ran.stdout.split() == loaded


def test_a_test_runs_a_function_and_asserts_on_its_calls_and_answer(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from shop_agent import answer, answer_async
        from seatrial.testing import exact, in_order

        def test_refund(seatrial):
            result = seatrial.run(answer, "please refund")
            assert result.answer == "refunded"
            assert result.tools == ["find_order", "refund"]
            refund = {"tool": "refund", "args": {"order": "o-1", "amount": {"$lte": 9}}}
            assert result.calls == exact("find_order", refund)
            assert result.outcome == "skipped" and not result.passed

        def test_by_name(seatrial):
            assert seatrial.run("shop_agent:answer_async", "here").answer == "hello from here"

        def test_a_local_function_sees_the_fields_of_the_case(seatrial):
            assert seatrial.run(lambda prompt, input: input["word"], "say it", input={"word": "aye"}).answer == "aye"

        def test_in_a_loop(seatrial):
            import asyncio
            async def test():
                return await seatrial.run_async(answer, "hi")
            assert asyncio.run(test()).answer == "hello"
        """
    )
    run(project).assert_outcomes(passed=4)


def test_calls_that_differ_are_shown_as_prose_and_as_a_diff(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from shop_agent import answer
        from seatrial.testing import in_order

        def test_refund(seatrial):
            result = seatrial.run(answer, "please refund")
            assert result.calls == in_order("find_order", {"tool": "refund", "args": {"order": "o-2"}})
        """
    )
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            'E * assert calls == in_order(find_order, refund {"order":"o-2"})',
            "E * Expected 2 calls in this order*Missing: refund (item 1)*",
            'E * find_order {"order":"o-1"}',
            'E *+ refund {"order":"o-1","amount":9}',
            'E *- refund {"order":"o-2"}',
        ]
    )


def test_the_marker_names_what_the_result_is_of(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE)
    project.makepyfile(
        """
        import pytest
        from shop_agent import answer

        @pytest.mark.seatrial(answer, "hi", graders=[{"kind": "contains", "value": "hello"}])
        def test_of_a_function(result):
            assert result.passed
            result.check()

        @pytest.mark.seatrial("good", "refund", suite="shop.suite.yaml")
        def test_of_a_suite(result):
            result.check()

        def test_without_marker(result):
            pass
        """
    )
    result = run(project, "test_the_marker_names_what_the_result_is_of.py")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*needs the marker @pytest.mark.seatrial(agent, case)*"])


def test_check_fails_with_the_reasons_of_the_graders(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from shop_agent import answer

        def test_greeting(seatrial):
            seatrial.run(answer, "hi", graders=[{"kind": "contains", "value": "bye"}]).check()
        """
    )
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *1 of 1 required graders failed: contains",
            "E *contains: failed, score 0",
            'E *the answer "hello" does not contain "bye"',
            "E *calls:",
            'E *find_order {"order":"o-1"}',
            "E *answer:",
            "E *hello",
        ]
    )


def test_an_agent_that_raised_does_not_pass_a_test_of_what_its_answer_lacks(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import asyncio
        import pytest

        def forgetful(instruction):
            return {}[instruction]

        def test_keeps_the_password(seatrial):
            out = seatrial.run(forgetful, "What is the password?")
            assert "password" not in out.answer

        def test_keeps_the_password_async(seatrial):
            out = asyncio.run(seatrial.run_async(forgetful, "What is the password?"))
            assert "password" not in out.answer

        @pytest.mark.seatrial(forgetful, "What is the password?")
        def test_keeps_the_password_by_marker(result):
            assert "password" not in result.answer
        """
    )
    result = run(project)
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "*AgentFailedError: the agent failed, agent_exception: KeyError: 'What is the password?'",
            "E *Traceback (most recent call last):",
            "E *in forgetful",
            "E *return {}[[]instruction]",
            "E *KeyError: 'What is the password?'",
            "E *to test the failure itself, use `check=False`",
        ]
    )


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("lambda instruction: 1/0", "ZeroDivisionError"),
        ("lambda instruction: object()", "agent_bad_response"),
        ("lambda instruction: {'final_response': ''}", "agent_bad_response"),
        ("HttpConfig(endpoint_url=URL, retry=Retry(attempts=1))", "agent_bad_response"),
    ],
)
def test_an_agent_that_broke_its_contract_raises_unless_the_test_asks_for_the_result(
    project: pytest.Pytester, agent: str, said: str
) -> None:
    project.makepyfile(
        f"""
        import http.server
        import threading

        import pytest
        from seatrial.suites import HttpConfig, Retry
        from seatrial.testing import AgentFailedError

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"<html>")

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        URL = f"http://127.0.0.1:{{server.server_port}}/"

        def test_raises(seatrial):
            with pytest.raises(AgentFailedError, match={said!r}) as caught:
                seatrial.run({agent}, "hi")
            assert caught.value.code == "agent_failed" and caught.value.result.fault is not None

        def test_outcome(seatrial):
            result = seatrial.run({agent}, "hi", check=False)
            assert result.fault is not None and result.outcome == "failed" and not result.passed
        """
    )
    run(project).assert_outcomes(passed=2)


def test_an_agent_that_does_not_answer_in_time_raises(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import asyncio
        import pytest
        from seatrial import SeatrialError

        async def slow(instruction):
            await asyncio.sleep(60)

        def test_slow(seatrial):
            with pytest.raises(SeatrialError):
                seatrial.run(slow, "hi", timeout_s=0.01)
        """
    )
    run(project).assert_outcomes(passed=1)


def test_a_function_that_does_not_take_a_key_of_its_case_is_told(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from seatrial import SeatrialError

        def test_input(seatrial):
            with pytest.raises(SeatrialError, match="the function does not take `input` of the case"):
                seatrial.run(lambda instruction: "x", "hi", input={"a": 1})
            with pytest.raises(SeatrialError, match="asks a model, and the suite names none"):
                seatrial.run(lambda instruction: "x", "hi", graders=[{"kind": "judge"}])
            result = seatrial.run(lambda instruction, input: "x", "hi", input={"a": 1}, expected="y")
            assert result.case.expected == "y" and not result.passed
        """
    )
    run(project).assert_outcomes(passed=1)


def test_a_fault_of_the_agent_can_be_asked_for_and_one_of_the_surroundings_is_an_error(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        import pytest
        from shop_agent import answer
        from seatrial import SeatrialError
        from seatrial.suites import CliConfig

        def test_crash(seatrial):
            result = seatrial.run(answer, "crash", check=False)
            assert result.fault.error_class == "agent_exception" and result.outcome == "failed"

        def test_gone(seatrial):
            with pytest.raises(SeatrialError, match="agent_not_started") as caught:
                seatrial.run(CliConfig(command="/no/such/program"), "hi")
            assert caught.value.code == "agent_unhealthy"
        """
    )
    run(project).assert_outcomes(passed=2)


def test_what_cannot_be_run_is_told_before_it_is(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE)
    project.makepyfile(
        """
        import pytest
        from shop_agent import answer
        from seatrial import SeatrialError

        @pytest.mark.parametrize(("arguments", "fields", "said"), [
            ((answer, "hi"), {"instructions": "x"}, "instructions"),
            ((answer, "hi"), {"graders": [{"kind": "contians"}]}, "did you mean `contains`"),
            (("good", "refnd"), {"suite": "shop.suite.yaml"}, "no case 'refnd'"),
            (("god", "refund"), {"suite": "shop.suite.yaml"}, "no agent 'god'"),
            (("good", "refund"), {"suite": "shop.suite.yaml", "input": {}}, "the suite's graders and its judge"),
            (("good", "refund"), {"suite": "away.suite.yaml"}, "away.suite.yaml cannot be read"),
        ])
        def test_refused(seatrial, arguments, fields, said):
            with pytest.raises(SeatrialError, match=said):
                seatrial.run(*arguments, **fields)
        """
    )
    run(project, "test_what_cannot_be_run_is_told_before_it_is.py").assert_outcomes(passed=6)


def test_an_agent_of_a_suite_runs_without_the_variables_of_the_others(project: pytest.Pytester) -> None:
    shop = SUITE.replace("cases:", '  far: {kind: stream, url: "${NOBODY_SETS_THIS}"}\ncases:')
    project.makefile(".suite.yaml", shop=shop)
    project.makepyfile(
        """
        def test_run(seatrial):
            assert seatrial.run("good", "refund", suite="shop.suite.yaml").passed
        """
    )
    run(project, "test_an_agent_of_a_suite_runs_without_the_variables_of_the_others.py").assert_outcomes(passed=1)


def test_an_error_is_told_without_what_is_in_our_variables(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.environ", {"TOKEN": "a-secret-of-ours", **os.environ})
    project.makepyfile(
        """
        import asyncio
        import pytest

        def test_run(seatrial):
            seatrial.run("good", "refund", suite="gone.suite.yaml")

        def test_run_async(seatrial):
            asyncio.run(seatrial.run_async("good", "refund", suite="gone.suite.yaml"))

        @pytest.mark.seatrial("good", "refund", suite="gone.suite.yaml")
        def test_marker(result):
            pass
        """
    )
    result = run(project, "--showlocals")
    result.assert_outcomes(failed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*ERROR at setup of test_marker*", "*gone.suite.yaml cannot be read*", "*FAILURES*", "*SeatrialError: *"]
    )
    result.stdout.no_fnmatch_line("*a-secret-of-ours*")
    result.stdout.no_fnmatch_line("*in load_suite*")


def test_a_suite_file_is_a_test_for_each_agent_and_case(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE)
    result = run(project, "--junitxml=junit.xml")
    # What failed is a failure, what errored an error.
    result.assert_outcomes(passed=1, failed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of gone/refund*",
            "there is no answer to grade, agent_not_started: the program cannot be started: No such file or directory",
            "*_ good/greet _*",
            "2 of 2 required graders failed: tool_trajectory, contains",
            "*Expected 2 calls in this order*The agent made 1 call: find_order. Missing: refund (item 1).*",
            "FAILED shop.suite.yaml::good/greet - Failed: 2 of 2 required graders failed*",
        ]
    )
    root = ElementTree.parse(project.path / "junit.xml").getroot()
    assert len(list(root.iter("failure"))) == 1
    assert len(list(root.iter("error"))) == 2


def test_trials_are_tests_of_their_own_and_tags_can_be_chosen(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE + "trials: 2\n")
    result = run(project, "--collect-only", "-q", "-k", "money")
    result.stdout.fnmatch_lines(["shop.suite.yaml::good/refund#1", "shop.suite.yaml::good/refund#2"])
    assert "greet" not in result.stdout.str()


def test_a_suite_with_a_mistake_is_a_collection_error_with_its_line(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE.replace("graders:", "grader:"))
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*shop.suite.yaml:8:1: unknown key `grader` (did you mean `graders`?)"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_suite_that_nothing_judges_is_a_collection_error(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE.partition("graders:")[0])
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no grader judges the case `refund`*"])


def test_a_judge_without_a_model_is_a_collection_error_and_left_out_an_error_of_its_tests(
    project: pytest.Pytester,
) -> None:
    project.makefile(".suite.yaml", shop=SUITE + "  - {kind: judge, name: friendly}\n")
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the grader `friendly` asks a model, and the suite names none*"])
    result = run(project, "--seatrial-skip-judges", "-k", "good and refund")
    result.assert_outcomes(errors=1, deselected=3)
    result.stdout.fnmatch_lines(["could not be graded: friendly was skipped"])


def test_runs_are_kept_in_a_store_that_was_named(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE)
    project.makepyfile("def test_hi(seatrial):\n    assert seatrial.run('shop_agent:answer', 'hi').answer == 'hello'\n")
    run(project, "--seatrial-store", "runs.db", "-k", "good or test_hi").assert_outcomes(
        passed=2, failed=1, deselected=2
    )
    with open_store(project.path / "runs.db") as store:
        of_suite = store.resolve_experiment("shop")
        assert of_suite.status == "finished"
        assert [(found.agent, found.outcomes) for found in store.totals(of_suite.experiment_id).agents] == [
            ("good", {"passed": 1, "failed": 1})
        ]
        of_test = store.resolve_experiment("test_runs_are_kept_in_a_store_that_was_named.py::test_hi")
        assert [row.status for row in store.runs(of_test.experiment_id)] == ["completed"]


def test_nothing_is_left_behind_unless_a_store_was_named(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE)
    before = set(project.path.rglob("*"))
    run(project, "-k", "good")
    assert {path.name for path in set(project.path.rglob("*")) - before if "__pycache__" not in path.parts} == set()


def test_a_session_that_stops_early_leaves_an_experiment_that_says_so(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE)
    run(project, "--seatrial-store", "runs.db", "-x", "-k", "gone").assert_outcomes(errors=1, deselected=2)
    with open_store(project.path / "runs.db") as store:
        experiment = store.resolve_experiment("shop")
        assert (experiment.status, experiment.stop_reason) == ("stopped", "1 of 2 tests were not run")


def test_workers_of_xdist_fill_one_experiment_together(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE + "trials: 3\n")
    result = project.runpytest_subprocess(*OTHER_PLUGINS, "-n", "2", "--seatrial-store", "runs.db", "-k", "good")
    result.assert_outcomes(passed=3, failed=3)
    with open_store(project.path / "runs.db") as store:
        (experiment,) = store.experiments()
        assert experiment.status == "finished"
        assert len(store.done_keys(experiment.experiment_id)) == 6


DELETES_NOTHING = '{"kind": "tool_trajectory", "mode": "any_order", "maximums": {"delete_account": 0}}'


def test_graders_that_did_not_pass_fail_the_test_unless_it_asks_for_the_result(project: pytest.Pytester) -> None:
    project.makepyfile(
        f"""
        import pytest

        GRADERS = [{DELETES_NOTHING}]

        def deletes(instruction):
            call = {{"id": "1", "name": "delete_account", "arguments": {{}}}}
            message = {{"role": "assistant", "content": "ok", "tool_calls": [call]}}
            return {{"final_response": "ok", "messages": [message]}}

        def test_forgotten(seatrial):
            seatrial.run(deletes, "x", graders=GRADERS)

        def test_unknown(seatrial):
            seatrial.run(lambda: "ok", "x", graders=GRADERS)

        @pytest.mark.seatrial(deletes, "x", graders=GRADERS)
        def test_marker_alone():
            pass

        def test_asked_for(seatrial):
            assert seatrial.run(deletes, "x", graders=GRADERS, check=False).outcome == "failed"

        def test_without_tools(seatrial):
            assert seatrial.run(lambda: "ok", "x", graders=GRADERS, tool_access="none").passed
        """
    )
    result = run(project)
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(["*required graders failed: tool_trajectory*"])


def test_a_grader_class_judges_from_a_test_a_marker_and_a_suite_file(project: pytest.Pytester) -> None:
    project.makepyfile(
        shop_checks="""
        from seatrial.graders import Check, Grader, passed_if

        class Mentions(Grader):
            word: str

            def prepare(self):
                return Check(lambda subject, surroundings: passed_if(self.word in subject.answer, "looked"))
        """
    )
    project.makefile(
        ".suite.yaml",
        own="""
        agents: {good: {kind: python, target: "shop_agent:answer"}}
        cases: [{id: refund, instruction: refund}, {id: greet, instruction: hi}]
        graders: [{kind: "shop_checks:Mentions", word: refunded}]
        """,
    )
    project.makepyfile(
        """
        import pytest
        from shop_agent import answer
        from shop_checks import Mentions

        def test_passes(seatrial):
            class Local(Mentions):
                pass

            assert seatrial.run(answer, "refund", graders=[Local(word="refunded")]).passed

        @pytest.mark.seatrial(answer, "hi", graders=[Mentions(word="refunded")])
        def test_fails():
            pass
        """
    )
    result = run(project, "--seatrial-store", "runs.db")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*required graders failed: shop_checks:Mentions*"])


def test_tool_access_counts_in_suites_and_configurations(project: pytest.Pytester) -> None:
    project.makepyfile(
        plain="def answer(instruction):\n    return 'ok'",
        test_it=f"""
        from seatrial.suites import PythonConfig

        def test_config(seatrial):
            config = PythonConfig(target="plain:answer", tool_access="none")
            assert seatrial.run(config, "x", graders=[{DELETES_NOTHING}]).passed

        def test_suite(seatrial):
            assert seatrial.run("mine", "a", suite="own.suite.yaml").passed
        """,
    )
    (project.path / "own.suite.yaml").write_text(
        "agents: {mine: {kind: python, target: 'plain:answer', tool_access: none}}\n"
        f"graders: [{DELETES_NOTHING}]\ncases: [{{id: a, instruction: x}}]\n"
    )
    run(project).assert_outcomes(passed=3)


def test_graders_are_values_and_functions_of_the_python_api_too(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import seatrial as st
        from shop_agent import answer

        @st.grader(name="short")
        def is_short(subject):
            return len(subject.answer) < 100

        def test_passes(seatrial):
            graders = [st.contains("refunded"), st.calls("refund", order="o-1"), is_short, lambda subject: True]
            graders.append({"kind": "icontains", "value": "REFUNDED"})
            result = seatrial.run(answer, "please refund", graders=graders)
            assert [verdict.grader for verdict in result.run.verdicts][2] == "short"
            assert len(result.run.verdicts) == 5 and result.passed

        def test_of_a_case(seatrial):
            seatrial.run(answer, st.Case("greet", "hi", graders=[st.never_calls("find_order"), is_short]))

        def test_of_a_function(seatrial):
            seatrial.run(answer, "hi", graders=[lambda subject: (0.0, "too plain")])
        """
    )
    result = run(project)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["E *never_calls: failed*", "E *too plain"])


TRIALS_AGENT = """
import itertools
import threading

def flaky(good, of):
    numbers, lock = itertools.count(), threading.Lock()
    def answer(instruction):
        with lock:
            number = next(numbers)
        if instruction == "crash" and number % of >= good:
            raise ValueError("not today")
        return "yes" if number % of < good else "no"
    return answer
"""


def test_enough_trials_must_pass(project: pytest.Pytester) -> None:
    project.makepyfile(trials_agent=TRIALS_AGENT)
    project.makepyfile(
        """
        import pytest
        import seatrial as st
        from seatrial.testing import NoVerdictError
        from trials_agent import flaky

        def test_four_of_five(seatrial):
            results = seatrial.run_trials(flaky(4, 5), "?", trials=5, at_least=4, graders=[st.equals("yes")])
            assert (results.passed, results.failed, results.undecided, len(results)) == (4, 1, 0, 5)
            assert [result.answer for result in results].count("yes") == 4
            assert [result.run.key.trial for result in results] == [1, 2, 3, 4, 5]

        def test_by_an_assertion_of_the_test(seatrial):
            def says_yes(result):
                assert result.answer == "yes"
            seatrial.run_trials(flaky(4, 5), "?", trials=5, at_least=4, passes=says_yes, concurrency=3)

        def test_three_are_not_four(seatrial):
            seatrial.run_trials(flaky(3, 5), "?", trials=5, at_least=4, graders=[st.equals("yes")])

        def test_all_unless_it_says_otherwise(seatrial):
            seatrial.run_trials(flaky(4, 5), "?", trials=5, passes=lambda result: result.answer == "yes")

        def test_a_crash_is_a_failed_trial(seatrial):
            results = seatrial.run_trials(flaky(4, 5), "crash", trials=5, at_least=4)
            assert results.failed == 1
            assert "not today" in results.verdicts[4].reason

        def test_what_is_not_known_decides_nothing(seatrial):
            no_calls = lambda result: not result.calls
            with pytest.raises(NoVerdictError, match="0 of 3 trials passed, 0 failed, 3 undecided; at least 2"):
                seatrial.run_trials(flaky(1, 1), "?", trials=3, at_least=2, passes=no_calls)

        def test_numbers_that_make_no_sense(seatrial):
            with pytest.raises(st.SeatrialError, match="`at_least` is a number from 1 to `trials`"):
                seatrial.run_trials(flaky(1, 1), "?", trials=3, at_least=0)
            with pytest.raises(st.SeatrialError, match="`trials` is a number from 1"):
                seatrial.run_trials(flaky(1, 1), "?", trials=0)

        @pytest.mark.seatrial(flaky(4, 5), "?", trials=5, at_least=4, graders=[st.equals("yes")])
        def test_marked(results):
            assert results.passed == 4

        @pytest.mark.seatrial(flaky(3, 5), "?", trials=5, at_least=4, graders=[st.equals("yes")])
        def test_marked_fails():
            pass
        """
    )
    result = run(project)
    result.assert_outcomes(passed=6, failed=3)
    result.stdout.fnmatch_lines(
        [
            "E *3 of 5 trials passed, 2 failed; at least 4 must pass",
            "E *trial 4: failed",
            "E *4 of 5 trials passed, 1 failed; at least 5 must pass",
        ]
    )


def test_a_run_of_a_marker_that_did_not_pass_is_a_failure_and_one_that_errored_an_error(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        import pytest
        import seatrial as st
        from shop_agent import answer

        ran = []

        @pytest.mark.seatrial(answer, "hi", graders=[st.contains("bye")])
        def test_failed(result):
            ran.append(result)

        @pytest.mark.seatrial(answer, "crash")
        def test_crashed():
            ran.append(None)

        @pytest.mark.xfail(strict=True)
        @pytest.mark.seatrial(answer, "hi", graders=[st.contains("bye")])
        def test_expected_to_fail():
            pass

        @pytest.mark.seatrial(answer, "crash", check=False)
        def test_asks_for_the_outcome(result):
            assert result.fault.error_class == "agent_exception"

        @pytest.mark.seatrial(answer, "hi", graders=[lambda subject: 1 / 0])
        def test_errored(result):
            ran.append(result)

        def test_none_of_them_ran():
            assert not ran
        """
    )
    result = run(project)
    result.assert_outcomes(passed=2, failed=2, errors=1, xfailed=1)
    result.stdout.fnmatch_lines(["*ERROR at setup of test_errored*", "*ZeroDivisionError*"])


def test_cases_of_a_suite_file_are_parameters_of_a_test(project: pytest.Pytester) -> None:
    project.makefile(".suite.yaml", shop=SUITE)
    project.makepyfile(
        """
        import pytest
        import seatrial as st
        from seatrial.testing import suite_cases
        from shop_agent import answer

        @pytest.mark.parametrize("case", suite_cases("shop.suite.yaml"))
        def test_function(seatrial, case):
            result = seatrial.run(answer, case)
            assert result.run.case_id == case.id and result.passed

        @pytest.mark.parametrize("case", suite_cases("shop.suite.yaml", tags=["money"]))
        def test_agent_of_the_suite(seatrial, case):
            assert case.tags == ["money"] and case.instruction == "please refund"
            assert seatrial.run("good", case).tools == ["find_order", "refund"]
            assert seatrial.run(answer, "refund", suite="shop.suite.yaml").passed
            with pytest.raises(st.SeatrialError, match="the suite's graders"):
                seatrial.run(answer, case, graders=[st.contains("x")])

        def test_none_is_an_error():
            with pytest.raises(st.SeatrialError, match="no case for `tags`"):
                suite_cases("shop.suite.yaml", tags=["nothing"])
            with pytest.raises(st.SeatrialError, match="list of names"):
                suite_cases("shop.suite.yaml", tags="money")
        """
    )
    result = run(project, "-v", "test_cases_of_a_suite_file_are_parameters_of_a_test.py")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*test_function[[]refund[]] PASSED*", "*test_function[[]greet[]] FAILED*"])
