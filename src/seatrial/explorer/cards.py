"""What the items of a transcript are made of: thoughts, pictures, values, and tool calls with their results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlsplit

import msgspec
from markupsafe import Markup

from seatrial._support import wire
from seatrial.errors import SeatrialError
from seatrial.explorer import numbers
from seatrial.explorer.json_view import json_view, one_line_json
from seatrial.explorer.passages import Passage, passage, text_page
from seatrial.explorer.render import address
from seatrial.reports.detail import difference_text
from seatrial.runs import Verdict
from seatrial.store import Store
from seatrial.store.documents import LongText, encode
from seatrial.trajectory.result import MatchResult
from seatrial.trajectory.step import Step, duration
from seatrial.transcript import ImageBlock, ReasoningDetailsBlock, TextBlock, ToolCall, ToolResultMessage
from seatrial.transcript.arguments import RAW_TEXT_KEY, detect_unparsed
from seatrial.transcript.note import pointer as json_pointer
from seatrial.transcript.reasoning import ReasoningEncrypted, ReasoningText, from_openrouter_value

MAX_DETAILS = 40
"""Pieces of one message that are shown, and pieces of native reasoning in one block."""
MAX_JSON_TEXT = 64 * 1024
"""Bytes of a tool's text that are read as JSON."""

HiddenChannel: TypeAlias = Literal["thinking", "reasoning", "encrypted"]
"""`thinking`: the model wrote it inside hidden tags. `reasoning`: it came in the provider's own channel."""


class ThoughtView(msgspec.Struct, frozen=True, tag_field="part", tag="thought"):
    """Something that the model thought, and did not say."""

    pointer: str
    channel: HiddenChannel
    facts: list[str]
    """In a word or two each: `signed`, `96 words`."""
    body: Passage | Markup | None
    """Text, else its JSON; None when only the provider can read it."""
    open: bool


class Picture(msgspec.Struct, frozen=True, tag_field="part", tag="picture"):
    """An image, which is shown when it is part of the record; one that is elsewhere is only named."""

    pointer: str
    alt: str
    source: str | None
    """Where this server has it; None when the record only says where it is."""
    host: str
    media_type: str


class ValueView(msgspec.Struct, frozen=True, tag_field="part", tag="value"):
    """A JSON value."""

    pointer: str
    html: Markup
    page: str
    name: str = ""


class Prose(msgspec.Struct, frozen=True, tag_field="part", tag="text"):
    """Text that was said."""

    passage: Passage


class MoreParts(msgspec.Struct, frozen=True, tag_field="part", tag="more"):
    """What is not shown of a message that has very many pieces."""

    count: int
    page: str


class Objection(msgspec.Struct, frozen=True):
    """A grader that did not pass the run, and points here."""

    grader: str
    outcome: str
    sentences: list[str]
    marked: list[str] = []
    """Pointers in the step that differ from what was expected."""


class CallCard(msgspec.Struct, frozen=True, tag_field="part", tag="call"):
    """A tool call with its result."""

    pointer: str
    """That of the step; where there is none, that of the block in its message."""
    number: int | None
    name: str
    line: str | None
    """The arguments, where they fit on a line."""
    arguments: Markup | None
    not_json: tuple[str, Passage] | None
    """Why the arguments are no JSON, and how they were sent."""
    results: list[Prose | Picture | ValueView]
    status: str
    took: float | None
    executed_by: str
    error: str
    mode: str
    actor: str
    narration: str
    remark: str
    """What is missing beside it: a result, or a call."""
    objections: list[Objection]
    answers: list[str] = []
    """Pointers of the messages that the results are."""

    @property
    def kind(self) -> str:
        """How its border is drawn."""
        if self.mode == "injected":
            return "flt"
        return "bad" if self.objections else ""

    @property
    def failed(self) -> bool:
        """Whether it did not do what it was made for."""
        return self.status in ("error", "timeout", "cancelled")


ItemPart: TypeAlias = Prose | ThoughtView | Picture | ValueView | CallCard | MoreParts


