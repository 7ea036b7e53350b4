"""Runs one cell: in virtual time with an observer of both clocks, or with real processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from time import perf_counter
from typing import Any

import numpy as np

from colonnade import Job, World, train_locally
from colonnade.algorithms.party import Party
from colonnade.algorithms.result import Result
from colonnade.core.blocks import SparseBlock, as_block
from colonnade.data.alignment import ids_digest
from colonnade.errors import ColonnadeError
from colonnade.job import plan
from colonnade.runtime.host import TRAINING
from colonnade.runtime.simulated import Simulation
from experiments import datasets
from experiments.cells import ALPHA, Cell
from experiments.observer import Curve, Observer
from experiments.optimum import Pooled, pooled, problem
from experiments.store import Row, environment

MOST_SECONDS = 600
"""A cell may take here."""
POINTS = 80
"""Of a curve kept in a row."""
NETWORKS: dict[str, tuple[float, float | None]] = {"none": (0.0, None), "cluster": (2e-6, 7e9)}
"""Latency in seconds, bytes a second; cluster: the preprint's 56 Gb links."""


def job(cell: Cell, step: float, **more: Any) -> Job:
    """The papers' setting: a fixed step, every party holds the labels, nothing but totals shared when asynchronous."""
    squared = datasets.get(cell.dataset).loss == "squared"
    settings: dict[str, Any] = {
        "loss": datasets.get(cell.dataset).loss,
        "method": cell.method,
        "schedule": cell.schedule,
        "sharing": "own" if cell.schedule == "asynchronous" else "push",
        "alpha": ALPHA,
        "fit_intercept": squared,
        "penalise_intercept": squared,
        "batch_size": cell.batch,
        "step": step,
        "tol": 0.0,
        "random_state": cell.seed,
    }
    return Job(**(settings | more))


def world(cell: Cell) -> World:
    """Equal parties but for the last, which trains slower."""
    straggler = 1 / (1 + cell.slower / 100)
    speeds = {f"p{cell.parties - 1}": straggler} if cell.parties > 1 else {}
    latency, bandwidth = NETWORKS[cell.network]
    return World(speeds=speeds, latency=latency, bandwidth=bandwidth, lanes=cell.lanes, seed=cell.seed)  # type: ignore[arg-type]


def measure(cell: Cell, step: float) -> Row:
    """The row of a cell. What fails is a row too, with its reason."""
    started = perf_counter()
    row: Row = {"key": cell.key, "cell": asdict(cell), "step": step}
    try:
        row |= (_simulated if cell.world == "simulated" else _processes)(cell, step)
    except ColonnadeError as error:
        row |= {"status": "error", "detail": str(error)}
    return row | {"took": round(perf_counter() - started, 2)} | environment()


def _simulated(cell: Cell, step: float) -> Row:
    rows, best = problem(cell), pooled(cell)
    blocks = [as_block(block) for block in datasets.split_columns(rows.X, cell.parties)]
    classes = 1 if best.weights.ndim == 1 else best.weights.shape[1]
    agreed = plan(
        job(cell, step, aggregation="plain"),
        [f"p{k}" for k in range(cell.parties)],
        len(rows.labels),
        classes,
    )
    simulation = Simulation(world(cell), agreed.parties)
    parties = {}
    for name, block in zip(agreed.parties, blocks, strict=True):
        host = simulation.hosts[name]
        host.holds(isinstance(block, SparseBlock))
        party = Party(host, agreed, block, rows.labels, ids_digest(None, agreed.rows), None)
        if cell.prompt:
            party.lane_of = _prompt(party.me)  # type: ignore[method-assign]
        parties[name] = party
    observer = Observer(agreed, parties, rows.labels, best.value)
    patience = 1.2 * (1 + cell.slower / 100) if cell.both_clocks else 0.0
    observer.watch(cell.target, cell.passes, patience, MOST_SECONDS)
    finished = {name: party.begin() for name, party in parties.items()}
    simulation.run(finished)
    results = {name: promise.result() for name, promise in finished.items()}
    return _found(observer, results) | _predictions(cell, results, best)


