"""A study can select its first figure; invalid selections are refused with their line."""

from __future__ import annotations

import pytest

from tests.studies.examples import SMALL
from walklearn.studies import Study, StudyError
from walklearn.studies.figure_options import View

MISTAKES = {
    'kind = "pie"': "figure.kind",
    'x = "noise"': "one of convergence, map",
    'kind = "map"\nx = "dimension"': "figure.y",
    'kind = "map"\nx = "dimension"\ny = "loss"': "figure.y",
    'kind = "tradeoff"\nx = "epsilon"': "figure.x",
    'kind = "scatter"\nx = "weather"': "figure.x",
    'kind = "cost"\nx = "bound"': "figure.x",
}


@pytest.mark.parametrize("lines", MISTAKES)
def test_a_view_that_cannot_be_drawn(lines: str) -> None:
    with pytest.raises(StudyError) as refused:
        Study.from_text(f"{SMALL}\n[figure]\n{lines}\n", "study.toml")
    assert MISTAKES[lines] in str(refused.value)
    assert "line" in str(refused.value)


def test_a_view_changes_no_cell() -> None:
    plain = Study.from_text(SMALL)
    viewed = Study.from_text(f'{SMALL}\n[figure]\nkind = "scatter"\nx = "mixing_time"\n')
    assert plain.view == View()
    assert viewed.view == View("scatter", "mixing_time")
    assert [cell.hash for cell in viewed.cells()] == [cell.hash for cell in plain.cells()]
