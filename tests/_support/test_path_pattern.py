from __future__ import annotations

import pytest

from seatrial._support.path_pattern import PathPatterns
from seatrial.errors import SeatrialError


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src", "src"),
        ("src", "src/a/b.py"),
        ("src/", "src/a.py"),
        ("/src", "src/a.py"),
        ("src/*.py", "src/a.py"),
        ("**/*.lock", "a.lock"),
        ("**/*.lock", "a/b/c.lock"),
        ("**/node_modules", "a/node_modules/b/c.js"),
        ("src/**", "src/a/b"),
        ("a?c/x", "abc/x"),
        ("/*.md", "README.md"),
        ("**", "anything/at/all"),
        ("a.b/c", "a.b/c"),
        ("**/*", "a\nb"),
    ],
)
def test_a_pattern_fits(pattern: str, path: str) -> None:
    assert PathPatterns(["no/match", pattern]).fitting(path) == pattern


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src", "other/src/a.py"),
        ("src", "src2"),
        ("src", "src.py"),
        ("src/*.py", "src/a/b.py"),
        ("src/**", "src"),
        ("a?c/x", "a/c/x"),
        ("/*.md", "inner/README.md"),
        ("a.b/c", "aXb/c"),
        ("src", "src\n"),
    ],
)
def test_a_pattern_does_not_fit_what_it_does_not_name(pattern: str, path: str) -> None:
    assert PathPatterns([pattern]).fitting(path) is None


@pytest.mark.parametrize("pattern", ["*.lock", "te?ts", "", "/", "../x", "a/./b", "a//b", "file[0-9]/x", "a\0b"])
def test_a_pattern_that_could_mean_several_things_or_none_is_refused_with_its_place(pattern: str) -> None:
    with pytest.raises(SeatrialError) as refused:
        PathPatterns(["fine", pattern])
    assert refused.value.pointer == "/1"
    assert refused.value.code == "invalid_config"
