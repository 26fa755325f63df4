"""`seatrial open [EXPERIMENT|RUN]`: the pages of a store, in the browser."""

from __future__ import annotations

import argparse
import sys
import threading
import urllib.request
from typing import TYPE_CHECKING

from seatrial.cli.exits import PASSED
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.terminal import printable

if TYPE_CHECKING:
    from seatrial.store import Store

ANSWER_S = 3.0
"""How long a server that runs already may take to answer."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "reference",
        metavar="EXPERIMENT|RUN",
        nargs="?",
        help="what to look at: an experiment, a case (EXPERIMENT:CASE) or a run; without it, all experiments",
    )
    add_store_option(parser)
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="the port of the server (default: any that is free)"
    )
    parser.add_argument("--no-browser", action="store_true", help="only say the address")
    parser.add_argument("--json", action="store_true", help="say the address as JSON: {url, page}")
    parser.epilog = (
        "A server on this machine shows the pages, until Ctrl-C. Where one serves the store already, that one does,\n"
        "and the command ends. With a key in the store (`seatrial keys`), the pages ask for one.\n"
        "exit codes: 0 shown, 2 usage, or no such store, experiment or run, 3 the server could not be run."
    )


def run(args: argparse.Namespace) -> int:
    from seatrial.cli.commands.serve import check_installed, serve_until_stopped

    check_installed()
    from seatrial.server.settings import ServerSettings

    settings = ServerSettings(port=args.port, drain_s=1.0, rate=0)
    settings.check()
    with opened_store(args) as store:
        page = page_of(store, args.reference)

        def show(url: str, *, running: bool = False) -> None:
            _say(args, url, page, running=running)
            if not args.no_browser:
                opening = _open_browser(url + page)
                if running:
                    opening.join(ANSWER_S)

        address = store.served_at()
        if address is not None and _answers(address):
            show(address, running=True)
        else:
            serve_until_stopped(store, settings, show)
    return PASSED


def page_of(store: Store, reference: str | None) -> str:
    """The page of what a reference means; `not_found` when that is nothing."""
    from seatrial.cli.selection import find, runs_of_case
    from seatrial.explorer.render import address

    if reference is None:
        return address("experiments")
    found = find(store, reference)
    if found.run_id is not None or found.experiment is None:
        return address("runs", found.run_id or reference)
    if found.case_id is None:
        return address("experiments", found.experiment.experiment_id)
    if found.agent is not None or found.trial is not None:
        runs = runs_of_case(store, found)
        if len(runs) == 1:
            return address("runs", runs[0].run_id)
    return address("experiments", found.experiment.experiment_id, "cases", found.case_id)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=ANSWER_S) as answer:  # noqa: S310 - of our own server
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False


def _say(args: argparse.Namespace, url: str, page: str, *, running: bool) -> None:
    if args.json:
        from seatrial._support import wire

        print(wire.encode({"url": url, "page": url + page}).decode(), flush=True)
        return
    until = "" if running else " (Ctrl-C stops)"
    print(f"{printable(url + page)}{until}", flush=True)


def _open_browser(page: str) -> threading.Thread:
    """Open a page without waiting: a browser in the terminal, or one that is slow to start, may take its time."""
    import webbrowser

    def opening() -> None:
        try:
            opened = webbrowser.open(page)
        except (webbrowser.Error, OSError):
            opened = False
        if not opened:
            print("seatrial: no browser could be opened: open the address yourself", file=sys.stderr, flush=True)

    thread = threading.Thread(target=opening, daemon=True)
    thread.start()
    return thread
