"""`python -m tests.golden` names what differs from the saved results, and only that."""

from __future__ import annotations

import pytest

from tests.golden import saved
from tests.golden.__main__ import compare
from tests.golden.cases import CASES, Case
from tests.golden.saved import Result, Results

NAMES = ("method, uniform", "network, saga")
TINY = {name: CASES[name] for name in NAMES}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results of two small cases, through a file."""
    folder = tmp_path_factory.mktemp("golden")
    saved.write({name: case.run(case.engines[0]) for name, case in TINY.items()}, folder)
    return saved.read(folder)


def test_the_same_code_gives_the_saved_results(results: Results) -> None:
    assert compare(TINY, results) == []


def test_each_changed_quantity_is_named_with_its_place(results: Results) -> None:
    uniform, network = (results[name] for name in NAMES)
    model = uniform.close["models"][1, 2]
    messages, tokens = uniform.exact["messages"], network.exact["tokens on the wire"]
    uniform.close["models"][1, 2] = model * (1.0 + 1e-8)
    uniform.close["averages"][0, 0] *= 1.0 + 1e-13  # rounding
    messages[2][3] += 1
    token, tokens[7] = tokens[7], "00000000"
    lines = compare(TINY, results)
    expected = [
        f"{NAMES[0]} ({engine}): {quantity}"
        for engine in ("reference", "compiled")
        for quantity in (f"messages: [2][3]: {messages[2][3] - 1}, ", "models: [1, 2]: ")
    ]
    expected.append(f"{NAMES[1]}: tokens on the wire: [7]: '{token}', saved '00000000'")
    for line, beginning in zip(lines, expected, strict=True):
        assert line.startswith(beginning)
    messages[2][3] -= 1
    tokens[7] = token
    uniform.close["models"][1, 2] = model
    assert compare(TINY, results) == []


def test_what_is_missing_or_fails_is_a_difference() -> None:
    def fail(_: str) -> Result:
        raise ArithmeticError("overflow")

    cases = {"broken": Case(fail, ("",)), "new": Case(lambda _: Result({"path": [1]}), ("",))}
    expected = {"broken": Result()}
    lines = compare(cases, expected)
    assert lines == ["broken: failed: ArithmeticError: overflow", "new: not saved"]
    found = saved.differences(Result({"path": [1, 2], "visits": 3}), Result({"path": [1]}))
    assert list(found) == ["path: length 1, saved 2", "visits: missing"]


def test_the_files_are_small_and_hold_every_case() -> None:
    files = [saved.FOLDER / name for name in ("saved.json", "saved.npy")]
    assert sum(file.stat().st_size for file in files) < 1_000_000
    assert saved.read().keys() == CASES.keys()
