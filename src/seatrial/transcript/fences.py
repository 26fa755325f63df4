"""Fenced code blocks in a text that arrives in pieces."""

from __future__ import annotations

import re
from typing import Literal


class FenceFollower:
    """Reads text and finds each `<` that does not stand in fenced code; where the text was cut makes no difference.

    A fence is CommonMark's: at most three blanks, then three or more backticks or tildes; closed by at least as
    many of the same, alone on their line, or by the end of the text. A line of backticks that has another backtick
    further on is inline code and opens nothing.
    """

    def __init__(self) -> None:
        self._fence = ""
        """The character of the open fence; empty outside of fenced code."""
        self._fence_length = 0
        self._at: Literal["indent", "run", "info", "tail", "middle"]
        self._run_of = ""
        self._start_line()

    def next_tag(self, text: str, position: int) -> int:
        """Where the next `<` outside of fenced code is that may start a tag, or the end of the text.

        The text before it is read, the `<` is not.
        """
        end = len(text)
        while position < end:
            if self._at == "middle":
                position = end_of(_CODE if self._fence else _PROSE, text, position)
                if position == end:
                    break
            if text[position] != "<" or self._fence:
                self._step(text[position])
                position += 1
                continue
            after = end_of(_PROSE, text, position)
            if after == position:
                break
            self._at = "middle"
            position = after
        return position

    def skip(self, text: str) -> None:
        """Read text in which no `<` starts a tag."""
        position = 0
        while (position := self.next_tag(text, position)) < len(text):
            self._at = "middle"
            position += 1

    def _start_line(self) -> None:
        self._at = "indent"
        self._indent = 0
        self._run = 0
        self._opening = False

    def _step(self, char: str) -> None:
        if char == "\n":
            self._end_line()
        elif self._at == "indent":
            if char == " " and self._indent < 3:
                self._indent += 1
            elif char == self._fence or (char in "`~" and not self._fence):
                self._at, self._run, self._run_of = "run", 1, char
            else:
                self._at = "middle"
        elif self._at == "run" and char == self._run_of:
            self._run += 1
            if not self._fence and self._run == 3:
                self._fence, self._opening = char, True
        else:
            self._leave_run(char)

    def _leave_run(self, char: str) -> None:
        """Read a character after the run of a line, in its info string or behind a closing fence."""
        if self._opening:
            self._at = "info"
            self._fence_length = self._run
            if char == "`" == self._fence:
                self._fence = ""
                self._at = "middle"
        elif self._closes() and char in " \t\r":
            self._at = "tail"
        else:
            self._at = "middle"

    def _closes(self) -> bool:
        return bool(self._fence) and not self._opening and self._run >= self._fence_length

    def _end_line(self) -> None:
        if self._opening:
            self._fence_length = self._run
        elif self._at in ("run", "tail") and self._closes():
            self._fence = ""
        self._start_line()


def end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Where a pattern that matches anywhere, if only the empty text, stops matching."""
    match = pattern.match(text, position)
    return match.end() if match else position


# From the middle of a line as far as nothing can be decided there: over newlines whose next line shows at once that
# it has no fence, and, outside of code, over each `<` that what comes next does not let be a tag.
_NO_FENCE = r"\n++(?:[^ `~\n<]|[ ]{1,3}[^ `~\n<]|[ ]{4})"
_PROSE = re.compile(rf"[^<\n]*+(?:(?:{_NO_FENCE}|<[ \t\f\r]*+[^ \t\n\f\rtTrR])[^<\n]*+)*+")
_CODE = re.compile(rf"[^\n]*+(?:{_NO_FENCE}[^\n]*+)*+")
