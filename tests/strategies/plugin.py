"""A package of somebody else's, installed where a test wants it: modules, and entry points in its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, name: str, modules: Mapping[str, str], entry_points: Mapping[str, Mapping[str, str]]) -> Path:
    """Write a package as an installer leaves it: `folder` on the path is all it takes. Gives the folder."""
    for module, text in modules.items():
        file = folder / f"{module.replace('.', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    sections = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in offers.items())
        for group, offers in entry_points.items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(sections), encoding="utf-8")
    return folder