class PartMaker:
    """Makes the parts of the items of one run."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        opened: Collection[str],
        objections: Mapping[str, list[Objection]],
        selected: str | None,
        *,
        running: bool = False,
        whole: bool = False,
    ) -> None:
        """`running`: the run has not ended, so what is not there may still come. `whole`: every text is opened that can
        be in its place."""
        self._store = store
        self._run_id = run_id
        self._opened = opened
        self._objections = objections
        self._selected = selected
        self._running = running
        self._whole = whole

    def where(self, pointer: str) -> str:
        """Where the text of a pointer is."""
        return text_page(self._run_id, pointer)

    def passage(self, at: str, text: str, long_texts: Mapping[str, LongText], *, prose: bool = True) -> Passage:
        """A text, whole if it was opened."""
        cut = long_texts.get(at)
        opened = self._whole or at in self._opened
        shown = passage(self._run_id, at, text, cut, prose=prose)
        if not (opened and shown.folded and shown.opens_here):
            return shown
        whole = text if cut is None else self._store.text(cut.address)
        return passage(self._run_id, at, whole, cut, prose=prose, opened=True)

    def prose(self, at: str, text: str, long_texts: Mapping[str, LongText]) -> Prose:
        """Text that was said."""
        return Prose(self.passage(at, text, long_texts))

    def json_text(self, at: str, value: object, long_texts: Sequence[LongText]) -> Prose:
        """A value as it was recorded; what is kept elsewhere is named behind it."""
        text = msgspec.json.format(encode(value), indent=2).decode()
        elsewhere = sum([each.size for each in long_texts])
        cut = LongText(at, "", len(text) + elsewhere, text.count("\n") + 1) if long_texts else None
        opened = (self._whole or at in self._opened) and cut is None
        return Prose(passage(self._run_id, at, text, cut, prose=False, opened=opened))

    def thought(self, at: str, text: str, channel: HiddenChannel, long_texts: Mapping[str, LongText]) -> ThoughtView:
        """A thought in words."""
        shown = self.passage(at, text, long_texts)
        return ThoughtView(at, channel, [*_words(text, long_texts.get(at))], shown, self._is_open(at))

    def reasoning(
        self, at: str, block: ReasoningDetailsBlock, long_texts: Mapping[str, LongText]
    ) -> Iterator[ItemPart]:
        """What a provider said of the reasoning of its model, entry by entry."""
        for index, raw in enumerate(block.details[:MAX_DETAILS]):
            place = f"{at}/details/{index}"
            item = from_openrouter_value(raw)
            if item is None:
                value = _decoded(bytes(raw))
                body = json_view(value, place, self.where, long_texts)
                yield ThoughtView(place, "reasoning", ["in a form of its own"], body, self._is_open(place))
            elif isinstance(item, ReasoningEncrypted):
                size = long_texts[f"{place}/data"].size if f"{place}/data" in long_texts else len(item.data)
                facts = [f"encrypted by the provider ({item.format})", _size(size)]
                yield ThoughtView(place, "encrypted", facts, None, open=False)
            else:
                is_text = isinstance(item, ReasoningText)
                text = item.text if isinstance(item, ReasoningText) else item.summary
                at_text = f"{place}/text" if is_text else f"{place}/summary"
                facts = [*_words(text, long_texts.get(at_text))]
                if isinstance(item, ReasoningText) and item.signature is not None:
                    facts.insert(0, "signed")
                elif not is_text:
                    facts.insert(0, "a summary")
                yield ThoughtView(
                    place, "reasoning", facts, self.passage(at_text, text, long_texts), self._is_open(place)
                )
        if (more := len(block.details) - MAX_DETAILS) > 0:
            yield MoreParts(more, self.where(at))

    def picture(self, at: str, image: ImageBlock) -> Picture:
        """An image."""
        named = image.alt or ""
        if image.source[:5].lower() == "data:":
            kind = image.media_type or image.source[5:80].partition(";")[0].partition(",")[0]
            here = address("runs", self._run_id, "image") + quote(at, safe="/~")
            return Picture(at, named, here, "", kind[:80])
        try:
            host = urlsplit(image.source).netloc.rpartition("@")[2][:80]
        except ValueError:
            host = ""
        return Picture(at, named, None, host or "an address without a host", image.media_type or "")

    def value(self, at: str, value: Any, long_texts: Mapping[str, LongText], name: str = "") -> ValueView:
        """A JSON value."""
        return ValueView(at, json_view(value, at, self.where, long_texts), self.where(at), name)

    def result(self, at: str, text: str, long_texts: Mapping[str, LongText]) -> Prose | ValueView:
        """What a tool answered: JSON where it is that, else its text as it is."""
        cut = long_texts.get(at)
        if cut is not None and (self._whole or at in self._opened) and cut.size <= MAX_JSON_TEXT:
            text, cut = self._store.text(cut.address), None
        value = None if cut is not None else json_in(text)
        return Prose(self.passage(at, text, long_texts, prose=False)) if value is None else self.value(at, value, {})

    def card(
        self,
        at: str,
        call: ToolCall | None,
        step: Step | None,
        answers: Sequence[tuple[str, ToolResultMessage, Mapping[str, LongText]]],
        long_texts: Mapping[str, LongText],
        remark: str = "",
    ) -> CallCard:
        """A call at a pointer, by its block, its step, or both, with the messages that answer it."""
        here = at if step is None else f"/steps/{step.index}"
        objections = [*self._objections.get(here, ())]
        line, arguments, not_json = None, None, None
        given: Any = {}
        if call is not None:
            given, base = call.arguments, f"{at}/arguments"
        elif step is not None:
            given, base = step.arguments, f"{at}/arguments"
        else:
            base = at
        broken, inner = detect_unparsed(given), f"{base}/{RAW_TEXT_KEY}"
        if broken is None and step is not None and step.arguments_text is not None:
            broken, inner = ("they cannot be read", step.arguments_text), f"/steps/{step.index}/arguments_text"
        if broken is not None:
            not_json = (broken[0], self.passage(inner, broken[1], long_texts, prose=False))
        elif call is not None or step is not None:
            marked = [base + place.removeprefix("/arguments") for each in objections for place in each.marked]
            cut = any(place.startswith(base) for place in long_texts)
            line = None if marked or cut else one_line_json(given, 72)
            if line is None:
                arguments = json_view(given, base, self.where, long_texts, marked)
        results = [part for place, message, texts in answers for part in self.answer(place, message, texts)]
        if not answers and step is not None and step.result is not msgspec.UNSET:
            results = [self._step_result(step, long_texts)]
        statuses = ["error" if message.is_error else "ok" for _, message, _ in answers]
        status: str = step.status if step is not None else (statuses[-1] if statuses else "unknown")
        missing = "No result was recorded."
        if self._running and status == "unknown" and not results:
            status, missing = "running", "No result yet."
        return CallCard(
            pointer=here,
            number=None if step is None else step.index,
            name=call.name if call is not None else (step.name if step is not None else "?"),
            line=line,
            arguments=arguments,
            not_json=not_json,
            results=results,
            status=status,
            took=None if step is None else duration(step),
            executed_by="" if step is None or step.executed_by == "agent" else step.executed_by,
            error=(step.error or "") if step is not None else "",
            mode=(step.mode or "") if step is not None else "",
            actor=(step.actor or "") if step is not None else "",
            narration=next((message.narration for _, message, _ in answers if message.narration), "") or "",
            remark=remark or ("" if results or (step is not None and step.error) else missing),
            objections=objections,
            answers=[place for place, _, _ in answers],
        )

    def orphan(self, at: str, message: ToolResultMessage, step: int | None, texts: Mapping[str, LongText]) -> CallCard:
        """A result that stands apart from its call."""
        remark = "There is no call that this is the result of." if step is None else f"The result of step {step}."
        return msgspec.structs.replace(
            self.card(at, None, None, [(at, message, texts)], texts, remark), name=message.tool_name
        )

    def answer(
        self, at: str, message: ToolResultMessage, texts: Mapping[str, LongText]
    ) -> Iterator[Prose | Picture | ValueView]:
        """The parts of a message with a result."""
        for index, block in enumerate(message.content[:MAX_DETAILS]):
            place = f"{at}/content/{index}"
            if isinstance(block, TextBlock):
                yield self.result(f"{place}/text", block.text, texts)
            else:
                yield self.picture(place, block)
        if message.details is not None and not _says_the_same(message):
            yield self.value(f"{at}/details", message.details, texts, "details")

    def _step_result(self, step: Step, texts: Mapping[str, LongText]) -> Prose | ValueView:
        at = f"/steps/{step.index}/result"
        if isinstance(step.result, str):
            return self.result(at, step.result, texts)
        return self.value(at, step.result, texts)

    def _is_open(self, at: str) -> bool:
        # What a link leads into is open, and so is what a finding points at.
        places = [*self._opened, *self._objections, *([self._selected] if self._selected else [])]
        return any(f"{place}/".startswith(f"{at}/") for place in places)


def objections_by_place(verdicts: Sequence[Verdict]) -> dict[str, list[Objection]]:
    """What the graders that did not pass the run point at."""
    found: dict[str, list[Objection]] = {}
    for verdict in verdicts:
        if verdict.outcome != "failed":
            continue
        differing: dict[str, tuple[list[str], list[str]]] = {}
        with suppress(msgspec.ValidationError):
            for mismatch in msgspec.convert(verdict.details, MatchResult).mismatches:
                differing[json_pointer("steps", mismatch.actual)] = (
                    [difference_text(each) for each in mismatch.differences],
                    [each.pointer for each in mismatch.differences],
                )
        for place in dict.fromkeys([*verdict.evidence, *differing]):
            sentences, marked = differing.get(place, ([], []))
            found.setdefault(place, []).append(Objection(verdict.grader, verdict.outcome, sentences, marked))
    return found


def json_in(text: str) -> dict[str, Any] | list[Any] | None:
    """The object or array that a text is, unless it is long."""
    if text[:1] in ("{", "[") and len(text) <= MAX_JSON_TEXT:
        with suppress(SeatrialError, ValueError):
            value: dict[str, Any] | list[Any] = wire.decode(text.encode("utf-8", "replace"))
            return value
    return None


def _says_the_same(message: ToolResultMessage) -> bool:
    """Whether the details are what the text of the result is, read as JSON."""
    content = message.content
    if len(content) != 1 or not isinstance(content[0], TextBlock):
        return False
    return bool(message.details in (content[0].text, json_in(content[0].text)))


def _words(text: str, cut: LongText | None) -> Iterator[str]:
    # Of a text that is kept elsewhere only the beginning is here.
    yield _size(cut.size) if cut is not None else f"{(count := len(text.split())):,} word{'s' * (count != 1)}"


def _size(octets: int) -> str:
    return numbers.size(octets)


def _decoded(raw: bytes) -> Any:
    try:
        return wire.decode(raw)
    except SeatrialError:
        return raw.decode("utf-8", "replace")
