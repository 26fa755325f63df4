"""The transcript of a run, a range of it at a time.

Items are the messages in their order. A result stands in the card of its call, unless the two are far apart. The steps
of a run whose messages have no calls (those of a trace, or what our tool proxy saw) are items of their own, before the
answer. Whatever the length of a run, a range reads a few rows of it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from seatrial.explorer import numbers
from seatrial.explorer.assets import asset
from seatrial.explorer.cards import (
    MAX_DETAILS,
    CallCard,
    ItemPart,
    MoreParts,
    Objection,
    PartMaker,
    Prose,
    ThoughtView,
    objections_by_place,
)
from seatrial.explorer.passages import Passage, text_page
from seatrial.explorer.render import address
from seatrial.store import OutlineEntry, RunRecord, Store, StoredStep, TranscriptItem
from seatrial.store.documents import LongText
from seatrial.store.rows import UNFINISHED
from seatrial.transcript import (
    AssistantMessage,
    CustomMessage,
    Note,
    ReasoningBlock,
    ReasoningDetailsBlock,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from seatrial.transcript.pairing import OpenCalls
from seatrial.transcript.salvage import GENERATED_ID_PREFIX

FIRST_ITEMS = 40
"""Items that a page comes with; the others are fetched by range."""
MAX_ITEMS = 100
"""Items of one range."""
NEAR = 30
"""Messages that may lie between a call and its result, for the result to stand in the card of the call."""
MAX_SIZE = 52_000
"""About how many characters of HTML the items of a page's first answer have."""
MAX_RANGE_SIZE = 200_000
MAX_TURNS = 2_000
"""Messages of a run whose turns are counted; in a longer one, items have the number of their message."""
MAX_NOTES = 200
MAX_OPENED = 20
_LONG_MS = 100_000
_SPAN = 1000

VIEWS = ("read", "calls", "raw")
"""What `show` says: everything, the calls alone, or the messages as they were recorded."""


class ShownItem(msgspec.Struct, frozen=True):
    """One item of a transcript."""

    place: int
    """Its place in the list of items."""
    pointer: str
    kind: str
    who: str
    parts: list[ItemPart]
    given: bool = False
    """Whether the run started from it."""
    turn: int | None = None
    since: str = ""
    """The time since the start of the run."""
    moment: float | None = None
    """Milliseconds since the epoch."""
    tokens: tuple[int, int] | None = None
    """What the model read, and what it wrote."""
    remarks: list[str] = []
    """What is unusual about it: that it was cut off at the limit of tokens, say."""
    error: str = ""
    notes: list[Note] = []
    objections: list[Objection] = []
    selected: bool = False

    @property
    def anchor(self) -> str:
        """Its id in the page; a step has that of its card."""
        return anchor_of(self.pointer) if self.kind != "step" else f"item-{self.place}"

    @property
    def anchors(self) -> list[str]:
        """The ids of everything in it that links lead to."""
        cards = [part for part in self.parts if isinstance(part, CallCard)]
        places = [*[card.pointer for card in cards], *[place for card in cards for place in card.answers]]
        return [self.anchor, *[anchor_of(place) for place in places]]


