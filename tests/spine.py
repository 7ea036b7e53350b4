"""Small problems that the tests of the whole party share: blocks of aligned rows, labels, and their optimum."""

from functools import cache
from typing import NamedTuple

import numpy as np

from colonnade.core.losses import LOSSES
from colonnade.core.optimum import pooled_optimum

LOSS_NAMES = ("logistic", "multinomial", "squared")


class Problem(NamedTuple):
    loss: str
    X: np.ndarray
    y: np.ndarray

    def blocks(self, q, dtype=np.float64, wrap=np.ascontiguousarray):
        """The columns dealt to q parties in order."""
        return [wrap(part.astype(dtype)) for part in np.array_split(self.X, q, axis=1)]

    def encoded(self):
        return LOSSES[self.loss].encode(self.y)[0]

    def optimum(self, alpha, intercept=False, penalise=False):
        return pooled_optimum(self.X, self.encoded(), self.loss, alpha, intercept, penalise)

    def objective(self, w, b, alpha, penalise=False):
        """Mean loss + alpha/2 |w|², written out."""
        scores = self.X.astype(np.float64) @ w + b
        squares = np.sum(np.square(w)) + (np.sum(np.square(b)) if penalise else 0.0)
        return LOSSES[self.loss].value(scores, self.encoded()) + alpha / 2 * squares


@cache
def problem(loss="logistic", n=120, d=16, seed=0):
    """Rows of mean squared norm 1, labels that a linear model explains in part."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    classes = 3 if loss == "multinomial" else 1
    scores = 3 * X @ rng.standard_normal((d, classes)) + 0.5 * rng.standard_normal((n, classes)) + 0.3
    if loss == "logistic":
        return Problem(loss, X, np.where(scores[:, 0] > 0, 1, -1))
    return Problem(loss, X, scores.argmax(axis=1) if loss == "multinomial" else scores[:, 0])


def joined(report):
    """The weights of all parties, one after the other."""
    return np.concatenate(list(report.weights.values()))
