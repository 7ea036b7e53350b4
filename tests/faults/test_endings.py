"""However a run ends, everybody hears of it, the report says why in one sentence, and what was reached is kept."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import colonnade as cn
from colonnade.algorithms.party import Party
from colonnade.core.blocks import as_block
from colonnade.data.alignment import ids_digest
from colonnade.job import plan
from colonnade.runtime.host import Promise
from colonnade.runtime.simulated import SimulatedLink, Simulation
from colonnade.runtime.world import Fault
from colonnade.wire.codec import decode
from colonnade.wire.messages import Share
from spine import joined, problem

AGGREGATIONS = ["plain", "two-tree", "pairwise"]
SCHEDULES = ["asynchronous", "synchronous"]
INSTANTS = [0.0, 1e-6, 1.5e-4, 2.5e-4, 1e-3, 3e-3, 1e-2, 2e-2]
"""While greeting, while comparing rows, in the first sweep, and later; a hop is 1e-4 s."""


def job(**more):
    settings = {"alpha": 0.05, "batch_size": 20, "step": 0.5, "tol": 1e-9, "timeout": 5.0}
    return cn.Job(**{**settings, **more})


def made_of(run, world, blocks, labels, ids=None):
    """A simulated world and its parties, which have not begun."""
    names = tuple(f"p{number}" for number in range(len(blocks)))
    simulation = Simulation(world, names)
    agreed = plan(run, names, len(labels), 1)
    return simulation, {
        name: Party(
            simulation.hosts[name],
            agreed,
            as_block(block),
            labels if name in agreed.labels else None,
            ids_digest(ids[name] if ids else None, len(labels)),
            None,
        )
        for name, block in zip(names, blocks, strict=True)
    }


def parties(run, world, blocks, labels, ids=None, change=None):
    """The results of the parties that finished."""
    simulation, made = made_of(run, world, blocks, labels, ids)
    if change is not None:
        change(simulation, made)
    finished = {name: party.begin() for name, party in made.items()}
    simulation.run(finished)
    return {name: promise.result() for name, promise in finished.items() if simulation.hosts[name].alive}


# a party or a link is lost


@pytest.mark.parametrize("at", INSTANTS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("dead", ["p0", "p2"])
def test_everybody_left_names_the_party_that_died(dead, aggregation, schedule, at):
    table = problem()
    world = cn.World(latency=1e-4, faults=(Fault(at, dead),))
    results = parties(
        job(schedule=schedule, aggregation=aggregation), world, table.blocks(4), table.encoded()
    )
    assert dead not in results
    assert len(results) == 3
    for name, result in results.items():
        assert result.outcome == "peer lost", name
        assert f"peer lost: {dead} (" in result.detail, name
        assert "start the run again" in result.detail


@pytest.mark.parametrize("at", INSTANTS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_a_cut_link_names_an_end_of_it(aggregation, schedule, at):
    table = problem()
    world = cn.World(latency=1e-4, faults=(Fault(at, "p0", "p2"),))
    run = job(schedule=schedule, aggregation=aggregation)
    results = parties(run, world, table.blocks(4), table.encoded())
    for result in results.values():
        assert result.outcome == "peer lost"
        assert "the link was cut" in result.detail
        assert "p0" in result.detail or "p2" in result.detail
        assert np.all(np.isfinite(result.weights))


def stopping_instants():
    """From the last messages before the end to the last goodbye."""
    table = problem()
    run = job(tol=0.0, max_rounds=40)
    report = cn.simulate(run, table.blocks(4), table.y, world=cn.World(latency=1e-4, record=True))
    end = report.transcript[-1][0]
    return [end + offset * 1e-4 for offset in (-4.5, -3.5, -2.5, -1.5, -0.5, 0.5, 1.5)]


@pytest.mark.parametrize("fault", [("p1", None), ("p0", None), ("p1", "p2"), ("p0", "p3")])
def test_a_loss_while_the_run_ends_neither_hangs_nor_undoes_it(fault):
    table = problem()
    run = job(tol=0.0, max_rounds=40)
    for at in stopping_instants():
        world = cn.World(latency=1e-4, faults=(Fault(at, *fault),))
        results = parties(run, world, table.blocks(4), table.encoded())
        for name, result in results.items():
            assert result.outcome in ("budget", "peer lost"), (at, name)
            assert result.detail
            assert np.all(np.isfinite(result.weights))
            if result.outcome == "peer lost":
                assert fault[0] in result.detail or (fault[1] or "") in result.detail


def test_a_report_of_a_run_that_lost_a_party_keeps_the_others_weights():
    table = problem()
    world = cn.World(faults=(Fault(1e-3, "p1"),))
    report = cn.simulate(job(), table.blocks(3), table.y, world=world)
    assert report.outcome == "peer lost"
    assert np.all(np.isnan(report.weights["p1"]))
    assert np.all(np.isfinite(report.weights["p0"]))
    assert np.isnan(report.objective)


# silence


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("mute", ["p0", "p2"])
@pytest.mark.parametrize("hops", [0.5, 1.5, 2.5, 60])
def test_silence_beyond_the_time_out_is_a_lost_party(mute, schedule, aggregation, hops, monkeypatch):
    """A party that is there but says nothing more, from its greeting on or from the middle of the run."""
    table = problem()
    spoken = SimulatedLink.write

    def write(link, frame):
        if link._sender.name != mute or link._clock.now < hops * 1e-4:
            spoken(link, frame)

    def never_wakes(simulation, made):
        simulation.hosts[mute].sleep = lambda seconds, background=False: Promise()

    monkeypatch.setattr(SimulatedLink, "write", write)
    run = job(schedule=schedule, aggregation=aggregation)
    names = ("p0", "p1", "p2", "p3")
    simulation, made = made_of(run, cn.World(latency=1e-4), table.blocks(4), table.encoded())
    never_wakes(simulation, made)
    finished = {name: made[name].begin() for name in names}
    simulation.run({name: finished[name] for name in names if name != mute})
    for name in names:
        if name != mute:
            result = finished[name].result()
            assert result.outcome == "peer lost"
            assert f"peer lost: {mute} (" in result.detail, name


def test_one_who_answers_everybody_but_one_is_found_out(monkeypatch):
    """The others go on talking, so silence is not what gives it away."""
    table = problem()
    spoken = SimulatedLink.write

    def write(link, frame):
        share_of_p0 = type(message := decode(frame)) is Share and message.requester == 0
        if not (share_of_p0 and link._sender.name == "p2" and link._clock.now > 5e-3):
            spoken(link, frame)

    monkeypatch.setattr(SimulatedLink, "write", write)
    run = job(aggregation="pairwise", tol=0.0, timeout=0.01, max_rounds=10**6)
    for result in parties(run, cn.World(latency=1e-4), table.blocks(3), table.encoded()).values():
        assert result.outcome == "peer lost"
        assert "peer lost: p2 (silent for" in result.detail


# a party refuses


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("large", [0, 1, 2])
def test_an_overflow_is_refused_in_one_sentence_and_the_last_good_point_kept(large, aggregation, schedule):
    table = problem()
    blocks = table.blocks(3)
    blocks[large] = blocks[large] * 1e12
    report = cn.simulate(job(schedule=schedule, aggregation=aggregation), blocks, table.y)
    assert report.outcome == "refused"
    assert report.detail.startswith(f"p{large}: a share holds a number of size")
    assert report.detail.endswith("scale the features down, or lower the step")
    assert np.all(joined(report) == 0.0)  # no good pass was made after the start


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_a_hopeless_step_is_named_divergence_and_a_finite_point_kept(loss, schedule):
    table = problem(loss)
    run = job(loss=loss, schedule=schedule, alpha=1e-3, step=300.0)
    report = cn.simulate(run, table.blocks(3), table.y)
    assert report.outcome in ("diverged", "refused")
    assert "lower the step" in report.detail
    start = table.objective(0 * joined(report), 0 * report.intercept, 1e-3)
    assert table.objective(joined(report), report.intercept, 1e-3) <= 10 * start


def test_the_last_good_point_is_the_last_certified_one():
    """An overflow late in a run: somebody's weights explode after some good passes."""
    table = problem()

    def spoil(simulation, made):
        def explode(_):
            assert made["p0"].ending.last_good > 0
            made["p2"].model.weights.assign(1e12 * np.ones_like(made["p2"].model.weights.u))

        simulation.clock.at(6e-3, explode, None)

    results = parties(job(step=0.01, tol=1e-12), cn.World(), table.blocks(3), table.encoded(), change=spoil)
    for result in results.values():
        assert result.outcome == "refused"
        assert result.detail.startswith("p2: ")
    w = np.concatenate([result.weights for result in results.values()])
    assert table.objective(w, results["p0"].intercept, 0.05) < 0.95 * np.log(2)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_rows_in_another_order_are_refused_at_joining_by_both_parties(aggregation):
    table = problem()
    straight = [str(number) for number in range(120)]
    ids = {"p0": straight, "p1": straight[::-1], "p2": straight}
    results = parties(job(aggregation=aggregation), cn.World(), table.blocks(3), table.encoded(), ids=ids)
    for result in results.values():
        assert result.outcome == "refused"
        assert "p1" in result.detail
        assert "sort both tables by the id column" in result.detail
        assert np.all(result.weights == 0.0)


