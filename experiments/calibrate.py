"""What computing costs here: `python -m experiments.calibrate` prints the simulator's calibration.json."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import nnls

from colonnade.core.blocks import as_block
from colonnade.core.weights import Weights
from experiments import generator
from experiments.store import environment

BATCHES = (1, 32, 128, 512, 2048)
ROWS = 20_000


def seconds(call: Callable[[np.ndarray], Any], batch: int, repeats: int) -> float:
    """The lower quartile over batches that were not in the cache: other processes only ever add."""
    rng = np.random.default_rng(0)
    took = []
    for _ in range(repeats):
        rows = rng.integers(0, ROWS, batch).astype(np.uint32)
        started = perf_counter()
        call(rows)
        took.append(perf_counter() - started)
    return float(np.quantile(took, 0.25))


def measure(X: Any, repeats: int) -> list[tuple[float, float]]:
    """(non-zeros, seconds) of a party's partial scores and of its steps, batch by batch."""
    block = as_block(X)
    weights = Weights(block.columns)
    found = []
    for batch in BATCHES:
        residual = np.random.default_rng(1).standard_normal(batch)
        nonzeros = block.nonzeros(slice(0, ROWS)) * batch / ROWS
        for call in (
            lambda rows: weights.product(block, rows),
            lambda rows, residual=residual: weights.step(block, rows, residual, 1e-3, 1e-4),
        ):
            call(np.zeros(batch, np.uint32))
            found.append((nonzeros, seconds(call, batch, repeats)))
    return found


def calibration(repeats: int = 200) -> dict[str, Any]:
    """Seconds a call and a non-zero: the fit with the least relative error over all that was measured."""
    rng = np.random.default_rng(2)
    sparse, _ = generator.sparse("rcv1", rows=ROWS, seed=0)
    dense = [rng.standard_normal((ROWS, columns)) for columns in (12, 24, 96)]
    measured = [(1.0, nonzeros, 0.0, took) for X in dense for nonzeros, took in measure(X, repeats)]
    for X in (sparse[:, : sparse.shape[1] // 8], sparse):
        measured += [(1.0, 0.0, nonzeros, took) for nonzeros, took in measure(X, repeats)]
    table = np.array(measured)
    fitted, _ = nnls(table[:, :3] / table[:, 3:], np.ones(len(table)))
    residual = table[:, :3] @ fitted / table[:, 3] - 1
    return {
        "per_call": float(f"{fitted[0]:.3g}"),
        "per_nonzero_dense": float(f"{fitted[1]:.3g}"),
        "per_nonzero_sparse": float(f"{fitted[2]:.3g}"),
        "relative_error": float(f"{np.abs(residual).mean():.2g}"),
        **environment(),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(calibration(), indent=1) + "\n")
