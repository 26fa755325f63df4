"""How well-known coding agents are started, and what they print.

By their public documentation and packages: Claude Code's CLI reference, Codex 0.166, aider 0.86, mini-swe-agent 2.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

PresetName: TypeAlias = Literal["claude-code", "codex", "aider", "mini-swe-agent"]


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """What a preset stands for."""

    command: tuple[str, ...]
    output: str
    settings: Mapping[str, str] = {}
    """Variables that it always gets."""
    credential: str | None = None
    """The variable with its key, which it gets where the suite has no `env`."""


PRESETS: Mapping[PresetName, Preset] = {
    "claude-code": Preset(
        command=(
            *("claude", "-p", "{PROMPT}", "--output-format", "stream-json", "--verbose"),
            *("--permission-mode", "acceptEdits"),
        ),
        output="claude-stream-json",
        credential="ANTHROPIC_API_KEY",
    ),
    "codex": Preset(
        command=(
            *("codex", "exec", "--json", "--skip-git-repo-check", "--sandbox", "workspace-write"),
            *("--cd", "{WORKDIR}", "{PROMPT}"),
        ),
        output="codex-exec",
        credential="CODEX_API_KEY",
    ),
    "aider": Preset(
        command=(
            *("aider", "--message-file", "{PROMPT_FILE}", "--yes-always", "--no-check-update", "--no-pretty"),
            *("--no-stream", "--no-gitignore", "--no-show-release-notes", "--no-analytics"),
        ),
        output="text",
    ),
    "mini-swe-agent": Preset(
        command=("mini", "--task", "{PROMPT}", "--yolo", "--exit-immediately"),
        output="text",
        # Otherwise it asks for its configuration, since its home is empty.
        settings={"MSWEA_CONFIGURED": "true"},
    ),
}
