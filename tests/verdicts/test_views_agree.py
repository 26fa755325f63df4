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
from seatrial.events import unfold
from seatrial.formats.reading import Reading
from seatrial.formats.registry import writable
from seatrial.runs import Run, RunKey
from seatrial.runs.case import Case
from seatrial.runs.conclusion import conclude, given_messages
from seatrial.trajectory import Step, steps_from_events, steps_from_transcript
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


def _view(steps: Iterable[Step]) -> View:
    return [
        (step.name, step.arguments if step.arguments_text is None else step.arguments_text, step.status in FAILED)
        for step in steps
        if step.executed_by != "user"
    ]


def _concluded(reading: Reading, case: Case | None = None) -> Run:
    run = Run(run_id="r", experiment_id="e", key=RunKey("agent", "case", 1), status="completed")
    conclude(run, reading, given_messages(case) if case is not None else [UserMessage(INSTRUCTION)])
    return run


def _check_views(run: Run) -> None:
    """What must hold of every run, whatever it was read from."""
    assert run.reading is not None
    transcript = run.reading.transcript
    assert _view(steps_from_transcript(transcript.done(), run.reading.calls)) == _view(run.steps)
    # As runs are recorded: the events are those of the run, and not of what it started from.
    own = msgspec.structs.replace(transcript, messages=transcript.done(), given=[])
    recorded = unfold(own, thread_id="t", run_id="r")
    assert _view(steps_from_events(recorded)) == _view(run.steps)
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
    if not shape.startswith("trace"):  # the transcript beside it has no calls
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
    said = steps_from_transcript(reading.transcript.done(), reading.calls)
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
