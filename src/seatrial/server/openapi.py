"""The OpenAPI document: Litestar's paths and parameters, msgspec's schemas, and the contracts of the operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec
from litestar import Litestar
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig

from seatrial._version import __version__
from seatrial.api import Problem
from seatrial.errors import ERROR_CODES
from seatrial.events.envelope import RunStreamTerminal, SequencedOutputEnvelope, StreamKeepalive
from seatrial.events.schema import event_json_schema
from seatrial.server.native_stream import SSE
from seatrial.server.problems import MEDIA_TYPE, STATUSES

OpenApiDocument: TypeAlias = dict[str, Any]

DESCRIPTION = (
    "Runs of agents: they continue when their client disconnects; events are followed from anywhere, with no gap "
    "and no duplicate, by a cursor.\n\nErrors are `application/problem+json` with a `code` to match on."
)
COMMON = ("invalid_request", "unauthorized", "forbidden", "rate_limited", "internal_error", "store_unavailable")
"""Errors that every operation may answer with."""
OF_BODIES = ("not_json", "invalid_document", "too_deep", "unstorable")
"""Errors of operations that take a body."""
FRAMES = (SequencedOutputEnvelope, StreamKeepalive, RunStreamTerminal)
"""What a native stream is made of."""

_REFERENCE = "#/components/schemas/{name}"


def openapi_document(operations: Iterable[HTTPRouteHandler], provided: Iterable[str]) -> OpenApiDocument:
    """The document of these operations; `provided` are the names of parameters that no client gives."""
    # An application of its own, which never serves: the real one would publish Litestar's document as it is.
    handlers = list(operations)
    drawn = Litestar(
        handlers,
        dependencies={name: _nothing() for name in provided},
        openapi_config=OpenAPIConfig("Seatrial", __version__, description=DESCRIPTION),
        logging_config=None,
    )
    document: OpenApiDocument = msgspec.to_builtins(drawn.openapi_schema.to_schema())
    contracts = {handler.operation_id: contract_of(handler.opt) for handler in handlers}
    taken: set[type] = {Problem, *FRAMES}
    for path in document["paths"].values():
        for operation in path.values():
            contract = contracts[operation["operationId"]]
            if contract.body is not None:
                taken.add(contract.body)
            _complete(operation, contract)
    given = {handler.parsed_fn_signature.return_type for handler in handlers}
    for result in given:
        taken |= {kind for kind in (result.annotation, *result.args) if _is_struct(kind)}
    _, schemas = msgspec.json.schema_components(sorted(taken, key=lambda kind: kind.__name__), ref_template=_REFERENCE)
    # The AG-UI view has events as their types say, the native one as they were sent.
    event = schemas[SequencedOutputEnvelope.__name__]["properties"]
    schemas["AgUiEvent"], schemas["OutputEvent"] = event["event"], event_json_schema()
    event["event"] = {"$ref": _REFERENCE.format(name="OutputEvent")}
    # The type keeps their bytes as they are stored, and so says nothing of what they are.
    schemas["EventPage"]["properties"]["events"]["items"] = _reference(SequencedOutputEnvelope)
    document["components"] = {
        "schemas": schemas,
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A key of `seatrial keys`."}},
    }
    # Where a server is open, no key is needed.
    document["security"] = [{"key": []}, {}]
    return document


def query_names(document: OpenApiDocument) -> dict[str, frozenset[str]]:
    """The query parameters of each operation, by its id."""
    return {
        operation["operationId"]: frozenset(
            parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"
        )
        for path in document["paths"].values()
        for operation in path.values()
    }


def _complete(operation: OpenApiDocument, contract: OperationContract) -> None:
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
    if contract.body is not None:
        content = {"application/json": {"schema": _reference(contract.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    responses = {status: said for status, said in operation["responses"].items() if int(status) < 400}
    for success in responses.values():
        if contract.streams:
            success["description"] = "The stream"
            success["content"] = {
                media_type: {"schema": _item(media_type, made_of, _BARE if contract.bare else _FRAME)}
                for media_type, made_of in contract.streams.items()
            }
        success["headers"] = {
            name: {"description": meaning, "schema": {"type": "string"}} for name, meaning in contract.headers.items()
        }
    for status, meaning in contract.also.items():
        result = {} if status == 204 else next(iter(responses.values()))
        responses[str(status)] = {**result, "description": meaning}
    operation["responses"] = responses | _problems(contract)


def _item(media_type: str, made_of: str, data: OpenApiDocument) -> OpenApiDocument:
    """One piece of a stream: before 3.2, OpenAPI has no word for it, and the schema of a stream is understood so."""
    if media_type != SSE:
        return {"description": made_of, **data}
    fields = {
        "id": {"type": "string", "description": "The cursor of an event; `<runId>:end` of TERMINAL"},
        "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": data},
    }
    return {"type": "object", "description": made_of, "properties": fields, "required": ["data"]}


def _problems(contract: OperationContract) -> OpenApiDocument:
    by_status: defaultdict[int, list[str]] = defaultdict(list)
    for code in (*COMMON, *(OF_BODIES if contract.body is not None else ()), *contract.problems):
        by_status[STATUSES[code]].append(f"`{code}`: {ERROR_CODES[code]}")
    for status, meaning in contract.refusals.items():
        by_status[status].append(meaning)
    content = {MEDIA_TYPE: {"schema": _reference(Problem)}}
    return {
        str(status): {"description": "\n\n".join(meanings), "content": content}
        for status, meanings in sorted(by_status.items())
    }


def _without_null(schema: OpenApiDocument) -> OpenApiDocument:
    """The schema of a parameter that may be absent: for Litestar it may be null, which no query can be."""
    alternatives = [each for each in schema.get("oneOf", ()) if each.get("type") != "null"]
    if len(alternatives) != 1:
        return schema
    return {**alternatives[0], **{key: value for key, value in schema.items() if key != "oneOf"}}


def _reference(kind: type[msgspec.Struct]) -> OpenApiDocument:
    return {"$ref": _REFERENCE.format(name=kind.__name__)}


def _is_struct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _nothing() -> Provide:
    # Litestar needs a separate provider for each name.
    return Provide(lambda: None, sync_to_thread=False)


_FRAME: OpenApiDocument = {"anyOf": [_reference(frame) for frame in FRAMES]}
_BARE: OpenApiDocument = {"$ref": _REFERENCE.format(name="AgUiEvent")}


_KEY = "contract"


class OperationContract(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation takes, and what it answers with besides its result."""

    body: type[msgspec.Struct] | None = None
    """What the body is, for operations that decode it themselves."""
    also: dict[int, str] = {}
    """Further statuses of success with the same result (204: with none), and when they come."""
    headers: dict[str, str] = {}
    """Headers of successes, and what they say."""
    streams: dict[str, str] = {}
    """Media types that the result is streamed in, and what a stream is made of."""
    bare: bool = False
    """Whether a stream has the events alone, without envelopes and frames of ours."""
    problems: tuple[str, ...] = ()
    """Codes of errors that are not every operation's."""
    refusals: dict[int, str] = {}
    """Statuses of errors that say more than their code."""

    @property
    def opt(self) -> dict[str, Any]:
        """For the `opt` of a Litestar handler."""
        return {_KEY: self}


def contract_of(opt: dict[str, Any]) -> OperationContract:
    """The contract in the `opt` of a handler."""
    found = opt[_KEY]
    if not isinstance(found, OperationContract):
        raise TypeError(f"{found!r} is not a contract")
    return found
