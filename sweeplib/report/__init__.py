"""The report of a sweep: one self-contained HTML page; and what became of the sweep in a few lines."""

from sweeplib.report.summary import Summary, summary
from sweeplib.report.write import write_report

__all__ = ["Summary", "summary", "write_report"]
