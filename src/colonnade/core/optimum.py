"""The pooled optimum, and how near to it we certainly are: the yardstick of tests and experiments."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from colonnade.core.blocks import PIECE, FeatureBlock, Rows, as_block, split
from colonnade.core.losses import LOSSES, Loss, eliminate_intercept

Array = NDArray[np.float64]

_DIRECT = 1_200
"""Up to so many unknowns the second derivative is formed; beyond, only products with it."""

_MOST_PRODUCTS = 1_000

_ENOUGH = 1e-16
"""Where a step promises less than this part of the objective, it is the last one."""

_MOST_STEPS = 100


class Optimum(NamedTuple):
    """Weights (d,) or (d, c), intercept, the objective there, and how far above its optimum it is at most."""

    weights: Array
    intercept: float | Array
    value: float
    gap: float


def pooled_optimum(
    X: Any,
    labels: NDArray[Any],
    loss: str | Loss,
    alpha: float,
    intercept: bool = False,
    penalise: bool = False,
) -> Optimum:
    """Minimise mean loss + alpha/2 |w|² over all columns. `labels` are encoded by the loss already.

    The gap is |∇_w f(w, b*)|² / (2 alpha), infinite without a penalty.
    """
    block = as_block(X)
    loss = LOSSES[loss] if isinstance(loss, str) else loss
    classes = int(labels.max()) + 1 if loss is LOSSES["multinomial"] else 1
    on_b = alpha if penalise else 0.0
    penalties = np.full(block.columns + intercept, alpha)
    penalties[block.columns :] = on_b
    problem = _Problem(block, labels, loss, classes, penalties)
    w = _newton(problem)
    b: float | Array = 0.0
    if intercept:
        start, w = w[-1], np.ascontiguousarray(w[:-1])
        scores = block.product(slice(0, block.rows), w)
        b = eliminate_intercept(loss, scores, labels, start, on_b)
    alone = _Problem(block, labels, loss, classes, penalties[: block.columns])
    theta = alone.scores(w) + b
    value = alone.value(theta, w) + on_b / 2 * float(np.sum(np.square(b)))
    slope = alone.gradient(theta, w)
    return Optimum(w, b, value, float(np.vdot(slope, slope)) / (2 * alpha) if alpha else np.inf)


class _Problem:
    """f(w) = mean loss + Σ_j penalty_j/2 |w_j|²; one penalty more than columns: there is a column of ones."""

    def __init__(
        self, block: FeatureBlock, labels: NDArray[Any], loss: Loss, classes: int, penalties: Array
    ) -> None:
        self.block, self.labels, self.loss, self.classes = block, labels, loss, classes
        self.shape = penalties.shape if classes == 1 else (len(penalties), classes)
        self._penalties = penalties if classes == 1 else penalties[:, None]
        self._ones = len(penalties) > block.columns
        self._all = slice(0, block.rows)

    def scores(self, w: Array, rows: Rows | None = None) -> Array:
        rows = self._all if rows is None else rows
        if not self._ones:
            return self.block.product(rows, w)
        return cast(Array, self.block.product(rows, w[:-1]) + w[-1])

    def value(self, theta: Array, w: Array) -> float:
        return self.loss.value(theta, self.labels) + float(np.sum(self._penalties * w * w)) / 2

    def gradient(self, theta: Array, w: Array) -> Array:
        return self._gathered(self.loss.slopes(theta, self.labels), w)

    def bend_along(self, theta: Array, p: Array) -> Array:
        """f''(w) p."""
        return self._gathered(self.loss.curvature(theta, self.labels, self.scores(p)), p)

    def bend(self, theta: Array) -> Array:
        """f''(w) as a matrix over the flattened weights."""
        size, c = self.shape[0], self.classes
        unit, out = np.eye(size), np.zeros((c, c, size, size))
        for part, rows in split(self._all, max(1, PIECE // (8 * size))):
            x = self.scores(unit, rows)
            for k, along in enumerate(np.eye(c)):
                direction = np.broadcast_to(along if c > 1 else along[0], theta[part].shape)
                curved = self.loss.curvature(theta[part], self.labels[part], direction).reshape(-1, c)
                for m in range(c):
                    self._add_adjoint(rows, curved[:, m : m + 1] * x, out[m, k])
        matrix = out.transpose(2, 0, 3, 1).reshape(size * c, size * c)
        matrix[np.diag_indices(size * c)] += np.broadcast_to(self._penalties, self.shape).ravel()
        return matrix

    def _gathered(self, per_row: Array, w: Array) -> Array:
        out: Array = self._penalties * w
        self._add_adjoint(self._all, per_row, out)
        return out

    def _add_adjoint(self, rows: Rows, r: Array, onto: Array) -> None:
        """onto += Xᵀr/n."""
        factor = 1.0 / self.block.rows
        self.block.add_adjoint(rows, r, onto[:-1] if self._ones else onto, factor)
        if self._ones:
            onto[-1] += factor * r.sum(axis=0)


def _newton(problem: _Problem) -> Array:
    w = np.zeros(problem.shape)
    theta = problem.scores(w)
    value = problem.value(theta, w)
    for _ in range(_MOST_STEPS):
        slope = problem.gradient(theta, w)
        direction = (_solved if w.size <= _DIRECT else _conjugate)(problem, theta, slope)
        promise = float(np.vdot(slope, direction))
        if not promise > _ENOUGH * max(abs(value), _ENOUGH):
            return w - direction
        length = 1.0
        while True:
            trial = w - length * direction
            theta = problem.scores(trial)
            reached = problem.value(theta, trial)
            if reached <= value - 1e-4 * length * promise + 1e-15 * abs(value):
                break
            length /= 2
        w, value = trial, reached
    return w


def _solved(problem: _Problem, theta: Array, slope: Array) -> Array:
    """f''⁻¹ slope; a trace of damping covers directions without curvature, which have no slope either."""
    bend = problem.bend(theta)
    bend[np.diag_indices(len(bend))] += 1e-13 * np.trace(bend) / len(bend)
    return cast(Array, np.linalg.solve(bend, slope.ravel()).reshape(slope.shape))


def _conjugate(problem: _Problem, theta: Array, slope: Array) -> Array:
    """f''⁻¹ slope by conjugate gradients, the more exactly the flatter the slope."""
    d, r, p = np.zeros_like(slope), slope.copy(), slope.copy()
    squared = float(np.vdot(r, r))
    enough = squared * min(1e-2, squared)
    for _ in range(_MOST_PRODUCTS):
        bent = problem.bend_along(theta, p)
        length = squared / float(np.vdot(p, bent))
        d += length * p
        r -= length * bent
        before, squared = squared, float(np.vdot(r, r))
        if squared <= enough:
            break
        p = r + (squared / before) * p
    return d
