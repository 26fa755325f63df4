from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seatrial.events import types as t
from seatrial.formats.chat.limits import MAX_VALUES
from seatrial.formats.output_messages import read_object
from seatrial.formats.reading import Reading, TraceEvent
from seatrial.trajectory import Step, Trajectory, extract, resolve_trace_ref
from seatrial.trajectory.extraction import MAX_DIFFERENCES
from seatrial.transcript import AssistantMessage, Note, StopReason, ToolCall, Transcript
from seatrial.transcript.call_facts import CallFacts, PlacedFacts


def reading(*names: str, trace: list[str] | None = None, **more: Any) -> Reading:
    """A record whose messages, and trace, have calls of these names."""
    messages = [AssistantMessage([ToolCall(name, name, {})], StopReason.TOOL_USE) for name in names]
    events = None if trace is None else [TraceEvent("tool_call", name=name) for name in trace]
    return Reading("output-messages", Transcript([*messages]), [], trace=events, **more)


def called(trajectory: Trajectory) -> tuple[str, list[str]]:
    return trajectory.source, [step.name for step in trajectory.steps]


def codes(trajectory: Trajectory) -> list[str]:
    return [note.code for note in trajectory.notes]


OBSERVED = [Step(0, "a", {}, source="observed", mode="simulated")]


# Which source counts


def test_messages_count_when_there_is_nothing_else() -> None:
    assert called(extract(reading("a", "b"))) == ("messages", ["a", "b"])
    assert called(extract(reading())) == ("messages", [])


def test_a_trace_counts_before_messages() -> None:
    assert called(extract(reading("a", trace=["b"]))) == ("trace", ["b"])


def test_an_empty_trace_wins_too() -> None:
    trajectory = extract(reading("a", trace=[]))
    assert called(trajectory) == ("trace", [])
    assert codes(trajectory) == ["trace_and_messages_both_given", "trace_disagrees_with_messages"]


def test_of_an_agent_that_has_only_the_tools_of_the_world_the_observed_calls_are_the_steps() -> None:
    for observed in (OBSERVED, []):
        calls = [step.name for step in observed]
        trajectory = extract(reading(*calls, trace=calls), observed=observed, tool_access="world")
        assert called(trajectory) == ("observed", calls)
        known = trajectory.completeness
        assert (known.level, known.basis, known.sources) == ("complete", "observed", ["observed", "trace", "messages"])
    assert called(extract(reading("a"), observed=None, tool_access="world")) == ("messages", ["a"])


@pytest.mark.parametrize(
    "record",
    [reading("a", "b"), reading("a", "b", trace=["a", "b"]), reading("a", "b", trace=["a"]), reading("b", trace=[])],
    ids=["messages", "trace", "messages beside a trace", "messages beside an empty trace"],
)
def test_a_call_that_only_the_agent_reports_leaves_it_in_doubt_whether_all_were_observed(record: Reading) -> None:
    known = extract(record, observed=OBSERVED, tool_access="world").completeness
    assert (known.level, known.basis) == ("partial", "observed")
    assert {reason.code for reason in known.reasons} == {"reported_call_not_observed"}
    assert "'b' was reported" in known.reasons[0].message


def test_a_call_that_was_made_with_other_arguments_than_reported_is_observed() -> None:
    observed = [Step(0, "a", {"id": 1}, source="observed", mode="simulated")]
    trajectory = extract(reading("a"), observed=observed, tool_access="world")
    assert codes(trajectory) == ["reported_call_not_observed", "observed_call_not_reported"]
    assert trajectory.completeness.level == "complete"


OWN: list[tuple[list[str], list[str], list[str]]] = [
    # reported, observed, steps (o: observed)
    (["a"], ["a"], ["o:a"]),
    (["a", "x", "b"], ["a", "b"], ["o:a", "x", "o:b"]),
    (["a", "x", "b"], ["b", "a"], ["o:b", "x", "o:a"]),
    (["x", "y"], ["a"], ["x", "y", "o:a"]),
    (["a", "x"], ["z", "a"], ["o:z", "o:a", "x"]),
    (["a", "a"], ["a"], ["o:a", "a"]),
    (["a"], ["a", "a"], ["o:a", "o:a"]),
    ([], ["a"], ["o:a"]),
    (["a"], [], ["a"]),
]


