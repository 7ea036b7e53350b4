"""Scores on the training rows, against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score, roc_auc_score

from colonnade.cli.scoring import MEASURES, auc


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30))
def test_auc_equals_scikit_learns_with_ties(rows):
    scores = np.array([score for score, _ in rows], dtype=float)
    positive = np.array([label for _, label in rows])
    if 0 < positive.sum() < len(rows):
        assert auc(scores, positive) == pytest.approx(roc_auc_score(positive, scores), abs=1e-12)


def test_text_labels_sort_as_the_loss_sorts_them():
    labels = np.array(["no", "yes", "no", "yes"])
    assert MEASURES["logistic"](np.array([0.1, 0.9, 0.2, 0.8]), labels) == ("AUC", 1.0)


def test_accuracy_and_r_squared():
    scores = np.array([[2.0, 1, 0], [0, 1, 2], [0, 3, 1], [1, 0, 0]])
    assert MEASURES["multinomial"](scores, np.array(["a", "c", "b", "b"])) == ("accuracy", 0.75)
    values, fitted = np.array([1.0, 2, 4, 7]), np.array([1.5, 2, 3, 7])
    assert MEASURES["squared"](fitted, values)[1] == pytest.approx(r2_score(values, fitted))
