"""scikit-learn's own suite for estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from colonnade import VerticalLogisticRegression, VerticalRidge


# Some of the tables are separable or nearly singular: 1,000 passes end short of the certificate, and say so.
@pytest.mark.filterwarnings("ignore:budget:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([VerticalLogisticRegression(), VerticalRidge()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
