"""One HTML page from stored results: verdicts, figures, provenance."""

from walklearn.studies.report.page import write_report

__all__ = ["write_report"]
