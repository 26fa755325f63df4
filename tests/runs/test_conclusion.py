"""What a run comes to once its answer is read, and what our tool proxy saw of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial import formats
from seatrial.agents.python.returned import read_returned
from seatrial.formats.chat.reader import messages_from_objects
from seatrial.formats.reading import Reading
from seatrial.runs import Attempt, Case, Exchange, Run, RunKey
from seatrial.runs.conclusion import called_tools, conclude, given_messages
from seatrial.trajectory import Step
from seatrial.trajectory.completeness import ToolAccess
from seatrial.trajectory.observed import ObservedCalls
from seatrial.transcript import (
    AssistantMessage,
    Message,
    Note,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)

PAY = Step(0, "pay", {}, source="observed")


def concluded(
    observed: ObservedCalls | None, reading: Reading | None, access: ToolAccess = "own", **fields: Any
) -> Run:
    if attempts := fields.pop("attempts", None):
        fields["exchanges"] = [Exchange(number=1, attempts=attempts)]
    run = Run(run_id="run-1", experiment_id="e", key=RunKey("crew", "case", 1), status="completed", **fields)
    conclude(run, reading, observed=observed, tool_access=access)
    return run


def reporting(*names: str) -> Reading:
    messages = [AssistantMessage([ToolCall(name, name, {})], StopReason.TOOL_USE) for name in names]
    return Reading("openai", Transcript([*messages, AssistantMessage([TextBlock("ok")], StopReason.END_TURN)]), [])


def known(run: Run) -> tuple[str, list[str]] | None:
    found = run.completeness
    return None if found is None else (found.level, [note.code for note in found.reasons])


@pytest.mark.parametrize("access", ["own", "world", "none"])
def test_calls_beyond_the_limits_make_them_partial_whatever_tools_the_agent_has(access: ToolAccess) -> None:
    run = concluded(ObservedCalls([PAY], incomplete=2), reporting("pay"), access)
    assert known(run) == ("partial", ["observed_calls_cut"])


def test_what_could_not_be_read_of_the_report_does_not_matter_when_only_observed_calls_count() -> None:
    dropped = Note("made_up", "/messages/1", "a message was dropped", weight="serious")
    reading = reporting("pay")
    reading.notes.append(dropped)
    assert known(concluded(ObservedCalls([PAY]), reading, "world")) == ("complete", [])
    assert known(concluded(ObservedCalls([PAY]), reading, "own")) == ("partial", ["made_up"])


def test_a_call_of_an_agent_that_has_no_tools_is_a_finding_also_when_only_we_saw_it() -> None:
    run = concluded(ObservedCalls([PAY]), Reading("text", Transcript([]), [], answer_only=True), "none")
    assert run.reading is not None
    assert [note.code for note in run.reading.notes] == ["observed_call_not_reported", "call_without_tools"]


@pytest.mark.parametrize(
    ("observed", "access", "steps", "level"),
    [
        (None, "own", [], None),
        (None, "world", [], None),
        (ObservedCalls([]), "own", [], None),
        (ObservedCalls([]), "world", [], ("complete", [])),
        (ObservedCalls([PAY]), "own", ["pay"], ("partial", ["no_answer_to_read"])),
        (ObservedCalls([PAY]), "world", ["pay"], ("complete", [])),
        (ObservedCalls([PAY], incomplete=1), "world", ["pay"], ("partial", ["observed_calls_cut"])),
    ],
)
def test_of_a_run_without_an_answer_the_observed_calls_are_known(
    observed: ObservedCalls | None, access: ToolAccess, steps: list[str], level: Any
) -> None:
    run = concluded(observed, None, access)
    assert ([step.name for step in run.steps], known(run)) == (steps, level)


def test_calls_of_an_earlier_attempt_are_not_forgotten() -> None:
    attempts = [Attempt(number=number, started_at=0, duration_ms=1, observed_calls=2) for number in (1, 2)]
    run = concluded(ObservedCalls([PAY]), reporting("pay"), "world", attempts=attempts)
    assert known(run) == ("partial", ["calls_in_earlier_attempt"])
    assert known(concluded(ObservedCalls([PAY]), reporting("pay"), attempts=attempts[:1])) == ("complete", [])


def test_a_run_that_is_concluded_again_has_every_note_once() -> None:
    reading = reporting("find")
    first = concluded(ObservedCalls([PAY]), reading)
    assert first.reading is not None
    notes = [*first.reading.notes]
    assert len(notes) == 2
    again = concluded(ObservedCalls(first.observed), first.reading)
    assert again.reading is not None
    assert again.reading.notes == notes


def called(*names: str, text: str = "") -> AssistantMessage:
    said = [TextBlock(text)] if text else []
    return AssistantMessage([*said, *[ToolCall(name, name, {}) for name in names]], StopReason.TOOL_USE)


def result(name: str) -> ToolResultMessage:
    return ToolResultMessage(name, name, [TextBlock("done")])


SEARCH = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}


@pytest.mark.parametrize(
    ("messages", "waits"),
    [
        ([called("pay")], True),
        ([called("pay", text="\n ")], True),
        ([called("find"), result("find"), called("pay")], True),
        ([called("find"), result("find"), called("pay", text="I pay.")], True),
        ([called("find", "pay"), result("find")], True),
        ([called("find", text="I look."), result("find"), called("pay")], True),
        ([called("pay"), result("pay")], False),
        ([called("find"), called("pay", text="Paid.")], False),
        ([called("pay"), AssistantMessage([TextBlock("Paid.")], StopReason.END_TURN)], False),
        ([AssistantMessage([TextBlock("Paid.")], StopReason.END_TURN)], False),
        ([], False),
    ],
)
def test_a_run_that_ends_with_a_call_that_has_no_result_waits_for_it(messages: list[Message], *, waits: bool) -> None:
    reading = Reading("openai", Transcript(messages), [])
    run = concluded(None, reading)
    assert ("waits_for_input" in [note.code for note in reading.notes if note.serious]) is waits
    assert run.completeness is not None
    assert (run.completeness.level == "partial") is waits
    conclude(run, run.reading)
    assert [note.code for note in reading.notes].count("waits_for_input") == waits
    answered = Reading("openai", Transcript(messages, answer="Paid."), [])
    concluded(None, answered)
    assert not answered.notes


def test_a_turn_that_was_cut_is_noted_once_when_a_run_is_concluded_again() -> None:
    cut = Reading("openai", Transcript([AssistantMessage([], StopReason.MAX_TOKENS)]), [])
    run = concluded(None, cut)
    assert known(run) == ("partial", ["turn_cut"])
    conclude(run, run.reading)
    assert known(run) == ("partial", ["turn_cut"])


def test_what_the_agent_reported_in_an_earlier_attempt_is_in_doubt() -> None:
    attempts = [Attempt(number=number, started_at=0, duration_ms=1) for number in (1, 2)]
    attempts[0].called = ["delete"]
    run = concluded(None, reporting("pay"), attempts=attempts)
    assert known(run) == ("partial", ["calls_in_earlier_attempt"])
    run = concluded(ObservedCalls([PAY]), reporting("pay"), "world", attempts=attempts)
    assert known(run) == ("partial", ["calls_in_earlier_attempt"]), "reported, and not observed"
    attempts[0].called = ["?"]
    assert known(concluded(ObservedCalls([PAY]), reporting("pay"), "world", attempts=attempts)) == ("complete", [])


def test_an_earlier_attempt_names_what_is_known_and_says_that_there_may_be_more() -> None:
    attempts = [Attempt(number=number, started_at=0, duration_ms=1) for number in (1, 2)]
    attempts[0].called = ["delete", "?"]
    run = concluded(None, reporting("pay"), attempts=attempts)
    assert run.completeness is not None
    (reason,) = run.completeness.reasons
    expected = "attempt 1 called 'delete' before it failed, and perhaps more: not all of what it did is known"
    assert reason.message == expected


@pytest.mark.parametrize(
    ("returned", "level"),
    [
        ([{"role": "assistant", "content": "Done."}], "complete"),
        ([{"role": "user", "content": "Do it."}, {"role": "assistant", "content": "Done."}], "complete"),
        ({"final_response": "Done.", "messages": [{"role": "assistant", "content": "Done."}]}, "complete"),
        ({"role": "assistant", "content": "Done."}, "none"),
        ({"final_response": "Done.", "messages": []}, "none"),
        ([{"role": "user", "content": "Do it."}], "none"),
        ("Done.", "none"),
    ],
)
def test_a_list_with_a_turn_of_the_agents_is_its_word_on_the_whole_run(returned: Any, level: str) -> None:
    reply = read_returned(returned)
    run = concluded(None, reply.reading)
    assert run.completeness is not None
    assert (run.completeness.level, run.completeness.basis) == (level, "reported")


def test_attempts_of_an_earlier_exchange_are_in_doubt_only_where_another_one_followed() -> None:
    called = [Attempt(number=number, started_at=0, duration_ms=1, called=["delete"]) for number in (1, 2)]
    answered = [Exchange(number=number, attempts=called[:1]) for number in (1, 2)]
    run = concluded(None, reporting("pay"), exchanges=answered)
    assert known(run) == ("complete", []), "each exchange has its reply"
    repeated = [Exchange(number=1, attempts=called), Exchange(number=2, attempts=called[:1])]
    run = concluded(None, reporting("pay"), exchanges=repeated)
    assert known(run) == ("partial", ["calls_in_earlier_attempt"])


def test_the_messages_of_a_case_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(messages: list[Any], notes: list[Note]) -> list[Message]:
        read.append(len(messages))
        return messages_from_objects(messages, notes)

    monkeypatch.setattr("seatrial.formats.chat.reader.messages_from_objects", counted)
    case = Case(id="a", instruction="Go.", messages=[{"role": "user", "content": "Hi."}, {"role": "tool"}])
    first = given_messages(case)
    first.append(UserMessage("not the case's"))
    assert given_messages(case) == first[:-1]
    assert first[0] == UserMessage("Hi.")
    assert [note.code for note in case.conversation_notes] == ["tool_result_unpaired"]
    assert read == [2]
    assert case == Case(id="a", instruction="Go.", messages=case.messages), "what was read is no part of it"


@pytest.mark.parametrize(
    ("record", "waits"),
    [
        ([{"role": "assistant", "content": [SEARCH]}], True),
        ([{"role": "assistant", "content": [SEARCH, {"type": "text", "text": "Found."}]}], False),
        ([{"type": "mcp_call", "id": "m", "name": "pay", "arguments": "{}", "status": "in_progress"}], True),
        ([{"type": "mcp_call", "id": "m", "name": "pay", "arguments": "{}", "status": "completed"}], False),
        ([{"type": "function_call", "call_id": "c", "name": "pay", "arguments": "{}"}], True),
        ([{"type": "ai", "content": "", "tool_calls": [{"name": "pay", "args": {}, "id": "c"}]}], True),
        ([{"role": "model", "parts": [{"functionCall": {"name": "pay", "args": {}}}]}], True),
        ([{"role": "model", "parts": [{"executableCode": {"code": "pay()"}}]}], True),
        ([{"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "pay", "input": {}}}]}], True),
        ([{"role": "assistant", "parts": [{"type": "tool-pay", "toolCallId": "c", "state": "input-available"}]}], True),
    ],
    ids=str,
)
def test_a_call_that_is_open_at_the_end_of_a_record_leaves_it_partial_in_every_dialect(
    record: list[dict[str, object]], *, waits: bool
) -> None:
    said = {"role": "user", "content": "Go."}
    reading = formats.read(json.dumps([said, *record]).encode())
    run = concluded(None, reading)
    assert ("waits_for_input" in [note.code for note in reading.notes if note.serious]) is waits
    assert run.completeness is not None
    assert (run.completeness.level == "partial") is waits


def _echoing(*echoed: dict[str, Any]) -> Reading:
    """A stream of an agent that says that it was given these messages, and that it made no call."""
    run = {"threadId": "t", "runId": "r"}
    told = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "Done."}
    events = [{"type": "RUN_STARTED", **run, "input": {"messages": echoed}}, told, {"type": "RUN_FINISHED", **run}]
    return formats.read(json.dumps(events).encode(), "agui")


_REFUND = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"order": 7}'}}
_ECHO: list[dict[str, Any]] = [
    {"id": "1", "role": "user", "content": "Hi."},
    {"id": "2", "role": "assistant", "toolCalls": [_REFUND]},
    {"id": "3", "role": "tool", "toolCallId": "c1", "content": "ok"},
    {"id": "4", "role": "user", "content": "Do it."},
]


def test_a_call_that_the_agent_says_it_was_given_but_was_not_sent_leaves_the_calls_in_doubt() -> None:
    run = Run(run_id="r", experiment_id="e", key=RunKey("agent", "case", 1), status="completed")
    conclude(run, _echoing(*_ECHO), [UserMessage("Do it.")])
    assert run.completeness is not None
    assert run.completeness.level == "partial"
    assert [note.code for note in run.completeness.reasons] == ["given_not_sent"]
    assert "?" in called_tools(_echoing(*_ECHO), [UserMessage("Do it.")])


@pytest.mark.parametrize("times", [1, 2])
def test_what_was_sent_may_be_echoed_once(times: int) -> None:
    sent: list[Message] = [
        UserMessage("Hi."),
        AssistantMessage([ToolCall("c1", "refund", {"order": 7})], StopReason.TOOL_USE),
        ToolResultMessage("c1", "refund", [TextBlock("ok")]),
        UserMessage("Do it."),
    ]
    again = [{**message, "id": f"again {message['id']}"} for message in _ECHO[1:3]]
    run = Run(run_id="r", experiment_id="e", key=RunKey("agent", "case", 1), status="completed")
    conclude(run, _echoing(*_ECHO[:3], *again * (times - 1), _ECHO[3]), sent)
    assert run.completeness is not None
    assert run.completeness.level == ("complete" if times == 1 else "partial")


def test_what_the_record_of_an_earlier_run_started_from_is_believed() -> None:
    run = Run(run_id="r", experiment_id="e", key=RunKey("agent", "case", 1), status="completed")
    conclude(run, _echoing(*_ECHO), [UserMessage("Do it.")], replayed=True)
    assert run.completeness is not None
    assert run.completeness.level == "complete"


LOOKUP = {"role": "assistant", "tool_calls": [{"id": "c", "name": "lookup", "arguments": {}}]}
FOUND = {"role": "tool", "tool_call_id": "c", "content": "found"}
OK_THEN = {"role": "assistant", "content": "ok then"}
DO_IT = {"role": "user", "content": "Do it."}
DONE = {"role": "assistant", "content": "Done."}


@pytest.mark.parametrize(
    ("messages", "returned", "level"),
    [
        ([LOOKUP, FOUND, OK_THEN], [{**FOUND, "name": "refund"}, DONE], "partial"),
        ([LOOKUP, FOUND, OK_THEN], [DO_IT, FOUND, DONE], "partial"),
        ([LOOKUP, FOUND, OK_THEN], [LOOKUP, FOUND, OK_THEN, DO_IT, FOUND, DONE], "partial"),
        ([LOOKUP], [{**FOUND, "name": "refund"}, DONE], "partial"),
        ([LOOKUP], [FOUND, FOUND, DONE], "partial"),
        ([LOOKUP], [FOUND, DONE], "complete"),
        ([LOOKUP], [LOOKUP, DO_IT, FOUND, DONE], "complete"),
        ([LOOKUP, FOUND, OK_THEN], [FOUND, OK_THEN, DO_IT, DONE], "complete"),
        ([LOOKUP, FOUND, OK_THEN], [LOOKUP, FOUND, OK_THEN, DO_IT, DONE], "complete"),
        ([LOOKUP, FOUND, OK_THEN], [LOOKUP, FOUND, DONE], "complete"),
    ],
)
def test_a_second_result_of_a_given_call_is_one_of_a_call_that_is_missing(
    messages: list[Any], returned: list[Any], level: str
) -> None:
    case = Case(id="a", instruction="Do it.", messages=[{"role": "user", "content": "Hi."}, *messages])
    if returned[0] is LOOKUP and DO_IT in returned:
        returned = [{"role": "user", "content": "Hi."}, *returned]
    run = Run(run_id="r", key=RunKey("crew", "a", 1), status="completed")
    for _ in ("concluded", "concluded again"):
        conclude(run, read_returned(returned).reading if run.reading is None else run.reading, given_messages(case))
        assert run.completeness is not None
        assert run.completeness.level == level
        assert {note.code for note in run.completeness.reasons} == (
            {"tool_result_unpaired"} if level == "partial" else set()
        )
