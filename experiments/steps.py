"""The best step of the grid on the synchronous run: once a data set, method and batch size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from colonnade.core.blocks import as_block
from colonnade.core.losses import LOSSES
from colonnade.core.stepsize import EXTENDED, block_bounds, safe_step
from experiments import datasets
from experiments.cells import ALPHA, Cell, cell
from experiments.optimum import problem
from experiments.store import Row

STEPS = (*sorted(EXTENDED), 128.0, 256.0, 512.0)
"""Rows of unit length with few words in common bear steps far beyond the papers' 0.5."""
Score = tuple[bool, float]


def best_step(like: Cell, run: Callable[[Cell], Row]) -> float:
    """Walk the grid from the safe step, up while it gets better, else down. A worse candidate is cut short."""
    alone = cell(
        like.dataset, like.method, "synchronous", like.full, slower=0, batch=like.batch, seed=like.seed
    )
    passes = [alone.passes]

    def score(step: float) -> Score:
        row = run(replace(alone, step=step, passes=passes[0]))
        if row["status"] == "reached":
            passes[0] = min(passes[0], math.ceil(row["reached"]["passes"]))
            return (False, row["reached"]["rounds"])
        return (True, row.get("gap", math.inf) if row["status"] == "passes" else math.inf)

    return climb(STEPS, start_of(alone), score)


def climb(steps: Sequence[float], start: int, score: Callable[[float], Score]) -> float:
    """The place with the lowest score on either side of the start, the scores having one valley."""
    best, lowest = start, score(steps[start])
    for direction in (1, -1):
        place, came_nearer = best + direction, False
        while 0 <= place < len(steps) and (found := score(steps[place])) < lowest:
            best, lowest, came_nearer = place, found, True
            place += direction
        if came_nearer:
            break
    return steps[best]


def start_of(alone: Cell) -> int:
    """Where the walk starts: the first of the grid above the safe step."""
    rows = problem(alone)
    loss = LOSSES[datasets.get(alone.dataset).loss]
    intercept = datasets.get(alone.dataset).loss == "squared"
    bounds = [block_bounds(as_block(rows.X))]
    safe = safe_step(bounds, loss.smoothness, len(rows.labels), alone.batch, ALPHA, intercept)
    return next((place for place, step in enumerate(STEPS) if step >= safe), len(STEPS) - 1)
