"""scikit-learn is an extra: without it, all but the estimators works, and they say what to do."""

from __future__ import annotations

from tests.running import python


def test_a_missing_package_is_named_with_its_extra() -> None:
    program = """
import sys
sys.modules["sklearn"] = None
import walklearn as wl
wl.Problem([[1.0]], [1.0], penalty=1.0).solution
try:
    wl.RandomWalkClassifier
except ImportError as error:
    print(error)
"""
    result = python(program, check=True)
    assert (
        "the estimators need scikit-learn. In the clone of walklearn: pip install '.[sklearn]'"
        in result.stdout
    )