def test_an_error_of_our_own_ends_the_run_with_its_reason():
    table = problem()

    def spoil(simulation, made):
        def broken(rows, slopes):
            raise ZeroDivisionError("a bug")

        made["p1"].estimator.residual = broken

    for schedule in SCHEDULES:
        results = parties(job(schedule=schedule), cn.World(), table.blocks(3), table.encoded(), change=spoil)
        for result in results.values():
            assert result.outcome == "refused"
            assert "p1 failed: ZeroDivisionError: a bug" in result.detail


# Ctrl-C


def test_ctrl_c_keeps_what_was_reached():
    script = textwrap.dedent(
        """
        import numpy as np, colonnade as cn
        X = np.random.default_rng(0).standard_normal((400, 6))
        job = cn.Job(batch_size=10, step=0.01, tol=0.0, max_rounds=10**7, aggregation="plain")
        def watch(name, event):
            print("rounds", event["rounds"], flush=True)
        report = cn.simulate(job, [X[:, :3], X[:, 3:]], X[:, 0] > 0, cn.World(latency=1.0), watch=watch)
        print(report.outcome, "|", report.detail, "|", report.objective, "|", report.trace["rounds"][-1])
        """
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(20):
        child.stdout.readline()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert err == ""
    outcome, detail, objective, rounds = (part.strip() for part in out.splitlines()[-1].split("|"))
    assert (outcome, detail) == ("interrupted", "interrupted at p0")
    assert 0 < float(objective) < np.log(2)
    assert int(rounds) > 5
