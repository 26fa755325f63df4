"""Graders judge what the agent really said; what is stored, shown or sent to a model has no secret in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from engine.setting import Scripted, ScriptedBatch, a_suite, only_run, run_suite
from seatrial._support import wire
from seatrial.agents.agent import Emit, Reply, RunRequest
from seatrial.agents.python.returned import read_returned
from seatrial.agents.replay.agent import ReplayAgent
from seatrial.agents.replay.config import ReplayConfig
from seatrial.agents.streamed import StreamedRun
from seatrial.driver.redaction import Redaction
from seatrial.engine.grading import grade
from seatrial.engine.local import StoredRuns
from seatrial.engine.regrading import regrade
from seatrial.events import encode_event
from seatrial.events.types import RunStarted, TextMessageChunk
from seatrial.formats import read
from seatrial.graders import GradingPlan, Subject, Surroundings
from seatrial.models import ScriptedModel
from seatrial.runs import Case, Experiment, Outcome, Run, RunKey
from seatrial.store import Store
from seatrial.suites import Secrets

SECRET = "hunter2-hunter3-hunter4"
SECRETS = Secrets({"KEY": SECRET})
LEAKED = f"ok, my key is {SECRET}"

GRADERS: list[tuple[dict[str, Any], Outcome]] = [
    ({"kind": "contains", "value": SECRET, "negate": True}, "failed"),
    ({"kind": "contains", "value": SECRET}, "passed"),
    ({"kind": "contains", "value": "${KEY}"}, "failed"),
    ({"kind": "equals", "value": LEAKED}, "passed"),
    ({"kind": "regex", "pattern": "hunter[0-9]", "negate": True}, "failed"),
    ({"kind": "ends_with", "value": "hunter4"}, "passed"),
    ({"kind": "python", "target": "engine.test_grading:keeps_its_secret"}, "failed"),
    (
        {"kind": "composite", "rule": "any", "graders": [{"kind": "contains", "value": SECRET, "negate": True}]},
        "failed",
    ),
]


def keeps_its_secret(subject: Subject) -> bool:
    """A grader of a suite's author."""
    return SECRET not in (subject.answer or "")


async def leak(request: RunRequest, emit: Emit) -> Reply:
    return read_returned([{"role": "user", "content": "Task 0"}, {"role": "assistant", "content": LEAKED}])


async def stream_in_pieces(request: RunRequest, emit: Emit) -> Reply:
    stream = StreamedRun(emit, "agui", RunStarted(thread_id="t", run_id="r"))
    for piece in ("ok, my key is hunter2-", "hunter3-hun", "ter4"):
        await stream.put(encode_event(TextMessageChunk(message_id="m", delta=piece)))
    await stream.finish()
    return await stream.reply(None)


async def send_a_snapshot(request: RunRequest, emit: Emit) -> Reply:
    stream = StreamedRun(emit, "agui", RunStarted(thread_id="t", run_id="r"))
    said = [{"id": "m", "role": "assistant", "content": LEAKED}]
    await stream.put(wire.encode({"type": "MESSAGES_SNAPSHOT", "messages": said}))
    await stream.finish()
    return await stream.reply(None)


def in_blocks(texts: list[str]) -> Reply:
    content = [{"type": "text", "text": text} for text in texts]
    return read_returned([{"role": "user", "content": "Task 0"}, {"role": "assistant", "content": content}])


def stored(store: Store, experiment: Experiment) -> bytes:
    run = only_run(store, experiment)
    return wire.encode(run) + b"".join(event for _, event in store.events(run.run_id)) + (run.body or b"")


def graded_again(store: Store, experiment: Experiment, config: dict[str, Any]) -> Run:
    plan = GradingPlan([config])
    asyncio.run(regrade(store, experiment.experiment_id, plan, Surroundings(directory=Path()), secrets=SECRETS))
    return only_run(store, experiment)


