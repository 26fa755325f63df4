"""The text of a filter, read into terms with their places, and written again.

filter  = { term }                     terms are joined by "and"
term    = ["-"] ( field op values | "(" filter { "or" filter } ")" | text )
op      = ":" | "=" | "!=" | "<" | "<=" | ">" | ">="
values  = value { "," value }          any of them
value   = word | '"' … '"'             * and ? stand for other characters in words without quotes
text    = a word or "a phrase" to look for in messages and steps
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias

import msgspec

from seatrial._support.printable import printable
from seatrial.errors import SeatrialError
from seatrial.store.filter.fields import FIELDS, UNKNOWN, VERDICT_WORDS, FieldName, FilterField, read_time
from seatrial.store.search import phrases

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]

MAX_FILTER: Final = 2_000
"""Characters of a filter."""
MAX_TERMS: Final = 64
MAX_DEPTH: Final = 8

_SPACE = re.compile(r"\s*")
_FIELD = re.compile(r"([A-Za-z_]{1,40})(:|!=|<=|>=|<|>|=)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_WORD = re.compile(r'[^\s,()"]+')
_VERDICT = re.compile(r"=([a-z]+)")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_OR = re.compile(r"or(?=[\s()]|$)")
_SAFE = re.compile(r'[^\s,()"*?<>=!:-][^\s,()"*?]*')


class FilterError(SeatrialError):
    """A filter that cannot be read, with the place of what is wrong in it."""

    def __init__(self, message: str, start: int, end: int, hint: str | None = None) -> None:
        super().__init__("invalid_filter", message, hint=hint, details={"start": start, "end": end})
        self.start = start
        self.end = end


class FilterValue(msgspec.Struct, frozen=True):
    """One of the values that a term takes."""

    text: str
    pattern: bool = False
    """Whether `*` and `?` in it stand for other characters."""
    number: float | None = None
    """Of numbers and times: in the unit of the store."""
    verdict: str = "failed"
    """Of a grader: what it said."""
    unknown: bool = False


class FieldCondition(msgspec.Struct, frozen=True, tag=True):
    """`field op values`."""

    field: FieldName
    operator: Operator
    values: tuple[FilterValue, ...]


class TextSearch(msgspec.Struct, frozen=True, tag=True):
    """A word or a phrase in what was said and called."""

    text: str


class AnyOf(msgspec.Struct, frozen=True, tag=True):
    """Several filters, of which one must hold."""

    filters: tuple[tuple[FilterTerm, ...], ...]


class FilterTerm(msgspec.Struct, frozen=True):
    """One condition of a filter, and where it is written."""

    condition: FieldCondition | TextSearch | AnyOf
    negated: bool
    start: int
    end: int


def parse_filter(text: str, now_ms: int) -> tuple[FilterTerm, ...]:
    """The terms of a filter; raises `FilterError` for the first thing that is wrong."""
    if len(text) > MAX_FILTER:
        raise FilterError(f"A filter has at most {MAX_FILTER:,} characters; this one has {len(text):,}.", 0, len(text))
    parser = _Parser(text, now_ms)
    terms = parser.terms(0)
    if parser.at < len(text):
        raise FilterError("There is no “(” for this “)”.", parser.at, parser.at + 1)
    return terms


def written_term(field: FieldName, value: str, *, verdict: str | None = None) -> str:
    """A term as it is typed, with quotes where they are needed."""
    if not _SAFE.fullmatch(value) or value == UNKNOWN:
        value = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{field}:{value}" if verdict is None else f"{field}:{value}={verdict}"


def with_term(text: str, term: str) -> str:
    """The filter with one more term."""
    return f"{text.strip()} {term}".strip()


def without_each(text: str, terms: tuple[FilterTerm, ...]) -> list[tuple[str, str]]:
    """(term, filter without it) for every term of a filter."""
    return [
        (text[term.start : term.end], f"{text[: term.start].rstrip()} {text[term.end :].lstrip()}".strip())
        for term in terms
    ]


class _Parser:
    def __init__(self, text: str, now_ms: int) -> None:
        self.text = text
        self.at = 0
        self._now_ms = now_ms
        self._count = 0

    def terms(self, depth: int) -> tuple[FilterTerm, ...]:
        """Terms up to the end, a “)” or, in parentheses, an “or”."""
        found: list[FilterTerm] = []
        while self._more() and self.text[self.at] != ")" and not (depth and _OR.match(self.text, self.at)):
            found.append(self._term(depth))
        return tuple(found)

    def _more(self) -> bool:
        self.at = self._behind(_SPACE)
        return self.at < len(self.text)

    def _behind(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        return self.at if found is None else found.end()

    def _term(self, depth: int) -> FilterTerm:
        start = self.at
        self._count += 1
        if self._count > MAX_TERMS:
            raise FilterError(f"A filter has at most {MAX_TERMS} terms.", start, len(self.text))
        negated = self.text[start] == "-" and start + 1 < len(self.text) and not self.text[start + 1].isspace()
        self.at += negated
        condition: FieldCondition | TextSearch | AnyOf
        if self.text[self.at] == "(":
            condition = self._group(depth)
        elif (head := _FIELD.match(self.text, self.at)) is not None:
            condition = self._comparison(head)
        else:
            condition = self._text()
        return FilterTerm(condition, negated, start, self.at)

    def _text(self) -> TextSearch:
        start = self.at
        if (word := _OR.match(self.text, start)) is not None:
            raise FilterError("“or” stands between filters in parentheses: (tool:a or tool:b).", start, word.end())
        if self.text[start] in ":=<>!":
            raise FilterError("Field, sign and value stand together, without spaces: cost>1.", start, start + 1)
        text = self._value().text
        if not phrases(text):
            raise FilterError("There is no word here to look for: a word has letters or digits.", start, self.at)
        return TextSearch(text)

    def _group(self, depth: int) -> AnyOf:
        start = self.at
        if depth == MAX_DEPTH:
            raise FilterError(f"Parentheses are nested at most {MAX_DEPTH} deep.", start, start + 1)
        filters: list[tuple[FilterTerm, ...]] = []
        while not filters or self._behind(_OR) > self.at:
            # Behind the “(” or the “or”.
            self.at = self._behind(_OR) if filters else self.at + 1
            begun = self.at
            terms = self.terms(depth + 1)
            if not terms:
                raise FilterError("There is nothing here to filter by.", begun, min(self.at + 1, len(self.text)))
            filters.append(terms)
        if self.at >= len(self.text):
            raise FilterError(f"The “(” that begins at {start + 1} has no “)”.", start, len(self.text))
        self.at += 1
        return AnyOf(tuple(filters))

    def _comparison(self, head: re.Match[str]) -> FieldCondition:
        field = FIELDS.get(head[1])
        if field is None:
            raise _no_field(head)
        written = head[2]
        operator: Operator = "=" if written == ":" else written  # type: ignore[assignment]
        if operator not in ("=", "!=") and field.kind != "number":
            raise FilterError(
                f"“{field.name}” has no order: “{written}” cannot be used.",
                head.start(),
                head.end(),
                f"write {field.name}:VALUE",
            )
        self.at = head.end()
        values = [self._field_value(field)]
        while self.at < len(self.text) and self.text[self.at] == ",":
            self.at += 1
            if operator not in ("=", "!=") or field.kind == "time":
                raise FilterError(f"“{field.name}{written}” takes one value.", head.start(), self.at)
            values.append(self._field_value(field))
        if operator not in ("=", "!=") and values[0].unknown:
            raise FilterError(f"“unknown” has no order. Write {field.name}:unknown.", head.start(), self.at)
        return FieldCondition(field.name, operator, tuple(values))

    def _field_value(self, field: FilterField) -> FilterValue:
        start = self.at
        value = self._value(field)
        quoted = self.text[start] == '"'
        where = (start, self.at)
        if field.may_be_unknown and value.text == UNKNOWN and not quoted:
            return msgspec.structs.replace(value, unknown=True, pattern=False)
        if field.kind == "word" and value.text not in field.words:
            near = get_close_matches(value.text, field.words, n=1)
            meant = f"Did you mean {field.name}:{near[0]}?" if near else f"It is one of {', '.join(field.words)}."
            raise FilterError(f"“{printable(value.text)}” is not a value of “{field.name}”. {meant}", *where)
        if field.number is not None:
            number = field.number(value.text)
            if number is None:
                raise _unreadable(value.text, field, where)
            return msgspec.structs.replace(value, number=number, pattern=False)
        if field.kind == "time":
            moment = read_time(value.text, self._now_ms, end_of_day=field.name == "until")
            if moment is None:
                raise _unreadable(value.text, field, where)
            return msgspec.structs.replace(value, number=moment, pattern=False)
        if field.kind == "grader":
            return self._grader(value, quoted)
        return value

    def _grader(self, value: FilterValue, quoted: bool) -> FilterValue:
        verdict = "failed"
        if quoted:
            if (said := _VERDICT.match(self.text, self.at)) is not None:
                verdict, self.at = said[1], said.end()
        elif "=" in value.text:
            name, _, verdict = value.text.rpartition("=")
            value = msgspec.structs.replace(value, text=name)
        if verdict not in VERDICT_WORDS:
            words = ", ".join(VERDICT_WORDS)
            end = self.at
            raise FilterError(f"A verdict is one of {words}, not “{printable(verdict)}”.", end - len(verdict), end)
        return msgspec.structs.replace(value, verdict=verdict)

    def _value(self, field: FilterField | None = None) -> FilterValue:
        """A word, or what is in quotes."""
        start = self.at
        if start < len(self.text) and self.text[start] == '"':
            found = _QUOTED.match(self.text, start)
            if found is None:
                raise FilterError(f"The quote that begins at {start + 1} has no end.", start, len(self.text))
            self.at = found.end()
            return FilterValue(_ESCAPED.sub(r"\1", found[1]))
        found = _WORD.match(self.text, start)
        if found is None:
            what = "A value" if field is None else f"A value of “{field.name}”"
            example = f", such as {field.name}:{field.example or (field.words or ('NAME',))[0]}" if field else ""
            raise FilterError(f"{what} is missing{example}.", start, min(start + 1, len(self.text)))
        self.at = found.end()
        return FilterValue(found[0], pattern="*" in found[0] or "?" in found[0])


def _no_field(head: re.Match[str]) -> FilterError:
    near = get_close_matches(head[1].lower(), FIELDS, n=1)
    meant = f"Did you mean {near[0]}{head[2]}?" if near else f"Known fields: {', '.join(FIELDS)}."
    hint = "text that has such a sign in it is put in quotes"
    return FilterError(f"There is no field “{head[1]}”. {meant}", head.start(), head.end(1), hint)


def _unreadable(text: str, field: FilterField, where: tuple[int, int]) -> FilterError:
    noun = {"time": "time"}.get(field.kind, field.name)
    article = "an" if noun[0] in "aeiou" else "a"
    what = {"duration": "a duration", "cost": "an amount of money"}.get(field.name, f"{article} {noun}")
    if field.kind == "number" and field.name not in ("duration", "cost"):
        what = "a number"
    return FilterError(f"“{printable(text)}” is not {what}. Write {field.example}.", *where)
