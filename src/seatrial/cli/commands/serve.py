"""`seatrial serve [SUITE]`: the agents of a suite over HTTP, with streams that survive their connections."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from seatrial.cli.exits import PASSED, REASONS
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.signals import ENDING_S, StopSignals
from seatrial.cli.terminal import printable
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.agents.agent import Agent, BatchAgent
    from seatrial.server.driving import Limits
    from seatrial.server.settings import ServerSettings
    from seatrial.store import Store
    from seatrial.suites import Suite

_AFTER_A_KILL = "the next server on this store ends the runs that were active"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "suite",
        metavar="SUITE",
        nargs="?",
        help="the suite whose agents are served; without it, runs are pushed by agents, and what is stored is read",
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=8765, metavar="N", help="the port; 0 takes any that is free (default: %(default)s)"
    )
    add_store_option(parser)
    parser.add_argument(
        "--drain-s",
        type=float,
        default=30.0,
        metavar="S",
        help="how long active runs get to finish when the server is stopped (default: %(default)g)",
    )
    parser.add_argument(
        "--keepalive-s",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds between keepalives on an idle stream (default: %(default)g)",
    )
    parser.add_argument(
        "--send-timeout-s",
        type=float,
        default=30.0,
        metavar="S",
        help="subscribers that read nothing for this many seconds are cut off; they can resume (default: %(default)g)",
    )
    parser.add_argument(
        "--push-idle-s",
        type=float,
        default=900.0,
        metavar="S",
        help="pushed runs that get no event for this many seconds are ended (default: %(default)g)",
    )
    parser.add_argument(
        "--retention",
        type=float,
        metavar="DAYS",
        help="delete the events of runs that ended more than this many days ago (default: keep them)",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a Host name that requests may use, besides localhost and addresses; may be repeated",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="web pages that may use the server, as https://app.example.com; may be repeated (default: none)",
    )
    parser.add_argument(
        "--max-body",
        type=int,
        default=8 * 1024 * 1024,
        metavar="BYTES",
        help="the largest request body that is accepted (default: %(default)d)",
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=100.0,
        metavar="N",
        help="requests per second for each key, or address where no key is needed; ten seconds' worth may come at "
        "once, 0 means no limit (default: %(default)g)",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="how the log on standard error is written"
    )
    parser.add_argument("--json", action="store_true", help="say as JSON where it listens: {url, agents}")
    parser.epilog = (
        "Without a key in the store (`seatrial keys`) anybody on this machine may use the server, and nobody else.\n"
        "Ctrl-C or SIGTERM lets running runs finish, then ends; a second one ends at once.\n"
        "exit codes: 0 stopped normally, 2 usage or an unusable suite, 3 the server could not be run."
    )


def run(args: argparse.Namespace) -> int:
    check_installed()
    from seatrial.server.logs import start_logging
    from seatrial.server.settings import ServerSettings

    settings = ServerSettings(
        host=args.host,
        port=args.port,
        drain_s=args.drain_s,
        keepalive_s=args.keepalive_s,
        send_timeout_s=args.send_timeout_s,
        push_idle_s=args.push_idle_s,
        retention_days=args.retention,
        allow_hosts=frozenset(name.lower() for name in args.allow_host),
        allow_origins=frozenset(args.allow_origin),
        max_body_bytes=args.max_body,
        rate=args.rate,
        log_format=args.log_format,
    )
    settings.check()
    suite = _suite(args.suite)
    start_logging(settings.log_format)
    with opened_store(args, create=True) as store:
        agents = {} if suite is None else _agents(suite, store)

        def announce(url: str) -> None:
            _say(url, agents, as_json=args.json)

        serve_until_stopped(store, settings, announce, suite, agents)
    return PASSED


def check_installed() -> None:
    """Raise `SeatrialError` when something that a server needs is not installed."""
    try:
        import seatrial.server.app  # noqa: F401
    except ImportError as error:
        if error.name is None or error.name.startswith("seatrial"):
            raise
        raise SeatrialError(
            "invalid_config", f"the server needs {error.name}", hint="in the folder of Seatrial: pip install '.[serve]'"
        ) from None


def serve_until_stopped(
    store: Store,
    settings: ServerSettings,
    announce: Callable[[str], None],
    suite: Suite | None = None,
    agents: Mapping[str, Agent] | None = None,
) -> None:
    """Serve until Ctrl-C or SIGTERM; `announce` is given the address once it answers."""
    # The service itself ends what takes longer than `--drain-s`.
    grace_s = dict.fromkeys(REASONS, settings.drain_s + ENDING_S)
    with StopSignals(grace_s=grace_s, last_words=lambda number: store.close(), advice=_AFTER_A_KILL) as signals:
        signals.run(_served(store, suite, settings, signals, agents or {}, announce), _loop_factory())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        # There is none for Windows.
        return None
    return uvloop.new_event_loop


def _suite(path: str | None) -> Suite | None:
    if path is None:
        return None
    from seatrial.suites import load_suite

    return load_suite(path, cases_needed=False)


async def _served(
    store: Store,
    suite: Suite | None,
    settings: ServerSettings,
    signals: StopSignals,
    agents: Mapping[str, Agent],
    announce: Callable[[str], None],
) -> None:
    from seatrial.server.app import Stopping, serve

    stopping = Stopping()
    signals.attach(lambda number: stopping.ask())
    limits = None if suite is None else _limits(suite)
    secrets = None if suite is None else suite.secrets(os.environ)
    await serve(store, agents, settings, limits=limits, secrets=secrets, stopping=stopping, announce=announce)


def _limits(suite: Suite) -> dict[str, Limits]:
    from seatrial.server.driving import Limits

    return {
        name: Limits(
            concurrency=config.concurrency or suite.concurrency,
            deadline_s=config.run_timeout_s or suite.timeouts.run_s,
            tool_access=config.tool_access,
            faults=suite.fault_rules(name),
        )
        for name, config in suite.agents.items()
    }


def _agents(suite: Suite, store: Store) -> dict[str, Agent]:
    from seatrial.agents.agent import BatchAgent
    from seatrial.engine.local import built_agents

    served: dict[str, Agent] = {}
    for name, agent in built_agents(suite, store, os.environ).items():
        if isinstance(agent, BatchAgent):
            print(f"{printable(name)} is not served: it takes all its cases at once", file=sys.stderr)
        else:
            served[name] = agent
    return served


def _say(url: str, agents: Mapping[str, Agent | BatchAgent], *, as_json: bool) -> None:
    if as_json:
        from seatrial._support import wire

        print(wire.encode({"url": url, "agents": list(agents)}).decode(), flush=True)
        return
    named = ", ".join(map(printable, agents)) or "no agent of its own: runs can be pushed"
    print(f"serving {named} at {url} (Ctrl-C stops)", flush=True)
