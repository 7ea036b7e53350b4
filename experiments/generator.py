"""Tables of the published sets' shape, of any number of rows: sparse with Zipf's columns, or dense.

Row lengths are log-normal (deviation 0.8), columns follow P(j) ∝ 1/(j + 10) without repetition within a row
and are then permuted, one weight in a hundred is not zero, and the margin has deviation 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

CHUNK = 1_000_000
"""Non-zeros drawn at once, about; each chunk of rows from a seed of its own."""


@dataclass(frozen=True)
class Shape:
    rows: int
    columns: int
    mean: float
    """Non-zeros a row."""
    ones: bool = False
    regression: bool = False


SHAPES = {
    "url": Shape(2_396_130, 3_231_961, 116, ones=True),
    "webspam": Shape(350_000, 16_609_143, 3_730),
    "e2006": Shape(19_395, 150_360, 1_240, regression=True),
    "rcv1": Shape(697_641, 47_236, 73),
}


def sparse(
    shape: str | Shape, rows: int | None = None, seed: int = 0, dtype: str = "float64"
) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of that shape and their labels -1 and 1 (or a target)."""
    like = SHAPES[shape] if isinstance(shape, str) else shape
    rows = like.rows if rows is None else rows
    shuffled = np.random.default_rng([seed, 1]).permutation(like.columns).astype(np.int32)
    some = max(1, int(CHUNK / like.mean))
    starts = range(0, rows, some)
    chunks = [_chunk(like, min(some, rows - s), shuffled, [seed, 2, s // some], dtype) for s in starts]
    X = sp.csr_array(sp.vstack(chunks, format="csr")) if len(chunks) > 1 else chunks[0]
    return X, _targets(X, like.regression, np.random.default_rng([seed, 3]))


def _chunk(like: Shape, rows: int, shuffled: np.ndarray, seed: list[int], dtype: str) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    lengths = row_lengths(rng, rows, like.mean, like.columns)
    pointers = np.concatenate([[0], np.cumsum(lengths)])
    chosen = shuffled[distinct_columns(rng, lengths, like.columns)]
    values = np.ones(len(chosen), dtype) if like.ones else np.abs(rng.standard_normal(len(chosen)))
    if not like.ones:
        norms = np.sqrt(np.add.reduceat(values * values, pointers[:-1]))
        values = (values / np.repeat(norms, lengths)).astype(dtype)
    X = sp.csr_array((values, chosen, pointers), shape=(rows, like.columns))
    X.sort_indices()
    return X


def row_lengths(rng: np.random.Generator, rows: int, mean: float, columns: int) -> np.ndarray:
    """Log-normal with that mean and deviation 0.8 of the logarithm, at least 1, at most half the columns."""
    drawn = np.exp(rng.normal(np.log(mean) - 0.8**2 / 2, 0.8, rows))
    return np.clip(np.rint(drawn), 1, columns // 2).astype(np.int64)


def distinct_columns(rng: np.random.Generator, lengths: np.ndarray, columns: int) -> np.ndarray:
    """So many distinct columns for each row, one row after the other; repeats are drawn anew."""
    every = np.arange(len(lengths), dtype=np.int64)
    taken = np.empty(0, np.int64)
    missing = lengths
    while missing.any():
        owner = np.repeat(every, missing)
        keys = np.sort(np.concatenate([taken, owner * columns + zipf(rng, len(owner), columns)]))
        taken = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        missing = lengths - np.bincount(taken // columns, minlength=len(lengths))
    return taken % columns


def zipf(rng: np.random.Generator, count: int, columns: int) -> np.ndarray:
    """Columns with P(j) ∝ log((j + 10.5)/(j + 9.5)), which is 1/(j + 10) to a thousandth, by inversion."""
    drawn = 9.5 * ((columns + 9.5) / 9.5) ** rng.random(count) - 9.5
    return np.minimum(drawn.astype(np.int64), columns - 1)


def _targets(X: sp.csr_array, regression: bool, rng: np.random.Generator) -> np.ndarray:
    weights = np.zeros(X.shape[1])
    some = rng.permutation(len(weights))[: max(1, len(weights) // 100)]
    weights[some] = rng.standard_normal(len(some))
    margin = X @ weights
    margin *= 2 / max(margin.std(), 1e-300)
    if regression:
        return margin + rng.standard_normal(len(margin))
    return np.where(rng.random(len(margin)) < 1 / (1 + np.exp(-margin)), 1.0, -1.0)


def epsilon(rows: int = 400_000, columns: int = 2_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal entries, rows of unit length, labels -1 and 1."""
    rng = np.random.default_rng([seed, 4])
    X = rng.standard_normal((rows, columns))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    margin = X @ rng.standard_normal(columns)
    margin *= 2 / margin.std()
    return X, np.where(rng.random(rows) < 1 / (1 + np.exp(-margin)), 1.0, -1.0)


def year_prediction(rows: int = 515_345, columns: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns with covariance 0.7^|i-j|, a linear target with R² = 0.24."""
    rng = np.random.default_rng([seed, 5])
    gaps = np.abs(np.subtract.outer(np.arange(columns), np.arange(columns)))
    X = rng.standard_normal((rows, columns)) @ np.linalg.cholesky(0.7**gaps).T
    signal = X @ rng.standard_normal(columns)
    return X, signal + rng.standard_normal(rows) * signal.std() * np.sqrt((1 - 0.24) / 0.24)
