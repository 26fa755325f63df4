"""A judge from end to end: the grading plan asks a scripted OpenAI-compatible server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from graders.subjects import calls, subject
from seatrial.graders import GradingPlan, Surroundings
from seatrial.models import ModelClient, ModelConfig
from seatrial.runs import Grade, Verdict

JUDGE = {"kind": "judge", "criteria": [{"name": "polite"}, {"name": "correct", "weight": 3}], "votes": 3}


def ballot(outcome_met: bool, polite: float, correct: float) -> str:
    return json.dumps(
        {
            "reasoning": "because of the call",
            "outcome_met": outcome_met,
            "criteria": {"c1": {"score": polite, "reason": ""}, "c2": {"score": correct, "reason": ""}},
            "failure_mode": None if outcome_met else "task_abandoned",
            "evidence": ["/steps/0"],
        }
    )


class ChatServer:
    """Answers first questions with the next text, or status, of its script; questions for a repair with `repaired`."""

    def __init__(self, *script: str | int, repaired: str = "") -> None:
        self.script = list(script)
        self.repaired = repaired
        self.asked: list[dict[str, Any]] = []

    async def complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append(body)
        is_repair = body["messages"][-2]["role"] == "assistant"
        text = self.repaired if is_repair else self.script.pop(0)
        if isinstance(text, int):
            return web.Response(status=text)
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"model": "judge-2025", "choices": [choice], "usage": usage})

    @asynccontextmanager
    async def model(self) -> AsyncIterator[ModelClient]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.complete)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            config = ModelConfig(
                model="judge",
                base_url=f"http://127.0.0.1:{runner.addresses[0][1]}/v1",
                api_key="sk-secret",
                attempts=2,
                input_usd_per_mtok=1000,
                output_usd_per_mtok=5000,
            )
            async with ModelClient(config, first_wait_s=0.01, longest_wait_s=0.01) as model:
                yield model
        finally:
            await runner.cleanup()

    def grade(self) -> tuple[Verdict, Grade]:
        async def graded() -> tuple[Verdict, Grade]:
            async with self.model() as model:
                found = GradingPlan([JUDGE]).grade(
                    subject("Refunded.", steps=calls("refund")), Surroundings(directory=Path(), model=model)
                )
                (verdict,), grade = found if isinstance(found, tuple) else await found
                return verdict, grade

        return asyncio.run(graded())

    def repairs(self) -> list[dict[str, Any]]:
        return [body for body in self.asked if len(body["messages"]) > 2]


def test_votes_are_cast_over_http_and_one_that_cannot_be_read_is_repaired() -> None:
    server = ChatServer(ballot(True, 1, 1), "I think it went well.", ballot(False, 0, 0), repaired=ballot(True, 1, 0.5))
    verdict, grade = server.grade()
    assert (verdict.outcome, grade.outcome) == ("passed", "passed")
    assert verdict.score == (1 + 0.625 + 0) / 3
    assert verdict.details.judge.votes == 3
    assert verdict.details.judge.model == "judge-2025"
    assert verdict.evidence == ["/steps/0"]
    assert verdict.tokens == 4 * 110, "the answer that had to be repaired was paid for too"
    assert verdict.cost_usd is not None
    assert round(verdict.cost_usd, 6) == 4 * 0.15
    (repair,) = server.repairs()
    assert len(server.asked) == 4
    assert repair["messages"][-2] == {"role": "assistant", "content": "I think it went well."}
    assert "not valid JSON" in repair["messages"][-1]["content"]
    assert "refund" in server.asked[0]["messages"][1]["content"]


def test_the_majority_of_votes_decides() -> None:
    verdict, grade = ChatServer(ballot(True, 1, 1), ballot(False, 1, 1), ballot(True, 0, 0)).grade()
    assert (verdict.outcome, grade.outcome) == ("failed", "failed")


def test_a_vote_is_repaired_only_once() -> None:
    server = ChatServer(ballot(True, 1, 1), ballot(True, 1, 1), "no idea", repaired="still none")
    verdict, grade = server.grade()
    assert (verdict.outcome, grade.outcome) == ("errored", "errored")
    assert len(server.repairs()) == 1
    assert "sk-secret" not in repr(verdict)


def test_a_busy_server_is_asked_again_and_one_that_stays_down_makes_the_judge_errored() -> None:
    yes = ballot(True, 1, 1)
    assert ChatServer(503, yes, yes, yes).grade()[0].outcome == "passed"
    verdict, grade = ChatServer(*[503] * 6).grade()
    assert (verdict.outcome, grade.outcome) == ("errored", "errored")
    assert "503" in verdict.reasons[0]
