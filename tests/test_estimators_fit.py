"""The models equal scikit-learn's, whoever holds which columns."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from colonnade import Job, VerticalLogisticRegression, VerticalRidge
from colonnade.errors import ConfigurationError, DataError
from colonnade.estimators import deal

ALPHA = 0.05


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return pd.DataFrame(scale(X)[:, :8], columns=X.columns[:8]), np.where(y == 1, "benign", "malign")


def logistic(**settings):
    return VerticalLogisticRegression(**({"alpha": ALPHA, "tol": 1e-10, "batch_size": 32} | settings))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_regression_equals_scikit_learns(cancer, fit_intercept):
    X, y = cancer
    ours = logistic(parties=3, fit_intercept=fit_intercept).fit(X, y)
    theirs = LogisticRegression(C=1 / (len(y) * ALPHA), tol=1e-10, fit_intercept=fit_intercept).fit(X, y)
    assert ours.report_.outcome == "converged"
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.classes_, ["benign", "malign"])
    assert ours.score(X, y) == theirs.score(X, y)
    assert ours.n_iter_ > 0


def test_more_than_two_classes_make_it_multinomial():
    X, y = load_iris(return_X_y=True)
    X = scale(X)
    ours = logistic(parties=2).fit(X, y)
    theirs = LogisticRegression(C=1 / (len(y) * ALPHA), tol=1e-10).fit(X, y)
    assert ours.report_.job.loss == "multinomial"
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_equals_scikit_learns(fit_intercept):
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), y / 100
    ours = VerticalRidge(parties=2, alpha=ALPHA, tol=1e-10, batch_size=32, fit_intercept=fit_intercept).fit(
        X, y
    )
    theirs = Ridge(alpha=len(y) * ALPHA / 2, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-4)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)


def test_columns_may_be_held_in_any_order_and_named(cancer):
    X, y = cancer
    names = list(X.columns)
    parties = {"lab": [names[5], names[0], names[2]], "clinic": [1, 7, 3, names[6], names[4]]}
    ours = logistic(parties=parties).fit(X, y)
    np.testing.assert_allclose(ours.coef_, logistic(parties=1).fit(X, y).coef_, atol=1e-4)
    assert ours.report_.columns["lab"] == [names[5], names[0], names[2]]
    assert ours.report_.weights["lab"][0] == ours.coef_[0, 5]
    np.testing.assert_array_equal(ours.feature_names_in_, names)


def test_dense_sparse_and_float32_tables_train_alike(cancer):
    X, y = cancer
    X = np.where(np.abs(X.to_numpy()) < 0.5, 0, X.to_numpy())
    parties = {"a": [0, 3, 4], "b": [1, 2, 5, 6, 7]}
    dense = logistic(parties=parties).fit(X, y)
    for other in (sparse.csr_array(X), sparse.coo_array(X), X.astype(np.float32)):
        again = logistic(parties=parties).fit(other, y)
        np.testing.assert_allclose(again.coef_, dense.coef_, atol=1e-4)
        np.testing.assert_allclose(again.predict_proba(other), dense.predict_proba(X), atol=1e-4)


def test_it_works_in_pipelines_grids_and_cross_validation(cancer):
    X, y = cancer
    model = make_pipeline(StandardScaler(), VerticalLogisticRegression(parties=2, alpha=ALPHA, tol=1e-4))
    grid = GridSearchCV(model, {"verticallogisticregression__alpha": [ALPHA, 0.5]}, cv=2).fit(X, y)
    assert grid.best_score_ > 0.9
    pooled = make_pipeline(StandardScaler(), LogisticRegression(C=1 / (len(y) * 2 / 3 * ALPHA)))
    np.testing.assert_allclose(
        cross_val_score(model, X, y, cv=3), cross_val_score(pooled, X, y, cv=3), atol=0.01
    )


def test_a_fitted_model_can_be_kept(cancer):
    X, y = cancer
    model = VerticalLogisticRegression(tol=1e-3, alpha=ALPHA).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


def test_every_field_of_the_job_is_a_setting_with_the_same_default():
    for model in (VerticalLogisticRegression, VerticalRidge):
        taken = inspect.signature(model).parameters
        assert set(taken) == set(Job.__struct_fields__) - {"loss"} | {"world"}
        for name in set(taken) - {"parties", "world"}:
            assert taken[name].default == getattr(Job(), name)
            assert f"\n{name} : default {taken[name].default!r}\n" in model.__doc__
        changed = model(alpha=0.5, parties={"a": [0]}, method="afsvrg")
        assert clone(changed).get_params() == changed.get_params()
    with pytest.raises(TypeError, match=r"alhpa"):
        VerticalRidge(alhpa=1)


def test_a_budget_that_ends_first_is_a_warning_and_none_without_a_tolerance(cancer):
    X, y = cancer
    with pytest.warns(ConvergenceWarning, match=r"budget"):
        VerticalLogisticRegression(max_rounds=3).fit(X, y)
    assert VerticalLogisticRegression(max_rounds=3, tol=0).fit(X, y).report_.outcome == "budget"


def test_the_same_seed_gives_the_same_model(cancer):
    X, y = cancer
    settings = {"tol": 0, "max_rounds": 60, "batch_size": 16}
    one, same = (VerticalLogisticRegression(random_state=1, **settings).fit(X, y) for _ in range(2))
    other = VerticalLogisticRegression(random_state=np.random.RandomState(3), **settings).fit(X, y)
    np.testing.assert_array_equal(one.coef_, same.coef_)
    assert one.report_.trace.to_bytes() == same.report_.trace.to_bytes()
    assert not np.array_equal(one.coef_, other.coef_)


def test_a_number_of_parties_deals_even_groups_and_is_lowered_to_the_columns():
    assert deal(3, 7, None) == {"p0": [0, 1, 2], "p1": [3, 4], "p2": [5, 6]}
    assert deal(8, 2, None) == {"p0": [0], "p1": [1]}


NAMES = np.array(["age", "sum", "visits"])


@pytest.mark.parametrize(
    "parties, names, sentence",
    [
        (0, NAMES, r"parties = 0"),
        ("two", NAMES, r"parties = 'two'"),
        ({"a": ["age"], "b": ["sum", "vists"]}, NAMES, r"'vists'.*'visits'"),
        ({"a": ["age"]}, None, r"no column names"),
        ({"a": [0, 1], "b": [3]}, NAMES, r"column 3: X has the columns 0 to 2"),
        ({"a": [0], "b": [-1]}, NAMES, r"column -1"),
        ({"a": [0, 1, 2], "b": []}, NAMES, r"'b' has no columns"),
        ({"a": [0, 1], "b": ["sum", 2]}, NAMES, r"'sum' is given to 'a' and to 'b'"),
        ({"a": [0]}, NAMES, r"2 columns.*'sum'"),
        ({"a": [0]}, None, r"2 columns.* is 1"),
    ],
)
def test_columns_that_are_not_shared_out_are_refused(parties, names, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        deal(parties, 3, names)


def test_what_cannot_be_trained_is_refused(cancer):
    X, y = cancer
    with pytest.raises(DataError, match=r"one class"):
        VerticalLogisticRegression().fit(X, np.zeros(len(y)))
    with pytest.raises(ConfigurationError, match=r"method"):
        VerticalLogisticRegression(method="afsag").fit(X, y)
