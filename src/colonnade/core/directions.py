"""Directions: how a party moves its weights along what an estimator found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from colonnade.core.blocks import FeatureBlock, Rows
from colonnade.core.weights import Weights

Array = NDArray[np.float64]


class Direction(Protocol):
    """Takes the whole step, so that one that needs no vector over the columns makes none."""

    def step(
        self, weights: Weights, block: FeatureBlock, rows: Rows, residual: Array, eta: float, alpha: float
    ) -> None: ...


class Steepest:
    """Along the negative gradient, scattered in place."""

    def step(
        self, weights: Weights, block: FeatureBlock, rows: Rows, residual: Array, eta: float, alpha: float
    ) -> None:
        weights.step(block, rows, residual, eta, alpha)


DIRECTIONS: dict[str, Callable[[], Direction]] = {"steepest": Steepest}
