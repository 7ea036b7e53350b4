"""How well the joint model fits its training rows, as the coordinator can tell: AUC, accuracy or R²."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.cli.inputs import Inputs
from colonnade.record import Report


def fit_of(report: Report, inputs: Inputs) -> dict[str, Any] | None:
    """`Report.reference` with one score, or None where the weights are not all there."""
    scores: Any = report.intercept
    for party, block in inputs.blocks.items():
        scores = scores + block @ report.weights[party]
    if not np.isfinite(scores).all():
        return None
    measure, value = MEASURES[report.job.loss](scores, inputs.labels)
    return {"measure": f"{measure} on the training rows", "scores": {"together": float(value)}}


def _auc(scores: NDArray[np.float64], labels: NDArray[Any]) -> tuple[str, float]:
    return "AUC", auc(scores, labels == np.unique(labels)[1])


def auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """How often a positive row scores above a negative one; a tie counts half."""
    _, position, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[position]
    positives = int(positive.sum())
    above = ranks[positive].sum() - positives * (positives + 1) / 2
    return float(above / (positives * (len(scores) - positives)))


def _accuracy(scores: NDArray[np.float64], labels: NDArray[Any]) -> tuple[str, float]:
    classes = np.unique(labels)
    return "accuracy", float(np.mean(classes[scores.argmax(axis=1)] == labels))


def _r_squared(scores: NDArray[np.float64], labels: NDArray[Any]) -> tuple[str, float]:
    values = labels.astype(float)
    return "R²", 1.0 - float(np.sum((values - scores) ** 2) / np.sum((values - values.mean()) ** 2))


MEASURES = {"logistic": _auc, "multinomial": _accuracy, "squared": _r_squared}
