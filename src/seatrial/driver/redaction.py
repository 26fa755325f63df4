"""Secrets of the suite and the token of a run, kept out of what is recorded, also when an agent sends them back.

Graders judge what the agent really said. What is stored, shown or logged has `${NAME}` in the place of a secret: events
when they enter the recorder, a run when it is stored (`Redaction.run`), faults and verdicts when they are made. Nothing
else redacts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from seatrial import formats
from seatrial._support import wire
from seatrial._support.excerpt import CUT_BEGINNING, MAX_DETAIL
from seatrial.errors import SeatrialError
from seatrial.formats.reading import Reading
from seatrial.graders.chat_model import ChatMessage, ChatModel, Completion
from seatrial.ledger.record import WorldCall
from seatrial.runs import Attempt, Fault, Grade, Run, Verdict
from seatrial.runs.removed import ANSWER, DIFF, RUN_TOKEN_REMOVED, SECRET_REMOVED, WORLD
from seatrial.runs.workspace import WorkspaceDiff
from seatrial.store import address
from seatrial.suites import Secrets
from seatrial.suites.secrets import MIN_SECRET_LENGTH
from seatrial.trajectory.completeness import Completeness
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.step import Step
from seatrial.transcript import Message, Note, TextBlock, Transcript

T = TypeVar("T")
Redact: TypeAlias = Callable[[str], str]

MAX_SECRET_BYTES = 1 << 16
"""How far from the end of data that was cut off a secret may begin."""
MIN_NUMBER_DIGITS = 6
"""A shorter secret of digits is a number like others when it stands there as one."""

_TOKEN = "run token"  # noqa: S105 - the name of one

_SCALAR = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|-?[0-9][0-9.eE+-]*')
"""A string, with what makes it a key, or a number."""
_TEXT = msgspec.json.Decoder(str)
_POINTER = re.compile(r"/answer|/(steps|messages)/[0-9]+")
"""The evidence that Seatrial's own graders give."""


