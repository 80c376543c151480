"""Every kind of value is checked, and a mistake is told with its place and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from walklearn.errors import InputError
from walklearn.files.checked_table import CheckedTable, Source, excerpt


class PlanError(InputError):
    pass


TEXT = """name = "ring"
nodes = 5
share = 0.5
on = true
ends = [1, 2]
places = ["a", 7]
[walk]
kind = "uniform"
[[claims]]
text = "one"
[[claims]]
text = 2
"""


def table(text: str = TEXT) -> CheckedTable:
    return CheckedTable.parse(text, "plan.toml", PlanError)


def test_valid_values_are_read() -> None:
    read = table()
    assert read.text("name") == read.label("name") == "ring"
    assert read.choice("name", ["star", "ring"]) == "ring"
    assert read.names("name", ["star", "ring"], or_one=True) == ("ring",)
    assert read.count("nodes") == 5
    assert read.number("nodes", above=4.0) == 5.0
    assert read.number("share", minimum=0.5, below=1.0) == 0.5
    assert read.flag("on") is True
    assert read.pair("ends") == (1.0, 2.0)
    assert read.labels("places") == ("a", "7")
    assert read.table("walk").text("kind") == "uniform"
    assert read.tables("claims")[0].text("text") == "one"
    assert dict(read.table("walk")) == {"kind": "uniform"}


def test_missing_keys_have_defaults() -> None:
    read = table()
    for ask in (read.text, read.label, read.labels, read.flag, read.count, read.number, read.pair):
        assert ask("absent", None) is None
    assert read.choice("absent", ["a"], None) is None
    assert read.names("absent", ["a"], ("b",)) == ("b",)
    assert read.table("absent", None) is None
    assert read.tables("absent") == ()


# The question, and the line, key and value of the error.
MISTAKES: dict[str, tuple[Callable[[CheckedTable], Any], int, str, str]] = {
    "text": (lambda t: t.text("nodes"), 2, "nodes", "5"),
    "label": (lambda t: t.label("on"), 4, "on", "200"),
    "labels": (lambda t: t.labels("name"), 1, "name", '["a", "b"]'),
    "label twice": (
        lambda t: CheckedTable({"x": ["1", 1]}, t.source).labels("x"), 0, "x", '"1" twice'),
    "choice": (lambda t: t.choice("name", ["rings", "star"]), 1, "name", '"rings"? '),
    "no choice": (lambda t: t.choice("nodes", ["star"]), 2, "nodes", "star"),
    "names": (lambda t: t.names("places", ["a", "b"]), 6, "places", "7"),
    "one name": (lambda t: t.names("name", ["ring"]), 1, "name", "list"),
    "count": (lambda t: t.count("share"), 3, "share", "0.5"),
    "truth": (lambda t: t.count("on"), 4, "on", "true"),
    "much": (lambda t: t.count("nodes", maximum=4), 2, "nodes", "4; it is 5"),
    "number": (
        lambda t: t.number("share", minimum=0.0, above=0.5, below=2.0), 3, "share",
        "at least 0 and greater than 0.5 and less than 2"),
    "flag": (lambda t: t.flag("nodes"), 2, "nodes", "5"),
    "pair": (lambda t: t.pair("places"), 6, "places", "[low, high]"),
    "table": (lambda t: t.table("name"), 1, "name", "[name]"),
    "tables": (lambda t: t.tables("walk"), 7, "walk", "[[walk]]"),
    "inside": (lambda t: t.table("walk").count("kind"), 8, "walk.kind", "1"),
    "in a list": (lambda t: t.tables("claims")[1].text("text"), 12, "claims.1.text", "text"),
    "missing": (lambda t: t.table("walk").flag("lazy"), 7, "walk.lazy", "missing"),
    "unknown": (
        lambda t: t.table("walk").only(["kinds"], "a walk"), 8, "walk.kind", "Allowed: kinds"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_name_line_key_and_value(mistake: str) -> None:
    ask, line, key, value = MISTAKES[mistake]
    with pytest.raises(PlanError) as caught:
        ask(table())
    assert caught.value.place == "plan.toml" + (f", line {line}" if line else "")
    assert caught.value.key == key
    assert value in caught.value.problem


def test_errors_from_elsewhere_name_the_table() -> None:
    walk = table().table("walk")
    told = r"line 7: walk: no such kind \(here\)"
    with pytest.raises(PlanError, match=told), walk.name_errors(note=" (here)"):
        raise TypeError("no such kind")
    with pytest.raises(PlanError, match="line 7: walk: refused"), walk.name_errors():
        raise ValueError("refused")
    with pytest.raises(PlanError, match=r"^known already$"), walk.name_errors():
        raise PlanError("known already")


def test_a_table_without_a_text_names_the_key_alone() -> None:
    read = CheckedTable({"walk": {"kind": 1}}, Source(error=PlanError))
    with pytest.raises(PlanError, match=r"^walk\.kind .* 1\.$"):
        read.table("walk").text("kind")
    with pytest.raises(PlanError, match=r"^does not fit$"):
        raise read.error("", "does not fit")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    with pytest.raises(PlanError, match=r"plan\.toml.*does not exist|no .*plan\.toml"):
        CheckedTable.read(path, PlanError)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match=r"cannot read .*plan\.toml.*utf-8"):
        CheckedTable.read(path, PlanError)
    path.write_text("nodes = 5 5")
    with pytest.raises(PlanError, match=r"plan\.toml is not TOML: .*line 1"):
        CheckedTable.read(path, PlanError)


def test_values_are_shown_as_toml_has_them_and_cut() -> None:
    assert excerpt('say "é"') == r'"say \"é\""'
    assert excerpt({"on": False, "ends": [1.5, "x"]}) == '{ on = false, ends = [1.5, "x"] }'
    assert len(excerpt("x" * 999)) == 60
