"""Where a key may go, and how an id stands in a path."""

from __future__ import annotations

import pytest

from seatrial.client import Client
from seatrial.client.address import bearer, path_segment, service_address
from seatrial.errors import SeatrialError

KEY = "st_k1_supersecret"


@pytest.mark.parametrize("url", ["", "127.0.0.1:8765", "ftp://host", "http://", "http://[::", "file:///etc/passwd"])
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        service_address(url, keyed=False, allow_plain_http=False)
    assert caught.value.code == "invalid_config"


@pytest.mark.parametrize("url", ["http://user:pass@127.0.0.1", "http://user@127.0.0.1", "http://127.0.0.1/?key=1"])
def test_an_address_with_secrets_in_it_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        service_address(url, keyed=False, allow_plain_http=False)
    assert url not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https://example.com", "http://localhost:1", "http://127.8.0.1", "http://[::1]:8765", "http://LOCALHOST"]
)
def test_a_key_may_go_over_tls_or_to_this_machine(url: str) -> None:
    service_address(url, keyed=True, allow_plain_http=False)


@pytest.mark.parametrize(
    "url",
    ["http://example.com", "http://10.0.0.1", "http://localhost.example.com", "http://127.0.0.1.example.com"],
)
def test_a_key_does_not_go_over_plain_http_unless_told(url: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        Client(url, KEY)
    assert caught.value.code == "invalid_config"
    assert KEY not in str(caught.value)
    Client(url, KEY, allow_plain_http=True)
    Client(url)


@pytest.mark.parametrize("key", ["", " ", "a b", "a\r\nX-Evil: 1", "ключ", "a\0"])
def test_a_key_that_cannot_stand_in_a_header_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        Client("https://example.com", key)
    assert caught.value.code == "invalid_config"
    assert not key.strip() or key not in str(caught.value)


def test_a_key_from_a_file_may_end_with_a_newline() -> None:
    assert bearer(f"{KEY}\n") == f"Bearer {KEY}"


def test_a_client_does_not_show_its_key() -> None:
    client = Client("https://example.com/seatrial/", KEY)
    assert repr(client) == "Client('https://example.com/seatrial')"
    assert KEY not in repr(client.events("r"))


@pytest.mark.parametrize(("text", "path"), [("a/b", "a%2Fb"), ("run?x#y", "run%3Fx%23y"), ("é%", "%C3%A9%25")])
def test_any_character_of_an_id_stays_in_its_segment(text: str, path: str) -> None:
    assert path_segment(text, "run id") == path


@pytest.mark.parametrize("text", ["", ".", "..", "x" * 257, "\ud800"])
def test_an_id_that_is_no_segment_is_refused(text: str) -> None:
    with pytest.raises(SeatrialError) as caught:
        path_segment(text, "run id")
    assert caught.value.code == "invalid_request"
