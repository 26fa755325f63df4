"""The help of every command: the same text on every Python, also on one that would colour it."""

from __future__ import annotations

import pytest

from seatrial.cli.main import COMMANDS, Parser, command_parser, main
from seatrial.errors import SeatrialError


def sample() -> Parser:
    parser = Parser(prog="seatrial sample", description="Does it.")
    parser.add_argument("file", metavar="FILE", help="what to read")
    parser.add_argument("more", metavar="MORE", nargs="*", help="more of it")
    parser.add_argument("--to", required=True, metavar="FORMAT", help="a format that is written")
    parser.add_argument("-o", "--output", metavar="FILE", help="where it goes (default: %(default)s)", default="-")
    parser.add_argument("--only", choices=("failed", "errored"), help="of these alone, 100%%")
    parser.add_argument("--hidden", help="==SUPPRESS==")
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--json", action="store_true", help="as JSON")
    either.add_argument("--text", action="store_true", help="as text")
    parser.epilog = "exit codes: 0.\n  As it is."
    return parser


def test_help_is_laid_out_by_us() -> None:
    parser = sample()
    parser.width = 60
    assert parser.format_help() == (
        "usage: seatrial sample [-h] --to FORMAT [-o FILE]\n"
        "                       [--only {failed,errored}]\n"
        "                       [--json | --text]\n"
        "                       FILE [MORE ...]\n"
        "\n"
        "Does it.\n"
        "\n"
        "positional arguments:\n"
        "  FILE                  what to read\n"
        "  MORE                  more of it\n"
        "\n"
        "options:\n"
        "  -h, --help            show this help message and exit\n"
        "  --to FORMAT           a format that is written\n"
        "  -o, --output FILE     where it goes (default: -)\n"
        "  --only {failed,errored}\n"
        "                        of these alone, 100%\n"
        "  --json                as JSON\n"
        "  --text                as text\n"
        "\n"
        "exit codes: 0.\n"
        "  As it is.\n"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_every_option_and_no_colours_at_any_width(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    for columns in ("20", "72", "1000"):
        monkeypatch.setenv("COLUMNS", columns)
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        text = capsys.readouterr().out
        assert "\x1b" not in text
        for option in command_parser(name)._option_string_actions:
            assert option in text
        upper, _, lower = text.partition("options:")
        options, _, below = lower.partition("\n\n")
        assert all(len(line) <= 100 for line in f"{upper}{options}".splitlines())
        widest = max(40, min(100, int(columns) - 2))
        assert all(len(line) <= widest for line in below.splitlines())


def test_what_stands_below_the_options_is_folded_by_paragraphs() -> None:
    parser = Parser(prog="seatrial sample")
    parser.width = 60
    parser.epilog = (
        "  seatrial sample FILE [--json]\n\n"
        "The first line of this paragraph is about as long as lines in the code may be,\n"
        "and goes on here.\n"
        "exit codes: 0 well, 1 not."
    )
    assert parser.format_help().partition("exit\n\n")[2] == (
        "  seatrial sample FILE [--json]\n"
        "\n"
        "The first line of this paragraph is about as long as lines\n"
        "in the code may be, and goes on here.\n"
        "exit codes: 0 well, 1 not.\n"
    )


def test_help_of_a_command_of_a_command_names_both(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["keys", "add", "--help"])
    assert capsys.readouterr().out.startswith("usage: seatrial keys add [-h] [--scope {read,run,admin}]")


def test_wrong_usage_says_where_the_help_is() -> None:
    with pytest.raises(SeatrialError) as caught:
        sample().parse_args(["a", "--to", "x", "--only", "passed"])
    assert caught.value.code == "usage"
    assert caught.value.hint == "see `seatrial sample --help`"
