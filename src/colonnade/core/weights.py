"""A party's weights w_ℓ in a form in which a step costs the batch's non-zeros only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colonnade.core.blocks import FeatureBlock, Rows, aligned, count
from colonnade.errors import ConfigurationError

Array = NDArray[np.float64]

_SMALL = 1e-6
"""Below this scale, or with a lag above its inverse, w is folded back into u before digits are lost."""


class Weights:
    """w = scale·u + lag·anchor: decay and anchor are paid by two numbers, the batch by a scatter into u.

    The anchor is the mean gradient of stored slopes (Xᵀs⁰/n of SVRG, Xᵀα/n of SAGA); SGD has none.
    """

    def __init__(self, columns: int, classes: int = 1) -> None:
        self.u: Array = aligned((columns,) if classes == 1 else (columns, classes))
        self.u[...] = 0.0
        self.anchor: Array | None = None
        self.scale, self.lag = 1.0, 0.0

    def dense(self) -> Array:
        """w as a new array."""
        w: Array = self.scale * self.u
        if self.anchor is not None and self.lag:
            w += self.lag * self.anchor
        return w

    def assign(self, w: Array) -> None:
        """w ← the values given; the anchor stays."""
        self.u[...] = w
        self.scale, self.lag = 1.0, 0.0

    def copy(self) -> Weights:
        """The same weights, which later steps do not move."""
        other = Weights.__new__(Weights)
        other.u = aligned(self.u.shape)
        other.u[...] = self.u
        other.anchor = None if self.anchor is None else self.anchor.copy()
        other.scale, other.lag = self.scale, self.lag
        return other

    def squared_norm(self) -> float:
        w = self.dense().ravel()
        return float(w @ w)

    def product(self, block: FeatureBlock, rows: Rows) -> Array:
        """X_rows w, by way of w where that is less work than two products."""
        if self.anchor is None or not self.lag:
            return self.scale * block.product(rows, self.u)
        if block.nonzeros(rows) > 2 * block.columns:
            return block.product(rows, self.dense())
        return self.scale * block.product(rows, self.u) + self.lag * block.product(rows, self.anchor)

    def step(self, block: FeatureBlock, rows: Rows, residual: Array, eta: float, alpha: float) -> None:
        """w ← (1 - ηλ)w - η(X_rowsᵀ residual / b + anchor)."""
        decay = 1.0 - eta * alpha
        if not decay > 0.0:
            raise ConfigurationError(f"step * alpha = {eta * alpha:g} is not below 1: lower the step")
        self.scale *= decay
        if self.anchor is not None:
            self.lag = decay * self.lag - eta
        block.add_adjoint(rows, residual, self.u, -eta / (self.scale * count(rows)))
        if self.scale < _SMALL or abs(self.lag) > 1.0 / _SMALL:
            self.assign(self.dense())

    def move_anchor(self, block: FeatureBlock, rows: Rows, change: Array) -> None:
        """anchor ← anchor + X_rowsᵀ change, while w stays."""
        if self.anchor is None:
            self.anchor = np.zeros_like(self.u)
        block.add_adjoint(rows, change, self.anchor)
        if self.lag:
            block.add_adjoint(rows, change, self.u, -self.lag / self.scale)

    def set_anchor(self, anchor: Array) -> None:
        """anchor ← a copy of the values given, while w stays."""
        self.assign(self.dense())
        self.anchor = np.array(anchor, np.float64)
