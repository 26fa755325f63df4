"""HTTP as a client: one request and its response, over a transport of two methods.

`AiohttpTransport` talks to real servers and is imported where it is used: aiohttp takes a while to load.
`ScriptedTransport` answers from memory, for tests.
"""

from seatrial.http_client.failure import FailureKind, TransportError
from seatrial.http_client.scripted import ScriptedResponse, ScriptedTransport
from seatrial.http_client.transport import HttpRequest, HttpResponse, HttpTransport

__all__ = [
    "FailureKind",
    "HttpRequest",
    "HttpResponse",
    "HttpTransport",
    "ScriptedResponse",
    "ScriptedTransport",
    "TransportError",
]
