"""Notes and their codes."""

from __future__ import annotations

import msgspec
import pytest

from seatrial import transcript
from seatrial.transcript import NOTE_CODES, Note, note_code, pointer, repair_notes


def test_a_pointer_escapes_slashes_and_tildes() -> None:
    assert pointer() == ""
    assert pointer("messages", 3, "a/b~c") == "/messages/3/a~1b~0c"


def test_a_code_cannot_have_two_meanings() -> None:
    assert note_code("bom_removed", NOTE_CODES["bom_removed"].meaning, "harmless") == "bom_removed"
    with pytest.raises(ValueError, match="declared twice"):
        note_code("bom_removed", "something else", "harmless")


def test_repairs_become_notes_at_their_place() -> None:
    assert repair_notes(["bom_removed"], "/3") == [Note("bom_removed", "/3", NOTE_CODES["bom_removed"].meaning)]


def test_a_note_has_the_weight_of_its_code_unless_its_place_gives_it_another() -> None:
    assert Note("bom_removed", "", "").weight == "harmless"
    assert Note("bom_removed", "", "", "serious").weight == "serious"


def test_a_note_keeps_its_weight_through_json_and_a_code_of_another_version_counts_as_serious() -> None:
    heavy = Note("bom_removed", "", "", "serious")
    assert msgspec.json.decode(msgspec.json.encode(heavy), type=Note) == heavy
    unknown = msgspec.json.decode(b'{"code": "of_tomorrow", "pointer": "", "message": ""}', type=Note)
    assert unknown.weight is None
    assert unknown.serious


def test_the_package_offers_what_it_lists_and_lists_it_once() -> None:
    assert len(set(transcript.__all__)) == len(transcript.__all__)
    for name in transcript.__all__:
        assert hasattr(transcript, name), name
