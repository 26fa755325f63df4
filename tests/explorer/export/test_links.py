"""Pages without their server: every link leads somewhere, or is text."""

from __future__ import annotations

from seatrial.explorer.export.links import main_part, without_server

PLACES = {"/runs/r1": "r1.html", "/runs/r1?at=%2Fsteps%2F0&x=1#steps-0": "r1.html#steps-0"}


def led(html: str, prefix: str = "") -> str:
    return without_server(html, PLACES.get, prefix)


def test_a_link_leads_to_the_file_and_one_that_leads_nowhere_is_text() -> None:
    assert led('<a class="ln" href="/runs/r1">one</a>') == '<a class="ln" href="r1.html">one</a>'
    assert led('<a href="/live" dir="auto">two</a>') == '<a dir="auto">two</a>'


def test_what_a_template_escaped_in_an_address_is_read_as_it_is_meant() -> None:
    assert led('<a href="/runs/r1?at=%2Fsteps%2F0&amp;x=1#steps-0">x</a>') == '<a href="r1.html#steps-0">x</a>'


def test_what_nobody_could_answer_is_left_out() -> None:
    page = (
        '<form action="/x"><input name="q"></form><nav class="tabs" aria-label="y"><a href="/runs/r1">z</a></nav>'
        '<a class="ic" href="/live">Go live</a><a class="ic" href="/runs/r1">Back</a>'
        '<a class="chip sea" href="/y">y</a>'
    )
    assert led(page) == '<a class="ic" href="r1.html">Back</a>'


def test_an_image_that_is_not_in_the_export_is_named() -> None:
    assert led('<img src="/runs/r1/image/x" alt="">') == '<span class="f">an image, which is not in this export</span>'


def test_ids_of_several_pages_in_one_file_differ_and_marks_are_shared() -> None:
    page = '<p id="a" aria-labelledby="b c"><a href="#a">x</a><svg><use href="#m-passed"/></svg></p>'
    assert led(page, "r1-") == (
        '<p id="r1-a" aria-labelledby="r1-b r1-c"><a href="#r1-a">x</a><svg><use href="#m-passed"/></svg></p>'
    )


def test_text_of_an_agent_that_looks_like_a_link_stays_text() -> None:
    said = "&lt;a href=&#34;/runs/r1&#34;&gt; id=&#34;x&#34;"
    assert led(f'<p title="{said}">{said}</p>', "r1-") == f'<p title="{said}">{said}</p>'


def test_the_main_part_of_a_page_is_what_stands_between_its_bar_and_its_end() -> None:
    assert main_part('<body><main id="main">\n<p>a</p></main></body>') == "\n<p>a</p>"
