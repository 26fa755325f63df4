"""`seatrial schema NAME`: the JSON Schema of one of our types."""

from __future__ import annotations

import argparse
import sys

from seatrial.cli.exits import PASSED
from seatrial.errors import SeatrialError
from seatrial.schemas import SCHEMAS, schema_text


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="which type; without it, the names are listed")
    parser.add_argument("--json", action="store_true", help="the list of names as JSON (a schema always is)")


def run(args: argparse.Namespace) -> int:
    if args.name is None:
        if args.json:
            import json

            print(json.dumps(list(SCHEMAS)))
        else:
            width = max(len(name) for name in SCHEMAS)
            for name, schema in SCHEMAS.items():
                print(f"{name.ljust(width)}  {schema.summary}")
        return PASSED
    if args.name not in SCHEMAS:
        raise SeatrialError("usage", f"there is no schema {args.name!r}", hint=f"one of {', '.join(SCHEMAS)}")
    sys.stdout.write(schema_text(args.name))
    return PASSED
