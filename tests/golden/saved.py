"""Reading, writing and comparing saved results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent
TOLERANCE = 1e-10
MAX_LISTED = 64  # longer arrays of whole numbers are saved as a digest, longer models thinned

Floats = NDArray[np.float64]


@dataclass
class Result:
    """Numbers of one run.

    exact: plain JSON values that must be equal. close: arrays that may differ by rounding.
    """

    exact: dict[str, Any] = field(default_factory=dict)
    close: dict[str, Floats] = field(default_factory=dict)


Results = dict[str, Result]


def write(results: Results, folder: Path = FOLDER) -> None:
    """Save results as one line of JSON for each case, and all other numbers in one array."""
    lines, arrays, offset = [], [], 0
    for name, result in sorted(results.items()):
        places = {}
        for quantity, array in result.close.items():
            flat = np.asarray(array, dtype=np.float64)
            places[quantity] = [offset, list(flat.shape)]
            arrays.append(flat.ravel())
            offset += flat.size
        lines.append(f"{json.dumps(name)}: {json.dumps([result.exact, places])}")
    (folder / "saved.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    np.save(folder / "saved.npy", np.concatenate(arrays) if arrays else np.zeros(0))


def read(folder: Path = FOLDER) -> Results:
    """Read saved results."""
    numbers = np.load(folder / "saved.npy", allow_pickle=False)
    results = {}
    for name, (exact, places) in json.loads((folder / "saved.json").read_text()).items():
        close = {
            quantity: numbers[offset : offset + int(np.prod(shape))].reshape(shape)
            for quantity, (offset, shape) in places.items()
        }
        results[name] = Result(exact, close)
    return results


def differences(saved: Result, now: Result, tolerance: float = TOLERANCE) -> Iterator[str]:
    """Yield one line for each quantity that differs, with the place of the first difference."""
    exact = json.loads(json.dumps(now.exact))  # tuples become lists, as in the file
    for quantity in _names(saved.exact, exact):
        if quantity not in exact or quantity not in saved.exact:
            yield f"{quantity}: {'new' if quantity in exact else 'missing'}"
        elif saved.exact[quantity] != exact[quantity]:
            yield f"{quantity}: {_first_unequal(saved.exact[quantity], exact[quantity])}"
    for quantity in _names(saved.close, now.close):
        if quantity not in now.close or quantity not in saved.close:
            yield f"{quantity}: {'new' if quantity in now.close else 'missing'}"
        elif line := _first_distant(saved.close[quantity], now.close[quantity], tolerance):
            yield f"{quantity}: {line}"


def _names(*parts: Mapping[str, Any]) -> dict[str, None]:
    return dict.fromkeys(name for part in parts for name in part)


def _first_unequal(saved: Any, now: Any, place: str = "") -> str:
    if isinstance(saved, list) and isinstance(now, list):
        if len(saved) != len(now):
            return f"{place}length {len(now)}, saved {len(saved)}"
        for at, (one, other) in enumerate(zip(saved, now, strict=True)):
            if one != other:
                return _first_unequal(one, other, f"{place}[{at}]")
    return f"{place}{': ' if place else ''}{now!r}, saved {saved!r}"


def _first_distant(saved: Floats, now: Floats, tolerance: float) -> str:
    """Describe the first difference above the tolerance; empty if there is none.

    The tolerance is relative to the largest finite number of the saved array.
    """
    now = np.asarray(now, dtype=np.float64)
    if saved.shape != now.shape:
        return f"shape {now.shape}, saved {saved.shape}"
    scale = np.max(np.abs(saved), where=np.isfinite(saved), initial=0.0)
    distant = ~np.isclose(now, saved, rtol=0.0, atol=tolerance * scale, equal_nan=True)
    if not distant.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(distant)[0])
    error = np.max(np.abs(now - saved)[distant]) / scale if scale else np.inf
    numbers = f"{float(now[at])!r}, saved {float(saved[at])!r}"
    return f"{list(at)}: {numbers}; largest relative error {error:.1e}"
