"""llms.txt: what a language model should read to use Seatrial, in the order of https://llmstxt.org."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

HEAD = """# Seatrial

> Sea trials for AI agents: a Python library, pytest plugin, command line and service that runs agents on test cases, records what they said and did, grades the record and reports how certain the results are.

- Install from a clone or a wheel: `pip install path/to/seatrial`. There is no package on an index. Python 3.11 to 3.13.
- A suite names agents, cases and graders, in a YAML file (`*.suite.yaml`) or as Python objects (`import seatrial as st`). `seatrial init` writes one that runs.
- Check a suite with `seatrial doctor SUITE`, run it with `seatrial run SUITE`, look at it with `seatrial list`, `show`, `search`, `diff`, `report` and `compare`. Every command takes `--json`.
- Outcomes are `passed`, `failed` (the agent's fault), `errored` (no verdict) and `skipped`. Rates count only the first two. Unknown is never zero: a check on calls that are not known is `errored` (`calls_unknown`), so return the messages, or declare `tool_access: none`.
- Exit codes: 0 passed, 1 failed, 2 usage, 3 could not be run or judged. Errors end with their code in brackets; docs/troubleshooting.md says what to do about each.
- A key of a suite that nothing acts on is an error, with the nearest valid key. The JSON Schema of suites is schemas/suite.schema.json; docs/suites.md lists every key.
"""
GROUPS = {
    "Start": ("concepts", "python", "suites", "agents", "graders", "verdicts", "coming-from", "troubleshooting"),
    "Agents": ("frameworks", "coding", "formats"),
    "Graders": ("worlds", "judges", "matching", "faults"),
    "Results": ("looking", "comparing", "tags", "ci", "pytest", "store", "explorer"),
    "Running": ("cli", "serving", "client", "scaling"),
    "Optional": ("extending", "events", "notes", "errors", "architecture"),
}
"""Pages of docs/ by what they are for; the last group is for those who have room for more."""


def llms(root: Path, generated: Mapping[str, str]) -> str:
    """The file; pages that are generated are given as they will be. Raises `ValueError` where a page is in no group,
    or a group names one that does not exist."""
    pages = {f"docs/{page.name}": page.read_text(encoding="utf-8") for page in (root / "docs").glob("*.md")}
    pages |= {name: text for name, text in generated.items() if name.endswith(".md")}
    named = {f"docs/{name}.md" for names in GROUPS.values() for name in names}
    if apart := named ^ set(pages):
        raise ValueError(f"not in a group of scripts/llms.py, or not in docs/: {sorted(apart)}")
    parts = [HEAD]
    for group, names in GROUPS.items():
        lines = [_line(f"docs/{name}.md", pages[f"docs/{name}.md"]) for name in names]
        if group == "Optional":
            lines.append("- [Specifications](docs/spec/README.md): exactly what is sent and stored")
        parts.append(f"## {group}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(path: str, text: str) -> str:
    """A page with its title and its first sentence."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).strip()
    title, _, rest = text.removeprefix("# ").partition("\n")
    paragraphs = [part.strip() for part in rest.split("\n\n")]
    first = " ".join(next(part for part in paragraphs if part[:1].isalnum() or part.startswith("`")).split())
    sentence = re.split(r"(?<=[.:]) ", first)[0].rstrip(".:")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence)
    return f"- [{title}]({path}): {plain}"
