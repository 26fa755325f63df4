"""What came of an experiment, and how two compare: statistics, and reports for people, CI and programs."""

from seatrial.reports.compare import Comparison, agent_pairs, compare
from seatrial.reports.compare_text import comparison_markdown, comparison_terminal, unselected_sentence
from seatrial.reports.gate import Gate, gate_of, objections
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
    "TagSummary",
    "agent_pairs",
    "closing_line",
    "compare",
    "comparison_markdown",
    "comparison_terminal",
    "gate_of",
    "matrix",
    "objections",
    "report_on",
    "stored",
    "stored_report",
    "summarise",
    "terminal_summary",
    "terminal_width",
    "unselected_sentence",
    "write_pieces",
    "write_reports",
]
