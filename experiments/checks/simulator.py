"""Messages a second that the simulator handles, and a job of a thousand parties.

Throughput: plain sums, b = 32, q = 8, once with stored products (product and adjoint return at once, all else is real)
and once in full; the time is that of the simulation, without the trace made after it. A thousand parties, each run in
a process of its own whose peak memory is read at its end.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import colonnade as cn
from colonnade.algorithms import party
from colonnade.algorithms.result import Result
from colonnade.core.blocks import FeatureBlock, as_block, count
from colonnade.job import Plan, plan
from colonnade.runtime.simulated import Simulation
from experiments.checks.common import Check, leave, peak_memory, quick

SEED, COLUMNS, BATCH = 0, 12, 32
ROWS = 30_000
MANY_ROWS, MANY_COLUMNS = 10_000, 2
THOUSAND = {
    "one label party, AFSVRG pushed": {"method": "afsvrg", "labels": ("p0",), "max_rounds": 50},
    "all hold labels, FSVRG": {"method": "afsvrg", "schedule": "synchronous", "max_rounds": 50},
    "all ask for themselves, AFSGD": {"method": "afsgd", "schedule": "asynchronous", "max_rounds": 1_000},
}


class StoredProducts:
    """A block whose products are there already and whose steps cost nothing."""

    def __init__(self, block: FeatureBlock, seed: int) -> None:
        self.rows, self.columns, self.matrix = block.rows, block.columns, block.matrix
        self._scores = np.random.default_rng([SEED, seed]).standard_normal(self.rows)

    def product(self, rows: Any, w: np.ndarray) -> np.ndarray:
        return self._scores[: count(rows)]

    def add_adjoint(self, rows: Any, r: np.ndarray, onto: np.ndarray, factor: float = 1.0) -> None:
        pass

    def nonzeros(self, rows: Any) -> int:
        return count(rows) * self.columns

    def row_norms(self) -> np.ndarray:
        return np.ones(self.rows)


def job(**more: Any) -> cn.Job:
    common = {
        "aggregation": "plain",
        "fit_intercept": False,
        "batch_size": BATCH,
        "step": 0.01,
        "tol": 0,
        "random_state": SEED,
    }
    return cn.Job(**(common | more))


def simulated(
    agreed: Plan, blocks: list[FeatureBlock], labels: np.ndarray
) -> tuple[float, dict[str, Result]]:
    """Seconds that the simulation takes, and what the parties hand back."""
    simulation = Simulation(cn.World(seed=SEED), agreed.parties)
    started = perf_counter()
    finished = {
        name: party.start(simulation.hosts[name], agreed, block, labels if name in agreed.labels else None)
        for name, block in zip(agreed.parties, blocks, strict=True)
    }
    simulation.run(finished)
    return perf_counter() - started, {name: promise.result() for name, promise in finished.items()}


def data(parties: int, rows: int, columns: int) -> tuple[list[FeatureBlock], np.ndarray]:
    rng = np.random.default_rng(SEED)
    blocks = [as_block(rng.standard_normal((rows, columns))) for _ in range(parties)]
    return blocks, np.where(rng.random(rows) < 0.5, 1.0, -1.0)


def throughput(check: Check, rounds: int, repeats: int) -> None:
    blocks, labels = data(8, ROWS, COLUMNS)
    stored: list[FeatureBlock] = [StoredProducts(block, number) for number, block in enumerate(blocks)]
    names = tuple(f"p{number}" for number in range(8))
    for method in ("afsvrg", "afsaga", "afsgd"):
        agreed = plan(job(method=method, schedule="asynchronous", max_rounds=rounds), names, ROWS, 1)
        rates: dict[str, list[float]] = {"stored products": [], "in full": []}
        for _ in range(repeats):
            for kind, held in (("stored products", stored), ("in full", blocks)):
                seconds, results = simulated(agreed, held, labels)
                rates[kind].append(sum(result.notes[-1].messages for result in results.values()) / seconds)
        check.at_least(f"{method}, stored products: messages a second", max(rates["stored products"]), 50_000)
        check.report(f"{method}, in full: messages a second", max(rates["in full"]))
        check.notes[f"{method}: all runs"] = {
            kind: [round(rate) for rate in some] for kind, some in rates.items()
        }


def thousand(name: str, parties: int) -> dict[str, float]:
    """One job of so many parties, trace and report included."""
    blocks, labels = data(parties, MANY_ROWS, MANY_COLUMNS)
    settings = THOUSAND[name] | {"max_rounds": THOUSAND[name]["max_rounds"] * parties // 1_000}
    started = perf_counter()
    report = cn.simulate(job(**settings), blocks, labels)
    return {
        "seconds": perf_counter() - started,
        "messages": int(report.trace["messages"][-1]),
        "rounds": int(report.trace["rounds"][-1]),
        "finished": float(report.outcome == "budget" and np.isfinite(report.objective)),
        "peak": peak_memory(),
    }


def crowds(check: Check, parties: int) -> None:
    for name in THOUSAND:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found = pool.submit(thousand, name, parties).result()
        what = f"{parties:,} parties, {name}"
        check.holds(f"{what}: finishes", "yes" if found["finished"] else "no", "yes", found["finished"] == 1)
        check.at_most(f"{what}: peak memory, GB", found["peak"] / 1e9, 1.0)
        check.report(f"{what}: seconds for {found['rounds']:,} rounds", found["seconds"])
        check.report(f"{what}: messages", found["messages"])


REMARK = (
    "Where a thousand parties all ask for themselves, 999,000 sums are under way at once: each keeps its ask, its "
    "product and what waits for them, some 2 kB (tracemalloc, 300 parties: asks 0.55, products 0.7, the rest small "
    "objects)."
)


def main() -> None:
    small = quick(__doc__)
    check = Check("simulator", f"simulator: plain sums, b = {BATCH}", SEED, small)
    with threadpool_limits(1):
        throughput(check, 500 if small else 4_000, 2 if small else 5)
        crowds(check, 100 if small else 1_000)
    check.remark(REMARK)
    leave(check)


if __name__ == "__main__":
    main()