class Redaction:
    """Puts `${NAME}` in the place of every secret value, and `[run token]` in that of a token."""

    def __init__(self, secrets: Secrets | None, tokens: Sequence[Secrets] = ()) -> None:
        self._secrets = secrets or None
        self._tokens = list(tokens)

    def of_run(self) -> Redaction:
        """The same for one run, which may have tokens besides."""
        return Redaction(self._secrets)

    def hide_token(self, token: str) -> None:
        """Hide the token of an attempt, too."""
        self._tokens.append(Secrets({_TOKEN: token}, mark="[%s]"))

    @property
    def active(self) -> bool:
        """Whether there is anything to hide."""
        return self._secrets is not None or bool(self._tokens)

    @property
    def _hidden(self) -> list[Secrets]:
        return self._tokens if self._secrets is None else [*self._tokens, self._secrets]

    # Texts and documents

    def text(self, text: str) -> str:
        """Text without secrets."""
        for secrets in self._hidden:
            text = secrets.redact(text)
        return text

    def split(self, text: str) -> tuple[str, str]:
        """Text without secrets, and separately the end of it that may be the beginning of one."""
        text = self.text(text)
        whole = len(text) - max((secrets.begun(text) for secrets in self._hidden), default=0)
        return text[:whole], text[whole:]

    def raw(self, data: bytes) -> bytes:
        """Bytes of any kind without secrets; the very same ones when there are none in them."""
        if not self.active:
            return data
        # Bytes that are no text come back as they were.
        text = data.decode("utf-8", "surrogateescape")
        redacted = self.text(text)
        return data if redacted == text else redacted.encode("utf-8", "surrogateescape")

    def cut_off(self, data: bytes, least: int = 1) -> bytes:
        """Data that was cut off, without the beginning of a secret at its end, if it has so many characters."""
        tail = data[-MAX_SECRET_BYTES:].decode("utf-8", "surrogateescape")
        begun = max([secrets.begun(tail) for secrets in self._hidden], default=0)
        if begun < least:
            return data
        return data[: len(data) - len(tail[-begun:].encode("utf-8", "surrogateescape"))] if begun else data

    def document(self, data: bytes) -> bytes:
        """A JSON document of our own writing without secrets.

        It stays a document of the same type: a secret such as `8080` is no reason to break a number, nor one such as
        `user` a reason to lose the role of a message. A number that is a whole secret is hidden where the type
        leaves open what there is.
        """
        if not self.active:
            return data
        text = data.decode()
        if self.text(text) == text:
            return data
        return _rewritten(text, self.text, self._mark_of)

    # What is made of an agent's doing

    def fault(self, fault: Fault) -> Fault:
        """A fault without secrets."""
        if not self.active:
            return fault
        detail = None if fault.detail is None else self._perhaps_cut(fault.detail)
        return replace(fault, message=self._perhaps_cut(fault.message), detail=detail)

    def notes(self, notes: list[Note]) -> list[Note]:
        """Notes without secrets; the very same when there are none in them."""
        if not self.active:
            return notes
        clean = [
            replace(note, pointer=self._perhaps_cut(note.pointer), message=self._perhaps_cut(note.message))
            for note in notes
        ]
        return notes if clean == notes else clean

    def body(self, body: bytes | None, reading: Reading | None, *, streamed: bool = False) -> bytes | None:
        """What is stored of the body of an attempt with a fault: itself without secrets, and nothing where it may have
        one in pieces.

        `streamed`: the agent's own events went through the recorder.
        """
        if not self.active or body is None:
            return body
        read = None if reading is None or self._reading(reading, broken_off=True) is reading else reading.format
        return self._body(body, read, streamed, broken_off=True)

    def transcript(self, transcript: Transcript) -> Transcript:
        """A transcript without secrets."""
        if not self.active:
            return transcript
        return self._joined(self._value(transcript, Transcript))

    def may_be_in(self, transcript: Transcript, events: Sequence[bytes]) -> bool:
        """Whether a secret is in a transcript, or in the events that were made of it."""
        whole = b"\n".join(events)
        return self.raw(whole) is not whole or self._joined(transcript) is not transcript

    def run(self, run: Run, *, streamed: bool = False) -> Run:
        """A run as it is stored: another one without secrets, and with notes on where there was one.

        What graders go by is not touched.
        """
        # One after the other: what a note says of a secret does not hold for a token, which no grader can name.
        if self._tokens:
            run = Redaction(None, self._tokens)._run(run, streamed, RUN_TOKEN_REMOVED)
        return run if self._secrets is None else Redaction(self._secrets)._run(run, streamed, SECRET_REMOVED)

    def _run(self, run: Run, streamed: bool, code: str) -> Run:
        # What a run says that ended with a fault may break off in the middle of a secret.
        broken_off = run.fault is not None
        reading = None if run.reading is None else self._reading(run.reading, broken_off=broken_off)
        read = None if run.reading is None or reading is run.reading else run.reading.format
        kept = replace(
            run,
            reading=reading,
            unread_notes=self.notes(run.unread_notes),
            steps=self._steps(run.steps, broken_off),
            reported=None if run.reported is None else self._steps(run.reported, broken_off),
            completeness=None if run.completeness is None else self._completeness(run.completeness),
            body=None if run.body is None else self._body(run.body, read, streamed, broken_off=broken_off),
            fault=None if run.fault is None else self.fault(run.fault),
            metadata=self._value(run.metadata, dict[str, Any]) if run.metadata else run.metadata,
        )
        if run.diff is not None:
            kept.diff = self._diff(run.diff)
        if run.world is not None:
            calls = self._value(run.world.calls, list[WorldCall])
            kept.world = run.world if calls is run.world.calls else replace(run.world, calls=calls)
        kept.exchanges = [
            replace(exchange, attempts=list(map(self._attempt, exchange.attempts))) for exchange in run.exchanges
        ]
        attempts_changed = kept.exchanges != run.exchanges
        if kept.body is not run.body and (attempts := kept.attempts):
            set_body(attempts[-1], kept.body)
        notes = _removals(run, kept)
        if code == RUN_TOKEN_REMOVED:
            removed = (
                bool(notes) or kept.body is not run.body or kept.diff is not run.diff or kept.world is not run.world
            )
            notes = [Note(code, "", "the run token is not kept in the record")] if removed else []
        elif run.body is not None and kept.body is None:
            notes.append(Note(code, "/body", "the body is not kept: a secret is spread over it"))
        elif not notes:
            # The code of others may look at all of a run.
            changed = {
                "/body": kept.body is not run.body,
                "/metadata": kept.metadata is not run.metadata,
                "/exchanges": attempts_changed,
            }
            text = "the run has a secret of the suite here, which is not stored"
            notes += [Note(code, place, text) for place, removed in changed.items() if removed]
        if code == SECRET_REMOVED and kept.diff is not run.diff:
            text = "what changed in the workspace has a secret of the suite in it, which is not stored"
            notes.append(Note(code, DIFF, text))
        if code == SECRET_REMOVED and kept.world is not run.world:
            text = "what was done in the world has a secret of the suite in it, which is not stored"
            notes.append(Note(code, WORLD, text))
        _add(notes, kept)
        return kept

    def note_removals(self, run: Run) -> None:
        """Note where a run that was read from a record has the name of a secret in the place of one."""
        if self._secrets is None or run.reading is None:
            return
        names = [self._secrets.marked(name) for name in self._secrets.names]
        written = wire.encode([run.reading.transcript, run.steps]).decode()
        if any(note.code == SECRET_REMOVED for note in run.reading.notes) or not any(name in written for name in names):
            return
        pattern = re.compile("|".join(map(re.escape, names)))

        def without(value: T, kind: Any) -> T:
            data = _rewritten(wire.encode(value).decode(), lambda text: pattern.sub("", text))
            rewritten: T = wire.decode(data, _decoder(kind))
            return rewritten

        transcript = without(run.reading.transcript, Transcript)
        other = replace(run, reading=replace(run.reading, transcript=transcript))
        other.steps = without(run.steps, list[Step])
        _add(_removals(run, other), run)

    # What graders and judges make of it

    def graded(self, verdicts: list[Verdict], grade: Grade) -> tuple[list[Verdict], Grade]:
        """Verdicts and their grade without secrets in what graders wrote; keys and names stay what they are."""
        if not self.active:
            return verdicts, grade
        written = wire.encode([[[v.reasons, v.details, v.evidence] for v in verdicts], grade.reasons])
        text = written.decode()
        if not any(secrets.may_be_in(text) for secrets in self._hidden):
            return verdicts, grade
        # Graders quote the beginnings of long texts.
        redacted = _rewritten(text, self.quoting, self._mark_of)
        if redacted == written:
            return verdicts, grade
        clean, reasons = wire.decode(redacted)
        redacted_verdicts = [
            replace(verdict, reasons=said, details=details, evidence=_evidence(verdict.evidence, pointers))
            for verdict, (said, details, pointers) in zip(verdicts, clean, strict=True)
        ]
        return redacted_verdicts, replace(grade, reasons=reasons)

    def quoting(self, text: str) -> str:
        """A text of ours that quotes others, without secrets nor the beginnings of one."""
        for secrets in self._hidden:
            text = secrets.redact_quoting(text)
        return text

    def model(self, model: ChatModel) -> ChatModel:
        """A model to which no secret is sent, whatever graders ask it."""
        return _RedactedModel(model, self) if self.active else model

    # Parts

    def _body(self, body: bytes, read: str | None, streamed: bool, *, broken_off: bool) -> bytes | None:
        """A body without secrets. `read` is the format in which one was read out of it."""
        kept = self.raw(self.cut_off(body, MIN_SECRET_LENGTH) if broken_off else body)
        # Where the body of a stream has it in pieces, it cannot be kept at all.
        if read is not None and (kept is body or streamed or self._in_pieces(kept, read, broken_off)):
            return None
        return kept

    def _perhaps_cut(self, text: str) -> str:
        """Text without secrets, nor parts of one that was cut, or with which it was cut."""
        cut = CUT_BEGINNING if text.startswith(CUT_BEGINNING) else ""
        text = text.removeprefix(cut)
        for secrets in self._hidden:
            if len(text) >= MAX_DETAIL:
                text = secrets.redact_cut(text)
            # Messages quote the first characters of keys, names and types.
            text = secrets.redact_beginnings(text)
        return cut + text

    def _mark_of(self, value: str) -> str | None:
        return None if self._secrets is None else self._secrets.mark_of(value)

    def _value(self, value: T, kind: Any) -> T:
        """A value of our own types without secrets; the very same when there are none in it."""
        written = wire.encode(value)
        redacted = self.document(written)
        if redacted == written:
            return value
        clean: T = wire.decode(redacted, _decoder(kind))
        return clean

    def _broken_off(self, value: T, kind: Any) -> T:
        """A value of our own types without the beginning of a secret at the end of any text."""
        written = wire.encode(value)
        cut = _rewritten(written.decode(), self._without_beginning)
        if cut == written:
            return value
        clean: T = wire.decode(cut, _decoder(kind))
        return clean

    def _without_beginning(self, text: str) -> str:
        for secrets in self._hidden:
            text = text[: len(text) - secrets.begun_value(text)]
        return text

    def _steps(self, steps: list[Step], broken_off: bool) -> list[Step]:
        if not steps:
            return steps
        clean = self._value(steps, list[Step])
        return self._broken_off(clean, list[Step]) if broken_off else clean

    def _reading(self, reading: Reading, *, broken_off: bool = False) -> Reading:
        notes = self.notes(reading.notes)
        clean = self._value(reading if notes is reading.notes else replace(reading, notes=notes), Reading)
        transcript = self._joined(clean.transcript)
        clean = clean if transcript is clean.transcript else replace(clean, transcript=transcript)
        return self._broken_off(clean, Reading) if broken_off else clean

    def _completeness(self, known: Completeness) -> Completeness:
        reasons = self.notes(known.reasons)
        return known if reasons is known.reasons else replace(known, reasons=reasons)

    def _attempt(self, attempt: Attempt) -> Attempt:
        fault = None if attempt.fault is None else self.fault(attempt.fault)
        return replace(attempt, fault=fault, called=[self._perhaps_cut(name) for name in attempt.called])

    def _diff(self, diff: WorkspaceDiff) -> WorkspaceDiff:
        """A diff without secrets. One of several lines has the signs of a patch in it: then the patch is not kept."""
        clean = self._value(diff, WorkspaceDiff)
        lines = clean.patch.split("\n")
        for sign in "-+":
            side = "\n".join([line[1:] for line in lines if line[:1] in (sign, " ")])
            if self.text(side) != side:
                files = [file if file.hidden else replace(file, hidden="secret") for file in clean.files]
                return replace(clean, patch="", files=files)
        return clean

    def _joined(self, transcript: Transcript) -> Transcript:
        """A transcript without secrets that only all texts of a message together have."""
        messages = [self._message(message) for message in transcript.messages]
        if all(clean is message for clean, message in zip(messages, transcript.messages, strict=True)):
            return transcript
        return replace(transcript, messages=messages)

    def _message(self, message: Message) -> Message:
        content: Any = getattr(message, "content", None)
        if not isinstance(content, list):
            return message
        texts = [block for block in content if type(block) is TextBlock]
        if len(texts) < 2:
            return message
        whole = "".join([block.text for block in texts])
        if (clean := self.text(whole)) == whole:
            return message
        first = replace(texts[0], text=clean)
        rest = [block for block in content if type(block) is not TextBlock or block is texts[0]]
        clean_message: Message = replace(message, content=[first if block is texts[0] else block for block in rest])
        return clean_message

    def _in_pieces(self, body: bytes, format: str, broken_off: bool) -> bool:
        """Whether a body that has no secret whole any more has one in pieces, which reading it puts together."""
        try:
            again = formats.read(body, format)
        except SeatrialError:
            return False  # no stream: those are read whatever is in their lines
        return self._reading(again, broken_off=broken_off) is not again


