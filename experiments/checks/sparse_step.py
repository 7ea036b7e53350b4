"""A first-order step costs the batch's non-zeros, however many columns a party holds.

Counted: every element that kernels and numpy touch in a party's product and step, for the same non-zeros spread over
1e4 and 1e7 columns. Timed: secured rounds (pairwise, TLS, one process a party, one requester) at b = 128 on the
generator's columns, so many for each party, both sizes in turn; the median of a run's pieces, of the best run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

import colonnade as cn
from colonnade.core.blocks import SparseBlock, as_block
from colonnade.core.directions import Steepest
from colonnade.core.estimators import ESTIMATORS
from colonnade.core.linear import LinearModel
from colonnade.job import plan
from experiments.checks.common import Check, leave, quick
from experiments.checks.secured_round import microseconds, processes
from experiments.generator import Shape, sparse

SEED, BATCH, STEP, ALPHA = 0, 128, 0.1, 1e-4
FEW, MANY = 10_000, 10_000_000
ROWS, NONZEROS_A_ROW = 20_000, 15
PARTIES, STEPS = 8, 50


class Counted(np.ndarray):
    """An array that counts the elements that numpy's functions read and write."""

    touched = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **more: Any) -> Any:
        Counted.touched += sum(np.size(each) for each in inputs)
        plain = [_plain(each) for each in inputs]
        if out is not None:
            more["out"] = tuple(_plain(each) for each in out)
        found = getattr(ufunc, method)(*plain, **more)
        return out[0] if out is not None else found.view(Counted) if isinstance(found, np.ndarray) else found

    def copy(self, *order: Any) -> Counted:
        Counted.touched += self.size
        return super().copy(*order)


def _plain(array: Any) -> Any:
    return array.view(np.ndarray) if isinstance(array, Counted) else array


class CountedBlock(SparseBlock):
    """A sparse block that counts the non-zeros its kernels go over."""

    def product(self, rows: Any, w: np.ndarray) -> np.ndarray:
        Counted.touched += self.nonzeros(rows)
        return super().product(rows, _plain(w)).view(Counted)

    def add_adjoint(self, rows: Any, r: np.ndarray, onto: np.ndarray, factor: float = 1.0) -> None:
        Counted.touched += self.nonzeros(rows)
        super().add_adjoint(rows, _plain(r), _plain(onto), factor)


def counted_operations(X: csr_array, method: str) -> int:
    """Elements touched in so many products and steps, after a first sweep."""
    block = CountedBlock(X.indptr, X.indices, X.data, X.shape[1])
    model = LinearModel(block, 1, False, False)
    model.weights.u = model.weights.u.view(Counted)
    estimator, direction = ESTIMATORS[method](block.rows, 1), Steepest()
    rng = np.random.default_rng(SEED)
    slopes = rng.standard_normal(block.rows)
    estimator.swept(slopes)
    if estimator.anchor_slopes() is not None:
        model.weights.set_anchor(model.gradient(slopes))
        model.weights.anchor = model.weights.anchor.view(Counted)
    Counted.touched = 0
    for _ in range(STEPS):
        rows = rng.choice(block.rows, BATCH, replace=False).astype(np.uint32)
        model.product(rows)
        slopes = rng.standard_normal(BATCH)
        residual = estimator.residual(rows, slopes)
        direction.step(model.weights, block, rows, residual, STEP, ALPHA)
        learnt = estimator.learn(rows, slopes)
        if learnt is not None:
            model.weights.move_anchor(block, *learnt)
    return Counted.touched


def spread(X: csr_array, columns: int) -> csr_array:
    """The same non-zeros over more columns, each column moved to a place of its own."""
    places = np.sort(np.random.default_rng(SEED).choice(columns, X.shape[1], replace=False))
    return csr_array((X.data, places[X.indices].astype(np.int32), X.indptr), shape=(X.shape[0], columns))


def count(check: Check) -> None:
    few, _ = sparse(Shape(ROWS, FEW, NONZEROS_A_ROW), seed=SEED)
    few = as_block(few).matrix
    many = spread(few, MANY)
    for method in ("sgd", "svrg", "saga"):
        at_few, at_many = counted_operations(few, method), counted_operations(many, method)
        check.holds(
            f"{method}: operations in {STEPS} steps, {FEW:,} and {MANY:,} columns",
            f"{at_few:,} / {at_many:,}",
            "equal",
            at_few == at_many,
        )


def time(check: Check, rounds: int, repeats: int) -> None:
    names = tuple(f"p{number}" for number in range(PARTIES))
    tables = {
        columns: [sparse(Shape(ROWS, columns, NONZEROS_A_ROW), seed=number) for number in range(PARTIES)]
        for columns in (FEW, MANY)
    }
    for method in ("afsgd", "afsaga"):
        job = cn.Job(
            method=method, schedule="asynchronous", fit_intercept=False, batch_size=BATCH, step=STEP,
            alpha=ALPHA, tol=0, max_rounds=rounds, random_state=SEED,
        )  # fmt: skip
        agreed = plan(job, names, ROWS, 1)
        runs: dict[int, list[float]] = {FEW: [], MANY: []}
        for _ in range(repeats):
            for columns, table in tables.items():
                said = processes(agreed, [X for X, _ in table], table[0][1], "one_asks")
                runs[columns].append(microseconds(said))
        for columns, times in runs.items():
            check.report(f"{method}, {columns:,} columns a party: µs a round", min(times))
        check.at_most(
            f"{method}: round at {MANY:,} over {FEW:,} columns", min(runs[MANY]) / min(runs[FEW]), 1.5
        )
        check.notes[f"{method}: all runs"] = {str(columns): times for columns, times in runs.items()}


def main() -> None:
    small = quick(__doc__)
    check = Check("sparse_step", f"a step on sparse columns, b = {BATCH}", SEED, small)
    count(check)
    with threadpool_limits(1):
        time(check, 1_000 if small else 3_000, 1 if small else 5)
    leave(check)


if __name__ == "__main__":
    main()
