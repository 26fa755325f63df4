"""The kind `stream`: keys, checks, and what `doctor` asks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from seatrial.agents.checks import check_headers, check_url
from seatrial.agents.config import (
    MAX_RESPONSE_BYTES,
    NETWORK_FAULTS,
    AgentCheck,
    AgentConfig,
    AgentStart,
    Bytes,
    EndpointRule,
    HeaderName,
    Probe,
    TimeoutSeconds,
)

if TYPE_CHECKING:
    from seatrial.agents.stream.agent import StreamAgent


class StreamConfig(AgentConfig):
    """An agent that takes an AG-UI `RunAgentInput` and answers with a stream of events."""

    kind: ClassVar[str] = "stream"
    own_faults: ClassVar[frozenset[str]] = NETWORK_FAULTS
    connects: ClassVar[bool] = True

    url: str
    """Where the input is posted to."""
    headers: dict[HeaderName, str] = msgspec.field(default_factory=dict)
    """Headers of the request. One whose name suggests a secret (`Authorization`) must name a variable."""
    connect_timeout_s: TimeoutSeconds | None = None
    """How long connecting may take; the suite's `timeouts.connect_s` when absent."""
    format: Literal["agui", "native"] = "agui"
    """What the stream carries: bare AG-UI events, or native envelopes."""
    resume: bool = False
    """Whether a stream that broke is taken up again at its cursor: the id of its last event, as `Last-Event-ID`."""
    resume_method: Literal["get", "post"] = "get"
    """How it is taken up: `get` without a body, `post` with the input once more."""
    endpoint_rule: EndpointRule = "local"
    """Which addresses are allowed: `local` any, `public` only https, and nothing private or on this machine."""
    max_response_bytes: Bytes = MAX_RESPONSE_BYTES
    """The largest stream that is taken, unpacked; a larger one is cut off, and the run fails."""

    def build(self, start: AgentStart) -> StreamAgent:
        from seatrial.agents.stream.agent import StreamAgent

        return StreamAgent(self, connect_s=self.connect_timeout_s or start.connect_s, read_s=self.read_timeout_s(start))

    def taken_keys(self, import_from: Path | None) -> frozenset[str]:
        return frozenset({"input", "messages", "timeout_s"})

    def without_proxy(self) -> str | None:
        return "an agent of kind stream"

    def check(self, check: AgentCheck) -> None:
        public = self.endpoint_rule == "public"
        check_url(self.url, ("url",), check.variables, check.problems, only_https=public)
        check_headers(self.headers, check.variables, check.problems)
        if self.resume_method != "get" and not self.resume:
            check.problems.add(("resume_method",), "`resume_method` does nothing without `resume: true`")

    async def probe(self, agent: StreamAgent, proxy_url: str) -> Probe:
        begun = time.monotonic()
        fault = await agent.reach()
        if fault is None:
            taken_ms = (time.monotonic() - begun) * 1000
            return Probe(True, f"somebody listens at {agent.address} ({taken_ms:.0f} ms)")
        detail = f" ({fault.detail})" if fault.detail else ""
        return Probe(False, f"{agent.address}: {fault.message}{detail}")
