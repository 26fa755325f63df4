"""No value of the environment is written, in whatever form it was sent."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from html import escape
from urllib.parse import quote, quote_plus

import pytest
import yarl
from hypothesis import assume, given
from hypothesis import strategies as st

from seatrial.agents.endpoint import Endpoint
from seatrial.suites import HttpConfig, Secrets
from seatrial.suites.secrets import JSON_IN_JSON, MIN_SECRET_LENGTH, secrets_of
from seatrial.transcript import pointer

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True)


@given(st.dictionaries(names, st.text(min_size=MIN_SECRET_LENGTH), max_size=4), st.data())
def test_no_secret_is_left_in_a_redacted_text(secrets: dict[str, str], data: st.DataObject) -> None:
    hidden = [value for value in secrets.values() if len(value.strip()) >= MIN_SECRET_LENGTH]
    pieces = data.draw(st.lists(st.text(max_size=10) | st.sampled_from(hidden or ["none"]), max_size=8))
    redacted = Secrets(secrets).redact("".join(pieces))
    # The references themselves may happen to hold a value: those of a variable whose value is its name.
    rest = re.split("|".join(re.escape(f"${{{name}}}") for name in secrets) or "$^", redacted)
    assert not any(value in part for value in hidden for part in rest)


@given(st.text(min_size=MIN_SECRET_LENGTH))
def test_a_secret_is_found_in_json_and_in_urls(value: str) -> None:
    assume(len(value.strip()) >= MIN_SECRET_LENGTH)
    assume(value not in "${NAME}")
    secrets = Secrets({"NAME": value})
    utf8 = value.encode("utf-8", "replace")
    for written in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        quote(utf8),
        quote_plus(utf8),
        value.strip(),
    ):
        assert secrets.redact(f"<{written}>") in ("<${NAME}>", '<"${NAME}">')


@given(st.from_regex(r"[A-Za-z0-9_.~-]{8,40}", fullmatch=True))
def test_a_secret_that_is_written_the_same_everywhere_is_found_there_and_in_base64(value: str) -> None:
    secrets = Secrets({"NAME": value})
    written = [json.dumps(value)[1:-1], quote(value, safe=""), quote_plus(value), escape(value)]
    assert {secrets.redact(f"<{text}>") for text in written} == {"<${NAME}>"}
    assert secrets.redact(b64encode(value.encode()).decode()) == "${NAME}"


@given(st.text(min_size=MIN_SECRET_LENGTH), st.integers(1, JSON_IN_JSON))
def test_a_secret_is_found_in_json_that_is_text_in_json(value: str, depth: int) -> None:
    assume(len(value.strip()) >= MIN_SECRET_LENGTH)
    assume(value not in "${NAME}")
    written = value
    for _ in range(depth):
        written = json.dumps(written)[1:-1]
    assert Secrets({"NAME": value}).redact(f"<{written}>") == "<${NAME}>"


@pytest.mark.parametrize("written", [r"a\/b+c\"d", r"a/b\u002Bc\u0022d"], ids=["PHP", ".NET"])
def test_a_secret_is_found_as_other_languages_write_it(written: str) -> None:
    assert Secrets({"NAME": 'a/b+c"d'}).redact(f'{{"key": "{written}"}}') == '{"key": "${NAME}"}'


@given(st.text(min_size=MIN_SECRET_LENGTH))
def test_a_secret_is_found_in_the_messages_and_pointers_of_a_note(value: str) -> None:
    assume(len(value.strip()) >= MIN_SECRET_LENGTH)
    assume(value not in "${NAME}")
    secrets = Secrets({"NAME": value})
    for written in (
        repr(value),
        repr(f"'{value}"),
        repr(f'"{value}'),
        repr(f"'\"{value}"),
        repr(json.dumps(value)),
        json.dumps(repr(value)),
        pointer("messages", value),
        json.dumps(pointer("messages", value)),
    ):
        assert re.sub(r"[\\'\"]", "", secrets.redact(written)) in ("${NAME}", "/messages/${NAME}")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("qkSECRET&x=qlSECRETtwo#frag", "/?api_key=qkSECRET&x=qlSECRETtwo&t=1"),
        ("qkSECRET&x=qlSECRETtwo#frag", '{"api_key": "qkSECRET", "x": "qlSECRETtwo"}'),
        ("p%thSECRET ü?k=quSECRETtwo", "/p%25thSECRET%20%C3%BC?k=quSECRETtwo"),
        ("p%thSECRET ü?k=quSECRETtwo", "p%thSECRET ü and quSECRETtwo"),
    ],
)
def test_the_parts_of_a_value_that_a_url_cuts_are_secrets_too(value: str, shown: str) -> None:
    for url in ("http://h/?api_key=${KEY}&t=1", "http://h/a/${KEY}"):
        redacted = secrets_of(HttpConfig(endpoint_url=url), {"KEY": value}).redact(shown)
        assert "SECRET" not in redacted, redacted
        assert "${KEY}" in redacted


def test_the_longest_secret_is_taken_out_first() -> None:
    assert Secrets({"SHORT": "abcd", "LONG": "abcdef"}).redact("abcdef abcd") == "${LONG} ${SHORT}"


def test_values_that_guard_nothing_are_left() -> None:
    secrets = Secrets({"PORT": "80", "EMPTY": "", "BLANK": "     "})
    assert not secrets
    assert secrets.redact("port 80") == "port 80"


PASSWORD = "p4ss/wo+rd ü"


@pytest.mark.parametrize("before", ["", "a", "ab", "user:", '{"key": "'])
@pytest.mark.parametrize("after", ["", "x", "xy", '"}'])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
def test_a_secret_is_found_wherever_it_stands_in_base64(before: str, after: str, encode: object) -> None:
    assert callable(encode)
    value = "s3cr3t-v4lu3?>~"
    written = encode(f"{before}{value}{after}".encode()).decode().rstrip("=")
    redacted = Secrets({"KEY": value}).redact(f"<{written}>")
    assert "${KEY}" in redacted
    assert len(redacted.replace("${KEY}", "")) <= len(before) * 4 // 3 + len(after) * 4 // 3 + 8
    assert encode(value.encode())[4:12].decode() not in redacted


@pytest.mark.parametrize(
    "written",
    [
        PASSWORD.encode().decode("latin-1"),
        quote(PASSWORD, safe="").lower(),
        quote(PASSWORD, safe="/+"),
    ],
    ids=["Latin-1", "percent, lower case", "percent, as few as possible"],
)
def test_a_secret_is_found_as_servers_show_what_they_were_sent(written: str) -> None:
    config = HttpConfig(endpoint_url="http://h/?key=${KEY}", headers={"X-Api-Key": "${KEY}"})
    assert secrets_of(config, {"KEY": PASSWORD}).redact(f"<{written}>") == "<${KEY}>"


def test_a_secret_is_found_in_html() -> None:
    assert Secrets({"KEY": "a<b>&'c\""}).redact("<p>a&lt;b&gt;&amp;&#x27;c&quot;</p>") == "<p>${KEY}</p>"


@pytest.mark.parametrize(
    ("url", "variables", "name"),
    [
        ("http://${USER}:${PASS}@h/", {"USER": "admin", "PASS": "hunter2"}, "PASS"),
        ("http://admin:${PASS}@h/", {"PASS": "hunter2"}, "PASS"),
        ("http://admin:${PASS}@h/", {"PASS": "hun%40ter2"}, "PASS"),
        ("${URL}", {"URL": "http://admin:hunter2@h/"}, "URL"),
        ("http://${PAIR}@h/", {"PAIR": "admin:hunter2"}, "PAIR"),
        ("http://${TOKEN}@h/", {"TOKEN": "abcd"}, "TOKEN"),
    ],
)
def test_the_header_that_is_made_of_an_address_is_as_secret_as_the_address(
    url: str, variables: dict[str, str], name: str
) -> None:
    filled = re.sub(r"\$\{(\w+)\}", lambda match: variables[match.group(1)], url)
    sent = Endpoint(filled, {}, rule="local", connect_s=1, read_s=1, max_bytes=1)._headers["Authorization"]
    secrets = secrets_of(HttpConfig(endpoint_url=url), variables)
    assert secrets.redact(f"Authorization: {sent}") == f"Authorization: Basic ${{{name}}}"
    assert secrets.redact(json.dumps({"authorization": sent.replace("/", r"\/")})).count("${") == 1


def test_the_password_in_an_address_that_is_a_variable_is_a_secret_of_its_own() -> None:
    url = "https://admin:pa%2Fss@h/agent?api_key=abc%20def&version=2024"
    secrets = secrets_of(HttpConfig(endpoint_url="${URL}"), {"URL": url})
    assert secrets.redact("pa/ss abc def abc%20def 2024") == "${URL} ${URL} ${URL} 2024"
    assert secrets.redact(url) == "${URL}"


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("${URL}", "https://hooks.example/services/T0/s3cr3t?x=1"),
        ("${URL}", "https://hooks.example/services/T0/s3cr3t"),
        ("${URL}/run", "https://hooks.example/services/T0/s3cr3t/"),
        ("${URL}", "HTTPS://hooks.example/s3cr3t%20of mine"),
        ("${URL}", "https://hooks.example/s3cr3t ü"),
    ],
)
def test_the_path_of_an_address_that_is_a_variable_is_as_secret_as_the_address(endpoint: str, url: str) -> None:
    secrets = secrets_of(HttpConfig(endpoint_url=endpoint), {"URL": url})
    sent = yarl.URL(endpoint.replace("${URL}", url))
    for told in (
        sent.raw_path,
        sent.path,
        sent.raw_path_qs,
        sent.path_qs,
        str(sent),
        sent.raw_path.replace("/", r"\/"),
    ):
        redacted = secrets.redact(f"POST {told} answered 404")
        assert "s3cr3t" not in redacted
        assert "${URL}" in redacted


def test_a_path_that_is_a_mere_word_is_no_secret() -> None:
    secrets = secrets_of(HttpConfig(endpoint_url="${URL}"), {"URL": "http://h/agent"})
    assert secrets.redact("the agent said so") == "the agent said so"


def test_what_is_in_a_basic_header_is_a_secret_too() -> None:
    config = HttpConfig(endpoint_url="http://h/", auth_credential_value="Basic ${B64}")
    secrets = secrets_of(config, {"B64": b64encode(b"admin:hunter2").decode()})
    assert secrets.redact("admin:hunter2, or hunter2") == "${B64}, or ${B64}"


def test_a_default_is_no_secret_and_neither_is_what_is_made_of_it() -> None:
    config = HttpConfig(endpoint_url="http://admin:${PASS:-changeme}@h/")
    assert not secrets_of(config, {})


@given(st.text("abc", min_size=4, max_size=12), st.text("abc", max_size=20))
def test_the_beginning_of_a_secret_at_the_end_of_a_text_is_seen(secret: str, text: str) -> None:
    secrets = Secrets({"KEY": secret})
    longest = max((size for size in range(1, len(secret)) if text.endswith(secret[:size])), default=0)
    assert secrets.begun(text) >= longest


@pytest.mark.parametrize("value", ["sk-LIVE-AbCdEf0123456789", "Sup3r\"Secret\\Value'99+/=é\n"])
@pytest.mark.parametrize(
    "shown",
    [
        str.lower,
        lambda text: repr(text.encode()),
        lambda text: repr(b"'\"" + text.encode()),
        lambda text: repr(b"'" + text.encode()),
        ascii,
        lambda text: ascii(f"'{text}"),
    ],
    ids=["lower case", "bytes", "bytes with both quotes", "bytes with a single quote", "ASCII", "ASCII with a quote"],
)
def test_a_secret_is_found_as_hosts_are_sent_and_as_python_quotes_bytes(
    value: str, shown: Callable[[str], str]
) -> None:
    told = Secrets({"TOKEN": value}).redact(f"cannot connect to {shown(value)}:443")
    assert "${TOKEN}" in told
    for part in ("AbCdEf", "abcdef", "3r", "99", "xc3", "xe9", "é"):
        assert part not in told


def test_a_short_secret_in_lower_case_is_a_word_like_others() -> None:
    assert Secrets({"NAME": "Agent"}).redact("the agent of Agent") == "the agent of ${NAME}"
