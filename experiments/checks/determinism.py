"""The simulator repeats itself: the same seed gives the same trace, byte for byte; another seed does not.

The world has everything that draws or waits: jitter, a straggler, slow links, two-tree's masks, a party without labels.
"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np

import colonnade as cn
from experiments.checks.common import Check, leave, quick

ROWS, COLUMNS, PARTIES, SEED = 2_000, 5, 5, 7


CASES = list(
    itertools.product(
        ("afsgd", "afsvrg", "afsaga"), ("asynchronous", "synchronous"), ("plain", "two-tree", "pairwise")
    )
)


def traced(case: tuple[str, str, str], world_seed: int, job_seed: int, rounds: int) -> tuple[str, str]:
    """SHA-256 of a run's trace, and of all frames with their instants."""
    method, schedule, aggregation = case
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((ROWS, COLUMNS)) for _ in range(PARTIES)]
    labels = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    job = cn.Job(
        method=method,
        schedule=schedule,
        aggregation=aggregation,
        labels=("p0", "p2", "p3"),
        batch_size=32,
        step=0.05,
        tol=0,
        max_rounds=rounds,
        random_state=job_seed,
    )
    world = cn.World(
        speeds={"p1": 1 / 3}, latency=1e-4, jitter=3e-4, bandwidth=1e8, record=True, seed=world_seed
    )
    report = cn.simulate(job, blocks, labels, world)
    frames = hashlib.sha256()
    for seconds, sender, receiver, frame in report.transcript or []:
        frames.update(f"{seconds!r} {sender} {receiver} ".encode() + bytes(frame))
    return hashlib.sha256(report.trace.to_bytes()).hexdigest(), frames.hexdigest()


def main() -> None:
    small = quick(__doc__)
    rounds = 100 if small else 500
    check = Check("determinism", "simulator: one seed, twice; another seed", SEED, small)
    same = world = job = 0
    for case in CASES:
        first, again = (traced(case, SEED, SEED, rounds) for _ in range(2))
        others = traced(case, SEED + 1, SEED, rounds)[0], traced(case, SEED, SEED + 1, rounds)[0]
        same += first == again
        world, job = world + (others[0] != first[0]), job + (others[1] != first[0])
        check.notes[", ".join(case)] = {"trace": first[0], "world's seed + 1": others[0], "job's": others[1]}
    every = len(CASES)
    for name, needed, agreeing in (
        ("both seeds the same, twice: jobs with the same trace and frames", "all, byte for byte", same),
        ("another seed of the world: jobs with another trace", "all", world),
        ("another seed of the job: jobs with another trace", "all", job),
    ):
        check.holds(name, f"{agreeing} of {every}", needed, agreeing == every)
    leave(check)


if __name__ == "__main__":
    main()
