"""What the files of an export have in their heads: a policy, the styles, and one script."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from markupsafe import Markup

from seatrial.explorer.assets import without_spaces

STYLES = ("app.css", "run.css", "transcript.css")
"""Of the server, those that the pages of an export use."""
STYLE, SCRIPT = "export.css", "export.js"
_POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; img-src {images}; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


@cache
def style() -> str:
    """All styles of an export."""
    pages, own = files("seatrial.explorer").joinpath("static"), files("seatrial.explorer.export")
    sheets = [*[pages.joinpath(name).read_bytes() for name in STYLES], own.joinpath(STYLE).read_bytes()]
    return b"\n".join(map(without_spaces, sheets)).decode()


@cache
def script() -> str:
    """The script of an export."""
    return files("seatrial.explorer.export").joinpath(SCRIPT).read_text("utf-8")


@cache
def inner_head() -> Markup:
    """The head of a file that has everything in itself: only its own style and script are let in, by their hashes."""
    policy = _POLICY.format(style=_hashed(style()), script=_hashed(script()), images="data:")
    # Both are ours, and none of them has the end of its element in it.
    return Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style()}</style>')  # noqa: S704


@cache
def inner_script() -> Markup:
    """The script, as an element."""
    return Markup(f"<script>{script()}</script>")  # noqa: S704


def outer_head(root: str) -> Markup:
    """The head of a page of a folder; `root` leads from the page to the folder."""
    policy = _POLICY.format(style="'self'", script="'self'", images="'self'")
    return Markup(  # noqa: S704
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<link rel="stylesheet" href="{root}{STYLE}">\n<script defer src="{root}{SCRIPT}"></script>'
    )


def _hashed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
