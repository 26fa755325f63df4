"""Labels of sub-agents are paths of short, plain segments."""

from __future__ import annotations

import pytest

from seatrial.world.trace import actor_label


@pytest.mark.parametrize("text", ["refunds", "supervisor/refunds", "a.b:c-d_e", "/".join("a" * 8), "x" * 64])
def test_a_path_of_plain_segments_is_a_label(text: str) -> None:
    assert actor_label(text) == text


def test_a_label_is_trimmed() -> None:
    assert actor_label("  supervisor/refunds\t") == "supervisor/refunds"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "/",
        "a//b",
        "a/",
        "/a",
        "a b",
        "ä",
        "a\nb",
        "x" * 65,
        "/".join("a" * 9),
        "/".join(["x" * 40] * 7),
        "a;b",
    ],
)
def test_anything_else_is_none(text: str) -> None:
    assert actor_label(text) is None
