"""What came of an experiment, and how two compare: statistics, and reports for people, CI and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial._support.lazy import attach

if TYPE_CHECKING:
    from seatrial.reports.compare import Comparison as Comparison
    from seatrial.reports.compare import TagDifference as TagDifference
    from seatrial.reports.compare import agent_pairs as agent_pairs
    from seatrial.reports.compare import compare as compare
    from seatrial.reports.compare import refuse_itself as refuse_itself
    from seatrial.reports.compare_html import comparison_html as comparison_html
    from seatrial.reports.compare_text import comparison_markdown as comparison_markdown
    from seatrial.reports.compare_text import comparison_terminal as comparison_terminal
    from seatrial.reports.compare_text import unselected_sentence as unselected_sentence
    from seatrial.reports.gate import Gate as Gate
    from seatrial.reports.gate import check_tags as check_tags
    from seatrial.reports.gate import gate_of as gate_of
    from seatrial.reports.gate import objections as objections
    from seatrial.reports.gate import undecided as undecided
    from seatrial.reports.layout import terminal_width as terminal_width
    from seatrial.reports.notes import closing_line as closing_line
    from seatrial.reports.report import Report as Report
    from seatrial.reports.report import report_on as report_on
    from seatrial.reports.rows import ReportSource as ReportSource
    from seatrial.reports.rows import RunDetail as RunDetail
    from seatrial.reports.rows import RunRow as RunRow
    from seatrial.reports.rows import matrix as matrix
    from seatrial.reports.stored import named_agents as named_agents
    from seatrial.reports.stored import stored as stored
    from seatrial.reports.stored import stored_report as stored_report
    from seatrial.reports.summary import AgentSummary as AgentSummary
    from seatrial.reports.summary import Summary as Summary
    from seatrial.reports.summary import summarise as summarise
    from seatrial.reports.tags import ByTag as ByTag
    from seatrial.reports.tags import TagSummary as TagSummary
    from seatrial.reports.terminal import MAX_TAG_ROWS as MAX_TAG_ROWS
    from seatrial.reports.terminal import terminal_summary as terminal_summary
    from seatrial.reports.write import FORMS as FORMS
    from seatrial.reports.write import ReportForm as ReportForm
    from seatrial.reports.write import write_pieces as write_pieces
    from seatrial.reports.write import write_reports as write_reports

__getattr__, __all__ = attach(
    __name__,
    {
        "compare": "Comparison TagDifference agent_pairs compare refuse_itself",
        "compare_html": "comparison_html",
        "compare_text": "comparison_markdown comparison_terminal unselected_sentence",
        "gate": "Gate check_tags gate_of objections undecided",
        "layout": "terminal_width",
        "notes": "closing_line",
        "report": "Report report_on",
        "rows": "ReportSource RunDetail RunRow matrix",
        "stored": "named_agents stored stored_report",
        "summary": "AgentSummary Summary summarise",
        "tags": "ByTag TagSummary",
        "terminal": "MAX_TAG_ROWS terminal_summary",
        "write": "FORMS ReportForm write_pieces write_reports",
    },
)