@pytest.mark.parametrize(("reported", "observed", "steps"), OWN)
def test_of_an_agent_with_tools_of_its_own_no_call_vanishes_and_none_counts_twice(
    reported: list[str], observed: list[str], steps: list[str]
) -> None:
    seen = [Step(index, name, {}, source="observed") for index, name in enumerate(observed)]
    for access in ("own", "none"):
        trajectory = extract(reading(*reported), observed=seen, tool_access=access)
        found = [("o:" if step.source == "observed" else "") + step.name for step in trajectory.steps]
        assert found == steps
        assert [step.index for step in trajectory.steps] == [*range(len(steps))]


def test_a_reported_call_is_the_observed_one_only_with_the_same_arguments_or_the_same_id() -> None:
    record = reading("a")
    other = [Step(0, "a", {"id": 8}, source="observed")]
    assert [step.arguments for step in extract(record, observed=other).steps] == [{}, {"id": 8}]
    same_id = [Step(0, "a", {"id": 8}, "a", source="observed")]
    assert [step.arguments for step in extract(record, observed=same_id).steps] == [{"id": 8}]
    assert codes(extract(record, observed=same_id)) == ["reported_call_differs"]
    other_tool = [Step(0, "b", {}, "a", source="observed")]
    assert [step.name for step in extract(record, observed=other_tool).steps] == ["a", "b"]


def test_a_call_of_the_users_own_tool_is_no_report_of_the_agents_call() -> None:
    record = reading("a")
    record.facts = [PlacedFacts(0, CallFacts(executed_by="user"))]
    steps = extract(record, observed=OBSERVED).steps
    assert [(step.executed_by, step.source) for step in steps] == [("user", "messages"), ("agent", "observed")]


def test_an_answer_and_observed_calls_of_an_agent_with_tools_of_its_own_are_not_complete() -> None:
    answer = Reading("agent-response", Transcript([AssistantMessage([], StopReason.END_TURN)]), [], answer_only=True)
    known = extract(answer, observed=OBSERVED).completeness
    assert (known.level, known.basis, [note.code for note in known.reasons]) == (
        "partial",
        "observed",
        ["calls_not_listed"],
    )
    assert extract(answer, observed=[]).completeness.level == "none"
    assert extract(answer, observed=[], tool_access="world").completeness.level == "complete"
    assert extract(answer, observed=[], tool_access="none").completeness.level == "complete"


def test_what_an_agent_reports_makes_its_calls_as_complete_as_its_report() -> None:
    known = extract(reading("a", "b"), observed=OBSERVED).completeness
    assert (known.level, known.source, known.basis, known.sources) == (
        "complete",
        "messages",
        "reported",
        ["observed", "messages"],
    )
    dropped = reading("a")
    dropped.notes.append(Note("made_up", "/messages/1", "a message was dropped", weight="serious"))
    assert extract(dropped, observed=OBSERVED).completeness.level == "partial"
    assert extract(dropped, observed=OBSERVED, tool_access="world").completeness.level == "complete"


def test_events_count_before_the_messages_that_were_made_of_them() -> None:
    stream: list[t.Event] = [t.ToolCallStart(tool_call_id="1", tool_call_name="b")]
    trajectory = extract(reading("b", events=stream))
    assert called(trajectory) == ("events", ["b"])
    assert [step.name for step in trajectory.others["messages"]] == ["b"]
    assert called(extract(reading("b", events=[]))) == ("messages", ["b"])


def test_a_suite_may_name_another_source() -> None:
    record = reading("m", trace=["t"])
    trajectory = extract(record, prefer="messages")
    assert called(trajectory) == ("messages", ["m"])
    assert {source: [step.name for step in steps] for source, steps in trajectory.others.items()} == {"trace": ["t"]}


def test_a_named_source_that_does_not_exist_is_a_note_and_another_counts() -> None:
    trajectory = extract(reading("m"), prefer="trace")
    assert called(trajectory) == ("messages", ["m"])
    assert codes(trajectory) == ["preferred_source_absent"]


