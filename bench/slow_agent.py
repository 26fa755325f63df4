"""An HTTP agent that sleeps 100 ms and answers with 8 KB: `python -m bench.slow_agent`.

It listens on a free port of 127.0.0.1, prints that, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec
from aiohttp import web

from bench.trial_agents import response

BODY = msgspec.json.encode(response("Where is my order?", padding="." * 7700))


async def answer(request: web.Request) -> web.Response:
    await request.read()
    await asyncio.sleep(0.1)
    return web.Response(body=BODY, content_type="application/json")


async def main() -> None:
    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=2048)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
