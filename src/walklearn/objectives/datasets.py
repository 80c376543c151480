"""Data for experiments: the paper's two Gaussians, heterogeneous rows, real data, splits."""

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
    """Draw the paper's data: a fair label y = ±1, then a row x ~ N(y μ, variance · I).

    Parameters
    ----------
    rows, dimension
        The numbers of rows and features.
    variance
        Variance of each feature within a class.
    mean
        The vector μ, or one number for all its entries; the paper does not state μ.
    seed
        Source of random numbers: an integer, a SeedSequence, a Generator or None.

    Returns
    -------
    tuple[Rows, Rows]
        X and y.

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
    """Draw regression rows of very different size, for which importance sampling can be better.

    x = e^(spread · Z) · N(0, I) with one log-normal scale per row, y = x·w + noise · N(0, 1)
    with w ~ N(0, I). With `noise=0` one model fits every row exactly (interpolation).

    Parameters
    ----------
    rows, dimension
        The numbers of rows and features.
    spread
        Standard deviation of the logarithm of a row's scale.
    noise
        Standard deviation of the noise on a target.
    seed
        Source of random numbers: an integer, a SeedSequence, a Generator or None.

    Returns
    -------
    tuple[Rows, Rows]
        X and y.

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
    """Return 569 tumours with 30 standardised features, malignant −1 or benign +1.

    This, `digits` and `diabetes` are part of scikit-learn, so nothing is downloaded.

    Returns
    -------
    tuple[Rows, Rows]
        X and y.

    Examples
    --------
    >>> breast_cancer()[0].shape
    (569, 30)
    """
    X, y = _bundled("load_breast_cancer")
    return _standardised(X), 2.0 * y - 1.0


def digits() -> tuple[Rows, Rows]:
    """Return 1797 images of 8 × 8 standardised pixels (empty ones stay 0) with labels 0 to 9.

    Returns
    -------
    tuple[Rows, Rows]
        X and y.

    Examples
    --------
    >>> digits()[0].shape
    (1797, 64)
    """
    X, y = _bundled("load_digits")
    return _standardised(X), y


def diabetes() -> tuple[Rows, Rows]:
    """Return 442 patients with 10 features and the progression of a year, all standardised.

    Returns
    -------
    tuple[Rows, Rows]
        X and y.

    Examples
    --------
    >>> diabetes()[0].shape
    (442, 10)
    """
    X, y = _bundled("load_diabetes")
    return _standardised(X), _standardised(y)


def split_evenly(rows: int, nodes: int, seed: Seed = None) -> NDArray[np.int64]:
    """Split rows at random, so that the sizes of nodes differ by at most one.

    Parameters
    ----------
    rows, nodes
        The numbers of rows and nodes.
    seed
        Source of random numbers: an integer, a SeedSequence, a Generator or None.

    Returns
    -------
    NDArray[np.int64]
        The node of each row, for `Problem(node_of_row=)`.

    Examples
    --------
    >>> np.bincount(split_evenly(10, 3, seed=1)).tolist()
    [4, 3, 3]
    """
    _check_split(rows, nodes)
    return np.random.default_rng(seed).permutation(np.arange(rows) % nodes)


def split_by_similarity(
    X: ArrayLike, nodes: int, targets: ArrayLike | None = None
) -> NDArray[np.int64]:
    """Split rows so that similar rows are together and nodes differ from each other.

    Rows are sorted by target (if given), then along their first principal direction, and cut into
    runs of even length.

    Parameters
    ----------
    X
        The rows, shape (M, d).
    nodes
        The number of nodes.
    targets
        The targets, if rows with equal targets should be together first.

    Returns
    -------
    NDArray[np.int64]
        The node of each row, for `Problem(node_of_row=)`.

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
    """Scale every column to mean 0 and variance 1; a constant column becomes 0."""
    centred = values - values.mean(axis=0)
    deviation = centred.std(axis=0)
    return np.asarray(centred / np.where(deviation > 0, deviation, 1.0))


def _check_split(rows: int, nodes: int) -> None:
    if not 1 <= nodes <= rows:
        raise ValueError(
            f"cannot give each of {nodes} nodes a row: there are {rows} rows. "
            f"Ask for 1 to {rows} nodes."
        )
