"""Google Gemini: contents, requests, responses, and streams of responses. Read, not written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from seatrial.errors import SeatrialError
from seatrial.formats.chat.documents import keep_rest, read_chat_document, sniff_messages
from seatrial.formats.chat.notes import At
from seatrial.formats.chat.reader import Chat
from seatrial.formats.chat.turn import CHOICE_DROPPED, TurnEnding, end_turn
from seatrial.formats.dialects.gemini import MEMBERS, STOP_REASONS, add_usage, either, prompt_text
from seatrial.formats.reading import Reading
from seatrial.formats.sniffing import LIKELY, SURE, Members, Sample, Sniff, objects_of
from seatrial.transcript import Transcript, pointer
from seatrial.transcript.salvage import MESSAGE_DROPPED

FORMAT: Final = "gemini"
_HISTORY: Final = "automaticFunctionCallingHistory"
_HISTORY_SNAKE: Final = "automatic_function_calling_history"
_RESPONSE: Final = frozenset(
    {"candidates", "usageMetadata", "usage_metadata", _HISTORY, _HISTORY_SNAKE,
     "sdkHttpResponse", "sdk_http_response"}
)  # fmt: skip
_REQUEST: Final = frozenset({"contents", "systemInstruction", "system_instruction"})
_CANDIDATE: Final = frozenset(
    {"content", "finishReason", "finish_reason", "index", "finishMessage", "finish_message", "tokenCount",
     "token_count", "avg_logprobs", "logprobs_result", "continuationToken", "continuation_token"}
)  # fmt: skip


def sniff(sample: Sample) -> Sniff | None:
    """Parts without types, or a response with candidates."""
    return sniff_messages(sample, _sniff_content, ("contents", "candidates", "messages"))


def _sniff_content(entry: Members) -> Sniff | None:
    if "finishReason" in entry or "finish_reason" in entry:
        entry = (objects_of(b"[" + bytes(entry["content"]) + b"]") or [{}])[0] if "content" in entry else {}
    parts = objects_of(entry.get("parts"))
    if "kind" in entry or any("type" in part or "part_kind" in part for part in parts):
        return None
    key = next((key for part in parts for key in part if key in MEMBERS), None)
    if key is not None:
        return Sniff(SURE + 5, f"a part {key}")
    return Sniff(LIKELY + 5, "parts with text and without a type") if any("text" in part for part in parts) else None


def read(data: bytes) -> Reading:
    """Read contents, a request with `contents`, a response with `candidates`, or a stream of responses."""
    expected = "a request with `contents`, or a response with `candidates`"
    return read_chat_document(data, FORMAT, _container, expected, _read_entries)


def _container(given: dict[str, Any], chat: Chat, run: Transcript, at: At) -> bool:
    if "parts" in given:
        return False
    if _is_response(given):
        known = _read_responses([(given, at)], chat, run, streamed=False, known=[])
        chat.is_single_turn = not at and len(known) == 1
        return True
    key = "contents" if "contents" in given else "messages"
    if key not in given:
        return False
    instruction = either(given, "systemInstruction")
    if instruction is not None:
        chat.add_system(prompt_text(instruction, chat, (*at, "systemInstruction")))
    contents, within = given[key], (*at, key)
    if type(contents) is list:
        for index, content in enumerate(contents):
            _read_content(content, chat, (*within, index))
    elif type(contents) is str or type(contents) is dict:
        _read_content(contents, chat, within)
    else:
        raise SeatrialError("invalid_document", "expected an array of contents", pointer=pointer(*within))
    keep_rest(given, _REQUEST | {key}, chat, run, at)
    return True


def _read_content(content: Any, chat: Chat, at: At) -> None:
    if type(content) is str:
        chat.add_user(content, at)
    else:
        chat.read(content, at)


def _is_response(given: Any) -> bool:
    return type(given) is dict and (
        type(given.get("candidates")) is list or (either(given, "usageMetadata") is not None and "parts" not in given)
    )


def _read_entries(found: list[Any], chat: Chat, run: Transcript) -> None:
    """Responses that follow each other are pieces of one, until one of them says why it finished."""
    pieces: list[tuple[dict[str, Any], At]] = []
    known: list[Any] = []
    for index, entry in enumerate(found):
        at = (index,)
        # After the end, a piece may bring token counts and nothing else.
        if pieces and (not _is_response(entry) or (_parts(entry) and _is_next_turn(entry, pieces))):
            known = _read_responses(pieces, chat, run, streamed=True, known=known)
            pieces = []
        if _is_response(entry):
            pieces.append((entry, at))
        elif type(entry) is not dict or not _container(entry, chat, run, at):
            chat.read(entry, at)
    if pieces:
        alone = not chat.messages
        known = _read_responses(pieces, chat, run, streamed=True, known=known)
        chat.is_single_turn = alone and len(known) == 1


def _is_next_turn(response: dict[str, Any], pieces: list[tuple[dict[str, Any], At]]) -> bool:
    """Whether a response with parts is no piece of the turn that these are of.

    Older versions of the API say in every piece of a stream why it finished, and nowhere of which turn it is. There,
    what follows a text is another piece of it: the calls of a turn that was taken for several would be taken as all.
    """
    if _finish_reason(pieces[-1][0]) is None:
        return False
    own, last = either(response, "responseId"), either(pieces[-1][0], "responseId")
    if own is not None and last is not None:
        return bool(own != last)
    parts = [part for piece in (*[piece for piece, _ in pieces], response) for part in _parts(piece)]
    return not all(type(part) is dict and "text" in part for part in parts)


def _read_responses(
    pieces: list[tuple[dict[str, Any], At]], chat: Chat, run: Transcript, *, streamed: bool, known: list[Any]
) -> list[Any]:
    """Read a response, whole or in pieces. Gives the contents that a later response may repeat."""
    parts: list[Any] = []
    reason: Any = None
    usage: Any = None
    history: list[Any] = []
    history_key = _HISTORY
    for response, at in pieces:
        # The calls that Google's package made by itself before this answer; every piece repeats them.
        called = either(response, _HISTORY)
        if type(called) is list and len(called) > len(history):
            history, history_key = called, _HISTORY if _HISTORY in response else _HISTORY_SNAKE
        _note_rest(response, chat, run, at)
        parts = _joined(parts, _parts(response)) if streamed else _parts(response)
        reason = _finish_reason(response) or reason
        counts = either(response, "usageMetadata")
        usage = usage if counts is None else counts
    first, last = pieces[0][1], pieces[-1][1]
    repeated = 0
    while repeated < min(len(known), len(history)) and known[repeated] == history[repeated]:
        repeated += 1
    for index, content in enumerate(history[repeated:], start=repeated):
        chat.read(content, (*first, history_key, index))
    where = (*first, "candidates", 0, "content", "parts")
    message = chat.add_assistant(chat.pieces(parts, where, agent=True), where)
    end_turn(message, TurnEnding(reason, cut_off=streamed and reason is None), STOP_REASONS, run, chat.tally, last)
    add_usage(message, usage, chat, last)
    return [*history, _candidate(pieces[0][0]).get("content")]


def _note_rest(response: dict[str, Any], chat: Chat, run: Transcript, at: At) -> None:
    keep_rest(response, _RESPONSE, chat, run, at)
    candidates = response.get("candidates")
    if candidates is not None and type(candidates) is not list:
        chat.tally.add(MESSAGE_DROPPED, (*at, "candidates"), "expected an array of candidates", each="candidates")
    for index, candidate in enumerate(candidates if type(candidates) is list else []):
        within = (*at, "candidates", index)
        if type(candidate) is not dict:
            chat.tally.add(MESSAGE_DROPPED, within, "expected a candidate", each="candidate")
        elif index:
            chat.tally.add(CHOICE_DROPPED, within, "dropped another answer of the model", each="")
        else:
            chat.note_keys(candidate, _CANDIDATE, within, agent=True)
            content = candidate.get("content")
            if type(content) is dict:
                chat.note_keys(content, frozenset({"role", "parts"}), (*within, "content"), agent=True)
                chat.note_calls_in("role", content.get("role"), (*within, "content"))
            elif content is not None:
                chat.tally.add(MESSAGE_DROPPED, (*within, "content"), "expected a content", each="content")


def _candidate(response: dict[str, Any]) -> dict[str, Any]:
    candidates = response.get("candidates")
    first = candidates[0] if type(candidates) is list and candidates else None
    return first if type(first) is dict else {}


def _finish_reason(response: dict[str, Any]) -> Any:
    return either(_candidate(response), "finishReason")


def _parts(response: dict[str, Any]) -> list[Any]:
    content = _candidate(response).get("content")
    parts = content.get("parts") if type(content) is dict else None
    if parts is None:
        return []
    return parts if type(parts) is list else [parts]


def _joined(parts: list[Any], more: Iterable[Any]) -> list[Any]:
    """Fragments of one text are one part."""
    for part in more:
        last: Any = parts[-1] if parts else None
        if _is_text(part) and _is_text(last) and part.get("thought") == last.get("thought"):
            parts[-1] = {**last, **part, "text": last["text"] + part["text"]}
        else:
            parts.append(part)
    return parts


def _is_text(part: Any) -> Any:
    return type(part) is dict and type(part.get("text")) is str and part.keys() <= {"text", "thought"}
