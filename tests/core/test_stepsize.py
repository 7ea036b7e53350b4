"""Bounds of blocks against the singular values, the safe step against a run."""

import numpy as np
import pytest
import scipy.sparse as sp

from colonnade.core import stepsize
from colonnade.core.blocks import as_block
from colonnade.core.losses import LOSSES
from colonnade.core.stepsize import EXTENDED, GRID, block_bounds, gram, safe_step


def spread(X):
    return np.linalg.norm(X, 2) ** 2 / len(X)


def test_up_to_256_columns_the_bound_is_exact():
    X = np.random.default_rng(0).standard_normal((300, 20))
    for block in (as_block(X), as_block(sp.csr_array(X))):
        largest, worst = block_bounds(block)
        assert largest == pytest.approx(spread(X), rel=1e-12)
        assert worst == pytest.approx((X**2).sum(axis=1).max(), rel=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.3, 3.0])
def test_beyond_the_bound_is_above_and_near(decay):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 600)) * np.arange(1, 601.0) ** -decay
    for block in (as_block(X), as_block(sp.csr_array(X))):
        assert spread(X) <= block_bounds(block)[0] <= 1.3 * spread(X)


def test_a_block_of_low_rank_ends_the_iteration_early():
    rng = np.random.default_rng(1)
    X = np.outer(rng.standard_normal(50), rng.standard_normal(300))
    assert spread(X) * (1 - 1e-12) <= block_bounds(as_block(X))[0] <= 1.3 * spread(X)


def test_gram_in_parts(monkeypatch):
    monkeypatch.setattr(stepsize, "PIECE", 8 * 4 * 7)
    X = np.random.default_rng(2).standard_normal((30, 4))
    np.testing.assert_allclose(gram(as_block(X)), X.T @ X / 30, atol=1e-13)


def test_the_safe_step_lies_between_one_row_and_all():
    bounds = np.array([[1.0, 5.0], [2.0, 7.0]])
    assert safe_step(bounds, 0.25, 100, 100, 0.1, False) == pytest.approx(1 / (0.25 * 3 + 0.1))
    assert safe_step(bounds, 0.25, 100, 1, 0.1, False) == pytest.approx(1 / (0.25 * 12 + 0.1))
    assert safe_step(bounds, 0.25, 100, 1, 0.1, True) == pytest.approx(1 / (0.25 * 13 + 0.1))
    share, rest = 100 * 9 / (10 * 99), 90 / (10 * 99)
    expected = 1 / (2.0 * (share * 4 + rest * 13) + 0.1)
    assert safe_step(bounds, 2.0, 100, 10, 0.1, True) == pytest.approx(expected)
    assert safe_step([(1.0, 1.0)], 0.25, 1, 1, 0.0, False) == 4.0


@pytest.mark.parametrize("name", ["logistic", "multinomial", "squared"])
def test_full_steps_of_the_safe_length_never_rise(name):
    rng = np.random.default_rng(4)
    X, n = rng.standard_normal((60, 5)) * 3, 60
    y = rng.integers(0, 3, n) if name == "multinomial" else np.where(rng.random(n) < 0.3, 1.0, -1.0)
    parts = [X[:, :2], X[:, 2:]]
    loss, alpha = LOSSES[name], 1e-3
    eta = safe_step([block_bounds(as_block(p)) for p in parts], loss.smoothness, n, n, alpha, False)
    w = rng.standard_normal((5, 3) if name == "multinomial" else 5)
    values = []
    for _ in range(50):
        values.append(loss.value(X @ w, y) + alpha / 2 * (w * w).sum())
        w = w - eta * (X.T @ loss.slopes(X @ w, y) / n + alpha * w)
    assert (np.diff(values) <= 1e-12).all()


def test_grids_fall():
    assert GRID[0] == 0.5
    assert EXTENDED[0] == 64.0
    assert (np.diff(EXTENDED) < 0).all()
