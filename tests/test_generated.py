"""What is published must be what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest
from generate import generated

ROOT = Path(__file__).resolve().parent.parent
FILES = generated()


@pytest.mark.parametrize("name", sorted(FILES))
def test_generated_file_has_not_drifted(name: str) -> None:
    path = ROOT / name
    assert path.exists(), f"{name} is missing: run `make schemas`"
    assert path.read_text(encoding="utf-8") == FILES[name], f"{name} has drifted: run `make schemas`"


def test_no_stale_schema_is_published() -> None:
    published = {f"schemas/{path.name}" for path in (ROOT / "schemas").iterdir()}
    assert published == {name for name in FILES if name.startswith("schemas/")}
