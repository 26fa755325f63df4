"""Formats that are recognised by name and not read: better refused than half understood.

Each has a function that says what gives it away. A document is refused when it is one; an entry among the messages of
another record is left out with a serious note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from seatrial.formats.sniffing import CERTAIN, SURE, Members, Sample, Sniff, first_byte, objects_of, text_of


class Unsupported(msgspec.Struct, frozen=True):
    """A format that is known and not read."""

    name: str
    """With its article, for a sentence."""
    sniff: Sniff


def find_unsupported(sample: Sample) -> Unsupported | None:
    """The format that the bytes are in, where it is one of those that are not read."""
    if sample.head.startswith(b"PK\x03\x04"):
        return Unsupported("a ZIP archive, as an Inspect log (.eval) is one", Sniff(CERTAIN, "it begins with PK"))
    for name, sniff in _FORMATS.items():
        if (found := sample.surest(sniff)) is not None:
            return Unsupported(name, found)
    return None


def find_unsupported_item(item: dict[str, Any]) -> str | None:
    """What an entry of a list is, where it belongs to a format that is not read; None when it is unknown."""
    opened = {
        key: msgspec.Raw(msgspec.json.encode(value)) if key in _LOOKED_AT else _PRESENT for key, value in item.items()
    }
    for name, sniff in _FORMATS.items():
        if sniff(opened) is not None:
            return name
    return None


def _has(*keys: str) -> Callable[[Members], Sniff | None]:
    reason = f"the keys {', '.join(keys[:-1])} and {keys[-1]}"

    def sniff(entry: Members) -> Sniff | None:
        return Sniff(SURE, reason) if all(key in entry for key in keys) else None

    return sniff


def _atif(entry: Members) -> Sniff | None:
    version = text_of(entry, "schema_version")
    if version is not None and version.upper().startswith("ATIF"):
        return Sniff(CERTAIN, f"schema_version {version[:20]}")
    if "step_id" in entry and "source" in entry:
        return Sniff(SURE, "steps with step_id and source")
    if "steps" in entry and "agent" in entry and "session_id" in entry:
        return Sniff(SURE, "the keys session_id, agent and steps")
    return None


def _inspect(entry: Members) -> Sniff | None:
    if "eval" in entry and "status" in entry and ("samples" in entry or "plan" in entry or "results" in entry):
        return Sniff(CERTAIN, "the keys eval, status and samples")
    if "epoch" in entry and "target" in entry and "messages" in entry:
        return Sniff(CERTAIN, "a sample with epoch, target and messages")
    return None


def _adk_eval(entry: Members) -> Sniff | None:
    if "eval_set_id" in entry and "eval_cases" in entry:
        return Sniff(CERTAIN, "an eval set with eval_cases")
    return None


def _openhands(entry: Members) -> Sniff | None:
    if "source" in entry and "timestamp" in entry and ("action" in entry or "observation" in entry):
        return Sniff(CERTAIN, "events with source, and an action or an observation")
    if "git_patch" in entry and "history" in entry:
        return Sniff(CERTAIN, "an output with history and git_patch")
    return None


def _promptfoo(entry: Members) -> Sniff | None:
    if "evalId" in entry and "results" in entry and "config" in entry:
        return Sniff(CERTAIN, "the keys evalId, results and config")
    if "datasetId" in entry and "prompts" in entry and "results" in entry:
        return Sniff(CERTAIN, "the keys results, prompts and datasetId")
    return None


def _otlp(entry: Members) -> Sniff | None:
    if "resourceSpans" in entry or "resource_spans" in entry:
        return Sniff(CERTAIN, "a key resourceSpans")
    if ("traceId" in entry or "trace_id" in entry) and ("spanId" in entry or "span_id" in entry):
        return Sniff(SURE, "spans with a trace and a span id")
    context = entry.get("context")
    if first_byte(context) == b"{" and "attributes" in entry and ("parent_id" in entry or "start_time" in entry):
        return Sniff(SURE, "spans with context and attributes")
    return None


def _openinference(entry: Members) -> Sniff | None:
    attributes = bytes(entry["attributes"])[:20_000] if "attributes" in entry else b""
    if b"openinference.span.kind" in attributes or "openinference.span.kind" in entry:
        return Sniff(CERTAIN, "spans with openinference.span.kind")
    return None


def _swe_agent(entry: Members) -> Sniff | None:
    if "trajectory" in entry and "info" in entry and ("history" in entry or "environment" in entry):
        return Sniff(CERTAIN, "the keys trajectory, history and info")
    return None


def _mini_swe_agent(entry: Members) -> Sniff | None:
    if "trajectory_format" in entry and "messages" in entry:
        return Sniff(CERTAIN, "a key trajectory_format")
    return None


def _deepeval(entry: Members) -> Sniff | None:
    for tools in ("tools_called", "toolsCalled", "expected_tools", "expectedTools"):
        if tools in entry and ("actual_output" in entry or "actualOutput" in entry):
            return Sniff(CERTAIN, f"a test case with {tools}")
    if "testCases" in entry or "test_cases" in entry:
        cases = objects_of(entry.get("testCases", entry.get("test_cases")))
        if cases and ("actualOutput" in cases[0] or "actual_output" in cases[0]):
            return Sniff(CERTAIN, "test cases with an actual output")
    return None


def _langsmith(entry: Members) -> Sniff | None:
    if "dotted_order" in entry or ("run_type" in entry and ("trace_id" in entry or "parent_run_id" in entry)):
        return Sniff(CERTAIN, "runs with run_type and dotted_order")
    return None


def _autogen(entry: Members) -> Sniff | None:
    first = objects_of(entry.get("messages"))[:1] if "stop_reason" in entry else [entry]
    if first and "source" in first[0] and "models_usage" in first[0]:
        return Sniff(CERTAIN, "messages with source and models_usage")
    return None


_FORMATS: Final[dict[str, Callable[[Members], Sniff | None]]] = {
    "an ATIF trajectory": _atif,
    "an ATOF event log": _has("atof_version", "kind"),
    "an Inspect log": _inspect,
    "an ADK eval set": _adk_eval,
    "an OpenHands trajectory": _openhands,
    "a promptfoo result": _promptfoo,
    "an OpenInference trace": _openinference,
    "an OpenTelemetry (OTLP) trace": _otlp,
    "a mini-swe-agent trajectory": _mini_swe_agent,
    "a SWE-agent trajectory": _swe_agent,
    "a DeepEval result": _deepeval,
    "a LangSmith run": _langsmith,
    "an AutoGen message or result": _autogen,
    "a LlamaIndex message": _has("blocks", "additional_kwargs"),
    "a Semantic Kernel message": _has("content_type", "items"),
    "a Letta message": _has("message_type", "id"),
    "a tau2 task file": _has("user_scenario", "evaluation_criteria"),
    "a tau2 result": _has("simulations", "tasks"),
}
REFUSED: Final = tuple(_FORMATS)
"""What is recognised and refused, each with its article."""
_LOOKED_AT: Final = frozenset({"schema_version", "type", "context", "attributes", "testCases", "test_cases"})
_PRESENT: Final = msgspec.Raw(b"true")