def test_all_sources_that_exist_are_kept() -> None:
    trajectory = extract(reading("m", trace=["t"]), observed=OBSERVED)
    assert [*trajectory.others] == ["trace", "messages"]
    assert [step.name for step in trajectory.steps] == ["t", "a"]


def test_notes_on_trace_events_point_into_the_trace() -> None:
    record = reading(trace=["a"])
    record.trace = [TraceEvent("tool_call", name="a"), TraceEvent("tool_result", output=1)]
    assert [(note.code, note.pointer) for note in extract(record).notes] == [
        ("tool_result_paired_by_order", "/trace/1")
    ]


# The trace file


FILE = b'[{"type":"tool_call","name":"f","id":"1"},{"type":"tool_result","id":"1","output":1},{"type":"oops"}]'
WHOLE_FILE = b'[{"type":"tool_call","name":"f"}]'


def test_a_trace_file_counts_when_there_is_no_trace() -> None:
    trajectory = extract(reading("m", trace_ref="t.json"), trace_file=FILE)
    assert called(trajectory) == ("trace", ["f"])
    assert codes(trajectory) == [
        "trace_event_dropped",
        "trace_and_messages_both_given",
        "trace_disagrees_with_messages",
    ]
    assert called(extract(reading("m", trace_ref="t.json"), trace_file=b'{"trace":' + FILE + b"}")) == ("trace", ["f"])


def test_beside_a_trace_in_the_record_a_file_does_not_count_but_must_show_the_same_calls() -> None:
    other = extract(reading("m", trace=["t"], trace_ref="t.json"), trace_file=FILE)
    assert called(other) == ("trace", ["t"])
    assert "trace_disagrees_with_file" in [note.code for note in other.completeness.reasons]
    same = extract(reading(trace=["f"], trace_ref="t.json"), trace_file=WHOLE_FILE)
    assert (called(same), same.completeness.level) == (("trace", ["f"]), "complete")


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (b'{"trace":[{"type":"tool_call","name":"pay","id":"1"}],"trace":[]}', "key_twice_in_object"),
        (b'[{"type":"model_step","type":"tool_call","name":"f","name":"g"}]', "key_twice_in_object"),
        (b'{"trace":[],"steps":[{"type":"tool_call","name":"pay"}]}', "calls_in_metadata"),
    ],
)
def test_a_trace_file_is_read_with_the_care_of_a_record(file: bytes, code: str) -> None:
    known = extract(reading(trace_ref="t.json"), trace_file=file).completeness
    assert (known.level, [note.code for note in known.reasons]) == ("partial", [code])


def test_what_else_is_in_a_trace_file_leaves_nothing_in_doubt() -> None:
    file = b'{"version": 1, "trace": ' + WHOLE_FILE + b', "usage": {"input_tokens": 5}}'
    assert extract(reading(trace_ref="t.json"), trace_file=file).completeness.level == "complete"


@pytest.mark.parametrize("file", [None, b"", b"{", b"5", b'{"a":1}', b'[{"type":"oops"}]', b"\xff", b"[" * 5000])
def test_a_trace_file_that_cannot_be_read_is_a_note_and_the_next_source_counts(file: bytes | None) -> None:
    trajectory = extract(reading("m", trace_ref="t.json"), trace_file=file)
    assert called(trajectory) == ("messages", ["m"])
    assert trajectory.notes[0].pointer.startswith("/trace_ref")


def test_the_reason_why_a_trace_file_was_not_read_is_kept() -> None:
    reason = Note("trace_ref_not_read", "/trace_ref", "no such file")
    assert extract(reading("m", trace_ref="t.json"), trace_file=reason).notes == [reason]


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        ("t.json", "/out/run/t.json"),
        ("./a/../t.json", "/out/run/t.json"),
        ("/out/run/deep/t.json", "/out/run/deep/t.json"),
        ("/suite/t.json", "/suite/t.json"),
        ("..", None),
        (".", None),
        ("", None),
        (" ", None),
        ("../t.json", None),
        ("a/../../run2/t.json", None),
        ("/etc/passwd", None),
        ("/out/runner/t.json", None),
        ("a\0b", None),
    ],
)
def test_a_trace_ref_leads_nowhere_but_below_the_directories(ref: str, path: str | None) -> None:
    found = resolve_trace_ref(ref, "/out/run", ["/suite/"])
    assert found == path if path else isinstance(found, Note)


