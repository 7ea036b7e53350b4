"""The pooled optimum against scikit-learn and closed forms, formed and product-only, dense and sparse."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge

from colonnade.core import optimum
from colonnade.core.losses import LOSSES
from colonnade.core.optimum import pooled_optimum

N, D = 200, 8


@pytest.fixture(params=["formed", "products only"])
def way(request, monkeypatch):
    if request.param == "products only":
        monkeypatch.setattr(optimum, "_DIRECT", 0)
    return request.param


def data(name, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * np.linspace(0.3, 4, D) + 0.5
    w = rng.standard_normal((D, 3))
    if name == "multinomial":
        return X, np.argmax(X @ w + 3 * rng.gumbel(size=(N, 3)), axis=1)
    if name == "squared":
        return X, X @ w[:, 0] + rng.standard_normal(N) + 2
    return X, np.where(X @ w[:, 0] + 3 * rng.standard_normal(N) > 1, 1.0, -1.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_logistic_equals_scikit_learn(way, sparse, intercept):
    X, y = data("logistic")
    w, b, value, gap = pooled_optimum(sp.csr_array(X) if sparse else X, y, "logistic", 1e-3, intercept)
    model = LogisticRegression(C=1 / (N * 1e-3), fit_intercept=intercept, tol=1e-12, max_iter=10_000).fit(
        X, y
    )
    np.testing.assert_allclose(w, model.coef_[0], atol=1e-6)
    np.testing.assert_allclose(b, model.intercept_[0] if intercept else 0.0, atol=1e-6)
    assert 0 <= gap <= 1e-14
    assert value == pytest.approx(LOSSES["logistic"].value(X @ w + b, y) + 5e-4 * w @ w, rel=1e-14)


@pytest.mark.parametrize("intercept", [False, True])
def test_multinomial_equals_scikit_learn(way, intercept):
    X, y = data("multinomial")
    w, b, _, gap = pooled_optimum(X, y, LOSSES["multinomial"], 1e-3, intercept)
    model = LogisticRegression(C=1 / (N * 1e-3), fit_intercept=intercept, tol=1e-12, max_iter=10_000).fit(
        X, y
    )
    np.testing.assert_allclose(w.T, model.coef_, atol=1e-5)
    np.testing.assert_allclose(b, model.intercept_ if intercept else 0.0, atol=1e-5)
    assert abs(np.sum(b)) < 1e-12
    assert gap <= 1e-14


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_equals_scikit_learn(way, intercept):
    X, y = data("squared")
    w, b, _, gap = pooled_optimum(X, y, "squared", 0.2, intercept)
    model = Ridge(alpha=N * 0.2 / 2, fit_intercept=intercept, solver="cholesky").fit(X, y)
    np.testing.assert_allclose(w, model.coef_, atol=1e-8)
    assert b == pytest.approx(model.intercept_, abs=1e-8)
    assert gap <= 1e-14


@pytest.mark.parametrize("name", ["logistic", "multinomial", "squared"])
def test_a_penalised_intercept_is_a_column_of_ones(way, name):
    X, y = data(name)
    ones = pooled_optimum(np.column_stack([X, np.ones(N)]), y, name, 0.05)
    w, b, value, gap = pooled_optimum(X, y, name, 0.05, intercept=True, penalise=True)
    np.testing.assert_allclose(
        np.vstack([w.reshape(D, -1), np.reshape(b, (1, -1))]).squeeze(), ones.weights, atol=1e-7
    )
    assert value == pytest.approx(ones.value, rel=1e-13)
    assert gap <= 1e-14


def test_without_a_penalty_nothing_is_certified(way):
    X, y = data("squared")
    w, _, _, gap = pooled_optimum(X, y, "squared", 0.0)
    np.testing.assert_allclose(w, np.linalg.lstsq(X, y)[0], atol=1e-8)
    assert gap == np.inf


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_badly_scaled_columns(way, scale):
    X, y = data("logistic")
    X = X * np.where(np.arange(D) % 2, scale, 1.0)
    assert pooled_optimum(X, y, "logistic", 1e-4, intercept=True).gap <= 1e-12


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = sp.random_array((100, 3_000), density=0.02, rng=rng)
    y = np.where(rng.random(100) < 0.5, 1.0, -1.0)
    found = pooled_optimum(X, y, "logistic", 1e-3)
    theta = X @ found.weights
    stationary = X.T @ LOSSES["logistic"].slopes(theta, y) / 100 + 1e-3 * found.weights
    assert np.abs(stationary).max() < 1e-8
    assert found.gap <= 1e-12


def test_a_newton_step_that_overshoots_is_halved(monkeypatch):
    X = np.array([[-18, 540], [-0.63, -17_000], [-0.71, -4_600], [-0.13, 130], [-6.1, 1_100]])
    y = np.array([-1.0, 1, -1, -1, -1])
    values, measure = [], optimum._Problem.value

    def noted(*arguments):
        values.append(measure(*arguments))
        return values[-1]

    monkeypatch.setattr(optimum._Problem, "value", noted)
    assert pooled_optimum(X, y, "logistic", 1e-6).gap <= 1e-14
    assert (np.diff(values) > 1e-3).any()


def test_numbers_that_are_none_end_at_once():
    assert np.isnan(pooled_optimum(np.full((3, 1), np.nan), np.ones(3), "squared", 0.1).value)


def test_a_search_that_is_cut_short_says_how_far_it_is(monkeypatch):
    X, y = data("logistic")
    best = pooled_optimum(X, y, "logistic", 1e-2)
    monkeypatch.setattr(optimum, "_MOST_STEPS", 1)
    early = pooled_optimum(X, y, "logistic", 1e-2)
    assert 1e-6 < early.value - best.value <= early.gap
