"""The cheap form of the weights against the dense recursion, with every estimator; and what a step costs."""

import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from colonnade.core.blocks import as_block
from colonnade.core.directions import Steepest
from colonnade.core.estimators import ESTIMATORS
from colonnade.core.losses import LOSSES
from colonnade.core.sampling import Sampler
from colonnade.core.weights import Weights
from colonnade.errors import ConfigurationError

EVERYTHING = slice(0, 23)


def problem(seed, classes, sparse):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((23, 6)) * (rng.random((23, 6)) < 0.5)
    y = rng.integers(0, classes, 23) if classes > 1 else np.where(rng.random(23) < 0.5, 1.0, -1.0)
    return (
        X,
        y,
        as_block(sp.csr_array(X) if sparse else X),
        LOSSES["multinomial" if classes > 1 else "logistic"],
    )


def batches(rng, steps):
    """Batches with and without duplicates, of one row to more than all."""
    return [rng.integers(0, 23, rng.choice([1, 2, 5, 30])) for _ in range(steps)]


def dense_run(name, X, y, loss, eta, alpha, drawn, w):
    """The papers' recursion in so many words: stored gradients are full vectors."""
    n = len(y)
    stored, snapshot, asked = None, None, 0
    for rows in drawn:
        if (name == "svrg" and (stored is None or asked >= 2 * n)) or (name == "saga" and stored is None):
            snapshot = w.copy()
            stored, asked = loss.slopes(X @ w, y), 0
        slopes = loss.slopes(X[rows] @ w, y[rows])
        gradient = X[rows].T @ slopes / len(rows)
        if name != "sgd":
            old = loss.slopes(X[rows] @ snapshot, y[rows]) if name == "svrg" else stored[rows]
            gradient += X.T @ stored / n - X[rows].T @ old / len(rows)
        w = w - eta * (gradient + alpha * w)
        if name == "saga":
            stored = stored.copy()
            stored[rows] = slopes
        asked += len(rows)
    return w


def run(name, y, block, loss, eta, alpha, drawn, weights, classes):
    estimator = ESTIMATORS[name](len(y), classes)
    for rows in drawn:
        if estimator.sweep_due:
            slopes = loss.slopes(weights.product(block, EVERYTHING), y)
            anchor = np.zeros_like(weights.u)
            block.add_adjoint(EVERYTHING, slopes, anchor, 1 / len(y))
            weights.set_anchor(anchor)
            estimator.swept(slopes)
        slopes = loss.slopes(weights.product(block, rows), y[rows])
        Steepest().step(weights, block, rows, estimator.residual(rows, slopes), eta, alpha)
        estimator.asked(len(rows))
        learnt = estimator.learn(rows, slopes)
        if learnt is not None:
            weights.move_anchor(block, *learnt)
    return estimator


@pytest.mark.parametrize("name", tuple(ESTIMATORS))
@given(
    seed=st.integers(0, 10_000),
    classes=st.sampled_from([1, 3]),
    sparse=st.booleans(),
    eta=st.sampled_from([0.01, 0.3]),
    alpha=st.sampled_from([0.0, 1e-3, 0.5]),
)
@settings(max_examples=40, deadline=None)
def test_runs_equal_the_dense_recursion(name, seed, classes, sparse, eta, alpha):
    X, y, block, loss = problem(seed, classes, sparse)
    rng = np.random.default_rng(seed + 1)
    drawn, weights = batches(rng, 40), Weights(6, classes)
    weights.assign(rng.standard_normal(weights.u.shape))
    expected = dense_run(name, X, y, loss, eta, alpha, drawn, weights.dense())
    estimator = run(name, y, block, loss, eta, alpha, drawn, weights, classes)
    np.testing.assert_allclose(weights.dense(), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weights.product(block, EVERYTHING), X @ expected, rtol=1e-12, atol=1e-12)
    stored = estimator.anchor_slopes()
    if name == "sgd":
        assert (stored, weights.anchor) == (None, None)
    else:
        np.testing.assert_allclose(weights.anchor, X.T @ stored / len(y), atol=1e-13)
        np.testing.assert_allclose(estimator.mean_anchor(), stored.mean(axis=0), atol=1e-13)


def test_a_scale_that_would_underflow_is_folded_back():
    rng = np.random.default_rng(0)
    block, weights = as_block(rng.standard_normal((9, 3))), Weights(3)
    w = rng.standard_normal(3)
    weights.assign(w)
    weights.set_anchor(np.full(3, 0.1))
    for _ in range(2_000):
        weights.step(block, np.array([0]), np.zeros(1), 0.9, 1.0)
        w = 0.1 * w - 0.9 * 0.1
        assert weights.scale >= 1e-6
    np.testing.assert_allclose(weights.dense(), w, rtol=1e-13)