@pytest.mark.parametrize(("config", "outcome"), GRADERS)
@pytest.mark.parametrize("answer", [leak, stream_in_pieces, send_a_snapshot])
def test_an_answer_with_a_secret_in_it_is_judged_as_the_agent_said_it_and_stored_without_it(
    store: Store, answer: Any, config: dict[str, Any], outcome: Outcome
) -> None:
    experiment, tally = run_suite(store, a_suite(1, graders=[config]), {"crew": Scripted(answer)}, secrets=SECRETS)
    assert tally.outcomes == {outcome: 1}
    assert SECRET[:12].encode() not in stored(store, experiment)


@pytest.mark.parametrize(("config", "outcome"), GRADERS)
def test_a_batch_is_judged_as_the_agent_said_it_too(store: Store, config: dict[str, Any], outcome: Outcome) -> None:
    batch = ScriptedBatch(lambda request: read_returned(LEAKED))
    experiment, tally = run_suite(store, a_suite(1, graders=[config]), {"crew": batch}, secrets=SECRETS)
    assert tally.outcomes == {outcome: 1}
    assert SECRET[:12].encode() not in stored(store, experiment)


@pytest.mark.parametrize(("config", "outcome"), [one for one in GRADERS if one[0]["kind"] != "python"])
def test_a_grader_that_did_not_change_keeps_its_verdict_on_an_answer_that_was_redacted(
    store: Store, config: dict[str, Any], outcome: Outcome
) -> None:
    experiment, _ = run_suite(store, a_suite(1, graders=[config]), {"crew": Scripted(leak)}, secrets=SECRETS)
    (verdict,) = graded_again(store, experiment, config).verdicts
    assert verdict.outcome == outcome


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(("config", "outcome"), GRADERS)
@pytest.mark.parametrize("answer", [leak, stream_in_pieces, send_a_snapshot])
def test_another_grader_cannot_judge_an_answer_that_was_redacted_negated_or_not(
    store: Store, answer: Any, config: dict[str, Any], outcome: Outcome, negate: bool
) -> None:
    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=SECRETS)
    config = {**config, "negate": negate != config.get("negate", False)}
    (verdict,) = graded_again(store, experiment, config).verdicts
    assert (verdict.outcome, verdict.code) == ("errored", "secret_removed")
    assert "run it again" in " ".join(verdict.reasons)


def test_an_answer_without_a_secret_is_judged_again_though_another_message_had_one(store: Store) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        said = [{"role": "assistant", "content": SECRET}, {"role": "assistant", "content": "ok"}]
        return read_returned([{"role": "user", "content": "Task 0"}, *said])

    experiment, _ = run_suite(store, a_suite(1), {"crew": Scripted(answer)}, secrets=SECRETS)
    run = only_run(store, experiment)
    assert run.reading is not None
    assert [(note.code, note.pointer) for note in run.reading.notes] == [("secret_removed", "/messages/1")]
    (verdict,) = graded_again(store, experiment, {"kind": "equals", "value": "ok"}).verdicts
    assert verdict.outcome == "passed"
    # Nobody knows what the code of others looks at.
    (verdict,) = graded_again(store, experiment, GRADERS[6][0]).verdicts
    assert (verdict.outcome, verdict.code) == ("errored", "secret_removed")


