"""scikit-learn's own suite for estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from colonnade import VerticalLogisticRegression, VerticalRidge

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@parametrize_with_checks([VerticalLogisticRegression(), VerticalRidge()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
