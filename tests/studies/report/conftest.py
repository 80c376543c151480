"""One small study with everything a page can show, really run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.studies.report.everything import STUDY
from walklearn.studies import Results, Study, run_study
from walklearn.studies.report import write_report
from walklearn.studies.report.sections import Section, section


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    out = tmp_path_factory.mktemp("results")
    return run_study(Study.from_text(STUDY), out, cores=1)


@pytest.fixture(scope="session")
def page(results: Results) -> Path:
    return write_report([results.directory], results.directory.parent / "report.html")


@pytest.fixture(scope="session")
def drawn(results: Results, page: Path) -> Section:
    return section(results, page.parent)
