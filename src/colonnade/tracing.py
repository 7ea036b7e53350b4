"""From what parties noted on the way to a trace: objectives are exact and computed after the run, outside its clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from colonnade.algorithms.meter import EVERY_ROUND, SPACING
from colonnade.algorithms.result import Result
from colonnade.core.blocks import FeatureBlock
from colonnade.core.losses import LOSSES
from colonnade.job import Plan
from colonnade.record import Trace
from colonnade.runtime.simulated import first_interrupt

Array = np.ndarray[Any, Any]
AT_ONCE = 2**22
"""Numbers of scores held at once."""


def trace_of(
    plan: Plan, blocks: Mapping[str, FeatureBlock], labels: Array, results: Mapping[str, Result]
) -> Trace:
    """One row at the start, after every round of the first thousand, every 1 % later, and at the end."""
    present = [name for name in plan.parties if name in results]
    start = (
        results[plan.coordinator].started
        if plan.coordinator in results
        else min(r.started for r in results.values())
    )
    times = {name: np.maximum.accumulate([note.seconds for note in results[name].notes]) for name in present}
    counts = {
        name: np.array(
            [[n.rounds, n.rows, n.steps, n.messages, n.bytes] for n in results[name].notes], dtype=np.int64
        )
        for name in present
    }
    instants = np.unique(
        np.concatenate([times[name] for name in present if name in plan.requesters] or list(times.values()))
    )
    instants = np.append(instants[instants > start], max(result.finished for result in results.values()))
    instants = np.insert(instants, 0, start)
    latest = {
        name: np.maximum(np.searchsorted(times[name], instants, side="right") - 1, 0) for name in present
    }
    for name in present:
        latest[name][-1] = len(times[name]) - 1
    totals = np.sum([counts[name][latest[name]] for name in present], axis=0)
    kept = _kept(totals[:, 0])
    weights = {
        name: np.array([note.weights for note in results[name].notes])[latest[name][kept]] for name in present
    }
    values = (
        _Evaluation(plan, blocks, labels, results).objectives_or_the_last(weights)
        if len(present) == len(plan.parties)
        else np.full(len(kept), np.nan)
    )
    columns = {"seconds": instants[kept] - start, "objective": values}
    for position, column in enumerate(("rounds", "rows", "steps", "messages", "bytes")):
        columns[column] = totals[kept, position]
    return Trace(columns)


def _kept(rounds: Array) -> Array:
    """The start, each new round up to a thousand, each 1 % more, and the end."""
    kept, last = [0], rounds[0]
    for number in range(1, len(rounds) - 1):
        if rounds[number] >= last + max(1.0, 0.0 if last < EVERY_ROUND else last * SPACING):
            kept.append(number)
            last = rounds[number]
    return np.array([*kept, len(rounds) - 1])


def objective(plan: Plan, scores: Array, labels: Array, squares: float, intercept: Any) -> float:
    """Mean loss + alpha/2 |w|² (+ alpha/2 b²), of scores that include the intercept."""
    if plan.job.penalise_intercept:
        squares += float(np.sum(np.square(intercept)))
    return float(LOSSES[plan.job.loss].value(scores, labels)) + plan.job.alpha / 2 * squares


class _GivenUpError(Exception):
    """Somebody pressed Ctrl-C."""


class _Evaluation(NamedTuple):
    """All that the exact objective needs, in one place once the run is over. `chosen`: which noted weights, a party."""

    plan: Plan
    blocks: Mapping[str, FeatureBlock]
    labels: Array
    results: Mapping[str, Result]

    def objectives_or_the_last(self, chosen: Mapping[str, Array]) -> Array:
        """Ctrl-C gives up the objectives on the way, which may take as long as the run did, and not the run."""
        pressed: list[bool] = []

        def look() -> None:
            if pressed:
                raise _GivenUpError

        with first_interrupt(lambda: pressed.append(True)):
            try:
                return self.objectives(chosen, look)
            except _GivenUpError:
                last = {name: points[-1:] for name, points in chosen.items()}
                values = np.full(len(next(iter(chosen.values()))), np.nan)
                values[-1:] = self.objectives(last)
                return values

    def objectives(self, chosen: Mapping[str, Array], look: Callable[[], None] = lambda: None) -> Array:
        plan = self.plan
        points = len(next(iter(chosen.values())))
        intercepts = self.results[plan.coordinator].noted_intercepts[chosen[plan.coordinator]]
        squares = np.zeros(points)
        for name, result in self.results.items():
            norms = np.sum(np.square(result.noted.reshape(len(result.noted), -1)), axis=1)
            squares += norms[chosen[name]]
        if plan.job.penalise_intercept:
            squares += np.sum(np.square(intercepts.reshape(points, -1)), axis=1)
        return self.losses(chosen, intercepts, look) + plan.job.alpha / 2 * squares

    def losses(self, chosen: Mapping[str, Array], intercepts: Array, look: Callable[[], None]) -> Array:
        """Mean losses at all points, a piece of the rows at a time; `look` is called now and then."""
        loss, classes, points = LOSSES[self.plan.job.loss], self.plan.classes, len(intercepts)
        size = max(1, AT_ONCE // (points * classes))
        losses = np.zeros(points)
        for start in range(0, self.plan.rows, size):
            rows = slice(start, min(start + size, self.plan.rows))
            scores = np.zeros((points, rows.stop - rows.start, classes))
            for name, result in self.results.items():
                look()
                used, again = np.unique(chosen[name], return_inverse=True)
                scores += _all_scores(self.blocks[name], rows, result.noted[used], classes)[again]
            scores += intercepts.reshape(points, 1, -1)
            for point in range(points):
                at = scores[point, :, 0] if classes == 1 else scores[point]
                share = (rows.stop - rows.start) / self.plan.rows
                losses[point] += float(loss.value(at, self.labels[rows])) * share
        return losses


def _all_scores(block: FeatureBlock, rows: slice, weights: Array, classes: int) -> Array:
    """Scores at many weights in one product: (points, rows, classes)."""
    columns = np.ascontiguousarray(np.moveaxis(weights.reshape(len(weights), block.columns, classes), 0, 1))
    product = block.product(rows, columns.reshape(block.columns, -1))
    return np.moveaxis(product.reshape(-1, len(weights), classes), 1, 0)