# Contradictions


def test_a_trace_and_messages_that_agree_get_one_note() -> None:
    assert codes(extract(reading("a", "b", trace=["a", "b"]))) == ["trace_and_messages_both_given"]
    assert codes(extract(reading(trace=["a"]))) == []


def test_null_arguments_in_messages_and_none_in_a_trace_agree() -> None:
    record = read_object(
        {
            "text": "x",
            "trace": [{"type": "tool_call", "name": "a", "input": None}],
            "output_messages": [{"role": "assistant", "tool_calls": [{"tool": "a", "input": None}]}],
        }
    )
    assert codes(extract(record)) == ["trace_and_messages_both_given"]


def test_calls_in_another_order_disagree() -> None:
    assert "trace_disagrees_with_messages" in codes(extract(reading("a", "b", trace=["b", "a"])))


def test_a_call_that_was_reported_but_not_made_is_a_note_that_points_at_it() -> None:
    trajectory = extract(reading("a", "b", "a"), observed=OBSERVED)
    assert [(note.code, note.pointer) for note in trajectory.notes] == [
        ("reported_call_not_observed", "/steps/1"),
        ("reported_call_not_observed", "/steps/2"),
    ]
    silent = extract(reading("a"), observed=[], tool_access="world")
    assert [(note.code, note.pointer) for note in silent.notes] == [
        ("reported_call_not_observed", "/others/messages/0")
    ]


def test_of_many_differences_the_first_are_notes() -> None:
    many = reading(*[f"t{index}" for index in range(MAX_DIFFERENCES + 5)])
    assert len(extract(many, observed=OBSERVED).notes) == MAX_DIFFERENCES + 1


def test_a_call_that_was_made_but_not_reported_is_a_note_that_points_at_it() -> None:
    observed = [*OBSERVED, Step(1, "b", {"q": 1}, source="observed")]
    trajectory = extract(reading("a"), observed=observed)
    assert [(note.code, note.pointer) for note in trajectory.notes] == [("observed_call_not_reported", "/steps/1")]


def test_observed_and_reported_calls_may_come_in_another_order() -> None:
    observed = [Step(0, "b", {}, source="observed"), Step(1, "a", {}, source="observed")]
    assert codes(extract(reading("a", "b"), observed=observed)) == []


def test_nothing_is_said_about_honesty_when_no_call_of_an_agent_with_tools_of_its_own_was_observed() -> None:
    assert codes(extract(reading("a"), observed=[])) == []
    assert codes(extract(reading("a"))) == []


# The summary, and the whole as JSON


def test_the_summary_is_of_the_steps_that_count() -> None:
    trajectory = extract(reading("a", "b", trace=["t", "t"]))
    assert (trajectory.summary.steps, trajectory.summary.by_name) == (2, {"t": 2})
    assert trajectory.summary.model_calls == 2


def test_model_calls_are_the_model_steps_of_a_trace_that_has_them() -> None:
    record = reading("a")
    record.trace = [TraceEvent("model_step"), TraceEvent("model_step"), TraceEvent("tool_call", name="a")]
    assert extract(record).summary.model_calls == 2


def test_a_trajectory_is_written_with_source_steps_summary_and_notes() -> None:
    written = msgspec.json.decode(msgspec.json.encode(extract(reading())))
    assert [*written] == ["source", "steps", "summary", "notes", "completeness"]
    assert msgspec.json.decode(msgspec.json.encode(extract(reading("a", trace=["a"]))), type=Trajectory).others


def test_a_trace_file_with_far_too_much_in_it_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.trajectory.extraction.wire.decode", pytest.fail)
    trajectory = extract(reading("m", trace_ref="t.json"), trace_file=b"[" + b"{}," * MAX_VALUES + b"{},{}]")
    assert trajectory.source == "messages"
    assert trajectory.notes[0].code == "trace_ref_not_read"
    assert "more than 200,000 values" in trajectory.notes[0].message
    assert trajectory.completeness.level == "partial"
