"""The language in which runs are filtered: `tool:refund -outcome:passed cost>$0.10 "out of stock"`."""

from seatrial.store.filter.language import (
    MAX_FILTER,
    FilterError,
    FilterTerm,
    parse_filter,
    with_term,
    without_each,
    written_term,
)

__all__ = [
    "MAX_FILTER",
    "FilterError",
    "FilterTerm",
    "parse_filter",
    "with_term",
    "without_each",
    "written_term",
]
