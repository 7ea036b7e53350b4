"""What a party trains: its block, the weights of its columns and, at the coordinator, the intercept."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from colonnade.core.blocks import FeatureBlock
from colonnade.core.weights import Weights

Floats = np.ndarray[Any, np.dtype[np.float64]]
Rows = slice | np.ndarray[Any, np.dtype[np.uint32]]


class Frozen(NamedTuple):
    """Weights as they were at one instant."""

    weights: Floats
    intercept: Any


class LinearModel:
    """Partial scores and steps of one block."""

    def __init__(self, block: FeatureBlock, classes: int, intercept: bool, penalise: bool) -> None:
        self.block = block
        self.weights = Weights(block.columns, classes)
        self.has_intercept = intercept
        self.penalise = penalise
        self.intercept: Any = 0.0 if classes == 1 else np.zeros(classes)

    def product(self, rows: Rows) -> Floats:
        scores = self.weights.product(self.block, rows)
        if self.has_intercept:
            scores += self.intercept
        return scores

    def frozen_product(self, frozen: Frozen, rows: Rows) -> Floats:
        scores = self.block.product(rows, frozen.weights)
        if self.has_intercept:
            scores += frozen.intercept
        return scores

    def gradient(self, slopes: Floats) -> Floats:
        """`Xᵀ slopes / n` over all rows."""
        onto = np.zeros_like(self.weights.u)
        self.block.add_adjoint(slice(0, self.block.rows), slopes, onto, 1.0 / self.block.rows)
        return onto

    def step_intercept(self, slope: Any, eta: float, alpha: float) -> None:
        """The intercept moves like the weight of a column of ones."""
        if self.has_intercept:
            penalty = alpha * self.intercept if self.penalise else 0.0
            self.intercept = self.intercept - eta * (slope + penalty)

    def freeze(self) -> Frozen:
        return Frozen(self.weights.dense(), self.intercept)

    def restore(self, frozen: Frozen) -> None:
        self.weights.assign(frozen.weights)
        self.intercept = frozen.intercept
