"""A synchronous job with a seed gives the same weights, bit for bit, in every world and under every aggregation."""

from __future__ import annotations

import hashlib
from itertools import permutations
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits

import colonnade as cn
from colonnade.federation import run
from experiments.checks.common import Check, breast_cancer, leave, quick, standardised
from experiments.datasets import split_columns
from experiments.generator import Shape, sparse

PARTIES, SEED = 4, 3
NAMES = [f"p{number}" for number in range(PARTIES)]
AGGREGATIONS = ("plain", "two-tree", "pairwise")
STEPS = {"logistic": 0.1, "multinomial": 0.05, "squared": 0.01}


def table(loss: str, kind: str) -> tuple[Any, np.ndarray]:
    if kind == "sparse":
        return sparse(Shape(1_500, 400, 20), seed=SEED)
    if loss == "logistic":
        return breast_cancer()
    return standardised(*(load_digits if loss == "multinomial" else load_diabetes)(return_X_y=True))


def worlds() -> dict[str, Any]:
    """Each world of the job, and simulated ones in which one link, drawn at random, is a hundred times slower."""
    pairs = list(permutations(NAMES, 2))
    slow = [pairs[number] for number in np.random.default_rng(SEED).choice(len(pairs), 4, replace=False)]
    found: dict[str, Any] = {"simulated": cn.World(), "loopback": "loopback", "processes": "processes"}
    for number, link in enumerate(slow):
        latency = dict.fromkeys(pairs, 1e-4) | {link: 1e-2}
        found[f"simulated, {link[0]} to {link[1]} slow"] = cn.World(latency=latency, seed=number)
    jitter = cn.World(latency=1e-4, jitter=5e-3, speeds={"p2": 1 / 3}, seed=9)
    return found | {"simulated, jitter and a straggler": jitter}


def digest(report: cn.Report) -> str:
    """SHA-256 of all weights and the intercept."""
    found = hashlib.sha256(np.asarray(report.intercept, dtype=np.float64).tobytes())
    for weights in report.weights.values():
        found.update(np.ascontiguousarray(weights).tobytes())
    return found.hexdigest()


def compare(
    check: Check, loss: str, kind: str, method: str, labels: tuple[str, ...] | None, rounds: int
) -> None:
    X, y = table(loss, kind)
    blocks = dict(zip(NAMES, split_columns(X, PARTIES), strict=True))
    found: dict[str, str] = {}
    for aggregation in AGGREGATIONS:
        job = cn.Job(
            loss=loss,
            method=method,
            schedule="synchronous",
            aggregation=aggregation,
            labels=labels,
            batch_size=64,
            step=STEPS[loss],
            alpha=1e-3,
            tol=0,
            max_rounds=rounds,
            random_state=SEED,
        )
        for name, world in worlds().items():
            found[f"{name}, {aggregation}"] = digest(run(job, world, blocks, y))
    holders = "all hold labels" if labels is None else f"labels at {' and '.join(labels)}"
    different = len(set(found.values()))
    case = f"{loss}, {kind}, {method}, {holders}"
    check.holds(f"{case}: different weights in {len(found)} runs", different, "1", different == 1)
    check.notes[case] = found if different > 1 else found.popitem()[1]


def main() -> None:
    small = quick(__doc__)
    check = Check(
        "same_bits",
        f"synchronous, q = {PARTIES}: simulated, loopback, processes and slow links × {', '.join(AGGREGATIONS)}",
        SEED,
        small,
    )
    for loss, kind, method, labels in (
        ("logistic", "dense", "afsaga", None),
        ("logistic", "dense", "afsvrg", ("p1",)),
        ("logistic", "dense", "afsgd", ("p0", "p2")),
        ("logistic", "sparse", "afsaga", ("p0",)),
        ("multinomial", "dense", "afsvrg", None),
        ("squared", "dense", "afsaga", ("p0",)),
    ):
        compare(check, loss, kind, method, labels, 100 if small else 500)
    leave(check)


if __name__ == "__main__":
    main()
