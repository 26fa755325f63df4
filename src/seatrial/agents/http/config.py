"""The kind `http`: keys, checks, and what `doctor` asks.

An agent may speak the dispatch contract, a known protocol, or JSON of its own, which `request` and `response` describe.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit, urlunsplit

import msgspec

from seatrial._support.environment import names_secret, resolve
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
from seatrial.agents.http import template
from seatrial.agents.http.template import Placeholder, RequestTemplate
from seatrial.errors import SeatrialError
from seatrial.problems import KeyPath, Problems
from seatrial.runs import Case

if TYPE_CHECKING:
    from seatrial.agents.http.agent import HttpAgent

MODEL_PATHS = {"openai-chat": "/chat/completions", "openai-responses": "/responses", "anthropic": "/v1/messages"}
"""The APIs of models, and where they are under the base URL that their SDKs take."""


class ResponsePaths(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where in an answer of JSON everything is: JSON pointers, such as `/data/reply` or `/choices/0/text`."""

    answer: str | None = None
    """The answer: text, or a list of parts with text. The last text of the assistant in `messages` when absent."""
    messages: str | None = None
    """The list of messages, in any dialect that is read. Without it, the agent's calls are unknown."""
    usage: str | None = None
    """Token counts. Without it, they are unknown."""
    error: str | None = None
    """If anything but null, false, 0 or nothing is there, the agent reports that it failed."""