class _RedactedModel:
    """A chat model that is sent nothing with a secret in it."""

    def __init__(self, model: ChatModel, redaction: Redaction) -> None:
        self._model = model
        self._redaction = redaction

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, messages: list[ChatMessage], *, schema: dict[str, Any] | None = None) -> Completion:
        sent = [{key: self._redaction.text(text) for key, text in message.items()} for message in messages]
        return await self._model.complete(sent, schema=schema)


def set_body(attempt: Attempt, body: bytes | None) -> None:
    """Give an attempt the address of what is stored of its body."""
    attempt.body_hash = None if body is None else address(body)
    attempt.body_bytes = None if body is None else len(body)


def _removals(run: Run, kept: Run) -> list[Note]:
    """Notes on where a run has a secret, by what is left of it."""
    notes = []
    for said, left, place in ((run.steps, kept.steps, "steps"), (run.reported, kept.reported, "reported")):
        changed = _first_change(said or (), left or ())
        if changed is not None:
            text = "a call has a secret of the suite in it, which is not stored: what depends on it is graded once"
            notes.append(Note(SECRET_REMOVED, f"/{place}/{changed}", text, weight="serious"))
            break
    before, after = run.reading, kept.reading
    if before is None or after is None or before is after:
        return notes
    if before.transcript.final_text() != after.transcript.final_text():
        text = "the answer has a secret of the suite in it, which is not stored: its text is graded once"
        notes.append(Note(SECRET_REMOVED, ANSWER, text))
    elif not notes:
        changed = _first_change(before.transcript.messages, after.transcript.messages)
        where = "/transcript" if changed is None else f"/messages/{changed}"
        notes.append(Note(SECRET_REMOVED, where, "the agent sent back a secret of the suite"))
    return notes


