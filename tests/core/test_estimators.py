"""What estimators store, when they want a sweep, and that a restored one goes on alike. Runs: test_weights.py."""

import numpy as np
import pytest

from colonnade.core.estimators import ESTIMATORS


def test_when_a_sweep_is_due():
    sgd, svrg, saga = (ESTIMATORS[name](10, 1) for name in ("sgd", "svrg", "saga"))
    assert [e.sweep_due for e in (sgd, svrg, saga)] == [False, True, True]
    for estimator in (sgd, svrg, saga):
        estimator.swept(np.zeros(10))
        estimator.asked(19)
        assert not estimator.sweep_due
        estimator.asked(1)
    assert [e.sweep_due for e in (sgd, svrg, saga)] == [False, True, False]
    svrg.swept(np.zeros(10))
    assert not svrg.sweep_due


@pytest.mark.parametrize("classes", [1, 3])
def test_unbiased(classes):
    """Over all rows the residuals and the anchor add up to the mean slope."""
    shape = (7,) if classes == 1 else (7, classes)
    rng = np.random.default_rng(0)
    stored, slopes, rows = rng.standard_normal(shape), rng.standard_normal(shape), np.arange(7)
    for name in ESTIMATORS:
        estimator = ESTIMATORS[name](7, classes)
        estimator.swept(stored)
        mean = estimator.residual(rows, slopes).mean(axis=0) + estimator.mean_anchor()
        np.testing.assert_allclose(mean, slopes.mean(axis=0), atol=1e-15)


def test_saga_learns_each_distinct_row_once():
    saga = ESTIMATORS["saga"](5, 1)
    saga.swept(np.ones(5))
    rows, slopes = np.array([3, 1, 3], np.uint32), np.array([2.0, 4.0, 2.0])
    distinct, change = saga.learn(rows, slopes)
    np.testing.assert_array_equal(distinct, [1, 3])
    np.testing.assert_allclose(change, [3 / 5, 1 / 5])
    np.testing.assert_array_equal(saga.anchor_slopes(), [1, 4, 1, 2, 1])
    assert saga.mean_anchor() == pytest.approx(9 / 5)
    np.testing.assert_array_equal(saga.residual(rows, slopes), [0, 0, 0])


def test_what_was_swept_is_copied():
    slopes = np.ones(4)
    for name in ("svrg", "saga"):
        estimator = ESTIMATORS[name](4, 1)
        estimator.swept(slopes)
        slopes[:] = 5.0
        assert estimator.mean_anchor() == 1.0
        assert estimator.anchor_slopes().tolist() == [1.0] * 4
        slopes[:] = 1.0


@pytest.mark.parametrize("name", tuple(ESTIMATORS))
@pytest.mark.parametrize("classes", [1, 2])
def test_a_restored_estimator_goes_on_alike(name, classes):
    rng = np.random.default_rng(0)
    shape = (6,) if classes == 1 else (6, classes)
    one, other = ESTIMATORS[name](6, classes), ESTIMATORS[name](6, classes)
    one.swept(rng.standard_normal(shape))
    one.asked(11)
    one.learn(np.array([2, 4]), rng.standard_normal(shape)[:2])
    state = one.state()
    other.restore(state)
    rows, slopes = np.array([0, 2]), rng.standard_normal(shape)[:2]
    for _ in range(2):
        np.testing.assert_array_equal(one.residual(rows, slopes), other.residual(rows, slopes))
        np.testing.assert_array_equal(one.mean_anchor(), other.mean_anchor())
        for estimator in (one, other):
            estimator.learn(rows, slopes)
            estimator.asked(1)
        assert one.sweep_due == other.sweep_due
    assert all(isinstance(value, np.ndarray) for value in state.values())
