"""Losses against numeric derivatives, long arithmetic at the extremes, and scikit-learn."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.metrics import log_loss

from colonnade.core.losses import LOSSES, eliminate_intercept
from colonnade.errors import DataError

NAMES = tuple(LOSSES)


def sample(name, seed, n=30, c=4, spread=2.0):
    rng = np.random.default_rng(seed)
    if name == "multinomial":
        return spread * rng.standard_normal((n, c)), np.arange(n) % c
    labels = rng.standard_normal(n) if name == "squared" else np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return spread * rng.standard_normal(n), labels


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_slopes_and_curvature_are_the_derivatives(name, seed):
    loss, (theta, y) = LOSSES[name], sample(name, seed)
    along = np.random.default_rng(seed + 1).standard_normal(theta.shape)
    h = 1e-6
    change = (loss.value(theta + h * along, y) - loss.value(theta - h * along, y)) / (2 * h)
    np.testing.assert_allclose(np.sum(loss.slopes(theta, y) * along) / len(y), change, atol=1e-8)
    bend = (loss.slopes(theta + h * along, y) - loss.slopes(theta - h * along, y)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(theta, y, along), bend, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_curvature_stays_below_the_smoothness(name):
    loss, (theta, y) = LOSSES[name], sample(name, 3, n=2000, spread=0.7)
    along = np.random.default_rng(4).standard_normal(theta.shape)
    ratio = (along * loss.curvature(theta, y, along)).reshape(len(y), -1).sum(1)
    ratio /= (along**2).reshape(len(y), -1).sum(1)
    assert 0.7 * loss.smoothness < ratio.max() <= loss.smoothness + 1e-12


def test_values_equal_scikit_learn():
    theta, y = sample("logistic", 0)
    p = 1 / (1 + np.exp(-theta))
    assert LOSSES["logistic"].value(theta, y) == pytest.approx(log_loss(y, p), rel=1e-12)
    theta, y = sample("multinomial", 0)
    p = np.exp(theta) / np.exp(theta).sum(1, keepdims=True)
    assert LOSSES["multinomial"].value(theta, y) == pytest.approx(log_loss(y, p), rel=1e-12)
    assert LOSSES["squared"].value(np.array([1.0, 3.0]), np.array([2.0, 0.0])) == 5.0


@pytest.mark.parametrize("size", [40.0, 750.0, 1e3, 1e5])
def test_logistic_at_the_extremes(size):
    loss = LOSSES["logistic"]
    right, wrong, y = np.array([size, -size]), np.array([-size, size]), np.array([1.0, -1.0])
    assert loss.value(right, y) == pytest.approx(np.exp(-size), abs=1e-300)
    assert loss.value(wrong, y) == pytest.approx(size)
    np.testing.assert_array_equal(loss.slopes(wrong, y), [-1.0, 1.0])
    np.testing.assert_allclose(loss.slopes(right, y), -y * np.exp(-size), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(loss.curvature(right, y, y), y * np.exp(-size), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("size", [40.0, 1e3, 1e5])
def test_multinomial_at_the_extremes(size):
    loss = LOSSES["multinomial"]
    theta = np.array([[size, -size, 0.0], [size, -size, 0.0]])
    y = np.array([0, 1])
    assert loss.value(theta, y) == pytest.approx(size)
    np.testing.assert_allclose(loss.slopes(theta, y), [[0, 0, 0], [1, -1, 0]], atol=1e-15)
    assert np.isfinite(loss.curvature(theta, y, np.ones((2, 3)))).all()


def test_two_classes_are_the_logistic_loss():
    theta, y = sample("logistic", 5)
    both, codes = np.column_stack([np.zeros(30), theta]), (y > 0).astype(np.int64)
    assert LOSSES["multinomial"].value(both, codes) == pytest.approx(LOSSES["logistic"].value(theta, y))


@pytest.mark.parametrize(
    "y", [[-1, 1, 1], [0, 1, 1], [False, True, True], [2.5, 7.0, 7.0], ["no", "yes", "yes"]]
)
def test_any_two_values_are_labels(y):
    labels, classes = LOSSES["logistic"].encode(y)
    np.testing.assert_array_equal(labels, [-1.0, 1.0, 1.0])
    assert labels.dtype == np.float64
    assert classes.tolist() == y[:2]
    codes, classes = LOSSES["multinomial"].encode(np.array(y, object))
    np.testing.assert_array_equal(codes, [0, 1, 1])
    assert codes.dtype == np.int64


def test_whole_numbers_are_classes_whatever_their_type():
    codes, classes = LOSSES["multinomial"].encode([3.0, 1.0, 2.0, 1.0])
    np.testing.assert_array_equal(codes, [2, 0, 1, 0])
    np.testing.assert_array_equal(classes, [1.0, 2.0, 3.0])


def test_numbers_are_the_labels_of_a_regression():
    labels, classes = LOSSES["squared"].encode([1, 2])
    np.testing.assert_array_equal(labels, [1.0, 2.0])
    assert labels.dtype == np.float64
    assert classes is None


@pytest.mark.parametrize(
    "name, y, says",
    [
        ("logistic", [1, 1], r"one class only \(1\)"),
        ("multinomial", ["a", "a"], r"one class only \('a'\)"),
        ("logistic", [0.5, 1.5, 2.5], '"squared" if they are quantities'),
        ("multinomial", [1.0, 1.5, 2.5], 'fractions such as 1.5, .* use loss = "squared"'),
        ("logistic", [0, 1, 2], 'have 3 classes .* use loss = "multinomial"'),
        ("logistic", [0.0, np.nan, 1.0], r"1 labels are missing.*row 1"),
        ("multinomial", [0, 1, np.inf], "1 labels are missing"),
        ("multinomial", ["a", None, "b", None], "2 labels are missing"),
        ("multinomial", np.array(["a", np.nan, "b"], object), "1 labels are missing"),
        ("multinomial", np.array(["a", 1], object), "mix kinds"),
        ("squared", [1.0, np.inf], "1 labels are missing"),
        ("squared", ["a", "b"], r"are numbers.*\(the first label is 'a'\): use loss = \"logistic\""),
        ("squared", np.zeros((2, 2)), "shape"),
        ("logistic", [], "shape"),
    ],
)
def test_labels_that_do_not_fit_are_refused(name, y, says):
    with pytest.raises(DataError, match=says):
        LOSSES[name].encode(y)


def intercept_slope(name, theta, y, b, penalty):
    return LOSSES[name].slopes(theta + b, y).mean(axis=0) + penalty * np.asarray(b)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("penalty", [0.0, 0.3])
@given(
    seed=st.integers(0, 500), spread=st.sampled_from([0.0, 1.0, 30.0]), far=st.sampled_from([0.0, 1.0, 1e3])
)
@settings(max_examples=25, deadline=None)
def test_the_intercept_is_eliminated_to_the_last_digit(name, penalty, seed, spread, far):
    theta, y = sample(name, seed, spread=spread)
    start = far * np.random.default_rng(seed).standard_normal(theta.shape[1:])
    b = eliminate_intercept(LOSSES[name], theta, y, start, penalty)
    assert np.abs(intercept_slope(name, theta, y, b, penalty)).max() < 1e-14 * (1 + spread)
    if name == "multinomial":
        assert abs(np.sum(b)) < 1e-12
    else:
        assert isinstance(b, float)


def test_the_intercept_without_columns_is_the_log_odds():
    y = np.array([1.0] * 30 + [-1.0] * 10)
    assert eliminate_intercept(LOSSES["logistic"], np.zeros(40), y, 0.0) == pytest.approx(
        np.log(3), rel=1e-15
    )
    b = eliminate_intercept(LOSSES["multinomial"], np.zeros((40, 2)), (y > 0).astype(int), np.zeros(2))
    np.testing.assert_allclose(b, [-np.log(3) / 2, np.log(3) / 2], rtol=1e-14)


@pytest.mark.parametrize("name", ["logistic", "multinomial"])
@pytest.mark.parametrize("far", [0.0, 50.0])
def test_one_class_only_leaves_a_finite_intercept_without_slope(name, far):
    theta, _ = sample(name, 1)
    y = np.ones(30) if name == "logistic" else np.zeros(30, np.int64)
    b = eliminate_intercept(LOSSES[name], theta, y, np.full(theta.shape[1:], far))
    assert np.isfinite(b).all()
    assert np.abs(intercept_slope(name, theta, y, b, 0.0)).max() < (0.05 if name == "logistic" else 1e-6)


@pytest.mark.parametrize("name", ["logistic", "multinomial"])
def test_scores_that_separate_by_far(name):
    y = np.arange(20) % 2
    theta = np.where(y == 1, 1e3, -1e3)
    if name == "multinomial":
        theta = np.column_stack([-theta, theta])
    labels, _ = LOSSES[name].encode(y)
    b = eliminate_intercept(LOSSES[name], theta, labels, np.zeros(theta.shape[1:]))
    assert np.abs(b).max() < 1e3
    assert LOSSES[name].value(theta + b, labels) < 1e-15
