"""An agent behind HTTP: takes the dispatch envelope, answers with an agent response. Refunds without looking.

`python -m shop.http_agent` listens on a free port and prints its address; with `--careful` it looks first.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shop.clerk import messages, serve

CAREFUL = "--careful" in sys.argv


class Dispatch(BaseHTTPRequestHandler):
    """One POST, one answer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body == {"ping": True}:
            self._answer({"pong": True})
            return
        instruction = body["input"]["latest_user_prompt"]
        talk = serve(instruction, careful=CAREFUL)
        self._answer({"final_response": talk.answer, "messages": messages(instruction, talk)})

    def _answer(self, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Dispatch)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}/\n")
    sys.stdout.flush()
    server.serve_forever()