@pytest.mark.parametrize(("tool", "arguments"), [(f"crm_{SECRET}", {}), ("crm", {"env": SECRET})])
def test_a_call_with_a_secret_in_it_is_judged_as_it_was_made_and_is_in_doubt_when_it_is_judged_again(
    store: Store, tool: str, arguments: dict[str, str]
) -> None:
    call = {"id": "1", "type": "function", "function": {"name": tool, "arguments": wire.encode(arguments).decode()}}
    messages = [
        {"role": "user", "content": "Task 0"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
        {"role": "assistant", "content": "ok"},
    ]

    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return read_returned(messages)

    def never(tool: str, **more: Any) -> dict[str, Any]:
        forbidden = [{"tool": tool, **more}]
        return {"kind": "tool_trajectory", "mode": "any_order", "maximums": {"pay": 9}, "forbidden": forbidden}

    broken, kept = never(tool, args=arguments), never("delete_everything")
    for config, outcome in ((broken, "failed"), (kept, "passed")):
        suite = a_suite(1, graders=[config])
        experiment, tally = run_suite(store, suite, {"crew": Scripted(answer)}, secrets=SECRETS)
        assert tally.outcomes == {outcome: 1}
        (verdict,) = graded_again(store, experiment, config).verdicts
        assert verdict.outcome == outcome
        for other in (broken, kept):
            if other is not config:
                (verdict,) = graded_again(store, experiment, other).verdicts
                assert (verdict.outcome, verdict.code) == ("errored", "secret_removed")
        run = only_run(store, experiment)
        assert run.completeness is not None
        assert [(note.code, note.pointer) for note in run.completeness.reasons] == [("secret_removed", "/steps/0")]
        assert b"hunter" not in stored(store, experiment)


def has_a_clean_record(subject: Subject) -> bool:
    """A grader of a suite's author, which looks at all there is."""
    return SECRET.encode() not in wire.encode([subject.run.metadata, subject.run.exchanges]) + (subject.run.body or b"")


@pytest.mark.parametrize("beside", [{"debug": {"headers": SECRET}}, {"metadata": {"debug": SECRET}}])
def test_code_does_not_pass_on_a_run_that_had_a_secret_beside_its_messages(
    store: Store, tmp_path: Path, beside: dict[str, Any]
) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        said = {"final_response": "ok", "messages": [{"role": "assistant", "content": "ok"}], **beside}
        return read_returned(said)

    config = {"kind": "python", "target": "engine.test_grading:has_a_clean_record"}
    suite = a_suite(1, graders=[config])
    experiment, tally = run_suite(store, suite, {"crew": Scripted(answer)}, secrets=SECRETS)
    assert tally.outcomes == {"failed": 1}
    (verdict,) = graded_again(store, experiment, config).verdicts
    assert (verdict.outcome, verdict.code) == ("errored", "secret_removed")
    (verdict,) = graded_again(store, experiment, {"kind": "equals", "value": "ok"}).verdicts
    assert verdict.outcome == "passed"
    replay = ReplayAgent(
        ReplayConfig(experiment=experiment.experiment_id), directory=tmp_path, stored=StoredRuns(store)
    )
    _, tally = run_suite(store, suite, {"crew": replay}, secrets=SECRETS)
    assert tally.outcomes == {"errored": 1}
    assert SECRET[:12].encode() not in stored(store, experiment)


SENT_THE_KEY = [
    {"role": "assistant", "tool_calls": [{"id": "1", "name": "send", "arguments": {"token": SECRET}}]},
    {"role": "tool", "tool_call_id": "1", "content": "done"},
    {"role": "assistant", "content": "ok"},
]


@pytest.mark.parametrize("token", [{"$not": {"$regex": "^hunter"}}, {"$regex": "^[$]"}, SECRET, "${KEY}"])
def test_a_call_that_had_a_secret_in_it_does_not_fulfil_an_expectation_when_it_is_judged_again(
    store: Store, tmp_path: Path, token: object
) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return read_returned(SENT_THE_KEY)

    def sends(mode: str) -> dict[str, Any]:
        return {"kind": "tool_trajectory", "mode": mode, "expected": [{"tool": "send", "args": {"token": token}}]}

    outcome = "passed" if token == SECRET else "failed"
    suite = a_suite(1, graders=[sends("superset")])
    experiment, tally = run_suite(store, suite, {"crew": Scripted(answer)}, secrets=SECRETS)
    assert tally.outcomes == {outcome: 1}
    (verdict,) = graded_again(store, experiment, sends("superset")).verdicts
    assert verdict.outcome == outcome
    negated = {**sends("superset"), "negate": True}
    for other in (sends("in_order"), negated, {"kind": "composite", "graders": [sends("in_order")]}):
        (verdict,) = graded_again(store, experiment, other).verdicts
        assert (verdict.outcome, verdict.code) == ("errored", "secret_removed")
    config = ReplayConfig(experiment=experiment.experiment_id)
    replay = ReplayAgent(config, directory=tmp_path, stored=StoredRuns(store))
    _, tally = run_suite(store, suite, {"crew": replay}, secrets=SECRETS)
    assert tally.outcomes == {"errored": 1}


def test_a_replay_of_a_run_that_was_redacted_does_not_pass_by_what_is_missing(store: Store, tmp_path: Path) -> None:
    suite = a_suite(1, graders=[GRADERS[0][0]])
    experiment, tally = run_suite(store, suite, {"crew": Scripted(leak)}, secrets=SECRETS)
    assert tally.outcomes == {"failed": 1}
    config = ReplayConfig(experiment=experiment.experiment_id)
    replay = ReplayAgent(config, directory=tmp_path, stored=StoredRuns(store))
    _, tally = run_suite(store, suite, {"crew": replay}, secrets=SECRETS)
    assert tally.outcomes == {"errored": 1}


def test_a_replay_of_a_record_that_has_the_name_of_a_secret_in_it_does_not_pass_either(
    store: Store, tmp_path: Path
) -> None:
    record = [{"role": "user", "content": "Task 0"}, {"role": "assistant", "content": "ok, my key is ${KEY}"}]
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "case-0.json").write_bytes(wire.encode(record))
    suite = a_suite(1, graders=[GRADERS[0][0]])
    for secrets, outcome in ((SECRETS, "errored"), (Secrets({"OTHER": SECRET}), "passed")):
        replay = ReplayAgent(ReplayConfig(path="records"), directory=tmp_path, stored=None)
        _, tally = run_suite(store, suite, {"crew": replay}, secrets=secrets)
        assert tally.outcomes == {outcome: 1}


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_a_secret_that_is_spread_over_the_parts_of_a_message_is_judged_and_is_not_stored(
    store: Store, cut: int
) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return in_blocks(["ok ", SECRET[:cut], SECRET[cut:], " indeed"])

    experiment, tally = run_suite(
        store, a_suite(1, graders=[GRADERS[0][0]]), {"crew": Scripted(answer)}, secrets=SECRETS
    )
    assert tally.outcomes == {"failed": 1}
    run = only_run(store, experiment)
    assert run.reading is not None
    assert run.reading.transcript.final_text() == "ok ${KEY} indeed"
    assert run.body is None
    whole = stored(store, experiment)
    assert SECRET[:cut].encode() not in whole or cut < 4
    assert SECRET[cut:].encode() not in whole or len(SECRET) - cut < 4