def test_a_lag_that_grows_without_penalty_is_folded_back():
    block, weights = as_block(np.eye(3)), Weights(3)
    weights.set_anchor(np.full(3, 1e-3))
    for _ in range(50):
        weights.step(block, np.array([0]), np.zeros(1), 64_000.0, 0.0)
        assert abs(weights.lag) <= 1e6
    np.testing.assert_allclose(weights.dense(), np.full(3, -50 * 64.0), rtol=1e-13)


@pytest.mark.parametrize("eta", [1.0, 2.0, np.nan])
def test_a_step_that_overshoots_zero_is_refused(eta):
    weights = Weights(3)
    with pytest.raises(ConfigurationError, match="is not below 1: lower the step"):
        weights.step(as_block(np.eye(3)), np.array([0]), np.zeros(1), eta, 1.0)
    assert weights.scale == 1.0


def test_anchors_move_without_the_weights():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((8, 4))
    block, weights = as_block(X), Weights(4)
    weights.move_anchor(block, np.array([1, 2]), np.array([1.0, -1.0]))
    np.testing.assert_allclose(weights.anchor, X[1] - X[2])
    weights.step(block, np.array([3]), np.ones(1), 0.1, 0.5)
    before = weights.dense()
    weights.move_anchor(block, np.array([0, 5]), np.array([0.3, 2.0]))
    np.testing.assert_allclose(weights.dense(), before, atol=1e-15)
    given_anchor = np.ones(4)
    weights.set_anchor(given_anchor)
    given_anchor[:] = 9.0
    np.testing.assert_allclose(weights.dense(), before, atol=1e-15)
    np.testing.assert_array_equal(weights.anchor, np.ones(4))
    weights.assign(np.arange(4.0))
    np.testing.assert_array_equal(weights.dense(), np.arange(4.0))
    assert weights.squared_norm() == 14.0


@pytest.mark.parametrize("anchored", [False, True])
def test_copies_are_frozen(anchored):
    block, weights = as_block(np.eye(3)), Weights(3)
    if anchored:
        weights.set_anchor(np.ones(3))
    weights.step(block, np.array([1]), np.ones(1), 0.1, 0.1)
    frozen, before = weights.copy(), weights.dense()
    np.testing.assert_array_equal(frozen.product(block, slice(0, 3)), weights.product(block, slice(0, 3)))
    weights.step(block, np.array([2]), np.ones(1), 0.1, 0.1)
    weights.move_anchor(block, np.array([0]), np.ones(1))
    np.testing.assert_array_equal(frozen.dense(), before)


@pytest.mark.parametrize("name", tuple(ESTIMATORS))
def test_a_step_touches_the_batch_only_whatever_the_columns(name):
    """The same non-zeros over 1e4 and 1e7 columns: as many entries touched, no array over the columns."""
    rng = np.random.default_rng(0)
    narrow = rng.integers(0, 10_000, 200 * 30)
    touched, states = [], []
    for d in (10_000, 10_000_000):
        X = sp.coo_array((np.ones(6_000), (np.repeat(np.arange(200), 30), narrow * (d // 10_000))), (200, d))
        block, weights = Counting(as_block(X)), Weights(d)
        estimator, sampler = ESTIMATORS[name](200, 1), Sampler(0, "a", 200, 16)
        if name != "sgd":
            weights.set_anchor(np.full(d, 0.01))
            estimator.swept(np.full(200, 0.01))
        take_steps(block, weights, estimator, sampler, 2)
        block.touched = 0
        tracemalloc.start()
        take_steps(block, weights, estimator, sampler, 5)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40_000
        touched.append(block.touched)
        states.append(weights.dense()[:: d // 10_000])
    assert touched[0] == touched[1] <= 5 * 16 * 30 * (1 if name == "sgd" else 5) * 2
    np.testing.assert_array_equal(*states)


def take_steps(block, weights, estimator, sampler, steps):
    for _ in range(steps):
        rows = sampler.draw()
        slopes = weights.product(block, rows) - 1.0
        weights.step(block, rows, estimator.residual(rows, slopes), 0.1, 1e-3)
        learnt = estimator.learn(rows, slopes)
        if learnt is not None:
            weights.move_anchor(block, *learnt)


class Counting:
    """A block that counts the entries which its products read."""

    def __init__(self, block):
        self._block, self.touched = block, 0
        self.rows, self.columns = block.rows, block.columns

    def product(self, rows, w):
        self.touched += self._block.nonzeros(rows)
        return self._block.product(rows, w)

    def add_adjoint(self, rows, r, onto, factor=1.0):
        self.touched += self._block.nonzeros(rows)
        self._block.add_adjoint(rows, r, onto, factor)

    def nonzeros(self, rows):
        return self._block.nonzeros(rows)
