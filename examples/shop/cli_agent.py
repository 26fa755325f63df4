"""An agent that is a program: `python -m shop.cli_agent PROMPT_FILE OUTPUT_FILE`.

It wraps JSON in chatter, and breaks down on letters that are not ASCII.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from shop.clerk import messages, serve


def main(prompt: Path, output: Path) -> None:
    """Read the instruction, write a provider response."""
    instruction = prompt.read_text(encoding="ascii")
    talk = serve(instruction)
    if talk.answer.startswith("{"):
        talk.answer = f"Sure, here it is: {talk.answer} Anything else?"
    output.write_text(json.dumps({"output_messages": messages(instruction, talk)[1:]}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
