"""A small agent behind HTTP: POST /chat with {"prompt": ...} gives {"reply": ..., "messages": [...]}."""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ORDERS = {"A-1009": "on its way"}


def answer(prompt: str) -> dict:
    found = re.search(r"[A-Z]-\d+", prompt)
    order = found.group() if found else ""
    status = ORDERS.get(order)
    text = f"Order {order} is {status}." if status else f"There is no order {order}."
    call = {"id": "call-1", "name": "find_order", "arguments": {"order": order}}
    messages = [
        {"role": "user", "content": prompt},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call-1", "content": status or "not found"},
        {"role": "assistant", "content": text},
    ]
    return {"reply": text, "messages": messages}


class ChatHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(answer(request["prompt"])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    print("listening on http://127.0.0.1:8080/chat", flush=True)
    ThreadingHTTPServer(("127.0.0.1", 8080), ChatHandler).serve_forever()
