"""Transcript, steps and events of a run are views of one thing, and never contradict each other (`verdicts.md` 2)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.agui_mutations import STREAMS

from seatrial import formats
from seatrial.events import Event, fold, to_transcript, unfold
from seatrial.formats.agui import reading_of
from seatrial.formats.chat.calls import ExecutedBy
from seatrial.formats.reading import Reading
from seatrial.formats.registry import writable
from seatrial.runs import Run, RunKey
from seatrial.runs.case import Case
from seatrial.runs.conclusion import conclude, done_record, given_messages
from seatrial.trajectory import Step, extract, steps_from_events, steps_from_transcript
from seatrial.trajectory.step import FAILED
from seatrial.transcript import (
    AssistantMessage,
    ImageBlock,
    Message,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    UserMessage,
)
from verdicts.readable import HISTORY
from verdicts.shapes import (
    ANSWER,
    DOCUMENTS,
    FREE_TEXT,
    INSTRUCTION,
    LISTS,
    WITHOUT_RESULTS,
    Call,
    agui_events,
    encoded,
    openai,
    sse,
)

RECORDING = Path(__file__).parent.parent / "resources" / "agui-lang.sse"

_values = st.none() | st.booleans() | st.integers(-5, 5) | st.text('ab<>"\\é', max_size=4)
_arguments = st.dictionaries(st.sampled_from(["id", "q", "x y"]), _values | st.lists(_values, max_size=2), max_size=2)
CALLS = st.lists(
    st.builds(Call, st.sampled_from(["find", "pay", "delete_account"]), _arguments, st.just("fine"), st.booleans()),
    max_size=4,
)

View = list[tuple[str, Any, bool]]
Known = list[tuple[str, Any, str, str, str | None]]


def _view(steps: Iterable[Step]) -> View:
    return [
        (step.name, step.arguments if step.arguments_text is None else step.arguments_text, step.status in FAILED)
        for step in steps
        if step.executed_by != "user"
    ]


def _known(steps: Iterable[Step]) -> Known:
    """All that is known of calls but their ids, results and times."""
    return [
        (step.name, step.arguments_text or step.arguments, step.status, step.executed_by, step.error) for step in steps
    ]


def _recorded(run: Run) -> list[Event]:
    """The events as they are stored: those of the run, and not of what it started from."""
    assert run.reading is not None
    own = done_record(run, run.reading)
    return unfold(own.transcript, thread_id="t", run_id="r", facts=own.facts, partial=own.partial)


def _concluded(reading: Reading, case: Case | None = None) -> Run:
    run = Run(run_id="r", experiment_id="e", key=RunKey("agent", "case", 1), status="completed")
    conclude(run, reading, given_messages(case) if case is not None else [UserMessage(INSTRUCTION)])
    return run


def _check_views(run: Run) -> None:
    """What must hold of every run, whatever it was read from."""
    assert run.reading is not None
    transcript = run.reading.transcript
    assert _view(steps_from_transcript(transcript.messages, run.reading.facts, transcript.given)) == _view(run.steps)
    assert _known(steps_from_events(_recorded(run))) == _known(run.steps)
    failed = [step.id for step in run.steps if step.status in FAILED and step.id is not None]
    said = [message for message in transcript.done() if isinstance(message, ToolResultMessage) and message.is_error]
    assert {*failed} <= {message.tool_call_id for message in said}
    assert len(said) == len([step for step in run.steps if step.status in FAILED])


@pytest.mark.parametrize("shape", LISTS)
@settings(max_examples=20)
@given(calls=CALLS)
def test_every_view_of_messages_shows_the_same_calls(shape: str, calls: list[Call]) -> None:
    reading = formats.read(encoded({"text": ANSWER, "output_messages": LISTS[shape](calls)}), "output-messages")
    run = _concluded(reading)
    _check_views(run)
    if shape not in FREE_TEXT:
        assert _view(run.steps) == [(call.name, call.arguments, call.failed) for call in calls]
    assert run.completeness is not None
    assert run.completeness.level == "complete"


@pytest.mark.parametrize("shape", [name for name in DOCUMENTS if name not in WITHOUT_RESULTS])
@settings(max_examples=20)
@given(calls=CALLS)
def test_every_view_of_a_whole_record_shows_the_same_calls(shape: str, calls: list[Call]) -> None:
    run = _concluded(formats.read(DOCUMENTS[shape](calls)))
    assert _view(run.steps) == [(call.name, call.arguments, call.failed) for call in calls]
    if shape.startswith("trace"):  # the transcript beside it has no calls
        assert _known(steps_from_events(_recorded(run))) == _known(run.steps)
    else:
        _check_views(run)


@pytest.mark.parametrize("shape", ["openai", "openai flat", "inspect", "tau2", "tool, input, output"])
@settings(max_examples=20)
@given(calls=CALLS)
def test_what_was_given_is_in_no_view_of_what_was_done(shape: str, calls: list[Call]) -> None:
    case = Case(id="case", instruction=INSTRUCTION, messages=HISTORY)
    items = [*HISTORY, *LISTS[shape](calls)]
    items[3] = {**items[3], "usage": {"prompt_tokens": 5, "completion_tokens": 7}}
    run = _concluded(formats.read(encoded({"output_messages": items}), "output-messages"), case)
    _check_views(run)
    assert _view(run.steps) == [(call.name, call.arguments, call.failed) for call in calls]
    assert run.reading is not None
    assert run.reading.transcript.final_text() == ANSWER


def test_what_was_given_gives_no_answer() -> None:
    case = Case(id="case", instruction=INSTRUCTION, messages=HISTORY)
    items = [*HISTORY, {"role": "user", "content": INSTRUCTION}]
    run = _concluded(formats.read(encoded({"output_messages": items}), "output-messages"), case)
    assert run.reading is not None
    assert not run.reading.transcript.final_text()
    assert run.steps == []
    assert run.completeness is not None
    assert run.completeness.level == "none"


def _check_stream(reading: Reading) -> None:
    assert reading.events is not None
    streamed = steps_from_events(reading.events)
    said = steps_from_transcript(reading.transcript.done())
    assert sorted(_view(streamed), key=str) == sorted(_view(said), key=str)


@pytest.mark.parametrize("name", STREAMS)
def test_events_and_transcript_of_a_stream_show_the_same_calls(name: str) -> None:
    _check_stream(formats.read(sse(STREAMS[name]), "agui"))


def test_events_and_transcript_of_a_recording_show_the_same_calls() -> None:
    reading = formats.read(RECORDING.read_bytes(), "agui")
    _check_stream(reading)
    run = _concluded(reading)
    assert run.steps
    assert run.completeness is not None
    assert run.completeness.level == "complete"


@settings(max_examples=40)
@given(calls=CALLS, cut=st.integers(0, 400))
def test_a_stream_that_was_cut_shows_the_same_calls_in_both_views(calls: list[Call], cut: int) -> None:
    data = sse(agui_events(calls))
    kept = data[: max(len(data) - cut, 60)]
    _check_stream(formats.read(kept, "agui"))


class Made(msgspec.Struct):
    """A call as somebody made it."""

    name: str
    by: ExecutedBy
    id: str
    failed: bool


TURNS = st.lists(
    st.tuples(
        st.sampled_from(["agent", "provider", "user"]),
        st.lists(
            st.tuples(st.sampled_from(["find", "pay"]), st.sampled_from(["c0", "c1"]), st.booleans()),
            min_size=1,
            max_size=3,
        ),
    ),
    max_size=4,
)


def _items_of(turn: list[Made], results: list[Made]) -> list[dict[str, Any]]:
    """A turn with its results, which name their tools where the id does not tell."""
    by = turn[0].by
    entries = [{"id": call.id, "name": call.name, "arguments": {}} for call in turn]
    if by == "user":
        asked = {"role": "user", "content": "", "tool_calls": [{**entry, "requestor": "user"} for entry in entries]}
    elif by == "provider":
        parts = [{"type": "server_tool_use", "id": call.id, "name": call.name, "input": {}} for call in turn]
        asked = {"role": "assistant", "content": parts}
    else:
        asked = {"role": "assistant", "content": "", "tool_calls": entries}
    answers = []
    for call in results:
        answer = {"role": "tool", "tool_call_id": call.id, "content": "fine", "is_error": call.failed}
        if [other.id for other in turn].count(call.id) > 1:
            answer["name"] = call.name
        answers.append(answer)
    return [asked, *answers]


@settings(max_examples=150)
@given(turns=TURNS, data=st.data())
def test_every_call_keeps_its_own_facts_whoever_else_uses_its_id(turns: list[Any], data: st.DataObject) -> None:
    said: list[Made] = []
    items: list[dict[str, Any]] = []
    for by, made in turns:
        turn = [Made(name, by, call_id, failed) for name, call_id, failed in made]
        # The same tool twice under one id: nothing tells their results apart but their order.
        keys = data.draw(st.permutations(sorted({(call.id, call.name) for call in turn})))
        ordered = [call for key in keys for call in turn if (call.id, call.name) == key]
        items += _items_of(turn, ordered)
        said += turn
    items.append({"role": "assistant", "content": ANSWER})
    wanted = [(call.name, call.by, call.failed) for call in said]
    reading = formats.read(encoded({"text": ANSWER, "output_messages": items}), "output-messages")
    run = _concluded(reading)
    assert [(step.name, step.executed_by, step.status in FAILED) for step in run.steps] == wanted
    assert run.completeness is not None
    assert run.completeness.level == "complete"
    events = _recorded(run)
    assert _known(steps_from_events(events)) == _known(run.steps)
    assert to_transcript(fold(events)).messages == reading.transcript.done()


def _snapshot(turns: list[Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number, (_, made) in enumerate(turns):
        calls = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
            for name, call_id, _ in made
        ]
        messages.append({"id": f"m{number}", "role": "assistant", "toolCalls": calls})
        for place, (_, call_id, failed) in enumerate(made):
            result = {"id": f"t{number}-{place}", "role": "tool", "toolCallId": call_id, "content": "fine"}
            messages.append({**result, "error": "down"} if failed else result)
    return [*messages, {"id": "last", "role": "assistant", "content": ANSWER}]


@settings(max_examples=100)
@given(turns=TURNS, snapshots=st.integers(1, 2))
def test_calls_of_a_snapshot_keep_their_own_results_whatever_their_ids(turns: list[Any], snapshots: int) -> None:
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": _snapshot(turns)}
    start, end = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}, {"type": "RUN_FINISHED"}
    reading = formats.read(sse([start, *[snapshot] * snapshots, {**end, "threadId": "t", "runId": "r"}]), "agui")
    _check_stream(reading)
    assert reading.events is not None
    wanted: View = [(name, {}, failed) for _, made in turns for name, _, failed in made]
    assert _view(steps_from_events(reading.events)) == wanted


def _as_transcript(calls: list[Call]) -> Transcript:
    return formats.read(encoded({"text": ANSWER, "output_messages": openai(calls)}), "output-messages").transcript


def _results(transcript: Transcript) -> list[tuple[str, bool]]:
    return [
        (message.tool_call_id, message.is_error)
        for message in transcript.messages
        if isinstance(message, ToolResultMessage)
    ]


@pytest.mark.parametrize("format", [name for name in writable() if not name.endswith("-stream")])
@settings(max_examples=20)
@given(calls=CALLS)
def test_what_is_written_has_the_calls_and_failures_or_the_losses_say_so(format: str, calls: list[Call]) -> None:
    transcript = _as_transcript(calls)
    written = formats.write(transcript, format)
    back = formats.read(written.data, format).transcript
    before, after = (steps_from_transcript(each.messages) for each in (transcript, back))
    assert [(step.name, step.arguments) for step in before] == [(step.name, step.arguments) for step in after]
    if _results(transcript) != _results(back):
        assert any("is_error" in f"{loss.pointer} {loss.message}" for loss in written.losses)


@pytest.mark.parametrize("format", [name for name in writable() if not name.endswith("-stream")])
@pytest.mark.parametrize("where", ["user", "result"])
@pytest.mark.parametrize("source", ["data", "url"])
def test_the_type_of_an_image_is_kept_or_the_losses_say_so(format: str, where: str, source: str) -> None:
    image = ImageBlock("https://example.org/a" if source == "url" else "data:image/webp;base64,AAAA", "image/webp")
    messages: list[Message] = [UserMessage([TextBlock("look"), image] if where == "user" else "look")]
    if where == "result":
        messages.append(AssistantMessage([ToolCall("c", "see", {})], StopReason.TOOL_USE))
        messages.append(ToolResultMessage("c", "see", [image]))
    messages.append(AssistantMessage([TextBlock(ANSWER)], StopReason.END_TURN))
    written = formats.write(Transcript(messages), format)
    back = formats.read(written.data, format).transcript
    assert _types(back) == ["image/webp"] or written.losses


def _types(transcript: Transcript) -> list[str | None]:
    """The types of the images; a data URL says its own."""
    found: list[str | None] = []
    for message in transcript.messages:
        if isinstance(message, UserMessage | ToolResultMessage):
            images = [block for block in message.content if isinstance(block, ImageBlock)]
            found += [image.media_type or image.source.partition(";")[0].removeprefix("data:") for image in images]
    return found


WORDS = st.sampled_from([None, "ok", "error", "timeout", "cancelled", "wobbly"])
SAID = st.lists(
    st.tuples(st.sampled_from(["agent", "provider", "user"]), WORDS, WORDS, st.booleans(), st.booleans()), max_size=4
)


def _items_said(said: list[Any]) -> list[dict[str, Any]]:
    """Calls of which the record says who made them and how they ended, beside the call, the result or both."""
    items: list[dict[str, Any]] = []
    for number, (by, of_call, of_result, failed, answered) in enumerate(said):
        call_id = f"c{number % 3}"
        call: dict[str, Any] = {"id": call_id, "name": f"tool_{number % 2}", "arguments": {"n": number}}
        result: dict[str, Any] = {"role": "tool", "tool_call_id": call_id, "content": "fine", "is_error": failed}
        if of_call is not None:
            call["status"] = of_call
        if of_result is not None:
            result["status"] = of_result
        if by == "provider":
            part = {"type": "server_tool_use", "id": call_id, "name": call["name"], "input": {"n": number}}
            items.append({"role": "assistant", "content": [part]})
        elif by == "user":
            items.append({"role": "user", "content": "", "tool_calls": [{**call, "requestor": "user"}]})
        else:
            items.append({"role": "assistant", "content": "", "tool_calls": [call]})
        if answered:
            items.append(result)
    return [*items, {"role": "assistant", "content": ANSWER}]


def _reading_of(said: list[Any], dropped: bool) -> Reading:
    items = _items_said(said)
    if dropped:
        items.insert(0, {"role": "assistant", "content": [{"type": "mystery", "x": 1}, {"type": "text", "text": "Hm"}]})
    return formats.read(encoded({"text": ANSWER, "output_messages": items}), "output-messages")


@settings(max_examples=100)
@given(said=SAID, dropped=st.booleans())
def test_what_is_known_of_calls_is_in_the_events_that_are_stored(said: list[Any], dropped: bool) -> None:
    run = _concluded(_reading_of(said, dropped))
    events = _recorded(run)
    assert _known(steps_from_events(events)) == _known(run.steps)
    back = reading_of(events, [], "events", "r")
    transcript = back.transcript
    assert _known(steps_from_transcript(transcript.messages, back.facts, transcript.given)) == _known(run.steps)
    assert run.completeness is not None
    assert extract(back).completeness.level == run.completeness.level


@pytest.mark.parametrize("format", writable())
@settings(max_examples=30)
@given(said=SAID, dropped=st.booleans())
def test_a_converted_record_has_the_same_steps_or_the_losses_say_so(
    format: str, said: list[Any], dropped: bool
) -> None:
    reading = _reading_of(said, dropped)
    written = formats.write(reading, format)
    before, after = extract(reading), extract(formats.read(written.data))
    if _known(before.steps) != _known(after.steps) or before.completeness.level != after.completeness.level:
        assert written.losses
        assert format not in ("agui", "events", "transcript")


def test_a_user_who_calls_a_tool_is_not_taken_for_the_agent_in_a_converted_record() -> None:
    reading = _reading_of([("user", None, None, False, True)], dropped=False)
    for format in ("agui", "events", "transcript"):
        (step,) = extract(formats.read(formats.write(reading, format).data)).steps
        assert step.executed_by == "user"
    losses = formats.write(reading, "openai").losses
    assert ("/messages/1/content/0", "that the user ran the call is not carried") in [
        (loss.pointer, loss.message) for loss in losses
    ]


@pytest.mark.parametrize("format", writable())
def test_a_partial_record_is_not_complete_once_it_is_converted_unless_a_loss_says_so(format: str) -> None:
    for data in (
        encoded([{"role": "assistant", "content": [{"type": "mystery"}, {"type": "text", "text": ANSWER}]}]),
        encoded({"final_response": ANSWER}),
        encoded({"choices": [{"message": {"role": "assistant", "content": ANSWER}}]}),
    ):
        reading = formats.read(data)
        assert extract(reading).completeness.level != "complete"
        written = formats.write(reading, format)
        level = extract(formats.read(written.data, format)).completeness.level
        said = [loss for loss in written.losses if "of this record that is not known" in loss.message]
        assert said if format not in ("agui", "events", "transcript") else level != "complete"


def test_a_trace_that_is_not_carried_is_a_loss() -> None:
    trace = [{"type": "tool_call", "name": "refund", "output": "fine"}]
    reading = formats.read(encoded({"final_response": ANSWER, "trace": trace}))
    for format in writable():
        assert [loss.pointer for loss in formats.write(reading, format).losses if "trace" in loss.message] == ["/trace"]


def test_a_record_without_facts_is_written_as_ever() -> None:
    reading = formats.read(encoded(openai([Call("find", {}, "fine")])))
    for format in writable():
        assert formats.write(reading, format) == formats.write(reading.transcript, format)
