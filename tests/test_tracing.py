"""A trace: monotone, from zero to the final weights, and its objectives those of a direct evaluation."""

import os
import signal

import numpy as np
import pytest

import colonnade as cn
from colonnade import tracing
from colonnade.algorithms import meter as meters
from colonnade.record import COLUMNS
from spine import LOSS_NAMES, joined, problem

ALPHA = 0.05


def run(loss="logistic", q=3, world=None, **more):
    settings = {"alpha": ALPHA, "batch_size": 20, "step": 0.3, "tol": 0.0, "max_rounds": 300}
    table = problem(loss)
    job = cn.Job(loss=loss, **{**settings, **more})
    return table, cn.simulate(job, table.blocks(q), table.y, world=world)


@pytest.mark.parametrize("schedule", ["asynchronous", "synchronous"])
@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("penalise", [False, True])
def test_a_trace_goes_from_zero_to_the_final_weights(loss, schedule, penalise):
    table, report = run(loss, schedule=schedule, penalise_intercept=penalise)
    trace = report.trace
    for name in COLUMNS:
        if name != "objective":
            assert np.all(np.diff(trace[name]) >= 0), name
    assert trace["seconds"][0] == trace["rounds"][0] == trace["rows"][0] == trace["steps"][0] == 0
    zero = 0 * joined(report)
    assert trace["objective"][0] == pytest.approx(
        table.objective(zero, 0 * report.intercept, ALPHA, penalise)
    )
    last = table.objective(joined(report), report.intercept, ALPHA, penalise)
    assert trace["objective"][-1] == pytest.approx(last, rel=1e-12)
    assert report.objective == trace["objective"][-1]


@pytest.mark.parametrize("labels", [None, ("p1",)])
def test_every_round_of_a_short_synchronous_run_has_its_row(labels):
    _, report = run(schedule="synchronous", labels=labels, max_rounds=80)
    assert set(range(81)) <= set(report.trace["rounds"].tolist())


def test_objectives_on_the_way_are_those_of_shorter_runs():
    _, long = run(schedule="synchronous", method="afsgd", max_rounds=60)
    for rounds in (1, 7, 23, 59):
        table, short = run(schedule="synchronous", method="afsgd", max_rounds=rounds)
        after = np.flatnonzero(long.trace["rounds"] == rounds + 1)[0]
        exact = table.objective(joined(short), short.intercept, ALPHA)
        assert np.isclose(long.trace["objective"][: after + 1], exact, rtol=1e-10).any()


def test_ctrl_c_after_the_run_gives_up_its_history_and_not_the_run(monkeypatch):
    evaluate, pressed = tracing._all_scores, []

    def press_once(*arguments):
        if not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)
        return evaluate(*arguments)

    monkeypatch.setattr(tracing, "_all_scores", press_once)
    table, report = run(schedule="synchronous", max_rounds=60)
    assert pressed
    assert report.outcome == "budget"
    assert np.isnan(report.trace["objective"][:-1]).all()
    assert report.objective == pytest.approx(
        table.objective(joined(report), report.intercept, ALPHA), rel=1e-12
    )


def test_rows_of_a_trace_count_what_was_asked_for():
    _, report = run(schedule="synchronous", method="afsgd", max_rounds=50)
    assert report.trace["rows"][-1] == 50 * 20
    assert report.trace["steps"][-1] == 50 * 3
    assert report.trace.passes(120)[-1] == pytest.approx(50 * 20 / 120)
    assert sum(load["messages"] for load in report.workload.values()) == report.trace["messages"][-1]
    assert sum(load["bytes"] for load in report.workload.values()) == report.trace["bytes"][-1]


@pytest.mark.parametrize("schedule", ["asynchronous", "synchronous"])
def test_a_long_run_is_noted_one_percent_at_a_time(schedule, monkeypatch):
    from colonnade.algorithms import party

    for module in (party, tracing):
        monkeypatch.setattr(module, "EVERY_ROUND", 50)
    _, report = run(schedule=schedule, max_rounds=2_000)
    assert len(report.trace) < 900
    late = report.trace["rounds"][report.trace["rounds"] > 500]
    assert np.median(np.diff(late)) >= 5


def test_thinned_notes_give_the_same_last_row(monkeypatch):
    _, full = run(schedule="synchronous")
    monkeypatch.setattr(meters, "MOST_BYTES", 500)
    _, thin = run(schedule="synchronous")
    assert len(thin.trace) < len(full.trace) / 2
    assert thin.trace["objective"][-1] == full.trace["objective"][-1]
    assert thin.trace["objective"][0] == full.trace["objective"][0]
    known = dict(zip(full.trace["seconds"].tolist(), full.trace["objective"].tolist(), strict=True))
    shared = [known[s] for s in thin.trace["seconds"].tolist() if s in known]
    assert len(shared) > 3


def test_scores_in_pieces_give_the_same_objectives(monkeypatch):
    _, whole = run()
    monkeypatch.setattr(tracing, "AT_ONCE", 1_000)
    _, pieces = run()
    np.testing.assert_allclose(pieces.trace["objective"], whole.trace["objective"], rtol=1e-12)


def test_an_observer_ends_the_run_at_its_target():
    table, _ = run()
    target = table.optimum(ALPHA, True).value + 1e-3
    _, report = run(max_rounds=None, world=cn.World(until=target))
    assert report.outcome == "budget"
    assert "the objective that the world names" in report.detail
    assert report.objective <= target
    assert report.trace["objective"][-20] > target


def test_seconds_start_when_all_have_said_hello():
    _, near = run(schedule="synchronous", max_rounds=3, method="afsgd")
    world = cn.World(latency={("p0", "p2"): 0.0, ("p2", "p0"): 0.0, ("p1", "p0"): 1.0})
    _, far = run(schedule="synchronous", max_rounds=3, method="afsgd", world=world)
    assert near.trace["seconds"][0] == far.trace["seconds"][0] == 0.0
    assert 3.0 <= far.seconds < 4.5  # three answers and a last goodbye of one second, no greeting
