"""Strategies for transcripts: anything the types allow, and conversations that make sense.

Text has no lone surrogates, timestamps lie in 0..2**53, numbers are those every JSON reader agrees on, and
the raw reasoning details are compact JSON. Strategies that are drawn in a loop are made once: making one is slow.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st

from seatrial.transcript import (
    AssistantBlock,
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    ReasoningBlock,
    ReasoningDetailsBlock,
    RunIdentity,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Transcript,
    Usage,
    UserBlock,
    UserMessage,
)

MAX_SAFE_INTEGER = 2**53


def texts(*, min_size: int = 0, max_size: int = 20) -> st.SearchStrategy[str]:
    """Any text that UTF-8 can carry."""
    return st.text(st.characters(exclude_categories=["Cs"]), min_size=min_size, max_size=max_size)


def names() -> st.SearchStrategy[str]:
    """Names of tools."""
    return st.from_regex(r"[a-z][a-z0-9_]{0,11}", fullmatch=True)


def json_scalars() -> st.SearchStrategy[Any]:
    """null, booleans, numbers and strings."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER),
        st.floats(allow_nan=False, allow_infinity=False),
        texts(),
    )


def json_values(*, max_leaves: int = 6) -> st.SearchStrategy[Any]:
    """Any JSON value."""
    return st.recursive(
        json_scalars(),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts(max_size=8), inner, max_size=3)),
        max_leaves=max_leaves,
    )


def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects, as tool arguments mostly are."""
    return st.dictionaries(texts(max_size=8), json_values(max_leaves=4), max_size=3)


def raw_json() -> st.SearchStrategy[msgspec.Raw]:
    """JSON bytes: generated values, and spellings that a decoded value would not keep."""
    spellings = st.sampled_from(
        [b"1.50", b"1e5", b"-0", b'"\\u0041"', b'{"b":1,"a":2}', b'{"a":1,"a":2}', b"18446744073709551616", b"1e999"]
    )
    return st.one_of(json_values().map(msgspec.json.encode), spellings).map(msgspec.Raw)


def timestamps() -> st.SearchStrategy[int]:
    """Milliseconds since the epoch."""
    return st.integers(0, MAX_SAFE_INTEGER)


def _maybe_timestamp() -> st.SearchStrategy[int | None]:
    return st.none() | timestamps()


def usages() -> st.SearchStrategy[Usage]:
    """Token counts."""
    count = st.integers(0, MAX_SAFE_INTEGER)
    return st.builds(Usage, count, count, count, count)


def text_blocks() -> st.SearchStrategy[TextBlock]:
    """Visible text."""
    return st.builds(TextBlock, texts())


def image_blocks() -> st.SearchStrategy[ImageBlock]:
    """Images by URL."""
    source = st.sampled_from(["data:image/png;base64,iVBORw0=", "https://example.com/cat.png"])
    return st.builds(ImageBlock, source, st.none() | st.just("image/png"), st.none() | texts())


def user_blocks() -> st.SearchStrategy[UserBlock]:
    """What users and tool results hold."""
    return st.one_of(text_blocks(), image_blocks())


def reasoning_details_blocks() -> st.SearchStrategy[ReasoningDetailsBlock]:
    """Native reasoning details, as bytes."""
    return st.builds(ReasoningDetailsBlock, st.lists(raw_json(), max_size=3))


def tool_calls(*, arguments: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[ToolCall]:
    """Tool calls with any arguments, objects mostly."""
    if arguments is None:
        arguments = st.one_of(json_objects(), json_objects(), json_values())
    return st.builds(ToolCall, texts(min_size=1, max_size=8), names(), arguments)


def assistant_blocks() -> st.SearchStrategy[AssistantBlock]:
    """Every kind of assistant block."""
    return st.one_of(
        text_blocks(),
        st.builds(ThinkingBlock, texts()),
        st.builds(ReasoningBlock, texts()),
        reasoning_details_blocks(),
        tool_calls(),
    )


@cache
def system_messages() -> st.SearchStrategy[SystemMessage]:
    """System prompts."""
    return st.builds(SystemMessage, texts(), _maybe_timestamp())


@cache
def user_messages() -> st.SearchStrategy[UserMessage]:
    """User messages with a string or blocks."""
    return st.builds(UserMessage, st.one_of(texts(), st.lists(user_blocks(), max_size=3)), _maybe_timestamp())


@cache
def assistant_messages() -> st.SearchStrategy[AssistantMessage]:
    """Assistant messages with any blocks in any order."""
    return st.builds(
        AssistantMessage,
        st.lists(assistant_blocks(), max_size=5),
        st.sampled_from(StopReason),
        error_message=st.none() | texts(),
        timestamp=_maybe_timestamp(),
        usage=st.none() | usages(),
    )


@cache
def tool_result_messages() -> st.SearchStrategy[ToolResultMessage]:
    """Tool results, for calls that need not exist."""
    return st.builds(
        ToolResultMessage,
        texts(min_size=1, max_size=8),
        names(),
        st.lists(user_blocks(), max_size=3),
        is_error=st.booleans(),
        narration=st.none() | texts(),
        details=st.none() | json_values(),
        timestamp=_maybe_timestamp(),
    )


def custom_messages() -> st.SearchStrategy[CustomMessage]:
    """Messages of an application."""
    return st.builds(CustomMessage, names(), json_values(), _maybe_timestamp())


def messages() -> st.SearchStrategy[Message]:
    """Any message."""
    return st.one_of(
        system_messages(), user_messages(), assistant_messages(), tool_result_messages(), custom_messages()
    )


def message_lists(*, max_size: int = 6) -> st.SearchStrategy[list[Message]]:
    """Messages in any order; no call need have its result."""
    return st.lists(messages(), max_size=max_size)


@st.composite
def conversations(draw: st.DrawFn, *, max_turns: int = 3) -> list[Message]:
    """Messages as an agent makes them: call ids are unique, and each call has one result right after its turn."""
    conversation: list[Message] = [draw(system_messages())] if draw(st.booleans()) else []
    conversation.append(draw(user_messages()))
    calls_made = 0
    for _ in range(draw(st.integers(0, max_turns))):
        turn = draw(assistant_messages())
        calls = turn.tool_calls()
        for call in calls:
            calls_made += 1
            call.id = f"call_{calls_made}"
        turn.stop_reason = StopReason.TOOL_USE if calls else StopReason.END_TURN
        conversation.append(turn)
        for call in calls:
            result = draw(tool_result_messages())
            result.tool_call_id, result.tool_name = call.id, call.name
            conversation.append(result)
        if not calls and draw(st.booleans()):
            conversation.append(draw(user_messages()))
    return conversation


def identities() -> st.SearchStrategy[RunIdentity]:
    """Identities of runs."""
    return st.builds(
        RunIdentity,
        texts(min_size=1),
        parent_run_id=st.none() | texts(min_size=1),
        depth=st.integers(0, 9),
        conversation_id=st.none() | texts(),
        deadline_unix_ms=_maybe_timestamp(),
    )


def transcripts() -> st.SearchStrategy[Transcript]:
    """A conversation with what a source says about the run."""
    amount = st.floats(min_value=0, max_value=1e9)
    return st.builds(
        Transcript,
        conversations(),
        answer=st.none() | texts(),
        identity=st.none() | identities(),
        usage=st.none() | usages(),
        cost_usd=st.none() | amount,
        duration_ms=st.none() | amount,
        metadata=json_objects(),
    )
