"""Markdown of agents as HTML."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.explorer.markup import MAX_MARKDOWN, is_marked_up, markdown

ALLOWED = re.compile(
    r"</?(?:p|br|hr|b|strong|em|s|code|pre|blockquote|ul|ol|li|table|thead|tbody|tr|th|td)(?: start=\"\d+\")? ?/?>"
    r"|<p class=\"(?:mh|pl)\">|<span class=\"(?:f|ex)\">|</span>|</a>"
    r"|<a href=\"(?:https?://|mailto:)[^\"<>]*\"(?: title=\"[^\"<>]*\")? rel=\"noopener noreferrer nofollow\">"
)
MARKS = st.text(alphabet="<>[]()!*_`~#|-+.:/\\\"'&= \n\t1ahref\u202e\u200b\x00é", max_size=120)


def test_what_people_write_is_rendered() -> None:
    html = markdown("# Title\n\n*a* **b** `c`\n\n- one\n\n| x |\n|---|\n| y |\n")
    for part in (
        '<p class="mh">Title</p>',
        "<em>a</em>",
        "<strong>b</strong>",
        "<code>c</code>",
        "<li>one</li>",
        "<td>y</td>",
    ):
        assert part in html
    assert "<h1" not in html


def test_links_show_their_host_and_tell_it_nothing() -> None:
    html = markdown("[here](https://evil.example/x?y) <https://ok.example/a> [ok.example](https://bad.example)")
    assert html.count('rel="noopener noreferrer nofollow"') == 3
    assert 'here</a> <span class="f">(evil.example)</span>' in html
    assert "(ok.example)" not in html  # it is to be seen already
    assert 'ok.example</a> <span class="f">(bad.example)</span>' in html
    assert "(real.example)" in markdown(
        "[https://bank.example@real.example/](https://bank.example@real.example/a)"
    ) or ("real.example" in markdown("[https://bank.example](https://bank.example@real.example/a)"))


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil",
        "/sign-out",
        "#x",
    ],
)
def test_other_addresses_are_no_links(address: str) -> None:
    for text in (f"[a]({address})", f"<{address}>", f"[a][b]\n\n[b]: {address}", f"![a]({address})"):
        html = markdown(text)
        assert "<a " not in html, text
        assert "<img" not in html, text


def test_images_are_named_and_never_loaded() -> None:
    html = markdown("![a cat](https://spy.example/cat.png?who=me)")
    assert html == '<p><span class="ex">image a cat (spy.example), not loaded</span></p>\n'


@given(MARKS)
def test_only_what_is_meant_to_be_markup_is(text: str) -> None:
    html = markdown(text)
    assert "<" not in ALLOWED.sub("", html), html
    for hidden in "\u202e\u200b\x00":
        assert hidden not in html


@pytest.mark.parametrize("mark", [">", "> ", "- ", "1. ", "*", "[", "**_"])
@pytest.mark.parametrize("depth", [5, 50, 99, 101, 400])
def test_no_text_is_lost_however_deep_it_is_nested(mark: str, depth: int) -> None:
    assert "secret" in markdown(mark * depth + "secret")
    nested = "\n".join("  " * level + "- a" for level in range(depth))
    assert "secret" in markdown(f"{nested}\n{'  ' * depth}- secret")


def test_a_very_long_text_is_shown_as_it_is() -> None:
    text = "*a* " * MAX_MARKDOWN
    assert not is_marked_up(text)
    assert "<em>" not in markdown(text)


def test_plain_words_are_no_markdown() -> None:
    assert not is_marked_up("I refunded 23.80, and sent an e-mail.\nGood bye!")
    for text in ("*a*", "- a", "# a", "1. a", "`a`", "a\n===", "| a |", "[a](b)", "> a", "<https://a.b>"):
        assert is_marked_up(text), text
