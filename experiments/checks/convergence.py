"""SVRG and SAGA reach the pooled optimum, asynchronous and synchronous, for q = 2, 4, 8 and the three losses.

In the simulator, secured by pairwise masks, one party at half speed, until the certificate is at the tolerance; beside
the pooled optimum and scikit-learn's coefficients. The tables are scikit-learn's own with the step that the package
chooses; where COLONNADE_DATA is set, credit91 (all 30,000 rows, q = 8, λ = 1e-4, no intercept) too, at step 16.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge

import colonnade as cn
from colonnade.core.losses import LOSSES
from colonnade.core.optimum import pooled_optimum
from experiments import datasets
from experiments.checks.common import Check, breast_cancer, leave, quick, standardised

SEED, GAP, AWAY = 0, 1e-8, 1e-4


@dataclass(frozen=True)
class Table:
    """What is trained on, and how."""

    name: str
    loss: str
    X: np.ndarray
    y: np.ndarray
    alpha: float = 1e-2
    intercept: bool = True
    batch_size: int = 32
    step: Any = "auto"
    tolerance: float = 1e-11
    parties: tuple[int, ...] = (2, 4, 8)


def tables(small: bool) -> Iterator[Table]:
    yield Table("breast cancer", "logistic", *breast_cancer())
    yield Table("digits", "multinomial", *standardised(*load_digits(return_X_y=True)))
    yield Table("diabetes", "squared", *standardised(*load_diabetes(return_X_y=True)))
    if os.environ.get("COLONNADE_DATA") and not small:
        X, y = datasets.loaded("credit91", True)
        yield Table("credit91", "logistic", X, y, 1e-4, False, 256, 16.0, 1e-12, (8,))


def scikit_learn(table: Table) -> np.ndarray:
    """Coefficients, (d,) or (d, c)."""
    penalty = len(table.y) * table.alpha
    if table.loss == "squared":
        return np.asarray(Ridge(alpha=penalty / 2, tol=1e-12).fit(table.X, table.y).coef_)
    model = LogisticRegression(
        C=1 / penalty, tol=1e-12, max_iter=10_000, solver="newton-cholesky", fit_intercept=table.intercept
    )
    return np.asarray(model.fit(table.X, table.y).coef_.T.squeeze())


def converge(check: Check, table: Table, methods: tuple[str, ...], parties: tuple[int, ...]) -> None:
    encoded, _ = LOSSES[table.loss].encode(table.y)
    best = pooled_optimum(table.X, encoded, table.loss, table.alpha, table.intercept)
    theirs = scikit_learn(table)
    for method, schedule in product(methods, ("asynchronous", "synchronous")):
        gaps, distances = [], []
        for q in parties:
            report = trained(table, method, schedule, q)
            gaps.append(report.objective - best.value)
            distances.append(float(np.abs(np.concatenate(list(report.weights.values())) - theirs).max()))
            check.notes[f"{table.loss} ({table.name}), {method}, {schedule}, q = {q}"] = {
                "objective - optimum": gaps[-1],
                "coefficients - scikit-learn's": distances[-1],
                "certificate": report.certificate,
                "outcome": report.outcome,
                "passes": round(float(report.trace.passes(report.rows)[-1]), 1),
                "step": report.chosen["step"],
            }
        case = f"{table.loss} ({table.name}), {method}, {schedule}, q = {', '.join(map(str, parties))}"
        check.at_most(f"{case}: objective − optimum", max(gaps), GAP)
        check.at_most(f"{case}: coefficients − scikit-learn's", max(distances), AWAY)


def trained(table: Table, method: str, schedule: str, q: int) -> cn.Report:
    job = cn.Job(
        loss=table.loss,
        method=method,
        schedule=schedule,
        batch_size=table.batch_size,
        alpha=table.alpha,
        step=table.step,
        tol=table.tolerance,
        fit_intercept=table.intercept,
        random_state=SEED,
    )
    return cn.simulate(job, datasets.split_columns(table.X, q), table.y, cn.World(speeds={"p1": 0.5}))


def main() -> None:
    small = quick(__doc__)
    check = Check("convergence", "SVRG and SAGA against the pooled optimum", SEED, small)
    for table in tables(small):
        converge(
            check, table, ("afsaga",) if small else ("afsvrg", "afsaga"), (2,) if small else table.parties
        )
    leave(check)


if __name__ == "__main__":
    main()