class TranscriptRange(msgspec.Struct, frozen=True, kw_only=True):
    """What a page shows of a transcript."""

    run_id: str
    items: list[ShownItem]
    total: int
    """Items of the whole run."""
    first: int
    end: int
    """Items from `first` on, and before `end`, are in this range; `items` may have fewer, for results are in the cards
    of their calls, and `show` leaves some out."""
    show: str = "read"
    at: str | None = None
    problem: str = ""
    """Why the place in the address is not shown."""
    hidden: int = 0
    """Items in the range that `show` leaves out."""
    long: bool = False
    """Whether it is too long for all of it to be in a page."""
    live: bool = False
    running: bool = False
    """Whether its record is still to come: nothing can be looked for in all of it."""
    tag: str = ""
    """That of the record; in the address of a range, it lets browsers keep the range for ever."""

    @property
    def before(self) -> str | None:
        """The address of the items before these."""
        count = min(self.first, MAX_ITEMS)
        return self.fragment(self.first - count, count) if count else None

    @property
    def after(self) -> str | None:
        """The address of the items behind these."""
        return self.fragment(self.end, MAX_ITEMS) if self.end < self.total else None

    def fragment(self, first: int, count: int) -> str:
        """The address of a range."""
        show = None if self.show == "read" else self.show
        return address(
            "runs", self.run_id, "items", **{"from": first, "count": count, "show": show, "v": self.tag or None}
        )

    def place(self, pointer: str) -> str:
        """The address of the page at a place."""
        show = None if self.show == "read" else self.show
        return address("runs", self.run_id, at=pointer, show=show) + f"#{anchor_of(pointer)}"

    def view(self, show: str) -> str:
        """The address of the page that shows these in another way."""
        return address("runs", self.run_id, show=None if show == "read" else show, at=self.at)

    def opening(self, pointer: str) -> str:
        """The address of the page with a text opened."""
        show = None if self.show == "read" else self.show
        return address("runs", self.run_id, at=pointer, show=show, open=pointer) + f"#{anchor_of(pointer)}"


def anchor_of(pointer: str) -> str:
    """The id of the element for a place in a run; that of a message, an answer or a step."""
    parts = pointer.split("/")[1:3]
    return "-".join(parts)[:80] if parts else "top"


def is_live(record: RunRecord) -> bool:
    """Whether more may come."""
    return record.summary.status in ("pending", "running", "input_required")


def record_tag(record: RunRecord) -> str:
    """Changes when a page shows other things of a run: after a new grading, or with a new version of the page."""
    if is_live(record):
        return ""
    said = (record.summary.run_id, record.messages, record.grade, [verdict.key for verdict in record.verdicts])
    return hashlib.sha256(f"{said!r} {asset('transcript.css')}".encode()).hexdigest()[:20]


def transcript_range(
    store: Store,
    run_id: str,
    first: int,
    count: int,
    at: str | None = None,
    *,
    show: str = "read",
    opened: Collection[str] = (),
    record: RunRecord | None = None,
    size: int = MAX_SIZE,
    whole: bool = False,
) -> TranscriptRange:
    """So many items from one on, or, with `at`, around that place; fewer when they come to more than the `size`.

    `whole`: no text is folded that could be opened in its place, for there is nobody to ask for the rest of it.
    """
    maker = _RangeMaker(store, run_id, record or store.run_record(run_id), show, opened, at, whole=whole)
    return maker.range(first, min(count, MAX_ITEMS), size)


