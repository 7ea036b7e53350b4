"""The model of one party: scores with the intercept, gradients, copies that later steps do not move."""

import numpy as np
import pytest

from colonnade.core.blocks import as_block
from colonnade.core.linear import LinearModel


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("intercept", [False, True])
def test_scores_gradients_and_frozen_copies(classes, intercept):
    rng = np.random.default_rng(0)
    X, tail = rng.standard_normal((9, 4)), () if classes == 1 else (classes,)
    w, slope, slopes = (rng.standard_normal((*size, *tail)) for size in ((4,), (), (9,)))
    model, rows = LinearModel(as_block(X), classes, intercept, penalise=True), np.array([1, 4], np.uint32)
    model.weights.assign(w)
    model.step_intercept(slope, 0.1, 0.5)
    model.step_intercept(slope, 0.1, 0.5)
    b = -0.1 * slope + 0.95 * (-0.1 * slope) if intercept else np.zeros(tail)
    np.testing.assert_allclose(model.intercept, b, atol=1e-15)
    np.testing.assert_allclose(model.product(rows), X[rows] @ w + b, atol=1e-14)
    np.testing.assert_allclose(model.gradient(slopes), X.T @ slopes / 9, atol=1e-14)
    frozen = model.freeze()
    model.weights.step(model.block, rows, slopes[rows], 0.1, 0.5)
    model.step_intercept(slope, 0.1, 0.5)
    np.testing.assert_allclose(model.frozen_product(frozen, rows), X[rows] @ w + b, atol=1e-14)
    model.restore(frozen)
    np.testing.assert_allclose(model.product(rows), X[rows] @ w + b, atol=1e-14)
