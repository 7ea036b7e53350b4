"""A secured round over the same arithmetic and masks in one thread with nothing sent.

One requester asks for a batch, all others answer under pairwise masks over TLS, the requester steps (SGD, nothing
pushed). Beside it the two jobs that users have: one label party, which pushes slopes to everybody, and all parties
asking for themselves. Both sides run in turn; each time is the median over the pieces of a run, of the best run.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import AsyncIterator
from os import urandom
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import colonnade as cn
from colonnade.algorithms.party import Party
from colonnade.algorithms.result import Result, decode
from colonnade.core.blocks import FeatureBlock, as_block
from colonnade.core.directions import Steepest
from colonnade.core.estimators import ESTIMATORS
from colonnade.core.linear import LinearModel
from colonnade.core.losses import LOSSES
from colonnade.core.sampling import Sampler
from colonnade.job import Plan, plan
from colonnade.privacy.aggregation import AGGREGATIONS, Request
from colonnade.privacy.fixedpoint import Narrow
from colonnade.privacy.masks import MaskKey
from colonnade.runtime.host import Host, Promise
from colonnade.runtime.launcher import ENTRY, run_processes
from experiments.checks.common import Check, leave, quick

PARTIES, ROWS, COLUMNS, STEP, SEED = 8, 30_000, 12, 0.01, 0
HERE = "experiments.checks.secured_round"
PIECES = 20
TOP = 12


class OneAsks(Party):
    """A party of a job in which all hold labels, but only the coordinator asks."""

    used = 0.0

    async def batches(self) -> AsyncIterator[Any]:
        self.used = process_time()
        if self.me == self.coordinator:
            async for rows in super().batches():
                yield rows


def one_asks(
    host: Host, agreed: Plan, block: FeatureBlock, labels: Any, ids: bytes, watch: Any
) -> Promise[Result]:
    party = OneAsks(host, agreed, block, labels, ids, None)
    finished = party.begin()
    finished.then(lambda _: watch({"cpu": process_time() - party.used}))
    return finished


def one_asks_profiled(
    host: Host, agreed: Plan, block: FeatureBlock, labels: Any, ids: bytes, watch: Any
) -> Promise[Result]:
    """The same with the requester under cProfile: where its time goes, longer as all of it is."""
    finished = one_asks(host, agreed, block, labels, ids, watch)
    if host.name == agreed.coordinator:
        profile = cProfile.Profile()

        def tell(_: object) -> None:
            profile.disable()
            watch({"profile": top_of(profile)})

        finished.then(tell)
        profile.enable()
    return finished


def top_of(profile: cProfile.Profile) -> list[list[Any]]:
    """What took longest by itself: function, calls, seconds."""
    stats: Any = pstats.Stats(profile)
    rows = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:TOP]
    return [
        [f"{Path(f).name}:{line} {name}", calls, round(own, 4)]
        for (f, line, name), (calls, _, own, *_) in rows
    ]


class Alone:
    """The parties of a secured round in one thread: products, words, masks, sum, slopes, the requester's step."""

    def __init__(self, blocks: list[np.ndarray], labels: np.ndarray, batch: int) -> None:
        self._blocks = [as_block(block) for block in blocks]
        self._models = [LinearModel(block, 1, False, False) for block in self._blocks]
        self._labels, self._batch = labels, batch
        self._sampler = Sampler(SEED, "p0", ROWS, batch)
        self._loss, self._estimator = LOSSES["logistic"], ESTIMATORS["sgd"](ROWS, 1)
        self._aggregation, self._form = AGGREGATIONS["pairwise"], Narrow(40)
        secrets = {(a, b): urandom(32) for b in range(PARTIES) for a in range(b)}
        self._keys = [
            {
                other: MaskKey(secrets[min(me, other), max(me, other)])
                for other in range(PARTIES)
                if other != me
            }
            for me in range(PARTIES)
        ]
        self._direction = Steepest()
        self._round = 0

    def round(self) -> None:
        self._round += 1
        rows = self._sampler.draw()
        request = Request(0, 1, self._round, 0, (self._batch,), rows.tobytes())
        total = self._form.encode(self._models[0].product(rows), PARTIES)
        for me in range(1, PARTIES):
            words = self._form.encode(self._models[me].product(rows), PARTIES)
            words, _ = self._aggregation.blind(words, self._form, request, me, self._keys[me], urandom)
            self._form.add(total, words)
        scores = self._form.decode(total, (self._batch,))
        residual = self._estimator.residual(rows, self._loss.slopes(scores, self._labels[rows]))
        self._direction.step(self._models[0].weights, self._blocks[0], rows, residual, STEP, 1e-4)

    def measure(self, rounds: int) -> list[float]:
        """Microseconds a round, of each piece of a run."""
        times = []
        for _ in range(PIECES):
            started = perf_counter()
            for _ in range(rounds // PIECES):
                self.round()
            times.append((perf_counter() - started) / (rounds // PIECES) * 1e6)
        return times


def agreed_for(batch: int, rounds: int, labels: tuple[str, ...] | None = None) -> Plan:
    job = cn.Job(
        method="afsgd",
        schedule="asynchronous",
        aggregation="pairwise",
        fit_intercept=False,
        batch_size=batch,
        step=STEP,
        tol=0,
        max_rounds=rounds,
        random_state=SEED,
        labels=labels,
    )
    return plan(job, tuple(f"p{number}" for number in range(PARTIES)), ROWS, 1)


def processes(
    agreed: Plan, blocks: list[np.ndarray], labels: np.ndarray, entry: str = ENTRY, watch: Any = None
) -> dict[str, Result]:
    names = agreed.parties
    held = dict(zip(names, blocks, strict=True))
    own = {name: labels if name in agreed.labels else None for name in names}
    collected = run_processes(agreed, held, own, None, watch, entry=entry)
    if collected.died:
        raise RuntimeError(f"parties died: {collected.died}")
    return {name: decode(payload) for name, payload in collected.results.items()}


def pieces_of(results: dict[str, Result]) -> list[float]:
    """Microseconds a round of the job in the middle nine tenths of a run, of each piece."""
    notes = [
        np.array([(n.seconds, n.rounds) for n in r.notes]) for r in results.values() if r.notes[-1].rounds
    ]
    first = max(times[0, 0] for times in notes)
    last = min(times[-1, 0] for times in notes)
    instants = first + (last - first) * np.linspace(0.05, 0.95, PIECES + 1)
    rounds = np.sum([np.interp(instants, *times.T) for times in notes], axis=0)
    return list(np.diff(instants) / np.diff(rounds) * 1e6)


def measure(check: Check, batch: int, rounds: int, repeats: int) -> None:
    rng = np.random.default_rng(SEED)
    blocks = [rng.standard_normal((ROWS, COLUMNS)) / 10 for _ in range(PARTIES)]
    labels = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    alone = Alone(blocks, labels, batch)
    jobs = {
        "one asks": (agreed_for(batch, rounds), f"{HERE}:one_asks"),
        "one asks, slopes pushed, all step": (agreed_for(batch, rounds, ("p0",)), ENTRY),
        "all ask for themselves": (agreed_for(batch, rounds), ENTRY),
    }
    took: dict[str, list[list[float]]] = {"one thread, nothing sent": [], **{name: [] for name in jobs}}
    used: list[float] = []
    for _ in range(repeats):
        took["one thread, nothing sent"].append(alone.measure(rounds))
        for name, (agreed, entry) in jobs.items():
            said: list[dict[str, Any]] = []
            results = processes(agreed, blocks, labels, entry, lambda _, event, said=said: said.append(event))
            took[name].append(pieces_of(results))
            if name == "one asks":
                used.append(sum(event.get("cpu", 0.0) for event in said) / rounds * 1e6)
    best = {name: float(np.min(np.median(pieces, axis=1))) for name, pieces in took.items()}
    reference = best["one thread, nothing sent"]
    for name in took:
        check.report(f"b = {batch:,}, {name}: µs a round", best[name])
    for name in jobs:
        ratio = best[name] / reference
        if batch == 1_024 and name == "one asks":
            check.at_most(f"b = {batch:,}, {name}, over one thread", ratio, 1.5)
        else:
            check.report(f"b = {batch:,}, {name}, over one thread", ratio)
    check.report(f"b = {batch:,}, one asks: µs of CPU a round, all processes", float(np.min(used)))
    check.notes[f"runs, b = {batch}"] = {
        name: [round(float(np.median(run)), 1) for run in runs] for name, runs in took.items()
    }
    if batch == 1_024:
        check.notes["profile of the requester, seconds"] = profiled(agreed_for(batch, rounds), blocks, labels)


def profiled(agreed: Plan, blocks: list[np.ndarray], labels: np.ndarray) -> list[list[Any]]:
    heard: list[Any] = []
    processes(agreed, blocks, labels, f"{HERE}:one_asks_profiled", lambda _, event: heard.append(event))
    return next(event["profile"] for event in heard if "profile" in event)


def main() -> None:
    small = quick(__doc__)
    check = Check(
        "secured_round",
        f"secured round: pairwise, TLS, q = {PARTIES}, one process a party, blocks of {ROWS:,}×{COLUMNS}",
        SEED,
        small,
    )
    with threadpool_limits(1):
        for batch in (1_024, 32):
            measure(check, batch, 1_000 if small else 4_000, 1 if small else 5)
    leave(check)


if __name__ == "__main__":
    main()
