"""Values that a suite takes from the environment: nothing is written with one, in whatever form it was sent."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from json import dumps
from urllib.parse import quote, quote_plus, unquote_plus

from seatrial._support.environment import Reference, fill, names_secret, references, texts
from seatrial.errors import SeatrialError
from seatrial.transcript import pointer

MIN_SECRET_LENGTH = 4
"""Values shorter than this are not hidden: they guard nothing, and hiding them would shred every text."""
MIN_BASE64_LENGTH = 8
"""The same for what can be told of a value that is somewhere in Base64: shorter text occurs by chance."""
MIN_PATH_LENGTH = 8
"""The same for the path of an address that a variable holds whole: `chat` or `agent` alone is a word."""
MIN_LOWERED = 8
"""The same for a value in lower case, which the host of a URL is sent in: a shorter one may be a word."""
MIN_BEGINNING = 12
"""How many of its first characters give a value away: addresses and kinds of keys begin alike."""
CUT_MARK = "..."
"""What texts of ours have where a quotation was cut."""
LONG_TEXT = 500
"""A text of this length may have been cut out of a longer one."""
JSON_IN_JSON = 3
"""How deep a value is looked for in JSON that is text in JSON, as the arguments of a tool call in an event are."""

_HTML = re.compile(r"""\\"|[&'+<>`]""")
_BASIC = re.compile(r"\s*Basic\s+([A-Za-z0-9+/_-]+={0,2})\s*", re.IGNORECASE)
_SCHEMES = ("http://", "https://")
_URL_DELIMITERS = (re.compile(r"[?#]"), re.compile(r"[?#&=]"))
"""Where a value is cut that is put into a URL as it is: in what is sent, and once more where that is read."""
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
"""What is written in the same way everywhere, but in Base64."""


