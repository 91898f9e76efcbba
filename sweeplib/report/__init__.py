"""The report of a sweep: one self-contained HTML page."""

from sweeplib.report.write import write_report

__all__ = ["write_report"]
