"""A secured round over the same arithmetic and masks in one thread with nothing sent.

A round: a requester asks for a batch, all others answer under pairwise masks over TLS, the requester steps (SGD). Two
readings are held to the bound: one requester alone, whose rounds follow each other and leave a core waiting in turn,
and the papers' own sharing, in which all parties ask for themselves (wall time over rounds completed). Beside them one
label party, which pushes slopes to everybody. Both sides run in turn; each time is the median over the pieces of a run,
of the best run.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import AsyncIterator
from os import urandom
from pathlib import Path
from time import monotonic, perf_counter, process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import colonnade as cn
from colonnade.algorithms.party import Party
from colonnade.algorithms.result import Result
from colonnade.core.blocks import FeatureBlock, as_block
from colonnade.core.directions import Steepest
from colonnade.core.estimators import ESTIMATORS
from colonnade.core.linear import LinearModel
from colonnade.core.losses import LOSSES
from colonnade.core.sampling import Sampler
from colonnade.job import Plan, plan
from colonnade.privacy.aggregation import AGGREGATIONS, Request, Secrets
from colonnade.privacy.fixedpoint import Narrow
from colonnade.privacy.masks import MaskKey
from colonnade.runtime.host import Host, Promise
from colonnade.runtime.launcher import run_processes
from experiments.checks.common import Check, leave, quick

PARTIES, ROWS, COLUMNS, STEP, SEED = 8, 30_000, 12, 0.01, 0
ALONE = "one thread, nothing sent"
PIECES = 20
TOP = 12


class Timed(Party):
    """A party that notes when it draws each batch."""

    async def batches(self) -> AsyncIterator[Any]:
        self.drawn: list[float] = []
        self.used = process_time()
        async for rows in super().batches():
            self.drawn.append(monotonic())
            yield rows


class OneAsks(Timed):
    """The same in a job in which all hold labels, but only the coordinator asks."""

    def within_budget(self) -> bool:
        return self.me == self.coordinator and super().within_budget()


def begin(party: Timed, watch: Any) -> Promise[Result]:
    def tell(_: object) -> None:
        watch({"drawn": getattr(party, "drawn", []), "cpu": process_time() - getattr(party, "used", 0.0)})

    finished = party.begin()
    finished.then(tell)
    return finished


def all_ask(
    host: Host, agreed: Plan, block: FeatureBlock, labels: Any, ids: bytes, watch: Any
) -> Promise[Result]:
    return begin(Timed(host, agreed, block, labels, ids, None), watch)


def one_asks(
    host: Host, agreed: Plan, block: FeatureBlock, labels: Any, ids: bytes, watch: Any
) -> Promise[Result]:
    return begin(OneAsks(host, agreed, block, labels, ids, None), watch)


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
            words, _ = self._aggregation.blind(
                words, self._form, request, Secrets(me, self._keys[me], urandom)
            )
            self._form.add(total, words)
        scores = self._form.decode(total, (self._batch,))
        residual = self._estimator.residual(rows, self._loss.slopes(scores, self._labels[rows]))
        self._direction.step(self._models[0].weights, self._blocks[0], rows, residual, STEP, 1e-4)

    def measure(self, rounds: int) -> float:
        """Microseconds a round, the median over pieces of a run."""
        times = []
        for _ in range(PIECES):
            started = perf_counter()
            for _ in range(rounds // PIECES):
                self.round()
            times.append((perf_counter() - started) / (rounds // PIECES) * 1e6)
        return float(np.median(times))


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


def processes(agreed: Plan, blocks: list[Any], labels: np.ndarray, entry: str) -> list[dict[str, Any]]:
    """What the parties said of a run in processes of their own."""
    names = agreed.parties
    held = dict(zip(names, blocks, strict=True))
    own = {name: labels if name in agreed.labels else None for name in names}
    said: list[dict[str, Any]] = []
    collected = run_processes(
        agreed,
        held,
        own,
        None,
        lambda _, event: said.append(event),
        entry=f"experiments.checks.secured_round:{entry}",
    )
    if collected.died:
        raise RuntimeError(f"parties died: {collected.died}")
    return said


def microseconds(said: list[dict[str, Any]]) -> float:
    """A round of the job: the median over pieces of the middle nine tenths of a run."""
    drawn = [np.array(event["drawn"]) for event in said if len(event.get("drawn", ())) > 1]
    first, last = max(times[0] for times in drawn), min(times[-1] for times in drawn)
    instants = first + (last - first) * np.linspace(0.05, 0.95, PIECES + 1)
    rounds = np.sum([np.interp(instants, times, np.arange(len(times))) for times in drawn], axis=0)
    return float(np.median(np.diff(instants) / np.diff(rounds)) * 1e6)


def measure(check: Check, batch: int, rounds: int, repeats: int) -> None:
    rng = np.random.default_rng(SEED)
    blocks = [rng.standard_normal((ROWS, COLUMNS)) / 10 for _ in range(PARTIES)]
    labels = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    alone = Alone(blocks, labels, batch)
    jobs = {
        "one asks": (agreed_for(batch, rounds), "one_asks"),
        "one asks, slopes pushed, all step": (agreed_for(batch, rounds, ("p0",)), "all_ask"),
        "all ask for themselves": (agreed_for(batch, rounds), "all_ask"),
    }
    runs: dict[str, list[float]] = {ALONE: [], **{name: [] for name in jobs}}
    used: list[float] = []
    for _ in range(repeats):
        runs[ALONE].append(alone.measure(rounds))
        for name, (agreed, entry) in jobs.items():
            said = processes(agreed, blocks, labels, entry)
            runs[name].append(microseconds(said))
            if name == "one asks":
                used.append(sum(event["cpu"] for event in said) / rounds * 1e6)
    for name, times in runs.items():
        check.report(f"b = {batch:,}, {name}: µs a round", min(times))
    check.report(f"b = {batch:,}, one asks: µs of CPU a round, all processes", min(used))
    for name in jobs:
        ratio = min(runs[name]) / min(runs[ALONE])
        if batch == 1_024 and name != "one asks, slopes pushed, all step":
            check.at_most(f"b = {batch:,}, {name}, over one thread", ratio, 1.5)
        else:
            check.report(f"b = {batch:,}, {name}, over one thread", ratio)
    check.notes[f"runs, b = {batch}"] = {name: [round(t, 1) for t in times] for name, times in runs.items()}
    if batch == 1_024:
        said = processes(jobs["one asks"][0], blocks, labels, "one_asks_profiled")
        profile = next(event["profile"] for event in said if "profile" in event)
        check.notes["profile of the requester: function, calls, seconds"] = profile
        top = "; ".join(f"{seconds / rounds * 1e6:.0f} {name}" for name, _, seconds in profile[:8])
        check.remark(
            f"The requester under cProfile, b = {batch:,}, µs a round spent in the function itself: {top}."
        )


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
