"""The pages lead where they say, and code that names a section of a specification names one that exists."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

import pytest

from seatrial._support.excerpt import MAX_DETAIL
from seatrial.agents.cli.placeholders import PLACEHOLDERS
from seatrial.events.codec import EVENT_TYPES
from seatrial.events.framing import MAX_FRAME_BYTES
from seatrial.events.violation import VIOLATION_CODES
from seatrial.formats.agent_response import LONG_FINAL_RESPONSE
from seatrial.runs.fault import class_of_status
from seatrial.suites.seed_csv import COLUMNS
from seatrial.trajectory.completeness import MAX_REASONS
from seatrial.trajectory.observed import MAX_OBSERVED_BYTES, MAX_OBSERVED_CALLS
from seatrial.trajectory.partial_order import SEARCH_BUDGET
from seatrial.transcript import TextBlock, ThinkingBlock, split_thinking
from seatrial.transcript.note import MAX_NOTES
from seatrial.world import proxy, trace
from seatrial.world.grant import MAX_RUN_BYTES
from seatrial.world.trace import TRACE_TYPES

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "docs" / "spec"
SPECIFIED = sorted(page.stem for page in SPEC.glob("*.md") if page.stem != "README")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = sorted(chain.from_iterable((ROOT / folder).rglob("*.py") for folder in ("src", "tests", "bench", "scripts")))

SECTION = r"[A-Z]?\d+(?:\.\d+)*"
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
# `dispatch.md 5.3`, `events.md B8, B12`, `verdicts.md` 1, 2 and 5
REFERENCE = re.compile(
    rf"(?<![\w/])({'|'.join(SPECIFIED)})\.md`?(?P<sections>(?:(?:,| and|, and)? {SECTION}\b)*)(?!\w)"
)
DOCUMENT = re.compile(r"\bdocs/[\w./-]+\.md\b")


def without_code(page: str) -> str:
    """The page without its fenced blocks: what looks like a heading or a link there is none."""
    return re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    found: set[str] = set()
    for _, title in HEADING.findall(without_code(page.read_text(encoding="utf-8"))):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 1
        while (unique := anchor if number == 1 else f"{anchor}-{number - 1}") in found:
            number += 1
        found.add(unique)
    return found


def sections(name: str) -> set[str]:
    """The numbers of the sections of a specification."""
    titles = [title for _, title in HEADING.findall(without_code((SPEC / f"{name}.md").read_text(encoding="utf-8")))]
    return {match[1] for title in titles if (match := re.match(rf"({SECTION})\.? ", title))}


def section(name: str, number: str) -> str:
    """The text of one section, with those below it."""
    text = (SPEC / f"{name}.md").read_text(encoding="utf-8")
    start = re.search(rf"^(#+) {re.escape(number)}\.? .*$", text, re.MULTILINE)
    assert start is not None, f"{name}.md has no section {number}"
    end = re.compile(rf"^#{{1,{len(start[1])}}} ", re.MULTILINE).search(text, start.end())
    return text[start.end() : end.start() if end else len(text)]


def rows(text: str) -> list[list[str]]:
    """The cells of the tables in a text, without the lines below the headers."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("| ---")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def in_code(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page if not path else (page.parent / unquote(path)).resolve()
        assert file.exists(), f"{target}: there is no {file}"
        if anchor:
            assert anchor in anchors(file), f"{target}: {file.name} has no heading for that"


def references(text: str) -> list[tuple[str, list[str]]]:
    return [(match[1], re.findall(SECTION, match["sections"])) for match in REFERENCE.finditer(text)]


def test_references_are_found_in_every_form_that_code_uses() -> None:
    found = references("(dispatch.md 5.3), `verdicts.md` 1, 2 and 5: events.md B8, B12; docs/events.md, trajectory.md.")
    assert found == [
        ("dispatch", ["5.3"]),
        ("verdicts", ["1", "2", "5"]),
        ("events", ["B8", "B12"]),
        ("trajectory", []),
    ]


