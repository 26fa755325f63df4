"""HTTP as a client: one request and its response, over a transport of two methods.

`AiohttpTransport` talks to real servers and is imported where it is used: aiohttp takes a while to load.
`ScriptedTransport` answers from memory, for tests.
"""

from seatrial.http_client.scripted import ScriptedResponse, ScriptedTransport
from seatrial.http_client.transport import HttpRequest, HttpResponse, HttpTransport
from seatrial.http_client.transport_error import FailureKind, TransportError

__all__ = [
    "FailureKind",
    "HttpRequest",
    "HttpResponse",
    "HttpTransport",
    "ScriptedResponse",
    "ScriptedTransport",
    "TransportError",
]