class Secrets:
    """Values that were taken from the environment, and that nothing may be written with."""

    def __init__(
        self, values: Mapping[str, str], derived: Iterable[tuple[str, str]] = (), *, mark: str = "${%s}"
    ) -> None:
        """`derived` are further secrets, each behind the name of the variable that it was made of. `mark` is what is
        written in the place of a value, with its name."""
        self._names: dict[str, str] = {}
        for name, value in (*values.items(), *derived):
            for form in _forms(value):
                self._names.setdefault(form, name)
        self._mark = mark

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self._names, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)))

    @cached_property
    def _innermost(self) -> list[str]:
        """The values that contain no other: a text without these has none at all."""
        return [form for form in self._names if not any(other in form for other in self._names if other != form)]

    def __repr__(self) -> str:
        return f"Secrets({self.names})"

    def __bool__(self) -> bool:
        return bool(self._names)

    @property
    def names(self) -> list[str]:
        """The variables that they are from."""
        return sorted(set(self._names.values()))

    def redact(self, text: str) -> str:
        """The text with `${NAME}` in place of every value."""
        # Most texts have none, which is known sooner this way.
        for form in self._innermost:
            if form in text:
                return self._pattern.sub(lambda match: self.marked(self._names[match.group()]), text)
        return text

    def marked(self, name: str) -> str:
        """What stands in the place of the value of this name."""
        return self._mark % name

    def redact_cut(self, text: str) -> str:
        """The same for a text that was cut out of a longer one: no part of a value is left at its ends."""
        text = self.redact(text)
        ended = self._ended(text)
        text = text[: len(text) - self.begun_value(text)]
        return text[ended:] if ended >= MIN_SECRET_LENGTH else text

    def redact_beginnings(self, text: str) -> str:
        """The same for a text of ours that quotes the first characters of something: not those of a value either."""
        text = self.redact(text)
        for form, name in self._names.items():
            beginning = form[:MIN_BEGINNING]
            if len(form) <= MIN_BEGINNING or beginning not in text:
                continue
            parts = text.split(beginning)
            for index, part in enumerate(parts[1:], 1):
                parts[index] = _without_common_beginning(part, form[MIN_BEGINNING:])
            text = self.marked(name).join(parts)
        return text

    def redact_quoting(self, text: str) -> str:
        """The same for a text of ours that quotes long ones, `...` being where it cuts them."""
        text = self.redact_beginnings(text)
        *cut, last = text.split(CUT_MARK)
        text = CUT_MARK.join([*[part[: len(part) - self.begun_value(part)] for part in cut], last])
        return self.redact_cut(text) if len(text) >= LONG_TEXT else text

    def may_be_in(self, text: str) -> bool:
        """Whether a value, or a part at its beginning or end that is long enough to be hidden, may be in a text."""
        return any(form[:MIN_SECRET_LENGTH] in text or form[-MIN_SECRET_LENGTH:] in text for form in self._names)

    def mark_of(self, value: str) -> str | None:
        """What stands in the place of the secret that this is, whole."""
        name = self._names.get(value)
        return None if name is None else self.marked(name)

    def begun(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a value."""
        return max((_overlap(text, form) for form in self._names), default=0)

    def begun_value(self, text: str) -> int:
        """The same, but for less than is worth hiding, with which many texts end."""
        begun = self.begun(text)
        return begun if begun >= MIN_SECRET_LENGTH else 0

    def _ended(self, text: str) -> int:
        """How many characters at the beginning of a text may be the end of a value."""
        return max((_overlap(form, text) for form in self._names), default=0)


def _overlap(first: str, second: str) -> int:
    """How many characters at the end of one text are the beginning of another, but not all of both."""
    start = max(0, len(first) - len(second) + 1)
    while (start := first.find(second[:1], start)) >= 0:
        if second.startswith(first[start:]):
            return len(first) - start
        start += 1
    return 0


def _without_common_beginning(text: str, other: str) -> str:
    end = next((place for place, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), None)
    return text[min(len(text), len(other)) if end is None else end :]


def secrets_of(config: object, variables: Mapping[str, str]) -> Secrets:
    """The values that a configuration takes from the environment, and what we make of them when we send them."""
    values: dict[str, str] = {}
    derived: list[tuple[str, str]] = []
    for _, text in texts(config):
        named = [reference for reference in references(text) if variables.get(reference.name)]
        values |= {reference.name: variables[reference.name] for reference in named}
        if named:
            derived += _derived(text, named, variables)
    return Secrets(dict(sorted(values.items())), derived)


def _derived(text: str, named: list[Reference], variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What of a filled text is a secret besides the values in it, with the name of the variable that it is from."""
    try:
        filled = str(fill(text, variables))
    except SeatrialError:
        return  # a variable is not set: nothing is sent

    def of(secret: str, origin: str | None = None) -> tuple[str, str]:
        origin = secret if origin is None else origin
        values = ((reference.name, variables[reference.name]) for reference in named)
        name = next((name for name, value in values if origin in value or value in origin), named[-1].name)
        return name, secret

    if (basic := _BASIC.fullmatch(filled)) is not None:
        try:
            pair = b64decode(basic.group(1), validate=True).decode()
        except ValueError:
            return
        yield of(pair)
        yield of(pair.partition(":")[2])
    elif filled.lower().startswith(_SCHEMES):
        for secret, origin in _in_url(filled, [variables[reference.name] for reference in named]):
            yield of(secret, origin)


def _in_url(address: str, values: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What an address, and the values in it, are sent as; each with the text of the address that it is made of."""
    import yarl  # what sends the requests reads and writes URLs with it

    try:
        url = yarl.URL(address)
        written = [(part, yarl.URL(f"http://host/{part}?{part}")) for value in values for part in _parts_in_url(value)]
    except ValueError:
        return
    if url.user is not None:
        # The endpoint makes a header of these.
        origin = url.raw_password or url.raw_user or ""
        yield b64encode(f"{url.user}:{url.password or ''}".encode()).decode(), origin
        yield url.password or "", origin
    for pair in url.raw_query_string.split("&"):
        key, _, sent = pair.partition("=")
        if names_secret(key):
            yield sent, sent
            yield unquote_plus(sent), sent
    for part, one in written:
        yield part, part
        yield one.raw_path[1:], part
        yield one.raw_query_string, part
    for value in values:
        if value.strip().lower().startswith(_SCHEMES):
            # Servers, proxies and errors tell the path without the host, and a token may be in it.
            whole = yarl.URL(value.strip())
            for sent in (whole.raw_path, whole.path, whole.raw_path_qs, whole.path_qs):
                if len(sent.strip("/")) >= MIN_PATH_LENGTH:
                    yield sent.strip("/"), value


def _parts_in_url(value: str) -> set[str]:
    """The parts of a value that a URL with it is sent with."""
    if value.strip().lower().startswith(_SCHEMES):
        return set()  # its host is no secret
    parts = {part for delimiters in _URL_DELIMITERS for part in delimiters.split(value) if len(part) >= MIN_PATH_LENGTH}
    return parts if {"?", "#"} & set(value) else parts | {value}


def _forms(value: str) -> set[str]:
    # As it is, as it stands in JSON, HTML, a URL and our own messages, and without the newline that a file may add.
    if len(value.strip()) < MIN_SECRET_LENGTH:
        return set()
    lowered = {value.strip().lower()} if len(value.strip()) >= MIN_LOWERED else set()
    if _PLAIN.fullmatch(value):
        return {value, *lowered, *_in_base64(value.encode())}
    plain = {value, value.strip(), *lowered}
    # A message of ours may quote JSON, and stand in JSON itself.
    quoted_json = {written for text in plain for inner in _in_json(text) for written in _quoted(inner)}
    forms = plain | quoted_json | {written for text in plain for written in (pointer(text)[1:], *_quoted(text))}
    for _ in range(JSON_IN_JSON):
        forms |= {written for text in forms for written in _in_json(text)}
    for text in plain:
        printable = text.encode("utf-8", "replace")
        quoted = {quote(printable), quote(printable, safe=""), quote_plus(printable)}
        forms |= quoted | {_ESCAPE.sub(lambda match: match.group().lower(), text) for text in quoted}
        forms |= {escape(text), escape(text, quote=False)}
        # What a server makes of a header that it takes for Latin-1.
        forms.add(printable.decode("latin-1"))
        # As Python's messages quote bytes, and text that has to be ASCII.
        forms |= {
            written for quoted in (repr(b'"' + printable)[3:-1], ascii(f'"{text}')[2:-1]) for written in _bare(quoted)
        }
        forms |= _in_base64(printable)
    return forms


def _in_base64(value: bytes) -> set[str]:
    """What Base64 makes of a value, alone and where it stands in something longer: three ways, by what is before it."""
    forms = {b64encode(value).decode()}
    for before in range(3):
        # Characters that are made of the value alone.
        first = -(-before * 8 // 6)
        last = (before + len(value)) * 8 // 6
        forms.add(b64encode(bytes(before) + value).decode()[first:last])
    forms |= {form.replace("+", "-").replace("/", "_") for form in forms}
    return {form for form in forms if len(form) >= MIN_BASE64_LENGTH}


def _quoted(text: str) -> tuple[str, str]:
    """As `repr` writes a text, which our messages quote with: inside of single quotes, and of double ones."""
    return _bare(repr(f'"{text}')[2:-1])  # it takes single quotes where there is a double one


def _bare(in_single: str) -> tuple[str, str]:
    return in_single, in_single.replace(r"\'", "'")


def _in_json(text: str) -> set[str]:
    # Writers of JSON differ: PHP's escapes every slash, and .NET's what might mean something in HTML.
    written = dumps(text)[1:-1]
    without_html = _HTML.sub(lambda match: f"\\u{ord(match.group()[-1]):04X}", written)
    return {written, dumps(text, ensure_ascii=False)[1:-1], written.replace("/", r"\/"), without_html}
