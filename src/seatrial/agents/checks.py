"""Checks that the configurations of several kinds have in common: addresses, headers, secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from seatrial._support.environment import fill, names_secret, references
from seatrial.errors import SeatrialError
from seatrial.problems import KeyPath, Problems


def filled(text: str, variables: Mapping[str, str]) -> str | None:
    """The text with its variables; None when one is missing, which is told with all the others."""
    try:
        return fill(text, variables)
    except SeatrialError:
        return None


def check_secret(text: str | None, path: KeyPath, problems: Problems) -> None:
    """Tell a secret that is written out."""
    try:
        literal = text is not None and not references(text)
    except SeatrialError:
        return
    if literal:
        problems.add(
            path,
            f"`{path[-1]}` holds a secret, and a suite is stored and shown",
            "write `${NAME}` and set the variable; `${NAME:-text}` if it is not a secret",
        )


def check_headers(headers: Mapping[str, str], variables: Mapping[str, str], problems: Problems) -> None:
    """Tell headers that hold a secret, or more than one line."""
    for name, text in headers.items():
        if names_secret(name):
            check_secret(text, ("headers", name), problems)
        check_one_line(name, text, ("headers", name), variables, problems)


def check_one_line(name: str, text: str, path: KeyPath, variables: Mapping[str, str], problems: Problems) -> None:
    """Tell the value of a header that has more than one line."""
    if re.search(r"[\r\n\0]", filled(text, variables) or ""):
        hint = "a file that a variable was set from may end with a newline" if references(text) else None
        problems.add(path, f"the header `{name}` would have more than one line", hint)


def check_url(
    text: str, path: KeyPath, variables: Mapping[str, str], problems: Problems, *, only_https: bool = False
) -> None:
    """Tell an address that is none, or has a password written out."""
    value = filled(text, variables)
    if value is None:
        return
    # The value may be a secret, so that it is not shown.
    when = " when its variables are filled in" if value != text else ""
    url = _url(value)
    if url is None:
        problems.add(path, f"`{path[-1]}` must be an http or https URL{when}")
        return
    if only_https and url.scheme != "https":
        problems.add(path, f"`{path[-1]}` must be an https URL{when}", "`endpoint_rule: public` asks for it")
    written = _url(text)
    if written is not None and written.password:
        check_secret(written.password, path, problems)


def _url(text: str) -> SplitResult | None:
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and url.hostname and (url.port or 0) >= 0
    except ValueError:
        return None
    return url if usable and not re.search(r"\s", text) else None
