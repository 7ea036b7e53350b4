"""The expected cost against what simulated runs count."""

import numpy as np
import pytest

from colonnade.cost import Links, expected
from colonnade.federation import simulate
from colonnade.job import Job, plan
from colonnade.runtime.world import World

ROWS = 400


def blocks(parties):
    rng = np.random.default_rng(3)
    return {f"p{number}": rng.normal(size=(ROWS, 3)) for number in range(parties)}


@pytest.mark.parametrize(
    "parties, options",
    [
        (2, {"labels": ("p0",)}),
        (4, {"method": "afsvrg"}),
        (4, {"method": "afsvrg", "schedule": "synchronous"}),
        (4, {"method": "afsgd", "aggregation": "two-tree", "labels": ("p1", "p2")}),
        (8, {"method": "afsaga", "aggregation": "plain", "sharing": "push"}),
        (3, {"loss": "multinomial", "schedule": "synchronous", "labels": ("p0", "p1")}),
        (3, {"loss": "squared", "batch_size": 8, "step": 1e-3, "max_rounds": 2_000}),
    ],
)
def test_expected_counts_are_within_a_quarter_of_a_simulated_run(parties, options):
    job = Job(**{"batch_size": 16, "tol": 1e-30, "max_rounds": 1_200, **options})
    held = blocks(parties)
    labels = np.random.default_rng(4).integers(0, 3 if job.loss == "multinomial" else 2, ROWS)
    links = {"latency": 2e-3, "bandwidth": 1e6}
    report = simulate(job, held, labels, World(**links))
    agreed = plan(job, tuple(held), ROWS, 3 if job.loss == "multinomial" else 1)
    nonzeros = {name: block.size for name, block in held.items()}
    made = report.trace.passes(ROWS)[-1]
    for cost in (
        expected(agreed, nonzeros, Links(**links)),
        expected(agreed, nonzeros, Links(**links), made),
    ):
        assert cost.rounds == pytest.approx(report.trace["rounds"][-1], rel=0.25)
        assert cost.passes == pytest.approx(made, rel=0.25)
        assert cost.messages == pytest.approx(report.trace["messages"][-1], rel=0.25)
        assert cost.bytes == pytest.approx(report.trace["bytes"][-1], rel=0.25)
        assert cost.seconds == pytest.approx(report.seconds, rel=0.25)


def test_the_assumption_is_said():
    agreed = plan(Job(batch_size=16), ("a", "b"), ROWS, 1)
    cost = expected(agreed, {"a": ROWS, "b": ROWS}, Links(latency=0.02, bandwidth=1e6))
    assert cost.passes == 20
    for words in ("20 passes", "an assumption", "20 ms a message", "1,000,000 bytes/s"):
        assert words in cost.assumption


def test_full_passes_travel_in_chunks():
    rows = 200_000
    agreed = plan(Job(batch_size=128, method="afsvrg", schedule="synchronous"), ("a", "b", "c"), rows, 1)
    short, long = (expected(agreed, {"a": rows}, passes=passes) for passes in (1, 4))
    assert short.rounds == 1
    assert short.messages == 4 * (4 + 2)  # four chunks: asks and shares, and a push to two
    assert long.bytes > 3 * short.bytes