def test_every_section_of_a_specification_that_code_names_exists() -> None:
    known = {name: sections(name) for name in SPECIFIED}
    count = 0
    for path in CODE:
        if path == Path(__file__).resolve():
            continue
        text = path.read_text(encoding="utf-8")
        if path.is_relative_to(ROOT / "scripts"):
            continue  # which writes pages, and the links in them
        for name, numbers in references(text):
            where = f"{path.relative_to(ROOT)} names {name}.md"
            assert numbers, f"{where} without a section; a page of docs/ is written `docs/{name}.md`"
            for number in numbers:
                assert number in known[name], f"{where} {number}, which docs/spec/{name}.md does not have"
                count += 1
    assert count > 40, "the pattern does not find the references any more"


def test_every_page_that_code_names_exists() -> None:
    for path in CODE:
        for name in DOCUMENT.findall(path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"


@pytest.mark.parametrize("name", SPECIFIED)
def test_a_section_number_is_used_once(name: str) -> None:
    titles = HEADING.findall(without_code((SPEC / f"{name}.md").read_text(encoding="utf-8")))
    numbers = [match[1] for _, title in titles if (match := re.match(rf"({SECTION})\.? ", title))]
    assert len(numbers) == len(set(numbers))


# What the specifications list must be what the code has.


def test_dispatch_lists_the_columns_that_are_read() -> None:
    columns = section("dispatch", "10") + section("dispatch", "11")
    assert set(COLUMNS) <= in_code(columns)


def test_dispatch_lists_the_types_of_traces() -> None:
    assert in_code(section("dispatch", "5.5")) >= TRACE_TYPES


def test_dispatch_lists_every_refusal_of_the_proxy() -> None:
    listed = {(int(status), name.strip("`")) for status, name, _ in rows(section("dispatch", "5.3"))[1:]}
    sources = "".join([path.read_text(encoding="utf-8") for path in (ROOT / "src/seatrial/world").glob("*.py")])
    made = {(int(status), name) for status, name in re.findall(r'refusal\(\s*(\d+), "(\w+)"', sources)}
    assert len(made) > 8
    # These are not written beside their status.
    assert listed - made == {(400, "payload_invalid"), (401, "run_token_invalid")}
    assert made <= listed


def test_dispatch_has_the_limits_of_the_proxy() -> None:
    limits = {row[0]: row[1] for row in rows(section("dispatch", "5"))[1:6]}
    assert limits["one body"].startswith(f"{proxy.MAX_BODY_BYTES >> 20} MiB")
    assert limits["all bodies of one run"] == f"{MAX_RUN_BYTES >> 20} MiB"
    assert limits["trace posts of one run"] == f"{proxy.MAX_TRACE_POSTS:,}"
    assert limits["recorded calls of one run"] == f"{MAX_OBSERVED_CALLS:,}"
    assert limits["arguments and results of recorded calls"] == f"{MAX_OBSERVED_BYTES >> 20} MiB"


def test_dispatch_has_the_fault_class_of_every_status() -> None:
    listed: dict[int, str | None] = {}
    for statuses, fault, *_ in rows(section("dispatch", "3.3"))[1:-1]:
        name = next(iter(in_code(fault)), None)
        if re.match(r"[\d, ]+$", statuses):
            listed.update({int(status): name for status in statuses.split(",")})
        else:
            hundred = int(re.findall(r"(\d)xx", statuses)[0]) * 100
            listed.update({status: name for status in range(hundred, hundred + 100) if status not in listed})
    listed = {status: listed[status] for status in sorted(listed)}
    assert list(listed) == list(range(200, 600))
    assert listed == {status: class_of_status(status) for status in listed}


@pytest.mark.parametrize(
    ("name", "number", "figure"),
    [
        ("dispatch", "5.1", f"up to {trace.MAX_SEGMENTS} segments"),
        ("dispatch", "5.1", f"{trace.MAX_LABEL} characters at most"),
        ("dispatch", "6.2", f"more than {LONG_FINAL_RESPONSE:,} characters"),
        ("dispatch", "14", f"the first {MAX_DETAIL} characters"),
        ("events", "B8", f"{MAX_FRAME_BYTES >> 20} MiB"),
        ("trajectory", "1", f"{MAX_OBSERVED_CALLS:,} of them and {MAX_OBSERVED_BYTES >> 20} MiB"),
        ("trajectory", "2", f"{SEARCH_BUDGET:,} steps"),
        ("verdicts", "1", f"{MAX_REASONS} at most"),
        ("verdicts", "5", f"keeps {MAX_NOTES:,} notes"),
    ],
)
def test_a_figure_is_the_one_of_the_code(name: str, number: str, figure: str) -> None:
    assert figure in section(name, number)


def test_events_lists_every_type_with_its_fields() -> None:
    listed: dict[str, set[str]] = {}
    for types, fields in rows(section("events", "B1"))[1:]:
        names = set(re.findall(r"[a-z]\w*", re.sub(r"\(.*?\)|:.*", "", fields)))
        listed.update({name.strip(): names for name in types.split(",")})
    common = {"timestamp", "rawEvent", "metadata", "eventId", "createdAt", "artifactId", "status", "threadId"}
    own = {name: set(kind.__struct_encode_fields__) - common - {"subagentRunId"} for name, kind in EVENT_TYPES.items()}
    assert {name: fields - common - {"subagentRunId"} for name, fields in listed.items()} == own


def test_events_lists_every_rule_of_the_order() -> None:
    assert in_code("".join([row[0] for row in rows(section("events", "B5"))])) == set(VIOLATION_CODES)


def test_trajectory_lists_the_placeholders_of_a_command() -> None:
    assert {f"{{{name}}}" for name in PLACEHOLDERS} <= in_code(section("trajectory", "4"))


@pytest.mark.parametrize(
    ("text", "visible", "thoughts"), [tuple(row) for row in rows(section("transcript", "1.4"))[1:]], ids=lambda cell: ""
)
def test_the_thinking_tags_that_transcript_shows_are_read_so(text: str, visible: str, thoughts: str) -> None:
    given = text.strip("`")
    segments, _ = split_thinking(given)
    said = "".join([segment.text for segment in segments if isinstance(segment, TextBlock)])
    assert said == (given if visible == "unchanged" else visible.strip("`"))
    thought = [segment.text for segment in segments if isinstance(segment, ThinkingBlock)]
    assert thought == ([""] if thoughts == "the empty thought" else re.findall(r"`([^`]+)`", thoughts))


@pytest.mark.parametrize("name", SPECIFIED)
def test_every_note_that_a_specification_names_exists(name: str) -> None:
    listed = in_code((ROOT / "docs" / "notes.md").read_text(encoding="utf-8"))
    text = (SPEC / f"{name}.md").read_text(encoding="utf-8")
    for named in re.findall(r"\bnotes? (?:are )?((?:`[a-z_]+`(?:, | and |,\n|\n)?)+)", text):
        assert in_code(named) <= listed


# The map of the code.

ARCHITECTURE = ROOT / "docs" / "architecture.md"
SOURCE = ROOT / "src" / "seatrial"


def listed_packages() -> list[str]:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    packages = text[text.index("## Packages") : text.index("## How a run flows")]
    return [row[0].strip("`") for row in rows(packages)[1:]]


def test_the_architecture_page_has_every_package_and_module() -> None:
    there = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    there |= {path.name for path in SOURCE.glob("*.py")} - {"__init__.py", "_version.py"}
    assert sorted(listed_packages()) == sorted(there)


def test_the_architecture_page_lists_packages_in_the_order_of_the_layers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    layers = [layer.removeprefix("seatrial.") for layer in reversed(contract["layers"])]
    assert [name.removesuffix("/").removesuffix(".py") for name in listed_packages()] == layers


@pytest.mark.parametrize("page", [ARCHITECTURE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_every_file_that_the_map_names_exists(page: Path) -> None:
    text = re.sub(r"^```mermaid.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = [name for name in in_code(without_code(text)) if re.fullmatch(r"[\w./-]+(?:/|\.(?:py|md|toml|txt))", name)]
    assert len(named) > 10
    for name in named:
        assert (ROOT / name).exists() or (SOURCE / name).exists(), f"{page.name} names {name}, which does not exist"


def test_every_package_in_the_picture_of_a_run_exists() -> None:
    (picture,) = re.findall(
        r"^```mermaid\n(.*?)^```$", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    named = re.findall(r"[a-z_]+/(?:[a-z_]+\.py)?", picture)
    assert len(named) > 8
    for name in named:
        assert (SOURCE / name).exists(), name


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_map_is_linked_where_strangers_begin(page: str) -> None:
    targets = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert "docs/architecture.md" in targets
    assert "docs/spec/README.md" in targets
