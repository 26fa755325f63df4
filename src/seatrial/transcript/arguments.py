"""Arguments of a tool call that were not JSON: kept whole inside the `arguments` value itself.

A provider that receives malformed argument text has nowhere else to put it, so the text and the parser's
complaint travel as an object with two reserved keys. Writers turn it back into the text as sent.
"""

from __future__ import annotations

from typing import Any

PARSE_ERROR_KEY = "__clark_arg_parse_error"
RAW_TEXT_KEY = "__clark_arg_raw"


def unparsed_arguments(error: str, text: str) -> dict[str, Any]:
    """The arguments value that stands for text which is not JSON."""
    return {PARSE_ERROR_KEY: error, RAW_TEXT_KEY: text}


def detect_unparsed(arguments: Any) -> tuple[str, str] | None:
    """(error, text) when these arguments stand for text which is not JSON, else None."""
    if type(arguments) is not dict:
        return None
    error = arguments.get(PARSE_ERROR_KEY)
    text = arguments.get(RAW_TEXT_KEY)
    if isinstance(error, str) and isinstance(text, str):
        return error, text
    return None
