"""`seatrial keys add|list|revoke`: who may use the server of a store."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from seatrial.cli.exits import PASSED
from seatrial.cli.location import add_store_option, opened_store
from seatrial.cli.terminal import printable
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.runs.served import ApiKey

SCOPES = ("read", "run", "admin")

_SPAN = re.compile(r"([0-9]{1,6})([mhdw])")
_UNIT_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(prog=parser.prog, dest="command", required=True, metavar="add | list | revoke")
    add = commands.add_parser("add", help="make a key; its secret is shown once", description="Make a key.")
    add.add_argument("name", metavar="NAME", help="whose it is, or what it is for")
    add.add_argument(
        "--scope",
        action="append",
        choices=SCOPES,
        help="what it allows: read runs and streams, run agents too, or administer; may be repeated (default: read)",
    )
    add.add_argument("--expires", metavar="SPAN", help="how long it is valid, as 30d, 12h, 90m or 8w (default: always)")
    listing = commands.add_parser("list", help="show the keys, without their secrets", description="Show the keys.")
    revoke = commands.add_parser("revoke", help="make a key invalid", description="Make a key invalid, for good.")
    revoke.add_argument("key_id", metavar="ID", help="the id of the key, as `seatrial keys list` shows it")
    for command in (add, listing, revoke):
        add_store_option(command)
        command.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = (
        "  seatrial keys add NAME [--scope read|run|admin]... [--expires SPAN]\n"
        "  seatrial keys list\n"
        "  seatrial keys revoke ID\n"
        "each with --store WHERE and --json.\n\n"
        "As soon as a store has a key, its server requires one with every request: `Authorization: Bearer <secret>`.\n"
        "A running server notices a new or revoked key within five seconds."
    )


def run(args: argparse.Namespace) -> int:
    commands: dict[str, Callable[[argparse.Namespace], None]] = {"add": _add, "list": _list, "revoke": _revoke}
    commands[args.command](args)
    return PASSED


def _add(args: argparse.Namespace) -> None:
    now = time.time_ns() // 1_000_000
    expires_at = None if args.expires is None else now + _span_ms(args.expires)
    with opened_store(args, create=True) as store:
        key, secret = store.keyring.add(args.name, args.scope or ["read"], now=now, expires_at=expires_at)
    if args.json:
        _write({"key": key, "secret": secret})
        return
    print(secret)
    print(f"{_line(key, datetime.now(UTC))}\nThe secret is not kept: it cannot be shown again.", file=sys.stderr)


def _list(args: argparse.Namespace) -> None:
    with opened_store(args) as store:
        keys = store.keyring.all()
    if args.json:
        _write({"keys": keys})
        return
    now = datetime.now(UTC)
    for key in keys:
        print(_line(key, now))
    if not keys:
        print("the store has no keys: its server is open to this machine, and to nobody else", file=sys.stderr)


def _revoke(args: argparse.Namespace) -> None:
    with opened_store(args) as store:
        key = store.keyring.revoke(args.key_id, time.time_ns() // 1_000_000)
    if args.json:
        _write({"key": key})
    else:
        print(_line(key, datetime.now(UTC)))


def _span_ms(text: str) -> int:
    match = _SPAN.fullmatch(text)
    if match is None or int(match[1]) == 0:
        raise SeatrialError("usage", f"{text!r} is not a span of time", hint="as 30d, 12h, 90m or 8w")
    return int(match[1]) * _UNIT_MS[match[2]]


def _line(key: ApiKey, now: datetime) -> str:
    if key.revoked_at is not None:
        state = f"revoked {_day(key.revoked_at)}"
    elif key.expires_at is None:
        state = "valid"
    else:
        state = f"{'expired' if key.expires_at <= now else 'valid until'} {_day(key.expires_at)}"
    return f"{key.key_id}  {_scopes(key.scopes)}  {state}  {printable(key.name)}"


def _scopes(scopes: Iterable[str]) -> str:
    return ",".join(scopes)


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%MZ")


def _write(shown: dict[str, object]) -> None:
    from seatrial._support import wire

    sys.stdout.buffer.write(wire.encode(shown) + b"\n")