class ModelTool(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tool that a model is offered. Nothing runs it: a run ends with the calls that wait for results."""

    name: str
    """What the model calls it."""
    description: str = ""
    """What the model is told of it."""
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments."""


class SubAgent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of several agents that work together behind one address."""

    actor_id: str
    """Its label."""
    tools: list[str] = []
    """The tools it owns. Not supported yet: a suite that has it is refused."""
    talks_to: list[str] = []
    """The labels it hands over to. Not supported yet: a suite that has it is refused."""


class HttpConfig(AgentConfig):
    """An agent behind HTTP: by the dispatch contract, by another protocol, or by JSON of its own."""

    kind: ClassVar[str] = "http"
    own_faults: ClassVar[frozenset[str]] = NETWORK_FAULTS
    connects: ClassVar[bool] = True

    endpoint_url: str
    """Where the request is sent to. For the API of a model, the base URL is enough (`https://api.openai.com/v1`)."""
    protocol: Literal["dispatch", "openai-chat", "openai-responses", "anthropic", "a2a"] = "dispatch"
    """What the agent speaks: the dispatch contract, the API of a model, or A2A."""
    request: RequestTemplate | None = None
    """What is sent: instead of the dispatch envelope, or in addition to what another `protocol` sends."""
    response: ResponsePaths | None = None
    """Where in the answer everything is, for an agent whose answers are of its own shape."""
    model: str | None = None
    """The model's name, where `protocol` is the API of one."""
    tools: list[ModelTool] = msgspec.field(default_factory=list)
    """The tools that the model is offered."""
    api_key: str | None = None
    """The key, sent as the `protocol` has it. Names a variable: `${OPENAI_API_KEY}`."""
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

    def __post_init__(self) -> None:
        # In Python, these may be mappings as in a suite file.
        given: Any = self
        for key, kind in (("request", RequestTemplate), ("response", ResponsePaths)):
            if isinstance(written := getattr(given, key), dict):
                setattr(given, key, msgspec.convert(written, kind))
        if any(isinstance(tool, dict) for tool in given.tools):
            self.tools = msgspec.convert(given.tools, list[ModelTool])

    def build(self, start: AgentStart) -> HttpAgent:
        from seatrial.agents.http.agent import HttpAgent

        connect_s = self.connect_timeout_s or start.connect_s
        return HttpAgent(start.name, self, connect_s=connect_s, read_s=self.read_timeout_s(start))

    def resolved(self, variables: Mapping[str, str]) -> Self:
        resolved = resolve(msgspec.structs.replace(self, request=None), variables)
        if self.request is not None:
            resolved.request = template.resolved(self.request, variables)
        # The agent is told these in JSON, and our encoders write only what is plain text.
        resolved.proxy_url = resolved.proxy_url and str(resolved.proxy_url)
        resolved.agent_id = str(resolved.agent_id) if isinstance(resolved.agent_id, str) else resolved.agent_id
        return resolved

    @property
    def speaks_dispatch(self) -> bool:
        """Whether the agent is sent the dispatch envelope, and with it where the tool proxy is."""
        return self.protocol == "dispatch" and self.request is None

    @property
    def address(self) -> str:
        """Where the request is sent to: under a base URL, the path of the API."""
        path = MODEL_PATHS.get(self.protocol)
        if path is None:
            return self.endpoint_url
        url = urlsplit(self.endpoint_url)
        if url.path.rstrip("/").endswith(path):
            return self.endpoint_url
        # Anthropic's SDK takes its base URL without the version, others with it.
        base = url.path.rstrip("/").removesuffix("/v1") if path.startswith("/v1/") else url.path.rstrip("/")
        return urlunsplit(url._replace(path=base + path))

    def sent_headers(self) -> dict[str, str]:
        """Those that every request has, with the credential."""
        name, value = self.auth_header_name, self.auth_credential_value
        if self.api_key is not None:
            named = self.protocol == "anthropic"
            name, value = ("x-api-key", self.api_key) if named else ("Authorization", f"Bearer {self.api_key}")
        if value is None:
            return self.headers
        others = {other: text for other, text in self.headers.items() if other.lower() != name.lower()}
        return {**others, name: value}

    def taken_keys(self, import_from: Path | None) -> frozenset[str]:
        if self.speaks_dispatch:
            return frozenset({"input", "messages", "timeout_s"})
        taken = {"timeout_s"} | ({"messages"} if self.protocol in MODEL_PATHS else set())
        return frozenset(taken | {placeholder.name for placeholder in self._placeholders()})

    def check_case(self, case: Case, problems: Problems) -> None:
        for placeholder in self._placeholders():
            try:
                template.Values(case, "").find(placeholder)
            except SeatrialError as error:
                problems.add(("input",), error.message)

    def without_proxy(self) -> str | None:
        return None if self.speaks_dispatch else "an agent of kind http that is not sent the dispatch envelope"

    def _placeholders(self) -> list[Placeholder]:
        try:
            return [] if self.request is None else template.placeholders(self.request)
        except SeatrialError:
            return []  # told by `check`

    def check(self, check: AgentCheck) -> None:
        problems, variables = check.problems, check.variables
        _check_protocol(self, problems)
        if self.request is not None:
            _check_request(self.request, variables, problems.within(("request",)))
        if self.response is not None:
            _check_paths(self.response, problems.within(("response",)))
        if "{{" in self.endpoint_url:
            problems.add(
                ("endpoint_url",), "`endpoint_url` takes no placeholders", "use `request.query` or `request.body`"
            )
        public = self.endpoint_rule == "public"
        check_url(self.endpoint_url, ("endpoint_url",), variables, problems, only_https=public)
        if self.proxy_url is not None:
            check_url(self.proxy_url, ("proxy_url",), variables, problems)
        check_secret(self.auth_credential_value, ("auth_credential_value",), problems)
        check_secret(self.api_key, ("api_key",), problems)
        check_one_line("api_key", self.api_key or "", ("api_key",), variables, problems)
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
        if not self.speaks_dispatch:
            begun = time.monotonic()
            unreached = await agent.reach()
            if unreached is None:
                return Probe(True, f"somebody listens at {agent.address} ({(time.monotonic() - begun) * 1000:.0f} ms)")
            detail = f" ({unreached.detail})" if unreached.detail else ""
            return Probe(False, f"{agent.address}: {unreached.message}{detail}")
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


_OF_DISPATCH = ("proxy_url", "agent_id", "sub_agents")
_OF_AGENT_RESPONSES = ("response_mode", "strictness")
_OF_MODELS = ("model", "tools")


def _check_protocol(config: HttpConfig, problems: Problems) -> None:
    """Tell keys that do nothing with this protocol, and those that it needs."""
    written = msgspec.to_builtins(config)  # without what is as it would be anyway
    idle: dict[str, str] = {}
    if not config.speaks_dispatch:
        idle |= dict.fromkeys(_OF_DISPATCH, "without the dispatch envelope")
    if config.protocol != "dispatch" or config.response is not None:
        idle |= dict.fromkeys(_OF_AGENT_RESPONSES, "where the answer is not an agent response")
    if config.protocol not in MODEL_PATHS:
        idle |= dict.fromkeys(_OF_MODELS, f"with `protocol: {config.protocol}`")
    elif not config.model:
        problems.add((), f"`protocol: {config.protocol}` needs a `model`")
    if config.protocol == "dispatch":
        idle["api_key"] = "with `protocol: dispatch`, which has `auth_credential_value`"
    elif config.api_key is not None and config.auth_credential_value is not None:
        problems.add(("api_key",), "`api_key` and `auth_credential_value` are two credentials")
    if config.protocol != "dispatch":
        idle["response"] = f"with `protocol: {config.protocol}`, which says how answers are read"
        if config.request is not None and config.request.method != "POST":
            problems.add(("request", "method"), f"`protocol: {config.protocol}` is spoken with POST")
        if config.request is not None and not isinstance(config.request.body or {}, dict):
            problems.add(("request", "body"), "with a `protocol`, the body must be a mapping, whose keys are added")
    for key, when in idle.items():
        if key in written:
            problems.add((key,), f"`{key}` does nothing {when}")


def _check_request(request: RequestTemplate, variables: Mapping[str, str], problems: Problems) -> None:
    """Tell unknown placeholders, secrets that are written out, and headers of more than one line."""
    if request.method == "GET" and request.body is not None:
        problems.add(("body",), "a GET has no body", "write `method: POST`, or put it in `query`")
    for key in template.keys(request.body, ("body",)):
        if "{{" in str(key[-1]):
            problems.add(key, "a placeholder cannot be in a key")
    parts = {"body": request.body, "query": request.query, "headers": request.headers}
    for path, text in template.texts(parts):
        try:
            pieces = template.split(text)
        except SeatrialError as error:
            if "`${`" not in error.message:  # told with all variables
                problems.add(path, error.message, error.hint)
            continue
        # What a placeholder brings is not written in the suite.
        if names_secret(_name_of(path)) and any(isinstance(piece, str) for piece in pieces):
            check_secret(text, path, problems)
        if path[0] == "headers":
            check_one_line(str(path[1]), text, path, variables, problems)


def _name_of(path: KeyPath) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _check_paths(paths: ResponsePaths, problems: Problems) -> None:
    if paths.answer is None and paths.messages is None:
        problems.add((), "`response` needs `answer` or `messages`: without either, nothing is an answer")
    for key in paths.__struct_fields__:
        path = getattr(paths, key)
        if path and not path.startswith("/"):
            meant = "/" + path.removeprefix("$").strip(".").replace(".", "/").replace("[", "/").replace("]", "")
            problems.add((key,), f"`{key}` must be a JSON pointer, which begins with `/`", f"did you mean `{meant}`?")
