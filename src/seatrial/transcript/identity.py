"""Who a run is, and the context it starts from."""

from __future__ import annotations

import uuid
from typing import Annotated

import msgspec

from seatrial.transcript.messages import Message, Timestamp


class RunIdentity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Identity of one run, threaded through child runs."""

    run_id: str
    parent_run_id: str | None = None
    # A factory is never equal to a default, so msgspec writes the key always, as the seed does.
    depth: Annotated[int, msgspec.Meta(ge=0)] = msgspec.field(default_factory=lambda: 0)
    """0 for a top-level run, one more for each nested one."""
    conversation_id: str | None = None
    deadline_unix_ms: Timestamp | None = None
    """Wall-clock deadline in milliseconds since the epoch."""

    @classmethod
    def root(cls) -> RunIdentity:
        """A top-level identity with a fresh UUIDv4 run id."""
        return cls(run_id=str(uuid.uuid4()))

    @classmethod
    def child_of(cls, parent: RunIdentity) -> RunIdentity:
        """A child identity: fresh run id, one deeper, same conversation and deadline."""
        return cls(
            run_id=str(uuid.uuid4()),
            parent_run_id=parent.run_id,
            depth=parent.depth + 1,
            conversation_id=parent.conversation_id,
            deadline_unix_ms=parent.deadline_unix_ms,
        )

    def with_run_id(self, run_id: str) -> RunIdentity:
        """The same identity under another run id."""
        return msgspec.structs.replace(self, run_id=run_id)

    def with_conversation_id(self, conversation_id: str) -> RunIdentity:
        """The same identity in that conversation."""
        return msgspec.structs.replace(self, conversation_id=conversation_id)

    def with_deadline_unix_ms(self, deadline_unix_ms: int) -> RunIdentity:
        """The same identity with that deadline."""
        return msgspec.structs.replace(self, deadline_unix_ms=deadline_unix_ms)


class AgentContext(msgspec.Struct, frozen=True):
    """What an agent starts from: its prompt, what was said before, and who it is."""

    system_prompt: str
    messages: list[Message] = []
    identity: RunIdentity | None = None

    def with_messages(self, messages: list[Message]) -> AgentContext:
        """The same context with these messages."""
        return msgspec.structs.replace(self, messages=messages)

    def with_identity(self, identity: RunIdentity) -> AgentContext:
        """The same context with this identity."""
        return msgspec.structs.replace(self, identity=identity)

    def spawn_child(self, system_prompt: str) -> AgentContext:
        """A context for a child run: no messages, a child identity.

        Without an identity of its own the parent counts as a fresh root, so that the child is at depth 1.
        """
        parent = self.identity if self.identity is not None else RunIdentity.root()
        return AgentContext(system_prompt=system_prompt, identity=RunIdentity.child_of(parent))
