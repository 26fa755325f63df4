"""Whether an agent response keeps what the agent promised: response_mode x strictness.

| response_mode | strictness | messages absent or not an array | no assistant message with text |
| --- | --- | --- | --- |
| none registered | - | note | fine |
| thin | either | fine | fine |
| rich | soft | note | note |
| rich | strict | violation | violation |

A response without a `final_response` is a violation in every row.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from seatrial.errors import SeatrialError
from seatrial.formats.chat.reader import MESSAGES_MISSING
from seatrial.formats.reading import Reading
from seatrial.transcript import AssistantMessage, Note, note_code

NOT_GRADEABLE = note_code(
    "not_gradeable", "No assistant message has text, so there is nothing but the answer to grade.", "harmless"
)

ResponseMode = Literal["thin", "rich"]
Strictness = Literal["soft", "strict"]
ContractViolation = Literal["agent_bad_response", "response_contract_violation"]
"""Also the error class of the run."""


class ContractReport(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What came of holding a response against the contract. The judge runs only when `ok`."""

    ok: bool
    message: str
    """One sentence, for people."""
    gradeable: bool
    """Whether the agent sent an assistant message with text."""
    violation: ContractViolation | None = None
    notes: list[Note] = []
    """What remains to be said; without what this response_mode does not ask for."""


def check(
    reading: Reading, response_mode: ResponseMode | None = "thin", strictness: Strictness = "soft"
) -> ContractReport:
    """Hold a response against the contract; `response_mode=None` means that the agent registered none."""
    if response_mode not in (None, "thin", "rich") or strictness not in ("soft", "strict"):
        raise SeatrialError(
            "invalid_config",
            f"unknown response contract: response_mode {response_mode!r}, strictness {strictness!r}",
            hint="response_mode is thin or rich, strictness is soft or strict",
        )
    notes = reading.notes
    sent = not reading.answer_only
    # From the end, where the answer is. What the agent was given is not its doing.
    gradeable = sent and any(
        type(message) is AssistantMessage and message.plain_text() for message in reversed(reading.transcript.done())
    )
    if response_mode == "thin":
        notes = [note for note in notes if note.code != MESSAGES_MISSING]
    elif response_mode == "rich" and sent and not gradeable:
        notes = [*notes, Note(NOT_GRADEABLE, "/messages", "no assistant message has text")]
    violation: ContractViolation | None = None
    message = "within the contract"
    if not reading.transcript.answer:
        violation, message = "agent_bad_response", "there is no final_response, or it is empty"
    elif response_mode == "rich" and strictness == "strict" and not gradeable:
        violation = "response_contract_violation"
        message = "the agent promised messages with at least one assistant text, and sent none"
    return ContractReport(ok=violation is None, message=message, gradeable=gradeable, violation=violation, notes=notes)
