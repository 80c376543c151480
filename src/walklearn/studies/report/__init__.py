"""One HTML page from stored results: verdicts, figures, where every number comes from.

>>> write_report("no/such/place", "report.html")
Traceback (most recent call last):
ValueError: no/such/place is not a directory; give one that a study was run into
"""

from walklearn.studies.report.page import write_report

__all__ = ["write_report"]
