"""The kind `http`: keys, checks, and what `doctor` asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import msgspec

from seatrial._support.environment import resolve
from seatrial.agents.checks import check_headers, check_one_line, check_secret, check_url
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
    from seatrial.agents.http.agent import HttpAgent


class SubAgent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of several agents that work together behind one address."""

    actor_id: str
    """Its label."""
    tools: list[str] = []
    """The tools it owns. Not supported yet: a suite that has it is refused."""
    talks_to: list[str] = []
    """The labels it hands over to. Not supported yet: a suite that has it is refused."""


class HttpConfig(AgentConfig):
    """An agent behind HTTP that takes the dispatch envelope and answers with an agent response."""

    kind: ClassVar[str] = "http"
    own_faults: ClassVar[frozenset[str]] = NETWORK_FAULTS
    connects: ClassVar[bool] = True

    endpoint_url: str
    """Where the envelope is posted to."""
    auth_header_name: HeaderName = "Authorization"
    """The header that carries the credential."""
    auth_credential_value: str | None = None
    """The header's whole value, with `Bearer ` if that is wanted. Names a variable: `Bearer ${TOKEN}`."""
    headers: dict[HeaderName, str] = msgspec.field(default_factory=dict)
    """Further headers. One whose name suggests a secret (`X-Api-Key`) must name a variable too."""
    connect_timeout_s: TimeoutSeconds | None = None
    """How long connecting may take; the suite's `timeouts.connect_s` when absent."""
    response_mode: Literal["thin", "rich"] = "thin"
    """What the agent promises: `thin` a final response, `rich` its messages too."""
    strictness: Literal["soft", "strict"] = "soft"
    """What a broken promise is: `soft` a note, `strict` a failed run."""
    endpoint_rule: EndpointRule = "local"
    """Which addresses are allowed: `local` any, `public` only https, and nothing private or on this machine."""
    max_response_bytes: Bytes = MAX_RESPONSE_BYTES
    """The largest answer that is taken, unpacked; a larger one is cut off, and the run fails."""
    proxy_url: str | None = None
    """Where the agent finds the tool proxy, when that is not the address the proxy listens on."""
    agent_id: str | int | None = None
    """What the envelope says as `agent_id`; the agent's name when absent."""
    sub_agents: list[str | SubAgent] = msgspec.field(default_factory=list)
    """The agents behind this one: labels, or mappings with `actor_id`."""

    def build(self, start: AgentStart) -> HttpAgent:
        from seatrial.agents.http.agent import HttpAgent

        connect_s = self.connect_timeout_s or start.connect_s
        return HttpAgent(start.name, self, connect_s=connect_s, read_s=self.read_timeout_s(start))

    def resolved(self, variables: Mapping[str, str]) -> Self:
        resolved = resolve(self, variables)
        # The agent is told these in JSON, and our encoders write only what is plain text.
        resolved.proxy_url = resolved.proxy_url and str(resolved.proxy_url)
        resolved.agent_id = str(resolved.agent_id) if isinstance(resolved.agent_id, str) else resolved.agent_id
        return resolved

    def taken_keys(self, import_from: Path | None) -> frozenset[str]:
        return frozenset({"input", "messages", "timeout_s"})

    def check(self, check: AgentCheck) -> None:
        problems, variables = check.problems, check.variables
        public = self.endpoint_rule == "public"
        check_url(self.endpoint_url, ("endpoint_url",), variables, problems, only_https=public)
        if self.proxy_url is not None:
            check_url(self.proxy_url, ("proxy_url",), variables, problems)
        check_secret(self.auth_credential_value, ("auth_credential_value",), problems)
        credential = self.auth_credential_value or ""
        check_one_line(self.auth_header_name, credential, ("auth_credential_value",), variables, problems)
        check_headers(self.headers, variables, problems)
        # Keys that nothing acts on.
        if self.auth_header_name != "Authorization" and self.auth_credential_value is None:
            problems.add(("auth_header_name",), "`auth_header_name` does nothing without `auth_credential_value`")
        if self.strictness == "strict" and self.response_mode == "thin":
            hint = "write `response_mode: rich`, or leave `strictness` out"
            problems.add(
                ("strictness",), "`strictness` does nothing with `response_mode: thin`, which promises no more", hint
            )
        for index, entry in enumerate(self.sub_agents):
            for key in ("tools", "talks_to") if isinstance(entry, SubAgent) else ():
                if getattr(entry, key):
                    problems.add(("sub_agents", index, key), f"`{key}` is not supported yet: nothing would act on it")

    async def probe(self, agent: HttpAgent, proxy_url: str) -> Probe:
        there = await agent.ping()
        if (fault := there.fault) is not None:
            # With a status, the detail is the page that came with it.
            detail = f" ({fault.detail})" if fault.detail and fault.http_status is None else ""
            return Probe(False, f"{agent.address}: {fault.message}{detail}")
        probe = Probe(there.ok, f"{there.message} at {agent.address} ({there.latency_ms:.0f} ms)")
        if there.ok:
            outbound = await agent.check_connectivity(proxy_url)
            if outbound.fault is None:
                probe.reaches_proxy = outbound.ok
                probe.message += f"; {outbound.message}"
            else:
                # Agents that make no use of the proxy need not know this question.
                probe.message += f"; it does not tell whether it reaches the tool proxy: {outbound.message}"
        return probe