def _first_change(before: Sequence[object], after: Sequence[object]) -> int | None:
    return next((at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other), None)


def _add(notes: list[Note], run: Run) -> None:
    """Add notes to a run, whose calls are not all known any more where one of them is on a call."""
    if not notes:
        return
    if run.reading is not None:
        run.reading = replace(run.reading, notes=[*run.reading.notes, *notes])
    known = run.completeness
    serious = [note for note in notes if note.serious]
    if serious and known is not None:
        level = "partial" if known.level == "complete" else known.level
        run.completeness = replace(known, level=level, reasons=[*serious, *known.reasons])


def _evidence(before: list[str], after: list[str]) -> list[str]:
    return [was if _POINTER.fullmatch(was) else now for was, now in zip(before, after, strict=True)]


def _rewritten(text: str, redact: Redact, mark_of: Callable[[str], str | None] = lambda _: None) -> bytes:
    """A JSON document with other strings, and with a mark in the place of numbers that have one."""
    key = ""

    def hidden(scalar: re.Match[str]) -> str:
        nonlocal key
        string, colon = scalar.groups()
        if string is not None:
            if colon is not None:
                key = _TEXT.decode(string)
            return _string(string, redact) + (colon or "")
        number = scalar.group()
        mark = mark_of(number) if len(number) >= MIN_NUMBER_DIGITS and number.isdigit() else None
        return number if mark is None or key in _number_keys() else f'"{mark}"'

    return _SCALAR.sub(hidden, text).encode()


