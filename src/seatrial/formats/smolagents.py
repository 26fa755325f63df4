"""Hugging Face's smolagents: steps of an agent's memory, and the results that hold them. Read, not written."""

from __future__ import annotations

from typing import Any, Final

from seatrial.formats.chat.documents import keep_rest, read_chat_document, read_list, sniff_messages
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import read_usage
from seatrial.formats.dialects import smolagents
from seatrial.formats.reading import Reading
from seatrial.formats.sniffing import CERTAIN, Members, Sample, Sniff
from seatrial.transcript import Transcript

FORMAT: Final = "smolagents"


def sniff(sample: Sample) -> Sniff | None:
    """Steps with a number, alone or in a result."""
    return sniff_messages(sample, _sniff_step, ("steps",))


def _sniff_step(entry: Members) -> Sniff | None:
    if "step_number" in entry and ("model_output_message" in entry or "observations" in entry):
        return Sniff(CERTAIN, "steps with step_number and model_output_message")
    return None


def read(data: bytes) -> Reading:
    """Read a step, a list or lines of them, or a result with `steps`."""
    return read_chat_document(data, FORMAT, _container, "a result with `steps`")


def _container(given: dict[str, Any], chat: Chat, run: Transcript, at: At) -> bool:
    if "steps" not in given or smolagents.fits(given):
        return False
    read_list(given["steps"], chat, (*at, "steps"))
    run.usage = read_usage(given.get("token_usage"))
    if type(output := given.get("output")) is str:
        run.answer = output
    keep_rest(given, frozenset({"steps", "token_usage", "output"} if run.answer else {"steps"}), chat, run, at)
    return True
