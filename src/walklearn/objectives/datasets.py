"""Data to study walks on: the paper's two Gaussians, heterogeneous rows, real data, splits.

>>> X, y = two_gaussians(100, dimension=10, variance=10.0, seed=1)
>>> X.shape, sorted(set(y.tolist()))
((100, 10), [-1.0, 1.0])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from walklearn.checks import check_number, check_whole
from walklearn.extras import extra

Rows = NDArray[np.float64]
Seed = int | np.random.SeedSequence | np.random.Generator | None


def two_gaussians(
    rows: int,
    dimension: int = 10,
    variance: float = 1.0,
    mean: ArrayLike = 1.0,
    seed: Seed = None,
) -> tuple[Rows, Rows]:
    """The paper's data: a fair label y = ±1, then a row x ~ N(y μ, variance · I).

    Parameters
    ----------
    rows
        How many rows to draw.
    dimension
        How many features a row has.
    variance
        The variance of each feature within a class.
    mean
        The vector μ, or one number for all its entries; the paper leaves μ open.
    seed
        A number, a NumPy seed sequence or a generator; None draws one from the operating
        system.

    Returns
    -------
    tuple[Rows, Rows]
        The rows X and the labels y, which are −1 or +1.

    Examples
    --------
    >>> X, y = two_gaussians(100, dimension=3, variance=10.0, seed=1)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 3), [-1.0, 1.0])
    """
    check_whole("rows", rows)
    check_whole("dimension", dimension)
    check_number("variance", variance, minimum=0.0)
    generator = np.random.default_rng(seed)
    y = generator.choice([-1.0, 1.0], size=rows)
    centre = np.broadcast_to(np.asarray(mean, dtype=float), (dimension,))
    X = generator.standard_normal((rows, dimension))
    X *= np.sqrt(variance)
    X += y[:, None] * centre
    return X, y


def heterogeneous_rows(
    rows: int,
    dimension: int = 10,
    spread: float = 1.0,
    noise: float = 0.0,
    seed: Seed = None,
) -> tuple[Rows, Rows]:
    """Regression rows of very different size, where importance sampling can pay.

    x = e^(spread · Z) · N(0, I) with one log-normal scale per row, y = x·w + noise · N(0, 1)
    with w ~ N(0, I). With `noise=0` one model fits every row exactly (interpolation).

    Parameters
    ----------
    rows
        How many rows to draw.
    dimension
        How many features a row has.
    spread
        The standard deviation of the logarithm of a row's scale.
    noise
        The standard deviation of the noise on a target.
    seed
        A number, a NumPy seed sequence or a generator; None draws one from the operating
        system.

    Returns
    -------
    tuple[Rows, Rows]
        The rows X and the targets y.

    Examples
    --------
    >>> X, y = heterogeneous_rows(100, dimension=3, spread=2.0, seed=1)
    >>> X.shape, y.shape
    ((100, 3), (100,))
    """
    check_whole("rows", rows)
    check_whole("dimension", dimension)
    check_number("spread", spread, minimum=0.0)
    check_number("noise", noise, minimum=0.0)
    generator = np.random.default_rng(seed)
    scale = np.exp(spread * generator.standard_normal(rows))
    X = scale[:, None] * generator.standard_normal((rows, dimension))
    y = X @ generator.standard_normal(dimension) + noise * generator.standard_normal(rows)
    return X, y


def breast_cancer() -> tuple[Rows, Rows]:
    """569 tumours with 30 features, malignant −1 or benign +1; features standardised.

    This, `digits` and `diabetes` come with scikit-learn, so nothing is downloaded.

    Returns
    -------
    tuple[Rows, Rows]
        The rows X and the targets y.

    Examples
    --------
    >>> X, y = breast_cancer()
    >>> X.shape
    (569, 30)
    """
    X, y = _bundled("load_breast_cancer")
    return _standardised(X), 2.0 * y - 1.0


def digits() -> tuple[Rows, Rows]:
    """1797 images of 8 × 8 pixels, labels 0 to 9; features standardised (empty pixels stay 0).

    Returns
    -------
    tuple[Rows, Rows]
        The rows X and the targets y.

    Examples
    --------
    >>> X, y = digits()
    >>> X.shape
    (1797, 64)
    """
    X, y = _bundled("load_digits")
    return _standardised(X), y


def diabetes() -> tuple[Rows, Rows]:
    """442 patients with 10 features and the course of a year; features and target standardised.

    Returns
    -------
    tuple[Rows, Rows]
        The rows X and the targets y.

    Examples
    --------
    >>> X, y = diabetes()
    >>> X.shape
    (442, 10)
    """
    X, y = _bundled("load_diabetes")
    return _standardised(X), _standardised(y)


def split_evenly(rows: int, nodes: int, seed: Seed = None) -> NDArray[np.int64]:
    """Split rows at random, so that the sizes of nodes differ by at most one.

    Parameters
    ----------
    rows
        How many rows there are.
    nodes
        How many nodes share them.
    seed
        A number, a NumPy seed sequence or a generator; None draws one from the operating
        system.

    Returns
    -------
    NDArray[np.int64]
        The node of each row, to be given to `Problem` as `node_of_row`.

    Examples
    --------
    >>> import numpy as np
    >>> np.bincount(split_evenly(10, 3, seed=1)).tolist()
    [4, 3, 3]
    """
    _check_split(rows, nodes)
    return np.random.default_rng(seed).permutation(np.arange(rows) % nodes)


def split_by_similarity(
    X: ArrayLike, nodes: int, targets: ArrayLike | None = None
) -> NDArray[np.int64]:
    """Split rows so that like rows sit together: nodes then differ from each other.

    Rows are sorted by target (if given), then along their first principal direction, and cut into
    runs of even length.

    Parameters
    ----------
    X
        The rows, shape (M, d).
    nodes
        How many nodes share them.
    targets
        The targets, if rows with the same target should sit together first.

    Returns
    -------
    NDArray[np.int64]
        The node of each row, to be given to `Problem` as `node_of_row`.

    Examples
    --------
    >>> split_by_similarity([[3.0], [1.0], [4.0], [2.0]], nodes=2, targets=[1, -1, 1, -1]).tolist()
    [1, 0, 1, 0]
    """
    data = np.asarray(X, dtype=float)
    _check_split(len(data), nodes)
    centred = data - data.mean(axis=0)
    position = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    keys = (position,) if targets is None else (position, np.asarray(targets))
    node_of_row = np.empty(len(data), dtype=np.int64)
    node_of_row[np.lexsort(keys)] = np.arange(len(data)) * nodes // len(data)
    return node_of_row


def _bundled(loader: str) -> tuple[Rows, Rows]:
    with extra("sklearn", "this data comes with"):
        from sklearn import datasets  # slow to import
    X, y = getattr(datasets, loader)(return_X_y=True)
    return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)


def _standardised(values: Rows) -> Rows:
    """Mean 0 and variance 1 in every column; 0 in a column that never changes."""
    centred = values - values.mean(axis=0)
    deviation = centred.std(axis=0)
    return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))


def _check_split(rows: int, nodes: int) -> None:
    if not 1 <= nodes <= rows:
        raise ValueError(
            f"cannot give each of {nodes} nodes a row: there are {rows} rows. "
            f"Ask for 1 to {rows} nodes."
        )