def _string(literal: str, redact: Redact) -> str:
    # Unescaped first: `n1234` is not in "\n1234".
    value = _TEXT.decode(literal)
    redacted = redact(value)
    if redacted == value or value in _vocabulary():
        return literal
    return wire.encode(redacted).decode()


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


@cache
def _vocabulary() -> frozenset[str]:
    """Keys, tags and fixed values of what we write. A secret that is one of these words guards nothing."""
    words: set[str] = set()
    for schema in _schemas():
        words.update(schema.get("properties", ()))
        words.update(word for word in schema.get("enum", ()) if isinstance(word, str))
    return frozenset(words)


@cache
def _number_keys() -> frozenset[str]:
    """Keys under which what we write has numbers, and nothing else can stand."""
    return frozenset(
        key
        for schema in _schemas()
        for key, value in schema.get("properties", {}).items()
        if {option.get("type") for option in (value, *value.get("anyOf", ()))} & {"integer", "number"}
    )


def _schemas() -> Iterator[dict[str, Any]]:
    """The JSON Schemas of what we write, with all that is in them."""
    left: list[Any] = list(msgspec.json.schema_components([Reading, Step, MatchResult]))
    while left:
        schema = left.pop()
        if isinstance(schema, dict):
            yield schema
            left += schema.values()
        elif isinstance(schema, list | tuple):
            left += schema