def _prompt(me: int) -> Callable[[int], int]:
    """A listener answers at full speed in lockstep too."""
    return lambda requester: TRAINING if requester == me else requester


def _found(observer: Observer, results: dict[str, Result]) -> Row:
    failed = [result for result in results.values() if result.outcome not in ("budget", "diverged")]
    if failed:
        raise ColonnadeError(f"{failed[0].outcome}: {failed[0].detail}")
    curve = observer.papers_curve()
    return {
        "status": observer.status,
        "gap": observer.honest[-1][1],
        "reached": observer.reached,
        "papers_seconds": curve[-1][0] if observer.papers_steps else None,
        "honest": _thinned(observer.honest),
        "papers": _thinned(curve),
        "workload": {name: _workload(result) for name, result in results.items()},
    }


def _workload(result: Result) -> dict[str, float]:
    total = result.finished - result.started
    spent = {"computing": result.computing, "communicating": result.communicating}
    return spent | {"waiting": max(0.0, total - sum(spent.values())), "steps": result.notes[-1].steps}


def _thinned(curve: Curve) -> list[list[float]]:
    some = np.unique(np.linspace(0, len(curve) - 1, min(POINTS, len(curve))).astype(int)) if curve else []
    return [[float(f"{number:.6g}") for number in curve[k]] for k in some]


def _predictions(cell: Cell, results: dict[str, Result], best: Pooled) -> Row:
    """How well the parties together and the pooled model predict the rows kept back."""
    if not cell.held_out:
        return {}
    rows = problem(cell)
    blocks = datasets.split_columns(rows.test, cell.parties)
    scores = sum(block @ result.weights for block, result in zip(blocks, results.values(), strict=True))
    together = scores + next(iter(results.values())).intercept
    loss = datasets.get(cell.dataset).loss
    return {
        "together": quality(loss, together, rows.test_labels),
        "pooled": quality(loss, rows.test @ best.weights + best.intercept, rows.test_labels),
    }


def quality(loss: str, scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy, and AUC of two classes; root mean squared error of a regression."""
    if loss == "squared":
        return {"RMSE": float(np.sqrt(np.mean((scores - labels) ** 2)))}
    if loss == "multinomial":
        return {"accuracy": float(np.mean(scores.argmax(axis=1) == labels))}
    from sklearn.metrics import roc_auc_score

    accuracy = float(np.mean(np.where(scores > 0, 1.0, -1.0) == labels))
    return {"accuracy": accuracy, "AUC": float(roc_auc_score(labels, scores))}


def _processes(cell: Cell, step: float) -> Row:
    """Real parties, masked and over TLS: they end after `passes`, as nobody sees their gap."""
    rows, best = problem(cell), pooled(cell)
    rounds = round(cell.passes * len(rows.labels) / cell.batch) * cell.requesters
    blocks = datasets.split_columns(rows.X, cell.parties)
    labels = rows.labels
    report = train_locally(job(cell, step, max_rounds=rounds, max_seconds=MOST_SECONDS), blocks, labels)
    gaps = report.trace["objective"] - best.value
    curve = list(zip(report.trace["seconds"].tolist(), gaps.tolist(), strict=True))
    below = np.flatnonzero(gaps <= cell.target)
    reached = (
        {"seconds": curve[below[0]][0], "rounds": int(report.trace["rounds"][below[0]])} if len(below) else {}
    )
    return {
        "status": "reached" if reached else "passes",
        "gap": float(gaps[-1]),
        "reached": reached,
        "honest": _thinned(curve),
        "seconds_a_round": float(report.trace["seconds"][-1] / report.trace["rounds"][-1]),
        "workload": {name: dict(spent) for name, spent in report.workload.items()},
    }
