"""Declared arrays keep their shape, type and bytes; errors about capabilities carry fields."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import walklearn as wl
from walklearn.arrays import ArraySpec, conform, pack, unpack, zeros
from walklearn.errors import CAPABILITIES, check_needs

SPECS = (
    ArraySpec("model", (2, 3)), ArraySpec("mean", (0,), "<f4"), ArraySpec("count", (), "<i8"),
    ArraySpec("bits", (5,), "|u1"), ArraySpec("found", (1,), "|b1"),
)  # fmt: skip


def filled() -> dict[str, Any]:
    return zeros(SPECS) | {"model": np.arange(6.0).reshape(2, 3), "count": np.array(-3)}


def test_bytes_restore_the_arrays() -> None:
    content = pack(SPECS, filled())
    assert len(content) == sum(spec.nbytes for spec in SPECS) == 48 + 8 + 5 + 1
    restored = unpack(SPECS, content)
    assert list(restored) == [spec.name for spec in SPECS]
    for spec in SPECS:
        array = restored[spec.name]
        assert (array.shape, array.dtype.str) == (spec.shape, spec.dtype)
        np.testing.assert_array_equal(array, filled()[spec.name])
    with pytest.raises(ValueError, match=r"62 bytes.*got 61"):
        unpack(SPECS, content[:-1])
    assert unpack((), b"") == {}


def test_arrays_that_conform_are_not_copied() -> None:
    arrays = filled()
    same = conform(SPECS, arrays, "Saga()")
    assert all(same[name] is array for name, array in arrays.items())
    # A view in the other byte order, a plain number and integers are converted.
    arrays |= {"model": arrays["model"].astype(">f8"), "count": 7, "mean": np.zeros(0, int)}
    other = conform(SPECS, arrays, "Saga()")
    assert [other[spec.name].dtype.str for spec in SPECS] == [spec.dtype for spec in SPECS]
    np.testing.assert_array_equal(other["model"], same["model"])
    assert other["count"] == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": None}, r"Saga\(\): array 'model' is missing: expected <f8 of shape \(2, 3\)"),
        (
            {"model": np.zeros(6)},
            r"'model' has <f8 of shape \(6,\), expected <f8 of shape \(2, 3\)",
        ),
        ({"count": 2.5}, r"'count' has <f8 of shape \(\), expected <i8"),
        ({"model": np.zeros((2, 3), complex)}, "'model' has <c16"),
        ({"extra": 1}, "arrays 'extra' are not declared"),
    ],
)
def test_other_arrays_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        conform(SPECS, filled() | change, "Saga()")


class Part:
    needs = {"row_gradients": "Use no protection.", "smoothness": "Use Uniform()."}  # noqa: RUF012

    def __str__(self) -> str:
        return "Part()"


class HasRows:
    def row_gradients(self) -> None: ...


def test_a_missing_capability_is_named_with_a_remedy() -> None:
    source = HasRows()
    with pytest.raises(wl.CapabilityError) as caught:
        check_needs(part := Part(), source)
    error = caught.value
    assert (error.capability, error.needed_by, error.remedy) == (
        "smoothness", part, "Use Uniform()."
    )  # fmt: skip
    assert error.missing_in is source
    assert isinstance(error, TypeError)
    assert str(error).startswith(f"Part() needs {CAPABILITIES['smoothness']}. Missing in ")
    source.smoothness = lambda node: 1.0  # type: ignore[attr-defined]
    check_needs(part, source)


def test_the_error_survives_a_process() -> None:
    error = wl.CapabilityError("linear_rows", "Saga()", "Centre()", "Use Sgd().")
    again = pickle.loads(pickle.dumps(error))
    assert vars(again) == vars(error)
    assert str(again) == str(error)


@pytest.mark.parametrize("dtype", ["O", "<U3", "<c16"])
def test_only_numbers_are_declared(dtype: str) -> None:
    with pytest.raises(ValueError, match="'heap'"):
        wl.ArraySpec("heap", (), dtype)


@pytest.mark.parametrize(
    ("declared", "error"),
    [
        ((wl.ArraySpec("a"), wl.ArraySpec("a", (2,))), ValueError),
        (wl.ArraySpec("a"), TypeError),  # a comma was forgotten
        (("a",), TypeError),
    ],
)
def test_declarations_that_make_no_sense_are_refused(declared: Any, error: type[Exception]) -> None:
    class Odd(wl.walks.Uniform):
        def token_arrays(self, nodes: int) -> Any:
            return declared

    problem = wl.Problem(np.eye(3), np.ones(3), penalty=1.0)
    with pytest.raises(error, match=r"Odd\(\) declares"):
        wl.simulate(
            problem,
            wl.graphs.ring(3),
            Odd(),
            steps=2,
            step_size=wl.PowerStep(0.1),
            engine="reference",
        )


@pytest.mark.parametrize(("dtype", "value"), [("|u1", 300), ("<u8", -1), ("|b1", 2)])
def test_integers_out_of_range_are_refused(dtype: str, value: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        conform((ArraySpec("count", (), dtype),), {"count": value}, "Counter()")