class _RangeMaker:
    def __init__(
        self,
        store: Store,
        run_id: str,
        record: RunRecord,
        show: str,
        opened: Collection[str],
        at: str | None,
        *,
        whole: bool = False,
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._record = record
        self._show = show if show in VIEWS else "read"
        self._at = at
        self._objections = objections_by_place(record.verdicts)
        self._make = PartMaker(
            store,
            run_id,
            [*opened][:MAX_OPENED],
            self._objections,
            at,
            running=record.summary.status in UNFINISHED,
            whole=whole,
        )
        self._given = frozenset(record.given)
        self._overview = store.overview(run_id) if record.messages else []
        self._messages = record.messages
        known = record.summary.steps or 0
        # Steps of messages are found where their calls are.
        self._apart = known if all(span.step is None for span in self._overview) else 0
        self._before_steps = self._messages
        if self._apart and self._messages:
            [last] = store.outline(run_id, self._messages - 1, 1)
            self._before_steps -= last.kind == "assistant"
        self._answer = self._has_own_answer()
        self._total = self._messages + self._apart + self._answer
        self._selected: str | None = None

    def range(self, first: int, count: int, size: int) -> TranscriptRange:
        problem = ""
        if self._at is not None:
            place = self._place_of(self._at)
            if place is None:
                problem = f"This run has no place “{self._at[:200]}”."
            else:
                first = max(0, min(place - count // 4, self._total - count))
                self._selected = anchor_of(self._at)
        first = min(first, self._total)
        wanted = min(self._total, first + count)
        items: list[ShownItem] = []
        hidden, spent, end = 0, 0, first
        selected_in = self._at is None or bool(problem)
        for place, item in self._items(first, wanted):
            if item is not None:
                if self._show == "calls" and not any(isinstance(part, CallCard) for part in item.parts):
                    hidden += 1
                else:
                    cost = _size_of(item)
                    # What was asked for is shown, whatever comes before it.
                    if items and spent + cost > size and selected_in:
                        break
                    spent += cost
                    items.append(item)
                    selected_in = selected_in or item.selected
            end = place + 1
        return TranscriptRange(
            run_id=self._run_id,
            items=items,
            total=self._total,
            first=first,
            end=end,
            show=self._show,
            at=self._at,
            problem=problem,
            hidden=hidden,
            long=self._total > MAX_TURNS,
            live=is_live(self._record),
            running=self._record.summary.status in UNFINISHED,
            tag=record_tag(self._record),
        )

    def _has_own_answer(self) -> bool:
        """Whether the answer is another one than what the last message says."""
        answer = self._record.answer
        if answer is None or not answer.strip():
            return False
        if not self._messages:
            return True
        [last] = self._store.items(self._run_id, self._messages - 1, 1)
        said = last.message.plain_text() if isinstance(last.message, AssistantMessage) else None
        return said is None or said.strip()[:900] != answer.strip()[:900]

    def _place_of(self, pointer: str) -> int | None:
        """The place of the item that a pointer leads to."""
        kind, _, rest = pointer.removeprefix("/").partition("/")
        number = rest.partition("/")[0]
        if kind == "answer":
            return self._total - 1 if self._total else None
        if not (number.isascii() and number.isdigit() and len(number) < 10):
            return None
        index = int(number)
        if kind == "messages" and index < self._messages:
            return index if index < self._before_steps else index + self._apart
        if kind == "steps" and index < (self._record.summary.steps or 0):
            return self._before_steps + index if self._apart else self._message_of_step(index)
        return None

    def _message_of_step(self, step: int) -> int | None:
        """The message that made a step: the last one whose first step is not behind it."""
        spans = [span for span in self._overview if span.step is not None]
        found = bisect_right(spans, step, key=lambda span: span.step or 0) - 1
        if found < 0:
            return None
        span = spans[found]
        entries = self._store.outline(self._run_id, span.first, min(span.count, _SPAN))
        making = [
            entry.first for entry in entries if entry.kind == "call" and entry.step is not None and entry.step <= step
        ]
        return max(making, default=span.first)

    def _items(self, first: int, end: int) -> Iterator[tuple[int, ShownItem | None]]:
        """The items at these places; None for one that stands in another."""
        split, apart = self._before_steps, self._apart
        if first < split:
            yield from self._message_items(first, min(end, split), 0)
        begin, stop = max(first, split) - split, min(end, split + apart) - split
        if begin < stop:
            yield from self._step_items(begin, stop)
        begin, stop = max(first - apart, split), min(end - apart, self._messages)
        if begin < stop:
            yield from self._message_items(begin, stop, apart)
        if self._answer and end == self._total:
            yield self._total - 1, self._answer_item()

    def _step_items(self, first: int, end: int) -> Iterator[tuple[int, ShownItem]]:
        for stored in self._store.steps(self._run_id, first, end - first):
            step = stored.step
            at = f"/steps/{step.index}"
            card = self._make.card(at, None, step, [], _placed(at, stored.long_texts))
            moment = step.started_at if isinstance(step.started_at, int | float) else None
            yield (
                self._before_steps + step.index,
                ShownItem(
                    place=self._before_steps + step.index,
                    pointer=at,
                    kind="step",
                    who=step.actor or self._record.key.agent,
                    parts=[card],
                    since=self._since(moment),
                    moment=moment,
                    selected=self._selected == anchor_of(at),
                ),
            )

    def _answer_item(self) -> ShownItem:
        at = "/answer"
        long = next((each for each in self._record.long_texts if each.pointer == "/transcript/answer"), None)
        texts = {} if long is None else {at: long}
        return ShownItem(
            place=self._total - 1,
            pointer=at,
            kind="answer",
            who=self._record.key.agent,
            parts=[self._make.prose(at, self._record.answer or "", texts)],
            remarks=["the answer"],
            objections=self._objections.get(at, []),
            selected=self._selected == "answer",
        )

    def _message_items(self, first: int, end: int, shift: int) -> Iterator[tuple[int, ShownItem | None]]:
        before = max(0, first - NEAR)
        stored = self._store.items(self._run_id, before, end + NEAR - before)
        if not stored:
            return
        begin = stored[0].index
        entries = {each.first: each for each in self._store.outline(self._run_id, begin, stored[-1].index + 1 - begin)}
        steps = self._steps_of(entries.values())
        answers, taken = _paired(stored)
        notes = self._notes()
        turn = self._turns_before(first)
        for item in stored:
            if not first <= item.index < end:
                continue
            if turn is not None and isinstance(item.message, AssistantMessage) and item.index not in self._given:
                turn += 1
            place = item.index + shift
            if item.index in taken and self._show != "raw":
                yield place, None
                continue
            parts = [*self._parts(item, entries.get(item.index), steps, answers)]
            if item.index in self._given:
                shown_turn = None
            else:
                shown_turn = turn if isinstance(item.message, AssistantMessage) else None
            yield place, self._shown(item, place, entries.get(item.index), parts, shown_turn, notes)

    def _shown(
        self,
        item: TranscriptItem,
        place: int,
        entry: OutlineEntry | None,
        parts: list[ItemPart],
        turn: int | None,
        notes: Mapping[int, list[Note]],
    ) -> ShownItem:
        message, at = item.message, f"/messages/{item.index}"
        moment = None if isinstance(message, CustomMessage) else message.timestamp
        usage = message.usage if isinstance(message, AssistantMessage) else None
        remarks: list[str] = []
        objections = [*self._objections.get(at, ())]
        if isinstance(message, AssistantMessage):
            if message.stop_reason in _STOPS:
                remarks.append(_STOPS[message.stop_reason])
            if not self._answer and place == self._total - 1:
                remarks.append("now" if self._record.summary.status in UNFINISHED else "final answer")
                objections += self._objections.get("/answer", ())
        cards = [part for part in parts if isinstance(part, CallCard)]
        places = {at, *[card.pointer for card in cards], *[place for card in cards for place in card.answers]}
        selected = self._selected in set(map(anchor_of, places))
        if self._selected == "answer" and not self._answer and place == self._total - 1:
            selected = True
        return ShownItem(
            place=place,
            pointer=at,
            kind=_KINDS[type(message)],
            who=self._who(item, entry),
            parts=parts,
            given=item.index in self._given,
            turn=turn,
            since=self._since(moment),
            moment=moment,
            tokens=None if usage is None else (usage.total_input, usage.output_tokens),
            remarks=remarks,
            error=(message.error_message or "") if isinstance(message, AssistantMessage) else "",
            notes=notes.get(item.index, []),
            objections=objections,
            selected=selected,
        )

    def _who(self, item: TranscriptItem, entry: OutlineEntry | None) -> str:
        message = item.message
        if isinstance(message, AssistantMessage):
            if item.index in self._given:
                return "assistant"
            return (entry.actor if entry is not None else None) or self._record.key.agent
        if isinstance(message, ToolResultMessage):
            return message.tool_name
        if isinstance(message, CustomMessage):
            return message.kind
        return "user" if isinstance(message, UserMessage) else "system"

    def _parts(
        self,
        item: TranscriptItem,
        entry: OutlineEntry | None,
        steps: Mapping[int, StoredStep],
        answers: Mapping[tuple[int, int], list[TranscriptItem]],
    ) -> Iterator[ItemPart]:
        at, message, make = f"/messages/{item.index}", item.message, self._make
        texts = _placed(at, item.long_texts)
        if self._show == "raw":
            yield make.json_text(at, item.message, item.long_texts)
        elif isinstance(message, SystemMessage):
            yield make.prose(f"{at}/content", message.content, texts)
        elif isinstance(message, CustomMessage):
            yield make.value(f"{at}/payload", message.payload, texts)
        elif isinstance(message, ToolResultMessage):
            yield make.orphan(at, message, None if entry is None else entry.step, texts)
        elif isinstance(message, AssistantMessage):
            yield from self._assistant_parts(item, entry, steps, answers, texts)
        elif isinstance(message.content, str):
            yield make.prose(f"{at}/content", message.content, texts)
        else:
            for index, block in enumerate(message.content[:MAX_DETAILS]):
                place = f"{at}/content/{index}"
                if isinstance(block, TextBlock):
                    yield make.prose(f"{place}/text", block.text, texts)
                else:
                    yield make.picture(place, block)
            yield from self._more(at, len(message.content))

    def _assistant_parts(
        self,
        item: TranscriptItem,
        entry: OutlineEntry | None,
        steps: Mapping[int, StoredStep],
        answers: Mapping[tuple[int, int], list[TranscriptItem]],
        texts: Mapping[str, LongText],
    ) -> Iterator[ItemPart]:
        message = item.message
        assert isinstance(message, AssistantMessage)  # noqa: S101 - for the type checker
        at, make = f"/messages/{item.index}", self._make
        first = entry.step if entry is not None and item.index not in self._given else None
        used: set[int] = set()
        for index, block in enumerate(message.content[:MAX_DETAILS]):
            place = f"{at}/content/{index}"
            if isinstance(block, TextBlock):
                if block.text.strip():
                    yield make.prose(f"{place}/text", block.text, texts)
            elif isinstance(block, ThinkingBlock):
                yield make.thought(f"{place}/text", block.text, "thinking", texts)
            elif isinstance(block, ReasoningBlock):
                yield make.thought(f"{place}/text", block.text, "reasoning", texts)
            elif isinstance(block, ReasoningDetailsBlock):
                yield from make.reasoning(place, block, texts)
            else:
                stored = None if first is None else _step_of(block, first, steps, used)
                results = [
                    (f"/messages/{each.index}", each.message, _placed(f"/messages/{each.index}", each.long_texts))
                    for each in answers.get((item.index, index), ())
                    if isinstance(each.message, ToolResultMessage)
                ]
                more = {} if stored is None else _placed(f"/steps/{stored.step.index}", stored.long_texts)
                yield make.card(place, block, None if stored is None else stored.step, results, {**texts, **more})
        yield from self._more(at, len(message.content))

    def _more(self, at: str, count: int) -> Iterator[MoreParts]:
        if count > MAX_DETAILS:
            yield MoreParts(count - MAX_DETAILS, text_page(self._run_id, at))

    def _steps_of(self, entries: Collection[OutlineEntry]) -> dict[int, StoredStep]:
        """The steps that these messages make."""
        places = [entry.step for entry in entries if entry.step is not None and entry.kind == "call"]
        if not places or self._apart:
            return {}
        first = min(places)
        count = min(max(places) - first + MAX_DETAILS, 4 * MAX_ITEMS)
        return {stored.step.index: stored for stored in self._store.steps(self._run_id, first, count)}

    def _notes(self) -> dict[int, list[Note]]:
        """What was noted about single messages, where these are in the record as they were sent."""
        found: dict[int, list[Note]] = {}
        known = self._store.run_notes([self._run_id], limit=MAX_NOTES).get(self._run_id)
        for note in known.notes if known is not None else ():
            kind, _, rest = note.pointer.removeprefix("/").partition("/")
            number = rest.partition("/")[0]
            if kind == "messages" and number.isascii() and number.isdigit() and len(number) < 10:
                found.setdefault(int(number), []).append(note)
        return found

    def _turns_before(self, first: int) -> int | None:
        """How many turns the model had before a message; None in a run that is too long to count them."""
        if self._messages > MAX_TURNS:
            return None
        if first == 0:
            return 0
        entries = self._store.outline(self._run_id, 0, first)
        return sum([entry.kind in ("assistant", "call") and not entry.given for entry in entries])

    def _since(self, moment: float | None) -> str:
        started = self._record.summary.started_at
        if moment is None or started is None:
            return ""
        since = moment - started
        if since < 0 or since > 86_400_000 * 30:
            return ""
        if since < _LONG_MS:
            return f"{since / 1000:.1f}{numbers.NBSP}s"
        minutes, seconds = divmod(int(since // 1000), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


_KINDS: dict[type, str] = {
    SystemMessage: "system",
    UserMessage: "user",
    AssistantMessage: "assistant",
    ToolResultMessage: "result",
    CustomMessage: "custom",
}
_STOPS = {
    StopReason.MAX_TOKENS: "cut off at the limit of tokens",
    StopReason.ERROR: "ended with an error",
    StopReason.ABORTED: "aborted",
}


def _placed(at: str, texts: Sequence[LongText]) -> dict[str, LongText]:
    """Long texts by their pointers in the run."""
    return {at + text.pointer: text for text in texts}


def _paired(stored: Sequence[TranscriptItem]) -> tuple[dict[tuple[int, int], list[TranscriptItem]], set[int]]:
    """The results of each call, by its message and block; and the messages that are results of calls among these."""
    answers: dict[tuple[int, int], list[TranscriptItem]] = {}
    taken: set[int] = set()
    open_calls: OpenCalls[tuple[int, int]] = OpenCalls()
    for item in stored:
        message = item.message
        if isinstance(message, AssistantMessage):
            calls = [
                (block.id, block.name, (item.index, index))
                for index, block in enumerate(message.content[:MAX_DETAILS])
                if type(block) is ToolCall
            ]
            if calls:
                open_calls.add(calls)
        elif isinstance(message, ToolResultMessage):
            call = open_calls.take(message.tool_call_id, message.tool_name)
            if call is not None and item.index - call[0] <= NEAR:
                answers.setdefault(call, []).append(item)
                taken.add(item.index)
    return answers, taken


def _step_of(call: ToolCall, first: int, steps: Mapping[int, StoredStep], used: set[int]) -> StoredStep | None:
    """The step that a call is, among those from one on; each is that of one call."""
    made_up = call.id.startswith(GENERATED_ID_PREFIX)
    for index in range(first, first + MAX_DETAILS):
        stored = steps.get(index)
        if stored is None:
            return None
        same = stored.step.id == call.id or (made_up and stored.step.id is None and stored.step.name == call.name)
        if same and index not in used:
            used.add(index)
            return stored
    return None


def _size_of(item: ShownItem) -> int:
    """About how many characters of HTML an item has."""
    return 500 + sum([_part_size(part) for part in item.parts]) + 200 * len(item.notes)


def _part_size(part: ItemPart) -> int:
    if isinstance(part, CallCard):
        own = [each for each in (part.arguments, part.line, part.error) if each]
        return 700 + sum(map(len, own)) + sum([_part_size(each) for each in part.results])
    if isinstance(part, Prose):
        return _passage_size(part.passage)
    if isinstance(part, ThoughtView):
        body = part.body
        return 400 + (0 if body is None else _passage_size(body) if isinstance(body, Passage) else len(body))
    return 300 + len(getattr(part, "html", ""))


def _passage_size(shown: Passage) -> int:
    return 200 + len(shown.text if shown.html is None else shown.html) + 300 * shown.folded
