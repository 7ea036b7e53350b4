"""The pooled optimum of each prepared table, kept on disk beside the tables."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from colonnade.core.losses import LOSSES
from colonnade.core.optimum import pooled_optimum
from experiments import datasets
from experiments.cells import ALPHA, Cell


class Problem(NamedTuple):
    """What a cell trains on, encoded, and the rows kept back."""

    X: Any
    labels: np.ndarray
    test: Any
    test_labels: np.ndarray


class Pooled(NamedTuple):
    """Training without parties: the yardstick."""

    weights: np.ndarray
    intercept: np.ndarray
    value: float
    gap: float
    """The value is at most this far above the true optimum."""


@lru_cache(maxsize=1)
def _problem(name: str, full: bool, held_out: bool) -> Problem:
    X, y = datasets.loaded(name, full)
    labels, _ = LOSSES[datasets.get(name).loss].encode(y)
    train, test = datasets.held_out(len(labels)) if held_out else (slice(None), slice(0, 0))
    return Problem(X[train], labels[train], X[test], labels[test])


def problem(cell: Cell) -> Problem:
    """The rows of a cell; the last one asked for stays in memory."""
    return _problem(cell.dataset, cell.full, cell.held_out)


def pooled(cell: Cell) -> Pooled:
    """The optimum of the cell's rows; a regression has the papers' penalised intercept."""
    rows = problem(cell)
    digest = hashlib.sha256(rows.X.data.tobytes() if not isinstance(rows.X, np.ndarray) else rows.X.tobytes())
    digest.update(rows.labels.tobytes())
    file = datasets.CACHE / f"{cell.dataset}-optimum-{digest.hexdigest()[:12]}.npz"
    if not file.exists():
        squared = datasets.get(cell.dataset).loss == "squared"
        found = pooled_optimum(rows.X, rows.labels, datasets.get(cell.dataset).loss, ALPHA, squared, squared)
        datasets.CACHE.mkdir(exist_ok=True)
        unfinished = file.with_suffix(".part.npz")
        np.savez(unfinished, w=found[0], b=found[1], value=found[2], gap=found[3])
        unfinished.replace(file)
    kept = np.load(file)
    return Pooled(kept["w"], kept["b"], float(kept["value"]), float(kept["gap"]))
