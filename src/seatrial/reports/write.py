"""Writing reports to files: each appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from seatrial._support.whole_file import whole_file
from seatrial.errors import SeatrialError
from seatrial.reports.ci_files import ctrf_json, junit_xml
from seatrial.reports.data_files import csv_lines, json_report
from seatrial.reports.markdown import markdown_report
from seatrial.reports.report import Report

ReportForm: TypeAlias = Literal["junit", "ctrf", "markdown", "csv", "json"]

FORMS: dict[ReportForm, Callable[[Report], Iterable[str]]] = {
    "junit": junit_xml,
    "ctrf": ctrf_json,
    "markdown": markdown_report,
    "csv": csv_lines,
    "json": json_report,
}
"""Every form of a report that is made of its figures alone. Its pages are those of `seatrial.explorer.export`."""


def write_reports(report: Report, targets: Mapping[ReportForm, Path]) -> None:
    """Write a report in each of these forms."""
    for form, path in targets.items():
        write_pieces(path, FORMS[form](report))


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Write text to a file that is replaced only when all of it is there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = f"the folder {path.parent} cannot be made: {error.strerror}"
        raise SeatrialError("unwritable_file", f"{path} cannot be written: {why}") from None
    with whole_file(path) as file:
        file.writelines(piece.encode() for piece in pieces)
