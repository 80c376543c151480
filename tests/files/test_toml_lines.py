from __future__ import annotations

from walklearn.files.toml_lines import line_of, lines_of_keys

TEXT = '''# a plan
name = "x"

features = [  # over lines
  "a",
  "b",
]
story = """
[not.a.table]
key = 1
"""
step = { constant = 0.1, exponent = 0.75 }
a.b = 2

[privacy]
epsilon = 3
[methods."dotted.name".inner]
theta = 1
[[cells]]
name = "first"
[[cells]]
name = "second"
[cells.deep]
key = 1
'''


def test_every_key_has_its_line() -> None:
    lines = lines_of_keys(TEXT)
    expected = {
        "name": 2, "features": 4, "story": 8, "step": 12, "step.exponent": 12, "a.b": 13,
        "privacy": 15, "privacy.epsilon": 16, "methods.dotted.name.inner.theta": 18,
        "cells.0.name": 20, "cells.1.name": 22, "cells.1.deep.key": 24,
    }  # fmt: skip
    assert {key: lines[key] for key in expected} == expected
    assert "not" not in lines
    assert "key" not in lines


def test_a_missing_key_has_the_line_of_its_table() -> None:
    lines = lines_of_keys(TEXT)
    assert line_of(lines, "privacy.delta") == 15
    assert line_of(lines, "features.1") == 4
    assert line_of(lines, "nothing") is None
