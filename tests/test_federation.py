"""One job in every world: the same bits; and how a run ends, with which weights."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import colonnade as cn
from colonnade import federation
from colonnade.core.optimum import pooled_optimum
from colonnade.errors import ConfigurationError, DataError
from spine import joined, problem

ALPHA = 0.05
AGGREGATIONS = ("plain", "two-tree", "pairwise")


def job(**more):
    settings = {"alpha": ALPHA, "batch_size": 20, "step": 1.0, "tol": 1e-10, "aggregation": "plain"}
    return cn.Job(**{**settings, **more})


def synchronous(aggregation="plain", **more):
    return job(schedule="synchronous", tol=0.0, max_rounds=30, aggregation=aggregation, **more)


def csr(block):
    return sp.csr_array(np.where(np.abs(block) > 0.2, block, 0))


def as_csr(blocks):
    return [csr(block) for block in blocks]


def bits(report):
    return joined(report).tobytes(), np.asarray(report.intercept).tobytes(), report.objective


KINDS = {
    "float64": lambda table: table.blocks(4),
    "float32": lambda table: table.blocks(4, np.float32),
    "csr": lambda table: as_csr(table.blocks(4)),
}


@pytest.fixture(scope="module")
def expected():
    """Bits of the simulated, unmasked run, by kind of block and label parties."""
    known = {}

    def look(kind, labels=None):
        if (kind, labels) not in known:
            table = problem(loss="multinomial" if kind == "csr" else "logistic")
            report = cn.simulate(synchronous(labels=labels, loss=table.loss), KINDS[kind](table), table.y)
            assert report.outcome == "budget"
            known[kind, labels] = bits(report)
        return known[kind, labels]

    return look


@pytest.mark.parametrize("labels", [None, ("p1",), ("p2", "p3")])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world", ["simulated", "loopback"])
def test_a_synchronous_job_gives_the_same_bits_in_one_process(world, kind, aggregation, labels, expected):
    table = problem(loss="multinomial" if kind == "csr" else "logistic")
    run = synchronous(aggregation, labels=labels, loss=table.loss)
    report = federation.run(run, world, KINDS[kind](table), table.y)
    assert report.trace["rounds"][-1] == 30
    assert bits(report) == expected(kind, labels)


@pytest.mark.parametrize("aggregation, kind", list(zip(AGGREGATIONS, KINDS, strict=True)))
def test_a_synchronous_job_gives_the_same_bits_in_processes(aggregation, kind, expected):
    table = problem(loss="multinomial" if kind == "csr" else "logistic")
    report = cn.train_locally(synchronous(aggregation, loss=table.loss), KINDS[kind](table), table.y)
    assert bits(report) == expected(kind)


LINKS = list(itertools.permutations(("p0", "p1", "p2", "p3"), 2))


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("number", range(4))
def test_a_slow_link_at_random_changes_no_bit(aggregation, number, expected):
    slow = LINKS[np.random.default_rng([number, len(aggregation)]).integers(len(LINKS))]
    table = problem()
    world = cn.World(latency={slow: 5e-3}, jitter=1e-4, bandwidth=1e7, speeds=[1, 0.2, 1, 0.7], seed=number)
    for labels in (None, ("p1",)):
        report = cn.simulate(synchronous(aggregation, labels=labels), table.blocks(4), table.y, world=world)
        assert bits(report) == expected("float64", labels)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_an_automatic_step_that_retreats_gives_the_same_bits_over_slow_links(aggregation, monkeypatch):
    """Asks come by the tree and may overtake the retreat, which comes by the direct link."""
    from colonnade.algorithms import party

    monkeypatch.setattr(party, "safe_step", lambda *_: 60.0)
    table = problem()
    results = []
    for slow in (None, ("p0", "p1"), ("p0", "p2"), ("p0", "p3")):
        world = cn.World(latency={slow: 5e-3} if slow else 0.0)
        run = job(step="auto", alpha=1e-3, schedule="synchronous", aggregation=aggregation, max_rounds=120)
        report = cn.simulate(run, table.blocks(4), table.y, world=world)
        assert report.chosen["step"] < 60.0
        results.append(bits(report))
    assert len(set(results)) == 1


@pytest.mark.parametrize("labels", [("p0",), ("p1", "p2")])
@pytest.mark.parametrize("aggregation", ["plain", "two-tree"])
def test_asks_that_come_by_the_tree_do_not_overtake_a_retreat(aggregation, labels, monkeypatch):
    """A pass asked for before its party has gone back would forget the point to go back to, and never be judged."""
    from colonnade.algorithms import party

    monkeypatch.setattr(party, "safe_step", lambda *_: 60.0)
    table = problem()
    run = job(step="auto", alpha=1e-3, aggregation=aggregation, labels=labels, tol=1e-4, max_rounds=3_000)
    steps = set()
    for slow in (("p0", "p3"), ("p1", "p0"), ("p1", "p2")):
        report = cn.simulate(run, table.blocks(4), table.y, world=cn.World(latency={slow: 0.05}))
        assert report.outcome in ("converged", "budget"), (slow, report.detail)
        steps.add(report.chosen["step"])
    assert min(steps) < 60.0


@pytest.mark.parametrize("labels", [None, ("p1",)])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_a_pass_in_chunks_gives_the_same_bits_and_is_one_round(aggregation, labels):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((70_000, 3)), rng.standard_normal(70_000)
    run = job(
        loss="squared",
        schedule="synchronous",
        aggregation=aggregation,
        labels=labels,
        batch_size=20_000,
        tol=1e-3,
        step=0.2,
    )
    world = cn.World(latency={("p0", "p2"): 1.0, ("p1", "p2"): 1.0})
    near, far = (cn.simulate(run, list(X.T[:, :, None]), y, world=w) for w in (cn.World(), world))
    assert near.outcome == "converged"
    assert bits(near) == bits(far)
    best = pooled_optimum(X, y, "squared", ALPHA, True)
    assert near.objective - best.value <= near.certificate <= 1e-3
    assert near.trace["rounds"][1] == 1
    assert near.trace["rows"][1] == 70_000


# labels and sharing


@pytest.mark.parametrize("sharing", ["auto", "own", "push"])
@pytest.mark.parametrize("labels", [None, ("p1",), ("p2", "p0")])
@pytest.mark.parametrize("method", ["afsvrg", "afsaga"])
def test_whoever_holds_labels_an_asynchronous_job_finds_the_optimum(method, labels, sharing):
    table = problem()
    run = job(method=method, labels=labels, sharing=sharing, aggregation="pairwise")
    if sharing == "own" and labels is not None:
        with pytest.raises(ConfigurationError, match=r"its weights would never move.*sharing = \"push\""):
            cn.simulate(run, table.blocks(3), table.y)
        return
    report = cn.simulate(run, table.blocks(3), table.y)
    assert report.outcome == "converged", report.detail
    assert report.objective - table.optimum(ALPHA, True).value <= 1e-8
    pushed = [report.received[name]["slopes"] + report.received[name]["scores"] for name in ("p1", "p2")]
    assert sum(pushed) > 0
    assert all(report.workload[name]["steps"] > 0 for name in report.weights)


def test_slopes_go_to_those_without_labels_only():
    table = problem()
    report = cn.simulate(job(labels=("p0", "p2")), table.blocks(4), table.y)
    for name, received in report.received.items():
        assert (received["slopes"] > 0) == (name in ("p1", "p3")), name


def test_a_straggler_drops_pushed_batches_but_no_sweep_and_the_job_converges():
    table = problem()
    world = cn.World(speeds={"p2": 0.02})
    run = job(method="afsvrg", labels=("p0",), step=0.1, batch_size=4, tol=1e-8)
    report = cn.simulate(run, table.blocks(3), table.y, world=world)
    assert report.outcome == "converged", report.detail
    assert report.objective - table.optimum(ALPHA, True).value <= 1e-8
    assert report.received["p2"]["dropped"] > 0
    assert report.received["p1"]["dropped"] == 0
    taken = report.workload["p2"]["steps"] + report.received["p2"]["dropped"]
    assert taken == report.workload["p1"]["steps"]


def test_a_synchronous_straggler_drops_nothing():
    table = problem()
    report = cn.simulate(
        synchronous(labels=("p0",)), table.blocks(3), table.y, world=cn.World(speeds={"p2": 0.01})
    )
    assert report.received["p2"]["dropped"] == 0
    assert len({load["steps"] for load in report.workload.values()}) == 1


# how a run ends


@pytest.mark.parametrize("schedule", ["asynchronous", "synchronous"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("intercept", [True, False])
def test_converged_means_that_the_certified_copy_is_that_near(tol, schedule, intercept):
    table = problem()
    report = cn.simulate(
        job(tol=tol, schedule=schedule, fit_intercept=intercept, step=0.2), table.blocks(4), table.y
    )
    best = pooled_optimum(table.X, table.encoded(), "logistic", ALPHA, intercept)
    gap = table.objective(joined(report), report.intercept, ALPHA) - best.value
    assert report.outcome == "converged"
    assert 0 <= gap <= report.certificate <= tol
    slopes = 1 / (1 + np.exp(-table.X @ joined(report) - report.intercept)) - (table.encoded() > 0)
    gradient = table.X.T @ slopes / len(table.y) + ALPHA * joined(report)
    assert report.certificate == pytest.approx(gradient @ gradient / (2 * ALPHA), rel=1e-6)


def test_without_a_penalty_the_certificate_is_the_gradient_norm():
    table = problem("squared")
    report = cn.simulate(job(loss="squared", alpha=0.0, step=0.2, tol=1e-5), table.blocks(2), table.y)
    residual = table.X @ joined(report) + report.intercept - table.y
    gradient = 2 * table.X.T @ residual / len(table.y)
    assert report.outcome == "converged"
    assert np.linalg.norm(gradient) == pytest.approx(report.certificate, rel=1e-5)
    assert report.certificate <= 1e-5


@pytest.mark.parametrize("most", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("step", [1.0, "auto"])
@pytest.mark.parametrize("labels", [None, ("p1",)])
def test_a_synchronous_job_makes_exactly_so_many_rounds(most, step, labels):
    table = problem()
    run = job(schedule="synchronous", max_rounds=most, step=step, labels=labels, tol=0.0)
    report = cn.simulate(run, table.blocks(3), table.y)
    assert report.outcome == "budget"
    assert f"max_rounds = {most}" in report.detail
    assert report.trace["rounds"][-1] == most


@pytest.mark.parametrize("schedule", ["asynchronous", "synchronous"])
def test_seconds_of_the_worlds_clock_are_a_budget(schedule):
    table = problem()
    run = job(schedule=schedule, max_seconds=0.5, tol=0.0)
    report = cn.simulate(run, table.blocks(3), table.y, world=cn.World(latency=1e-2))
    assert report.outcome == "budget"
    assert "max_seconds = 0.5" in report.detail
    assert 0.5 <= report.seconds <= 0.6


def test_without_a_limit_a_job_ends_after_a_thousand_passes(monkeypatch):
    from colonnade.algorithms import party

    monkeypatch.setattr(party, "MOST_PASSES", 3)
    table = problem()
    report = cn.simulate(job(tol=0.0, method="afsgd", step=0.1), table.blocks(2), table.y)
    assert report.outcome == "budget"
    assert "set max_rounds" in report.detail


@pytest.mark.parametrize("method", ["afsgd", "afsvrg", "afsaga"])
@pytest.mark.parametrize("schedule", ["asynchronous", "synchronous"])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_one_party_alone_trains(method, schedule, aggregation):
    table = problem()
    run = job(method=method, schedule=schedule, aggregation=aggregation, tol=0.05)
    report = cn.simulate(run, table.blocks(1), table.y)
    assert report.outcome == "converged"
    assert report.trace["messages"][-1] == 0


@pytest.mark.parametrize("name", ["bank", "a"])
def test_who_leaves_the_range_of_shares_is_named(name):
    table = problem("squared")
    first, second = table.blocks(2)
    job = cn.Job(loss="squared", labels=(name,), batch_size=20)
    report = cn.simulate(job, {name: first, "shop": second * 1e3}, np.asarray(table.y) * 1e12)
    assert report.outcome == "refused"
    assert report.detail.startswith((f"{name}: a share holds", "shop: a share holds"))


# what is refused before a run


def test_blocks_of_different_rows_are_refused_with_both_names():
    table = problem()
    with pytest.raises(DataError, match="p0 has 120 rows and p1 has 119"):
        cn.simulate(job(), [table.X, table.X[1:]], table.y)
    with pytest.raises(DataError, match="119 labels for 120 rows"):
        cn.simulate(job(), [table.X], table.y[1:])
    with pytest.raises(DataError, match="no blocks"):
        cn.simulate(job(), [], table.y)


def test_ids_in_another_order_are_refused_with_both_names():
    table = problem()
    ids = [str(number) for number in range(120)]
    with pytest.raises(DataError, match=r"'p0' and 'p1'.*another order.*row 1 "):
        cn.simulate(job(), table.blocks(2), table.y, ids={"p0": ids, "p1": ids[::-1]})


def test_a_world_that_is_none_is_refused():
    table = problem()
    with pytest.raises(ConfigurationError, match="known: simulated, loopback, processes"):
        federation.run(job(), "cloud", table.blocks(2), table.y)
