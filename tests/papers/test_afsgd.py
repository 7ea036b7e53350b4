"""Algorithms 3, 4 and 5 against the pooled optimum, scikit-learn, and a second implementation written densely."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import colonnade as cn
from colonnade.core.losses import LOSSES, eliminate_intercept
from colonnade.core.sampling import Sampler
from colonnade.runtime.world import Cost
from spine import LOSS_NAMES, joined, problem

SCHEDULES = ("asynchronous", "synchronous")
STEPS = {"logistic": 1.5, "multinomial": 1.0, "squared": 0.2}
ALPHA = 0.05


def job(loss, method="afsvrg", **more):
    settings = {"alpha": ALPHA, "batch_size": 20, "step": STEPS[loss], "tol": 3e-11, "aggregation": "plain"}
    return cn.Job(loss=loss, method=method, **{**settings, **more})


def assert_optimal(report, table, intercept, penalise=False):
    best = table.optimum(ALPHA, intercept, penalise)
    reached = table.objective(joined(report), report.intercept, ALPHA, penalise)
    assert report.outcome == "converged", report.detail
    assert reached - best.value <= 1e-8
    assert report.objective == pytest.approx(reached, abs=1e-12)
    assert report.certificate >= reached - best.value - 1e-13
    np.testing.assert_allclose(joined(report), best.weights, atol=1e-4)
    np.testing.assert_allclose(report.intercept, best.intercept, atol=1e-4)


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("q", [2, 4, 8])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("method", ["afsvrg", "afsaga"])
def test_variance_reduced_methods_reach_the_pooled_optimum(method, schedule, q, loss):
    table = problem(loss)
    intercept = q == 4
    report = cn.simulate(
        job(loss, method, schedule=schedule, fit_intercept=intercept), table.blocks(q), table.y
    )
    assert_optimal(report, table, intercept)


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_penalised_intercept_is_a_column_of_ones(schedule, loss):
    table = problem(loss)
    report = cn.simulate(job(loss, schedule=schedule, penalise_intercept=True), table.blocks(3), table.y)
    assert_optimal(report, table, intercept=True, penalise=True)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_coefficients_are_those_of_scikit_learn(loss, schedule):
    table = problem(loss)
    n = len(table.y)
    report = cn.simulate(job(loss, "afsaga", schedule=schedule), table.blocks(4), table.y)
    if loss == "squared":
        model = Ridge(alpha=n * ALPHA / 2, tol=1e-12).fit(table.X, table.y)
        w, b = model.coef_, model.intercept_
    else:
        model = LogisticRegression(C=1 / (n * ALPHA), tol=1e-10, max_iter=5_000).fit(table.X, table.y)
        w = model.coef_.T if loss == "multinomial" else model.coef_[0]
        b = model.intercept_ if loss == "multinomial" else model.intercept_[0]
    np.testing.assert_allclose(joined(report), w, atol=1e-4)
    np.testing.assert_allclose(report.intercept, b, atol=1e-4)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_plain_stochastic_gradients_come_near_and_say_that_they_did_not_converge(schedule):
    table = problem()
    few = job("logistic", "afsgd", schedule=schedule, step=0.05, tol=1e-9, max_rounds=2_500)
    report = cn.simulate(few, table.blocks(4), table.y)
    assert report.outcome == "budget"
    assert 0 < report.objective - table.optimum(ALPHA, True).value < 5e-3


class Dense:
    """The recursions as the papers print them: dense vectors, all columns at once, no parties."""

    def __init__(self, table, estimator, eta, batch, seed=0):
        self.X, self.labels, self.loss = table.X, table.encoded(), LOSSES[table.loss]
        self.n = len(self.X)
        shape = (3,) if table.loss == "multinomial" else ()
        self.w, self.b = np.zeros((self.X.shape[1], *shape)), np.zeros(shape)
        self.stored = np.zeros((self.n, *shape))
        self.kind, self.eta, self.since = estimator, eta, 0
        self.sampler = Sampler(seed, "shared", self.n, batch)

    def sweep(self):
        without = self.X @ self.w
        self.b = eliminate_intercept(self.loss, without, self.labels, self.b)
        self.stored = self.loss.slopes(without + self.b, self.labels)
        self.since = 0

    def step(self):
        rows = self.sampler.draw()
        slopes = self.loss.slopes(self.X[rows] @ self.w + self.b, self.labels[rows])
        change = slopes - self.stored[rows]
        v = self.X[rows].T @ change / len(rows) + self.X.T @ self.stored / self.n
        on_b = change.mean(axis=0) + self.stored.mean(axis=0)
        self.w = self.w - self.eta * (v + ALPHA * self.w)
        self.b = self.b - self.eta * on_b
        if self.kind == "saga":
            self.stored[rows] = slopes
        self.since += len(rows)
        if self.kind == "svrg" and self.since >= 2 * self.n:
            self.sweep()


@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("kind", ["sgd", "svrg", "saga"])
def test_a_synchronous_twin_takes_the_steps_of_the_dense_recursion(kind, loss):
    table = problem(loss)
    rounds = 60
    dense = Dense(table, kind, STEPS[loss], 20)
    sweeps = 0
    if kind != "sgd":
        dense.sweep()
        sweeps = 1
    steps = 0
    while steps + sweeps < rounds:
        before = dense.since
        dense.step()
        steps += 1
        sweeps += dense.since < before
    twin = job(loss, f"af{kind}", schedule="synchronous", tol=0.0, max_rounds=rounds)
    report = cn.simulate(twin, table.blocks(4), table.y)
    assert report.trace["rounds"][-1] == rounds
    np.testing.assert_allclose(joined(report), dense.w, atol=1e-9)
    np.testing.assert_allclose(report.intercept, dense.b, atol=1e-9)


def test_an_automatic_step_converges_whatever_the_scale_of_the_features():
    table = problem()
    for factor in (0.1, 10.0):
        report = cn.simulate(
            job("logistic", step="auto", tol=1e-6), [factor * b for b in table.blocks(3)], table.y
        )
        assert report.outcome == "converged", report.detail


def test_asynchronous_parties_finish_sooner_than_the_twin_beside_a_straggler():
    """The paper's claim in its own setting: own totals, one party slow, a lane a requester."""
    table = problem(n=400)
    seconds = []
    for schedule in SCHEDULES:
        slow = cn.World(
            speeds={"p1": 1 / 3}, until=table.optimum(ALPHA).value + 1e-3, cost=Cost(0.0, 1e-9, 1e-9)
        )
        same = job("logistic", "afsaga", schedule=schedule, fit_intercept=False, tol=0.0, step=0.3)
        report = cn.simulate(same, table.blocks(4), table.y, world=slow)
        assert report.objective <= slow.until
        seconds.append(report.seconds)
    assert seconds[0] < seconds[1]


def test_more_passes_never_lose_the_optimum_again():
    table = problem()
    gaps = [
        cn.simulate(job("logistic", "afsaga", tol=0.0, max_rounds=rounds), table.blocks(2), table.y).objective
        - table.optimum(ALPHA, True).value
        for rounds in (50, 200, 800)
    ]
    assert all(later < earlier for earlier, later in pairwise(gaps))
