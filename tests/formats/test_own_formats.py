"""Formats that are not Seatrial's: by entry point, by decorator, and as a class beside a suite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest
from strategies import command
from strategies.plugin import install

from seatrial import formats
from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading, TraceEvent, Written
from seatrial.formats.registry import FORMATS, WRITABLE, _accept
from seatrial.formats.sniffing import Sample, Sniff
from seatrial.trajectory import extract
from seatrial.transcript import (
    AssistantMessage,
    Note,
    ReasoningDetailsBlock,
    StopReason,
    TextBlock,
    ToolCall,
    Transcript,
)
from seatrial.transcript.call_facts import CallFacts, PlacedFacts

# Lines of `> question` and `< answer`; `! tool` is a call.
MODULE = textwrap.dedent(
    '''
    """Chats as arrows."""

    from seatrial.formats import Reading, Written
    from seatrial.formats.sniffing import SURE, Sniff
    from seatrial.transcript import AssistantMessage, StopReason, TextBlock, ToolCall, Transcript, UserMessage

    def sniff(sample):
        return Sniff(SURE, "lines of arrows") if sample.head[:2] == b"> " else None

    def read(data):
        messages = []
        for line in data.decode().splitlines():
            mark, _, text = line.partition(" ")
            if mark == ">":
                messages.append(UserMessage(content=text))
            elif mark == "!":
                call = ToolCall(id=str(len(messages)), name=text, arguments={})
                messages.append(AssistantMessage(content=[call], stop_reason=StopReason.TOOL_USE))
            else:
                messages.append(AssistantMessage(content=[TextBlock(text)], stop_reason=StopReason.END_TURN))
        return Reading("whatever", Transcript(messages=messages), [])

    def write(transcript):
        return Written(b"> " + (transcript.final_text() or "").encode(), [])
    '''
)
CHAT = "> hello\n! find_order\n< all is done\n"
OFFER = {"seatrial.formats": {"arrows": "arrows"}}


def seatrial(folder: Path, *args: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": "" if path is None else str(path)}
    return command.seatrial(*args, cwd=folder, env=environment)


def replay_suite(folder: Path, **agent: Any) -> None:
    (folder / "records").mkdir(exist_ok=True)
    (folder / "records" / "one.txt").write_text(CHAT)
    never = {"kind": "tool_trajectory", "mode": "any_order", "maximums": {"find_order": 0}}
    suite = {
        "agents": {"old": {"kind": "replay", "path": "records", **agent}},
        "cases": [{"id": "one", "instruction": "hello"}],
        "graders": [{"kind": "contains", "value": "done", "name": "says"}, {**never, "name": "calls", "negate": True}],
    }
    (folder / "s.suite.yaml").write_text(json.dumps(suite))


# Installed


def test_an_installed_format_is_recognised_read_and_written(tmp_path: Path) -> None:
    site = install(tmp_path / "site", "arrows", {"arrows": MODULE}, OFFER)
    (tmp_path / "chat.txt").write_text(CHAT)
    found = seatrial(tmp_path, "steps", "chat.txt", "--json", path=site)
    assert [step["name"] for step in json.loads(found.stdout)["steps"]] == ["find_order"]
    written = seatrial(tmp_path, "convert", "chat.txt", "--from", "arrows", "--to", "openai", path=site)
    assert json.loads(written.stdout)[-1]["content"] == "all is done"
    assert "read as arrows" in written.stderr
    back = seatrial(tmp_path, "convert", "chat.txt", "--to", "arrows", path=site)
    assert back.stdout.strip() == "> all is done"
    unknown = seatrial(tmp_path, "convert", "chat.txt", "--to", "arrow", path=site)
    assert (unknown.returncode, "did you mean `arrows`?" in unknown.stderr) == (2, True)


@pytest.mark.parametrize("agent", [{}, {"format": "arrows"}, {"format": "arrows:Arrows"}])
def test_a_suite_replays_records_of_an_own_format(agent: dict[str, str], tmp_path: Path) -> None:
    beside = MODULE + "\nclass Arrows:\n    sniff, read = staticmethod(sniff), staticmethod(read)\n"
    if agent.get("format") == "arrows:Arrows":
        (tmp_path / "arrows.py").write_text(beside)
        site = None
    else:
        site = install(tmp_path / "site", "arrows", {"arrows": MODULE}, OFFER)
    replay_suite(tmp_path, **agent)
    ran = seatrial(tmp_path, "run", "s.suite.yaml", "--quiet", path=site)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_two_formats_that_are_equally_sure_are_an_error_that_names_both(tmp_path: Path) -> None:
    site = install(tmp_path / "site", "arrows", {"arrows": MODULE}, OFFER)
    install(site, "bows", {"bows": MODULE.replace("lines of arrows", "a bow")}, {"seatrial.formats": {"bows": "bows"}})
    (tmp_path / "chat.txt").write_text(CHAT)
    ran = seatrial(tmp_path, "steps", "chat.txt", path=site)
    assert ran.returncode == 3
    assert "may be arrows (lines of arrows) and bows (a bow), which is equally likely" in ran.stderr
    named = seatrial(tmp_path, "steps", "chat.txt", "--from", "bows", path=site)
    assert named.returncode == 0


@pytest.mark.parametrize("name", ["openai", "arrows"])
def test_a_format_name_that_two_claim_is_an_error_that_names_both(name: str, tmp_path: Path) -> None:
    site = install(tmp_path / "site", "arrows", {"arrows": MODULE}, {"seatrial.formats": {name: "arrows"}})
    install(site, "bows", {"bows": MODULE}, {"seatrial.formats": {name: "bows"}})
    (tmp_path / "chat.txt").write_text(CHAT)
    ran = seatrial(tmp_path, "steps", "chat.txt", path=site)
    assert ran.returncode != 0
    assert f"the name '{name}' is taken" in ran.stderr
    assert "arrows 1.0 and by bows 1.0" in ran.stderr


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (MODULE + "\nraise ValueError('no')", "cannot be imported: ValueError: no"),
        (MODULE.replace("def read", "def raed"), "needs the functions `sniff` and `read`"),
        (MODULE.replace("return Sniff", "return 1 / 0, Sniff"), "`sniff` raised ZeroDivisionError"),
        (MODULE.replace("Sniff(SURE,", "Sniff(1000,"), "a confidence of 1000"),
        (MODULE.replace('return Reading("whatever",', 'return ("whatever",'), "`read` gave tuple, and not Reading"),
    ],
    ids=["import", "no read", "sniff raises", "confidence", "read"],
)  # fmt: skip
def test_a_format_that_fails_is_named_and_is_not_the_agents_fault(broken: str, said: str, tmp_path: Path) -> None:
    site = install(tmp_path / "site", "arrows", {"arrows": broken}, OFFER)
    (tmp_path / "chat.txt").write_text(CHAT)
    read = seatrial(tmp_path, "steps", "chat.txt", path=site)
    assert read.returncode != 0
    assert said in read.stderr
    assert "arrows" in read.stderr


@pytest.mark.parametrize(("broken", "code"), [(False, 1), (True, 3)])
def test_an_answer_that_a_broken_format_kept_from_being_read_is_not_the_agents_fault(
    broken: bool, code: int, tmp_path: Path
) -> None:
    text = MODULE.replace("return Sniff", "return 1 / 0, Sniff").replace('if sample.head[:2] == b"> " else None', "")
    site = install(tmp_path / "site", "arrows", {"arrows": text if broken else MODULE}, OFFER)
    (tmp_path / "answer.json").write_text('{"nobody": "knows"}')
    suite = {
        "agents": {"plain": {"kind": "cli", "command": "cat answer.json"}},
        "cases": [{"id": "one", "instruction": "hello"}],
        "graders": [{"kind": "contains", "value": "done"}],
    }
    (tmp_path / "s.suite.yaml").write_text(json.dumps(suite))
    ran = seatrial(tmp_path, "run", "s.suite.yaml", "--quiet", path=site)
    assert ran.returncode == code, ran.stdout
    assert ("format_failed" in ran.stdout) is broken


# In this process


class Arrows:
    def sniff(self, sample: Sample) -> Sniff | None:
        return None

    def read(self, data: bytes) -> Reading:
        if data == b"refused":
            raise SeatrialError("not_json", "refused")
        if data == b"none":
            return None  # type: ignore[return-value]
        return Reading("another", Transcript(), [])


def test_a_format_reads_under_its_own_name_and_its_refusals_stay_what_they_are() -> None:
    guarded = _accept("arrows", Arrows)
    assert guarded.read(b"x").format == "arrows"
    with pytest.raises(SeatrialError, match="refused") as caught:
        guarded.read(b"refused")
    assert caught.value.code == "not_json"
    with pytest.raises(SeatrialError, match="`read` gave NoneType, and not Reading") as caught:
        guarded.read(b"none")
    assert caught.value.code == "format_failed"
    assert not hasattr(guarded, "write")


def _said(*content: Any, **fields: Any) -> Reading:
    message = AssistantMessage(content=[*content], stop_reason=StopReason.END_TURN)
    return Reading("another", Transcript(messages=[message], answer="ok"), [], **fields)


UNSOUND: dict[str, Any] = {
    "no messages": lambda: Reading("another", Transcript(messages=["x", 3]), []),  # type: ignore[list-item]
    "a dict for a call": lambda: _said({"type": "tool_call", "name": "delete_account"}),
    "a dict for a text with a call in it": lambda: _said({"type": "text", "text": "ok", "tool_calls": [{"name": "d"}]}),
    "a call without an id": lambda: _said(ToolCall(None, "delete_account", {})),  # type: ignore[arg-type]
    "no notes": lambda: Reading("another", Transcript(), None),  # type: ignore[arg-type]
    "an object as arguments": lambda: _said(ToolCall("1", "delete_account", object())),
    "sys.exit": lambda: sys.exit(0),
    "an exception": lambda: 1 / 0,
}


@pytest.mark.parametrize("name", UNSOUND)
def test_what_a_format_gives_is_looked_at_all_through(name: str) -> None:
    class Careless(Arrows):
        def read(self, data: bytes) -> Reading:
            reading: Reading = UNSOUND[name]()
            return reading

    with pytest.raises(SeatrialError, match=r"Careless failed: `read` (gave|raised)") as caught:
        _accept("careless", Careless).read(b"x")
    assert caught.value.code == "format_failed"


def test_a_call_that_is_a_dict_with_all_that_a_call_has_is_one() -> None:
    class Dicts(Arrows):
        def read(self, data: bytes) -> Reading:
            return _said({"type": "tool_call", "id": "1", "name": "delete_account", "arguments": {}})

    trajectory = extract(_accept("dicts", Dicts).read(b"x"))
    assert [step.name for step in trajectory.steps] == ["delete_account"]


def test_a_sound_reading_stays_what_it_is() -> None:
    details = ReasoningDetailsBlock([msgspec.Raw(b'{"a": 1.0}')])
    call = ToolCall("1", "find", {"of": (1, 2), "at": float("nan")})
    trace = [TraceEvent("tool_call", name="find", timestamp=5)]
    notes = [Note("unknown_code", "", "text"), Note("key_dropped", "/a", "text", "serious")]

    class Sound(Arrows):
        def read(self, data: bytes) -> Reading:
            reading = _said(
                details, TextBlock("a"), call, trace=trace, facts=[PlacedFacts(0, CallFacts())], answer_only=True
            )
            reading.notes += notes
            reading.transcript.duration_ms = 5
            return reading

    reading = _accept("sound", Sound).read(b"x")
    (message,) = reading.transcript.messages
    assert isinstance(message, AssistantMessage)
    assert message.content == [details, TextBlock("a"), ToolCall("1", "find", {"of": [1, 2], "at": None})]
    assert (reading.trace, reading.notes, reading.answer_only) == (trace, notes, True)


def test_nobody_keeps_a_person_from_interrupting() -> None:
    class Slow(Arrows):
        def read(self, data: bytes) -> Reading:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _accept("slow", Slow).read(b"x")


@pytest.mark.parametrize("broken", ["sys.exit(0)", "1 / 0", 'Reading("w", Transcript(messages=["x", 3]), [])'])
def test_a_record_that_a_broken_format_reads_is_errored_by_the_format(broken: str, tmp_path: Path) -> None:
    (tmp_path / "arrows.py").write_text(
        f"import sys\n{MODULE}\nclass Arrows:\n    def sniff(self, sample): return None\n"
        f"    def read(self, data): return {broken}\n"
    )
    replay_suite(tmp_path, format="arrows:Arrows")
    ran = seatrial(tmp_path, "run", "s.suite.yaml", "--quiet")
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "format_failed" in ran.stdout


def test_a_class_is_found_by_where_it_is() -> None:
    name = f"{__name__}:Arrows"
    sys.modules.setdefault(__name__, sys.modules[Arrows.__module__])
    assert formats.read(b"x", name).format == name
    with pytest.raises(SeatrialError, match="needs the functions `sniff` and `read`"):
        formats.read(b"x", "json:JSONDecodeError.mro")
    with pytest.raises(SeatrialError, match="cannot be imported"):
        formats.read(b"x", "nowhere_at_all:Arrows")


def test_those_of_seatrial_that_can_be_written_are_those_with_a_writer() -> None:
    built_in = FORMATS.built_in()
    assert [name for name, format in built_in.items() if hasattr(format, "write")] == list(WRITABLE)
    written = formats.write(Transcript(), "openai")
    assert isinstance(written, Written)
