"""Reasoning items, and the audit of their replay (transcript.md 1.3)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.messages import json_values, raw_json, texts

from seatrial.transcript.messages import ReasoningDetailsBlock
from seatrial.transcript.reasoning import (
    MissingSignatures,
    OpenRouterReasoningCodec,
    ReasoningCodec,
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningItem,
    ReasoningSummary,
    ReasoningText,
    ReplayAudit,
    ReplayContract,
    as_items,
    audit_replay,
    carries_signed_payload,
    from_items,
    from_openrouter_value,
    has_signed_payload,
    to_openrouter_value,
)

ANTHROPIC = ReasoningFormat.ANTHROPIC_CLAUDE_V1
XAI = ReasoningFormat.XAI_RESPONSES_V1
UNKNOWN = ReasoningFormat.UNKNOWN


def items() -> st.SearchStrategy[ReasoningItem]:
    head: dict[str, Any] = {
        "id": st.none() | texts(),
        "format": st.sampled_from(ReasoningFormat),
        "index": st.none() | st.integers(0, 2**32 - 1),
    }
    return st.one_of(
        st.builds(ReasoningText, **head, text=texts(), signature=st.none() | texts()),
        st.builds(ReasoningSummary, **head, summary=texts()),
        st.builds(ReasoningEncrypted, **head, data=texts()),
    )


def test_formats_are_known_by_their_wire_names_and_all_others_are_unknown() -> None:
    assert [format.value for format in ReasoningFormat] == [
        "anthropic-claude-v1",
        "google-gemini-v1",
        "openai-responses-v1",
        "azure-openai-responses-v1",
        "xai-responses-v1",
        "unknown",
    ]
    assert ReasoningFormat("brand-new-v9") is UNKNOWN
    decoded = msgspec.json.decode(
        b'{"type":"reasoning.summary","format":"new","summary":"s"}', type=ReasoningText | ReasoningSummary
    )
    assert decoded == ReasoningSummary(format=UNKNOWN, summary="s")


@pytest.mark.parametrize(
    "value", ['{"type":"reasoning.text","text":"x"}', '{"type":"reasoning.text","format":"unknown"}']
)
def test_direct_decoding_requires_the_format_and_the_body(value: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(value, type=ReasoningText)


@pytest.mark.parametrize(
    ("value", "item"),
    [
        (
            {"type": "reasoning.text", "id": "r1", "format": "anthropic-claude-v1", "index": 3, "text": "t"},
            ReasoningText(id="r1", format=ANTHROPIC, index=3, text="t"),
        ),
        (
            {"type": "reasoning.text", "text": "t", "signature": ""},
            ReasoningText(format=UNKNOWN, text="t", signature=""),
        ),
        ({"type": "reasoning.summary", "format": 5, "id": None}, ReasoningSummary(format=UNKNOWN, summary="")),
        (
            {"type": "reasoning.encrypted", "format": "new-v2", "data": 5, "index": -1, "more": 1},
            ReasoningEncrypted(format=UNKNOWN, data=""),
        ),
        (
            {"type": "reasoning.text", "index": 2**32 + 7, "signature": 1},
            ReasoningText(format=UNKNOWN, index=7, text=""),
        ),
        ({"type": "reasoning.text", "index": 1.0}, ReasoningText(format=UNKNOWN, text="")),
        ({"type": "reasoning.text", "index": True}, ReasoningText(format=UNKNOWN, text="")),
        ({"type": "reasoning.text", "index": 2**64}, ReasoningText(format=UNKNOWN, text="")),
        ({"type": "reasoning.other", "text": "t"}, None),
        ({"type": ["reasoning.text"]}, None),
        ({"text": "t"}, None),
        ("reasoning.text", None),
        (None, None),
    ],
)
def test_lifting_is_lax_about_everything_but_the_type(value: Any, item: ReasoningItem | None) -> None:
    assert from_openrouter_value(value) == item
    assert from_openrouter_value(msgspec.Raw(json.dumps(value).encode())) == item


def test_a_member_that_cannot_be_held_does_not_hide_the_item() -> None:
    raw = msgspec.Raw(b'{"type":"reasoning.encrypted","data":"d","index":1e999,"cost":1e999}')
    assert from_openrouter_value(raw) == ReasoningEncrypted(format=UNKNOWN, data="d")


def test_projection_writes_the_keys_in_order_and_leaves_none_out() -> None:
    full = ReasoningText(id="r", format=XAI, index=0, text="t", signature="s")
    assert list(to_openrouter_value(full).items()) == [
        ("type", "reasoning.text"),
        ("id", "r"),
        ("format", "xai-responses-v1"),
        ("index", 0),
        ("text", "t"),
        ("signature", "s"),
    ]
    assert to_openrouter_value(ReasoningSummary(format=UNKNOWN, summary="")) == {
        "type": "reasoning.summary",
        "format": "unknown",
        "summary": "",
    }


@given(items())
def test_items_survive_projection_and_lifting(item: ReasoningItem) -> None:
    assert from_openrouter_value(to_openrouter_value(item)) == item
    assert as_items(from_items([item, item])) == [item, item]


@given(st.one_of(json_values(), raw_json()))
def test_lifting_never_fails(value: Any) -> None:
    from_openrouter_value(value)


@pytest.mark.parametrize(
    ("item", "signed"),
    [
        (ReasoningText(format=UNKNOWN, text="t"), False),
        (ReasoningText(format=UNKNOWN, text="t", signature=""), True),
        (ReasoningSummary(format=ANTHROPIC, summary="s"), False),
        (ReasoningEncrypted(format=UNKNOWN, data=""), True),
    ],
)
def test_signed_text_and_anything_encrypted_carry_a_signed_payload(item: ReasoningItem, signed: bool) -> None:
    assert carries_signed_payload(item) is signed
    assert has_signed_payload(from_items([item])) is signed


def test_unrecognised_details_are_skipped_in_the_typed_view_only() -> None:
    block = ReasoningDetailsBlock([msgspec.Raw(b'{"type":"new"}'), msgspec.Raw(b"5")])
    assert as_items(block) == []
    assert not has_signed_payload(block)
    assert len(block.details) == 2


@pytest.mark.parametrize(
    ("format", "contract"),
    [
        (ReasoningFormat.ANTHROPIC_CLAUDE_V1, ReplayContract.REQUIRED_WITH_TOOLS),
        (ReasoningFormat.GOOGLE_GEMINI_V1, ReplayContract.REQUIRED_WITH_TOOLS),
        (ReasoningFormat.OPENAI_RESPONSES_V1, ReplayContract.REQUIRED_WITH_TOOLS),
        (ReasoningFormat.AZURE_OPENAI_RESPONSES_V1, ReplayContract.REQUIRED_WITH_TOOLS),
        (ReasoningFormat.XAI_RESPONSES_V1, ReplayContract.STATELESS),
        (ReasoningFormat.UNKNOWN, ReplayContract.STATELESS),
    ],
)
def test_each_format_has_its_replay_contract(format: ReasoningFormat, contract: ReplayContract) -> None:
    assert ReplayContract.of(format) is contract


@pytest.mark.parametrize(
    ("contract", "tools", "required"),
    [
        (ReplayContract.STATELESS, True, False),
        (ReplayContract.REQUIRED_WITH_TOOLS, False, False),
        (ReplayContract.REQUIRED_WITH_TOOLS, True, True),
        (ReplayContract.ALWAYS_REQUIRED, False, True),
    ],
)
def test_the_audit_misses_signatures_only_where_they_are_required(
    contract: ReplayContract, tools: bool, required: bool
) -> None:
    unsigned = [ReasoningText(format=XAI, text="t"), ReasoningText(format=ANTHROPIC, text="t")] * 2
    signed: list[ReasoningItem] = [*unsigned, ReasoningEncrypted(format=XAI, data="")]
    formats = [ANTHROPIC, XAI]
    violation = MissingSignatures(contract, formats) if required else None
    assert audit_replay(unsigned, contract, next_turn_carries_tools=tools) == ReplayAudit(4, 0, formats, violation)
    assert audit_replay(signed, contract, next_turn_carries_tools=tools) == ReplayAudit(5, 1, formats, None)


def test_the_audit_also_fires_without_any_items() -> None:
    audit = audit_replay([], ReplayContract.ALWAYS_REQUIRED, next_turn_carries_tools=False)
    assert audit == ReplayAudit(0, 0, [], MissingSignatures(ReplayContract.ALWAYS_REQUIRED, []))


def test_the_codec_skips_what_it_does_not_know_and_writes_only_into_objects() -> None:
    codec: ReasoningCodec = OpenRouterReasoningCodec()
    item = ReasoningSummary(format=UNKNOWN, summary="s")
    assert codec.parse_response([{"type": "new"}, to_openrouter_value(item), 5]) == [item]
    message: dict[str, Any] = {"role": "assistant"}
    codec.write_assistant(message, [])
    assert message == {"role": "assistant"}
    codec.write_assistant(message, [item])
    assert message["reasoning_details"] == [to_openrouter_value(item)]
    codec.write_assistant("not an object", [item])
