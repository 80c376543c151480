"""Every kind of value is checked, and a mistake is told with its place and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from walklearn.errors import InputError
from walklearn.files.checked_table import CheckedTable, Source, shown


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


def test_what_fits_is_read() -> None:
    read = table()
    assert read.text("name") == read.label("name") == "ring"
    assert read.choice("name", ["star", "ring"]) == "ring"
    assert read.names("name", ["star", "ring"], or_one=True) == ("ring",)
    assert read.count("nodes") == 5
    assert read.number("nodes", above=4.0) == 5.0
    assert read.number("share", least=0.5, below=1.0) == 0.5
    assert read.flag("on") is True
    assert read.pair("ends") == (1.0, 2.0)
    assert read.labels("places") == ("a", "7")
    assert read.table("walk").text("kind") == "uniform"
    assert read.tables("claims")[0].text("text") == "one"
    assert dict(read.table("walk")) == {"kind": "uniform"}


def test_what_is_left_out_is_the_default() -> None:
    read = table()
    for ask in (read.text, read.label, read.labels, read.flag, read.count, read.number, read.pair):
        assert ask("absent", None) is None
    assert read.choice("absent", ["a"], None) is None
    assert read.names("absent", ["a"], ("b",)) == ("b",)
    assert read.table("absent", None) is None
    assert read.tables("absent") == ()


MISTAKES: dict[str, tuple[Callable[[CheckedTable], Any], str]] = {
    "text": (lambda t: t.text("nodes"), "line 2: nodes must be text; it is 5."),
    "label": (lambda t: t.label("on"), "line 4: on must be a text of 1 to 200 char"),
    "labels": (lambda t: t.labels("name"), "line 1: name must be a list of texts, such"),
    "label twice": (
        lambda t: CheckedTable({"x": ["1", 1]}, t.source).labels("x"), 'x names "1" twice.'),
    "choice": (
        lambda t: t.choice("name", ["rings", "star"]),
        'line 1: name is "ring", which is not known; did you mean "rings"? Choose one of rings'),
    "no choice": (
        lambda t: t.choice("nodes", ["star"]),
        "line 2: nodes is 5, which is not known. Choose one of star."),
    "names": (
        lambda t: t.names("places", ["a", "b"]),
        "line 6: places is 7, which is not known. Choose one of a, b."),
    "one name": (lambda t: t.names("name", ["ring"]), "line 1: name must be a list of names"),
    "count": (lambda t: t.count("share"), "share must be a whole number of at least 1; it is 0.5."),
    "truth": (lambda t: t.count("on"), "on must be a whole number of at least 1; it is true."),
    "much": (lambda t: t.count("nodes", most=4), "must be a whole number of at most 4; it is 5."),
    "number": (
        lambda t: t.number("share", least=0.0, above=0.5, below=2.0),
        "share must be a finite number of at least 0 and greater than 0.5 and less than 2; it is"),
    "flag": (lambda t: t.flag("nodes"), "line 2: nodes must be true or false; it is 5."),
    "pair": (lambda t: t.pair("places"), "line 6: places must be two numbers [low, high] with"),
    "table": (lambda t: t.table("name"), 'name must be a table of keys and values, such as [name]'),
    "tables": (lambda t: t.tables("walk"), "line 7: walk must be a list of tables: write [[walk]]"),
    "inside": (lambda t: t.table("walk").count("kind"), "line 8: walk.kind must be a whole number"),
    "in a list": (lambda t: t.tables("claims")[1].text("text"), "line 12: claims.1.text must be t"),
    "missing": (
        lambda t: t.table("walk").flag("lazy"),
        "line 7: walk.lazy is missing; it must be true or false."),
    "unknown": (
        lambda t: t.table("walk").only(["kinds"], "a walk"),
        "line 8: walk.kind is no key of a walk; did you mean kinds? Allowed: kinds."),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_told(mistake: str) -> None:
    ask, message = MISTAKES[mistake]
    with pytest.raises(PlanError) as caught:
        ask(table())
    assert str(caught.value).startswith("plan.toml")
    assert message in str(caught.value)


def test_errors_from_elsewhere_name_the_table() -> None:
    walk = table().table("walk")
    told = r"line 7: walk: no such kind \(here\)"
    with pytest.raises(PlanError, match=told), walk.explained(note=" (here)"):
        raise TypeError("no such kind")
    with pytest.raises(PlanError, match="line 7: walk: it is kindly refused"), walk.explained():
        raise ValueError("it is kindly refused")
    with pytest.raises(PlanError, match=r"^known already$"), walk.explained():
        raise PlanError("known already")


def test_a_table_without_a_text_names_the_key_alone() -> None:
    read = CheckedTable({"walk": {"kind": 1}}, Source(error=PlanError))
    with pytest.raises(PlanError, match=r"^walk\.kind must be text; it is 1\.$"):
        read.table("walk").text("kind")
    with pytest.raises(PlanError, match=r"^does not fit$"):
        raise read.error("", "does not fit")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    with pytest.raises(PlanError, match=r"plan\.toml does not exist"):
        CheckedTable.read(path, PlanError)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match=r"cannot read .*plan\.toml.*utf-8"):
        CheckedTable.read(path, PlanError)
    path.write_text("nodes = 5 5")
    with pytest.raises(PlanError, match=r"plan\.toml is not TOML: .*line 1"):
        CheckedTable.read(path, PlanError)


def test_values_are_shown_as_toml_has_them_and_cut() -> None:
    assert shown('say "é"') == r'"say \"é\""'
    assert shown({"on": False, "ends": [1.5, "x"]}) == '{ on = false, ends = [1.5, "x"] }'
    assert len(shown("x" * 999)) == 60
