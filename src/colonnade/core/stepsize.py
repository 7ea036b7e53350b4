"""How long a step may be: two bounds of each block, and the safe step from those of all parties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.core.blocks import PIECE, FeatureBlock, split

Array = NDArray[np.float64]

GRID = (5e-1, 1e-1, 5e-2, 1e-2, 5e-3, 1e-3, 5e-4, 1e-4)
"""The steps of the AFSGD-VP papers."""

EXTENDED = (64.0, 32.0, 16.0, 8.0, 4.0, 2.0, 1.0, *GRID)
"""The same grid as far up as a variance-reduced method can make use of."""

_EXACT = 256
"""Up to so many columns the Gram matrix is formed: cheaper than the iteration, and exact."""

_ITERATIONS = 24
_DOUBT = 1e-6


def block_bounds(block: FeatureBlock) -> tuple[float, float]:
    """Upper bounds of λmax(XᵀX)/n, and the largest squared row norm.

    The first is exact up to 256 columns. Beyond, it is the smaller of the trace (always a bound) and Lanczos'
    estimate, raised so that it falls short with probability 1e-6 only, over its random start (Kuczyński and
    Woźniakowski 1992: after k steps λmax exceeds estimate / (1 - ε) with probability at most
    1.648·√d·exp(-(2k - 1)·√ε)).
    """
    norms = block.row_norms()
    trace = float(norms.mean())
    spread = _exact(block) if block.columns <= _EXACT else _lanczos(block)
    return min(spread, trace), float(norms.max())


def safe_step(bounds: Any, smoothness: float, n: int, b: int, alpha: float, intercept: bool) -> float:
    """η = 1/L_b for batches of b among n rows. `bounds`: each party's pair; an intercept is a column of ones.

    L_b = n(b-1)/(b(n-1))·L + (n-b)/(b(n-1))·R + λ: between R (b = 1) and L (all rows).
    """
    total = np.asarray(bounds, np.float64).reshape(-1, 2).sum(axis=0) + float(intercept)
    mean, worst = (smoothness * float(bound) for bound in total)
    if b >= n:
        return 1.0 / (mean + alpha)
    share = n * (b - 1) / (b * (n - 1))
    rest = (n - b) / (b * (n - 1))
    return 1.0 / (share * mean + rest * worst + alpha)


def gram(block: FeatureBlock) -> Array:
    """XᵀX/n, in parts whose dense rows stay small."""
    d, out = block.columns, np.zeros((block.columns, block.columns))
    unit = np.eye(d)
    for _, rows in split(slice(0, block.rows), max(1, PIECE // (8 * d))):
        block.add_adjoint(rows, block.product(rows, unit), out, 1.0 / block.rows)
    return out


def _exact(block: FeatureBlock) -> float:
    return float(np.linalg.eigvalsh(gram(block))[-1])


def _lanczos(block: FeatureBlock) -> float:
    """An upper bound of λmax(XᵀX)/n that holds with probability 1 - 1e-6 over the start."""
    everything = slice(0, block.rows)
    v = np.random.default_rng(0).standard_normal(block.columns)
    v /= np.linalg.norm(v)
    before, beta = np.zeros_like(v), 0.0
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(_ITERATIONS):
        following = -beta * before
        block.add_adjoint(everything, block.product(everything, v), following, 1.0 / block.rows)
        diagonal.append(float(v @ following))
        following -= diagonal[-1] * v
        beta = float(np.linalg.norm(following))
        if beta <= 1e-12 * diagonal[0]:
            break
        beside.append(beta)
        before, v = v, following / beta
    k = len(diagonal)
    tridiagonal = np.diag(diagonal) + np.diag(beside[: k - 1], 1) + np.diag(beside[: k - 1], -1)
    missed = (math.log(1.648 * math.sqrt(block.columns) / _DOUBT) / (2 * _ITERATIONS - 1)) ** 2
    return float(np.linalg.eigvalsh(tridiagonal)[-1]) / (1.0 - missed)
