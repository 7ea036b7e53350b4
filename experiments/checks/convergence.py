"""SVRG and SAGA reach the pooled optimum, asynchronous and synchronous, for q = 2, 4, 8 and the three losses.

In the simulator, secured by pairwise masks, the step chosen by the package, until the certificate is at the
tolerance; beside the pooled optimum and scikit-learn's coefficients. One party is at half speed.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge

import colonnade as cn
from colonnade.core.losses import LOSSES
from colonnade.core.optimum import pooled_optimum
from experiments.checks.common import Check, breast_cancer, leave, quick, standardised
from experiments.datasets import split_columns

ALPHA, TOLERANCE, SEED = 1e-2, 1e-11, 0
GAP, AWAY = 1e-8, 1e-4


def tables() -> dict[str, tuple[str, np.ndarray, np.ndarray]]:
    """Of each loss: a name, the columns and the labels."""
    return {
        "logistic": ("breast cancer", *breast_cancer()),
        "multinomial": ("digits", *standardised(*load_digits(return_X_y=True))),
        "squared": ("diabetes", *standardised(*load_diabetes(return_X_y=True))),
    }


def scikit_learn(loss: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Coefficients, (d,) or (d, c)."""
    if loss == "squared":
        return np.asarray(Ridge(alpha=len(y) * ALPHA / 2, tol=1e-12).fit(X, y).coef_)
    model = LogisticRegression(C=1 / (len(y) * ALPHA), tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    return np.asarray(model.fit(X, y).coef_.T.squeeze())


def converge(check: Check, loss: str, methods: Any, parties: Any) -> None:
    name, X, y = tables()[loss]
    encoded, _ = LOSSES[loss].encode(y)
    best = pooled_optimum(X, encoded, loss, ALPHA, True)
    theirs = scikit_learn(loss, X, y)
    worst: dict[str, tuple[float, float]] = {}
    for method, schedule, q in product(methods, ("asynchronous", "synchronous"), parties):
        job = cn.Job(
            loss=loss, method=method, schedule=schedule, batch_size=32, alpha=ALPHA, tol=TOLERANCE, random_state=SEED
        )  # fmt: skip
        report = cn.simulate(job, split_columns(X, q), y, cn.World(speeds={"p1": 0.5}))
        coefficients = np.concatenate(list(report.weights.values()))
        away = float(np.abs(coefficients - theirs).max())
        gap = report.objective - best.value
        so_far = worst.get(f"{method}, {schedule}", (-np.inf, -np.inf))
        worst[f"{method}, {schedule}"] = max(so_far[0], gap), max(so_far[1], away)
        check.notes[f"{loss} ({name}), {method}, {schedule}, q = {q}"] = {
            "objective - optimum": gap,
            "away from scikit-learn": away,
            "certificate": report.certificate,
            "outcome": report.outcome,
            "passes": round(float(report.trace.passes(report.rows)[-1]), 1),
            "step": report.chosen["step"],
        }
    for case, (gap, away) in worst.items():
        check.at_most(f"{loss} ({name}), {case}, all q: objective − optimum", gap, GAP)
        check.at_most(f"{loss} ({name}), {case}, all q: coefficients − scikit-learn's", away, AWAY)


def main() -> None:
    small = quick(__doc__)
    check = Check("convergence", "SVRG and SAGA against the pooled optimum", SEED, small)
    for loss in ("logistic", "multinomial", "squared"):
        converge(check, loss, ("afsaga",) if small else ("afsvrg", "afsaga"), (2,) if small else (2, 4, 8))
    leave(check)


if __name__ == "__main__":
    main()
