"""Who a run is (transcript.md 1.1, RunIdentity and AgentContext)."""

from __future__ import annotations

import uuid

import msgspec
import pytest
from hypothesis import given
from strategies.messages import identities

from seatrial.transcript import AgentContext, RunIdentity, UserMessage


def test_a_root_has_a_fresh_uuid4_and_depth_zero() -> None:
    root = RunIdentity.root()
    assert uuid.UUID(root.run_id).version == 4
    assert root.run_id != RunIdentity.root().run_id
    assert (root.depth, root.parent_run_id, root.conversation_id, root.deadline_unix_ms) == (0, None, None, None)


def test_a_child_is_one_deeper_and_inherits_conversation_and_deadline() -> None:
    parent = RunIdentity.root().with_run_id("p").with_conversation_id("c").with_deadline_unix_ms(99)
    child = RunIdentity.child_of(parent)
    assert child.run_id not in ("p", "")
    assert (child.parent_run_id, child.depth, child.conversation_id, child.deadline_unix_ms) == ("p", 1, "c", 99)
    assert RunIdentity.child_of(child).depth == 2


def test_depth_is_always_written_and_options_only_when_set() -> None:
    assert msgspec.json.encode(RunIdentity("r")) == b'{"run_id":"r","depth":0}'
    full = RunIdentity("r", parent_run_id="p", depth=1, conversation_id="c", deadline_unix_ms=5)
    assert msgspec.json.encode(full) == (
        b'{"run_id":"r","parent_run_id":"p","depth":1,"conversation_id":"c","deadline_unix_ms":5}'
    )


@given(identities())
def test_identities_round_trip(identity: RunIdentity) -> None:
    assert msgspec.json.decode(msgspec.json.encode(identity), type=RunIdentity) == identity


@pytest.mark.parametrize("json", [b'{"run_id":"r","depth":-1}', b'{"run_id":"r","deadline_unix_ms":-1}', b"{}"])
def test_a_negative_depth_or_deadline_and_a_missing_id_are_refused(json: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(json, type=RunIdentity)


def test_a_child_context_has_no_messages_and_a_child_identity() -> None:
    identity = RunIdentity("r", conversation_id="c")
    context = AgentContext("prompt").with_messages([UserMessage("x")]).with_identity(identity)
    child = context.spawn_child("other")
    assert (child.system_prompt, child.messages) == ("other", [])
    assert child.identity is not None
    assert (child.identity.parent_run_id, child.identity.depth, child.identity.conversation_id) == ("r", 1, "c")
    assert context.messages == [UserMessage("x")]


def test_a_child_of_a_context_without_identity_is_at_depth_one() -> None:
    child = AgentContext("prompt").spawn_child("other")
    assert child.identity is not None
    assert child.identity.depth == 1
    assert child.identity.parent_run_id
