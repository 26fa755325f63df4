"""An agent that streams: takes an AG-UI `RunAgentInput`, sends its events as SSE. Says yes to orders that do not exist.

`python -m shop.stream_agent` listens on a free port and prints its address.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shop.clerk import serve


class Stream(BaseHTTPRequestHandler):
    """One POST, one stream, which ends with the connection."""

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events(given):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def events(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The run as AG-UI tells it."""
    run = {"threadId": given["threadId"], "runId": given["runId"]}
    talk = serve(given["messages"][-1]["content"])
    answer = talk.answer.replace("There is no order", "On its way: order")
    yield {"type": "RUN_STARTED", **run}
    for call in talk.calls:
        of_call = {"toolCallId": call["id"]}
        yield {"type": "TOOL_CALL_START", **of_call, "toolCallName": call["name"]}
        yield {"type": "TOOL_CALL_ARGS", **of_call, "delta": json.dumps(call["arguments"])}
        yield {"type": "TOOL_CALL_END", **of_call}
        result = {"messageId": f"result-{call['id']}", "role": "tool", "content": json.dumps(call["result"])}
        yield {"type": "TOOL_CALL_RESULT", **of_call, **result}
    yield {"type": "TEXT_MESSAGE_START", "messageId": "answer", "role": "assistant"}
    for word in answer.split(" "):
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "answer", "delta": f"{word} "}
    yield {"type": "TEXT_MESSAGE_END", "messageId": "answer"}
    yield {"type": "RUN_FINISHED", **run}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stream)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}/\n")
    sys.stdout.flush()
    server.serve_forever()
