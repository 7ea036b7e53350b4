"""Virtual time: deterministic, its arithmetic checked by hand, and never a hang."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import colonnade as cn
from colonnade.errors import ConfigurationError
from colonnade.runtime.host import TRAINING, Promise
from colonnade.runtime.network import NetworkHost
from colonnade.runtime.simulated import Clock, DeadlockError, Simulation
from colonnade.runtime.world import Cost, Fault
from spine import joined, problem

CALM = Cost(0.0, 0.0, 0.0)


def job(**more):
    settings = {"alpha": 0.05, "batch_size": 20, "step": 1.0, "tol": 1e-6}
    return cn.Job(**{**settings, **more})


# the same seed, the same run

WORLDS = {
    "still": {},
    "far": {"latency": 1e-3, "bandwidth": 1e6},
    "shaky": {"latency": 1e-4, "jitter": 1e-3, "bandwidth": 1e7},
    "unequal": {"speeds": {"p2": 0.3}, "lanes": "party", "jitter": 1e-5},
    "broken": {"faults": (Fault(0.02, "p2"),), "latency": 1e-4, "jitter": 1e-4},
    "cut": {"faults": (Fault(0.02, "p0", "p3"),), "latency": 1e-4, "jitter": 1e-4},
}


def trace_bytes(world, run, seed=0):
    table = problem()
    report = cn.simulate(run, table.blocks(4), table.y, world=cn.World(**WORLDS[world], seed=seed))
    return report.trace.to_bytes(), joined(report).tobytes()


@pytest.mark.parametrize("schedule", ["asynchronous", "synchronous"])
@pytest.mark.parametrize("aggregation", ["plain", "two-tree", "pairwise"])
@pytest.mark.parametrize("world", WORLDS)
def test_the_same_seed_gives_the_same_bytes(world, aggregation, schedule):
    run = job(schedule=schedule, aggregation=aggregation, max_rounds=200)
    assert trace_bytes(world, run) == trace_bytes(world, run)


def test_another_seed_of_the_job_or_of_a_shaky_world_gives_another_trace():
    one = job(max_rounds=200)
    assert trace_bytes("still", one) != trace_bytes("still", job(max_rounds=200, random_state=1))
    assert trace_bytes("shaky", one) != trace_bytes("shaky", one, seed=1)


def test_a_second_interpreter_with_another_hash_seed_gives_the_same_bytes():
    script = textwrap.dedent(
        """
        import hashlib, numpy as np, colonnade as cn
        X = np.random.default_rng(0).standard_normal((60, 6))
        job = cn.Job(batch_size=10, step=0.1, max_rounds=100, aggregation="two-tree")
        world = cn.World(jitter=1e-4, record=True)
        report = cn.simulate(job, [X[:, :2], X[:, 2:4], X[:, 4:]], X[:, 0] > 0, world=world)
        said = hashlib.sha256(report.trace.to_bytes())
        for seconds, *ends, frame in report.transcript:
            said.update(repr((seconds, *ends)).encode() + bytes(frame))
        print(said.hexdigest())
        """
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": str(seed), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(said) == 1


def test_only_the_simulated_host_has_a_seed():
    worlds = [Simulation(cn.World(seed=5), ("a", "b")) for _ in range(2)]
    assert worlds[0].hosts["a"].entropy(32) == worlds[1].hosts["a"].entropy(32)
    assert worlds[0].hosts["a"].entropy(32) != worlds[0].hosts["b"].entropy(32)
    assert NetworkHost.entropy(None, 32) != NetworkHost.entropy(None, 32)


# arithmetic


class Ears:
    def __init__(self, simulation, name):
        self.heard, self.told, self.clock = [], [], simulation.clock
        simulation.hosts[name].listen(self)

    def opened(self, peer):
        pass

    def received(self, peer, frame):
        self.heard.append((self.clock.now, peer, bytes(frame)))

    def lost(self, peer, reason):
        self.told.append((self.clock.now, peer, reason))

    def failed(self, error):
        raise error


def two(**world):
    simulation = Simulation(cn.World(cost=CALM, **world), ("a", "b"))
    return simulation, Ears(simulation, "b"), simulation.hosts["a"].connect("b").result()


def drain(simulation):
    simulation.clock.run({"somebody"})


def test_a_frame_takes_its_bytes_over_the_bandwidth_and_then_the_latency():
    simulation, ears, link = two(latency={("a", "b"): 0.5}, bandwidth=100.0)
    link.write(b"x" * 96)  # and a prefix of four: one second on the line
    link.write(b"y" * 46)  # waits for the line, then half a second
    drain(simulation)
    assert [(when, frame[:1]) for when, _, frame in ears.heard] == [(1.5, b"x"), (2.0, b"y")]
    assert simulation.hosts["b"].communicating_seconds == pytest.approx(2.0)
    assert simulation.hosts["a"].communicating_seconds == 0.0


def test_jitter_never_reorders_a_link():
    simulation, ears, link = two(latency=0.1, jitter=1.0, seed=3)
    for number in range(50):
        link.write(bytes([number]))
    drain(simulation)
    assert [frame[0] for _, _, frame in ears.heard] == list(range(50))
    assert all(0.1 <= when <= 1.1 for when, *_ in ears.heard)


def test_a_closed_link_delivers_what_was_written_and_then_says_so():
    simulation, ears, link = two(latency=0.5)
    link.write(b"last")
    link.close()
    link.write(b"too late")
    drain(simulation)
    assert [frame for *_, frame in ears.heard] == [b"last"]
    assert [(when, peer) for when, peer, _ in ears.told] == [(0.5, "a")]


def test_computing_is_charged_by_non_zeros_speed_and_lane():
    world = cn.World(cost=Cost(1.0, 0.01, 0.02), speeds={"a": 0.5})
    simulation = Simulation(world, ("a",))
    host = simulation.hosts["a"]
    when = {}

    def note(name):
        return lambda promise: when.setdefault(name, simulation.clock.now)

    host.compute(lambda: None, 100).then(note("training"))  # (1 + 1) / 0.5
    host.compute(lambda: None, 100, lane=1).then(note("listener"))  # prompt: 2
    host.compute(lambda: None, 0, lane=1).then(note("same lane"))  # waits: 2 + 1
    host.compute(lambda: None, 0, lane=2).then(note("other lane"))  # 1
    host.holds(sparse=True)
    host.compute(lambda: None, 100, lane=3).then(note("sparse"))  # 1 + 2
    drain(simulation)
    assert when == {"training": 4, "listener": 2, "same lane": 3, "other lane": 1, "sparse": 3}
    assert host.computing_seconds == 4


def test_one_lane_a_party_makes_listeners_wait_for_each_other():
    simulation = Simulation(cn.World(cost=Cost(1.0, 0.0, 0.0), lanes="party"), ("a",))
    host = simulation.hosts["a"]
    ended = []
    for lane in (TRAINING, 1, 2, 3):
        host.compute(lambda: None, 0, lane=lane).then(lambda _: ended.append(simulation.clock.now))
    drain(simulation)
    assert ended == [1, 1, 2, 3]


def test_own_totals_on_one_lane_take_longer():
    table = problem()
    seconds = [
        cn.simulate(
            job(tol=0.0, max_rounds=400, aggregation="plain"),
            table.blocks(8),
            table.y,
            world=cn.World(lanes=lanes, cost=Cost(1e-5, 1e-8, 1e-8)),
        ).seconds
        for lanes in ("requester", "party")
    ]
    assert seconds[1] > 1.5 * seconds[0]


def test_an_error_in_work_comes_to_who_asked_for_it():
    simulation = Simulation(cn.World(cost=Cost(1.0, 0.0, 0.0)), ("a",))
    host = simulation.hosts["a"]

    def wrong():
        raise ZeroDivisionError

    host.compute(lambda: None, 0, lane=1)
    waited, written = host.compute(wrong, 0, lane=1), host.compute(wrong, 0, writes=True)
    drain(simulation)
    for promise in (waited, written):
        with pytest.raises(ZeroDivisionError):
            promise.result()


# a round trip by hand


def test_a_round_over_latency_alone_takes_a_round_trip():
    """Plain, q = 2, no computing: a round is one ask and one share; joining is no part of the seconds."""
    table = problem()
    run = job(schedule="synchronous", method="afsgd", tol=0.0, max_rounds=10, aggregation="plain")
    report = cn.simulate(run, table.blocks(2), table.y, world=cn.World(latency=1.0, cost=CALM))
    at = {
        int(rounds): seconds
        for rounds, seconds in zip(report.trace["rounds"], report.trace["seconds"], strict=True)
    }
    assert [at[number] for number in (1, 2, 9)] == pytest.approx([2.0, 4.0, 18.0])


def test_every_byte_of_the_trace_crossed_a_link():
    table = problem()
    world = cn.World(bandwidth=1_000.0, cost=CALM, record=True)
    run = job(tol=0.0, max_rounds=20, aggregation="two-tree")
    report = cn.simulate(run, table.blocks(3), table.y, world=world)
    assert len(report.transcript) == report.trace["messages"][-1]
    assert sum(len(frame) + 4 for *_, frame in report.transcript) == report.trace["bytes"][-1]


# nobody waits for ever


def test_all_wait_and_nothing_in_flight_is_a_deadlock():
    simulation = Simulation(cn.World(), ("a", "b"))
    with pytest.raises(DeadlockError, match=r"a, b wait and nothing is in flight"):
        simulation.run({"a": Promise(), "b": Promise()})


def test_timeouts_and_observers_keep_no_world_alive():
    simulation = Simulation(cn.World(), ("a",))
    host = simulation.hosts["a"]
    woken = []

    def again(_):
        woken.append(simulation.clock.now)
        host.sleep(30.0, background=True).then(again)

    host.sleep(30.0, background=True).then(again)
    with pytest.raises(DeadlockError):
        simulation.run({"a": Promise()})
    assert woken[:3] == [30.0, 60.0, 90.0]


def test_what_is_due_at_one_instant_happens_in_order():
    clock, seen = Clock(), []
    clock.at(1.0, seen.append, "first")
    clock.at(1.0, lambda _: clock.at(1.0, seen.append, "third"), None)
    clock.at(1.0, seen.append, "second")
    clock.run({"somebody"})
    assert seen == ["first", "second", "third"]


def test_two_hundred_parties_join_and_take_a_round(monkeypatch):
    table = problem(n=60, d=200)
    run = job(schedule="synchronous", method="afsgd", tol=0.0, max_rounds=2, aggregation="plain")
    report = cn.simulate(run, table.blocks(200), table.y)
    assert report.trace["rounds"][-1] == 2
    assert np.all(np.isfinite(joined(report)))


# worlds that are none


@pytest.mark.parametrize(
    "world, words",
    [
        ({"latency": -1.0}, "latency and jitter"),
        ({"jitter": float("nan")}, "latency and jitter"),
        ({"speeds": {"p0": 0.0}}, "speeds"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"lanes": "many"}, "lanes"),
    ],
)
def test_a_world_that_makes_no_sense_is_refused(world, words):
    with pytest.raises(ConfigurationError, match=words):
        cn.World(**world)


def test_a_world_names_parties_that_are_there():
    table = problem()
    for world in (
        {"speeds": {"p9": 0.5}},
        {"latency": {("p0", "p9"): 1.0}},
        {"faults": (Fault(1.0, "p9"),)},
    ):
        with pytest.raises(ConfigurationError, match="'p9', which is no party"):
            cn.simulate(job(), table.blocks(2), table.y, world=cn.World(**world))
    with pytest.raises(ConfigurationError, match="3 speeds for 2 parties"):
        cn.simulate(job(), table.blocks(2), table.y, world=cn.World(speeds=[1, 1, 1]))


def test_each_party_tells_its_progress():
    table = problem()
    looks = []
    cn.simulate(
        job(), table.blocks(2), table.y, cn.World(latency=0.1), watch=lambda *look: looks.append(look)
    )
    assert {name for name, _ in looks} == {"p0", "p1"}
    rounds = [event["rounds"] for name, event in looks if name == "p0"]
    assert rounds == sorted(rounds)


def test_faults_may_be_told_in_plain_words():
    assert cn.World(faults=[{"at": 1, "party": "p1"}]).faults == (Fault(at=1.0, party="p1"),)
    with pytest.raises(ConfigurationError, match=r"faults: .*`when`.*give Fault"):
        cn.World(faults=[{"when": 1, "party": "p1"}])
