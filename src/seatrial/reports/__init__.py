"""What came of an experiment, and how two compare: statistics, and reports for people, CI and programs."""

from seatrial.reports.compare import Comparison, TagDifference, agent_pairs, compare, refuse_itself
from seatrial.reports.compare_html import comparison_html
from seatrial.reports.compare_text import comparison_markdown, comparison_terminal, unselected_sentence
from seatrial.reports.gate import Gate, check_tags, gate_of, objections, undecided
from seatrial.reports.layout import terminal_width
from seatrial.reports.notes import closing_line
from seatrial.reports.report import Report, report_on
from seatrial.reports.rows import ReportSource, RunDetail, RunRow, matrix
from seatrial.reports.stored import stored, stored_report
from seatrial.reports.summary import AgentSummary, Summary, summarise
from seatrial.reports.tags import ByTag, TagSummary
from seatrial.reports.terminal import MAX_TAG_ROWS, terminal_summary
from seatrial.reports.write import FORMS, ReportForm, write_pieces, write_reports

__all__ = [
    "FORMS",
    "MAX_TAG_ROWS",
    "AgentSummary",
    "ByTag",
    "Comparison",
    "Gate",
    "Report",
    "ReportForm",
    "ReportSource",
    "RunDetail",
    "RunRow",
    "Summary",
    "TagDifference",
    "TagSummary",
    "agent_pairs",
    "check_tags",
    "closing_line",
    "compare",
    "comparison_html",
    "comparison_markdown",
    "comparison_terminal",
    "gate_of",
    "matrix",
    "objections",
    "refuse_itself",
    "report_on",
    "stored",
    "stored_report",
    "summarise",
    "terminal_summary",
    "terminal_width",
    "undecided",
    "unselected_sentence",
    "write_pieces",
    "write_reports",
]
