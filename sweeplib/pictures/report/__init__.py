"""The report of a sweep, one self-contained HTML page, and the summary of a sweep in a few lines."""

from sweeplib.pictures.report.summary import Summary, summary, summary_by_records
from sweeplib.pictures.report.write import write_report

__all__ = ["Summary", "summary", "summary_by_records", "write_report"]