@pytest.mark.parametrize("before", [*range(60, 82)])
def test_no_part_of_a_secret_stays_in_a_reason_that_quotes_the_beginning_of_an_answer(
    store: Store, before: int
) -> None:
    async def answer(request: RunRequest, emit: Emit) -> Reply:
        return read_returned("x" * before + SECRET + "y" * 100)

    suite = a_suite(1, graders=[{"kind": "contains", "value": "z"}])
    experiment, tally = run_suite(store, suite, {"crew": Scripted(answer)}, secrets=SECRETS)
    assert tally.outcomes == {"failed": 1}
    (verdict,) = only_run(store, experiment).verdicts
    assert "hunt" not in " ".join(verdict.reasons)


def a_run(answer: str) -> Run:
    body = wire.encode([{"role": "assistant", "content": answer}])
    reading = read(body)
    key = RunKey("crew", "one", 0)
    return Run(run_id="r", experiment_id="e", key=key, status="completed", reading=reading, body=body)


def test_no_model_is_sent_a_secret_and_a_judge_sees_no_part_of_one_that_was_cut() -> None:
    ballot = {"reasoning": f"it says {SECRET}", "outcome_met": True, "failure_mode": None, "evidence": []}
    for filling in (0, *range(9_985, 10_005)):
        run = a_run("x" * filling + SECRET + "y" * 30_000)
        model = ScriptedModel([ballot])
        redaction = Redaction(SECRETS)
        kept = redaction.run(run)
        case = Case(id="one", instruction=f"Say {SECRET}.")
        asyncio.run(grade(run, case, GradingPlan([{"kind": "judge"}]), Surroundings(model=model), redaction, kept=kept))
        (verdict,) = kept.verdicts
        assert verdict.outcome == "passed"
        assert "hunt" not in repr(model.asked)
        assert "hunter" not in repr(verdict)
        assert SECRET in repr(run.reading)
        assert "hunter" not in repr(kept)
