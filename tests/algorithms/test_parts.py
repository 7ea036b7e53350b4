"""Parts of a party on their own: the inbox, the meter, the ending of a run, results on a pipe."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.algorithms import meter as meters
from colonnade.algorithms.inbox import Inbox
from colonnade.algorithms.meter import Meter
from colonnade.algorithms.result import Note, Result, decode, encode
from colonnade.core.blocks import as_block
from colonnade.core.linear import LinearModel
from colonnade.runtime.host import Promise, spawn


class Slow:
    """Work that waits until it is let go."""

    def __init__(self):
        self.gates, self.done = [], []

    def work(self, name):
        gate = Promise()
        self.gates.append(gate)

        async def apply():
            await gate
            self.done.append(name)

        return apply


def fail(error):
    raise error


def test_at_most_sixteen_batches_wait_and_no_sweep_is_dropped():
    slow, inbox = Slow(), Inbox(16, fail)
    for number in range(40):
        inbox.put(slow.work(number), batch=True)
        if number % 10 == 0:
            inbox.put(slow.work(f"sweep {number}"), batch=False)
    assert inbox.dropped == 40 - 16
    for gate in slow.gates:
        gate.set(None)
    sweeps = [name for name in slow.done if isinstance(name, str)]
    assert sweeps == ["sweep 0", "sweep 10", "sweep 20", "sweep 30"]
    assert [name for name in slow.done if not isinstance(name, str)] == list(range(16))


@given(st.lists(st.sampled_from(["batch", "sweep", "done"]), max_size=80), st.integers(1, 4))
def test_an_inbox_keeps_the_order_and_its_bound(events, pending):
    slow, inbox, kept, waiting = Slow(), Inbox(pending, fail), [], 0
    released = 0
    for number, event in enumerate(events):
        if event == "done":
            if released < len(kept):
                waiting -= kept[released][1]
                kept[released][2].set(None)
                released += 1
            continue
        batch = event == "batch"
        work = slow.work(number)
        if not batch or waiting < pending:
            kept.append((number, batch, slow.gates[-1]))
            waiting += batch
        inbox.put(work, batch)
    drained = []
    spawn(inbox.drained(), fail).then(lambda _: drained.append(True))
    assert bool(drained) == (released == len(kept))
    for *_, gate in kept[released:]:
        gate.set(None)
    assert slow.done == [number for number, *_ in kept]
    assert drained == [True]
    batches = sum(event == "batch" for event in events)
    assert inbox.dropped == batches - sum(batch for _, batch, _ in kept)


def test_all_pushes_of_a_synchronous_job_wait_their_turn():
    slow, inbox = Slow(), Inbox(None, fail)
    for number in range(500):
        inbox.put(slow.work(number), batch=True)
    assert inbox.dropped == 0


# the meter


def metered(dense=10, free=True, d=4):
    clock = iter(range(10**6))
    model = LinearModel(as_block(np.ones((3, d))), 1, intercept=False, penalise=False)
    host = SimpleNamespace(now=lambda: float(next(clock)), notes_are_free=free)
    return model, Meter(model, host, lambda: (0, 0), dense)


def walk(model, meter, steps):
    meter.note()
    for number in range(1, steps + 1):
        model.weights.assign(np.full(4, float(number)))
        meter.round_done(1)
        meter.stepped(4)


def test_every_round_is_noted_at_first_and_one_in_a_hundred_later():
    model, meter = metered(dense=100)
    walk(model, meter, 2_000)
    notes, weights, _ = meter.end(model.freeze())
    rounds = [note.rounds for note in notes]
    assert rounds[:100] == list(range(100))
    assert np.all(np.diff(rounds[101:-2]) <= np.array(rounds[101:-2])[1:] * 0.01 + 1)
    assert rounds[-1] == 2_000
    assert all(weights[note.weights][0] == note.rounds for note in notes)


def test_thinned_notes_keep_the_first_the_last_and_their_own_weights(monkeypatch):
    monkeypatch.setattr(meters, "MOST_BYTES", 4 * 8 * 5)
    model, meter = metered(dense=10**6)
    walk(model, meter, 1_000)
    notes, weights, _ = meter.end(model.freeze())
    assert len(weights) <= 25
    assert notes[0].rounds == 0
    assert notes[-1].rounds == 1_000
    assert all(weights[note.weights][0] == note.rounds for note in notes)
    assert [note.rounds for note in notes] == sorted(note.rounds for note in notes)
    gaps = np.diff([note.rounds for note in notes[:-1]])
    assert gaps.max() <= 2 * 1_000 / 10


def test_notes_taken_after_the_end_do_not_reach_the_result():
    model, meter = metered()
    walk(model, meter, 5)
    notes, weights, _ = meter.end(model.freeze())
    meter.note()
    assert max(note.weights for note in notes) < len(weights)


# results on a pipe


@pytest.mark.parametrize("classes", [1, 3])
def test_a_result_survives_the_pipe(classes):
    rng = np.random.default_rng(0)
    shape = (4,) if classes == 1 else (4, classes)
    result = Result(
        party="p0",
        outcome="budget",
        detail="",
        weights=rng.standard_normal(shape),
        intercept=np.asarray(0.5 if classes == 1 else rng.standard_normal(3)),
        notes=[Note(0.5, 1, 2, 3, 4, 5, 0)],
        noted=rng.standard_normal((2, *shape)),
        noted_intercepts=rng.standard_normal(2),
        certificate=None,
        step=0.1,
        started=0.0,
        finished=1.0,
        computing=0.5,
        communicating=0.25,
        received={"totals": 1},
    )
    again = decode(encode(result))
    for field in Result.__struct_fields__:
        before, after = getattr(result, field), getattr(again, field)
        if isinstance(before, np.ndarray):
            assert before.tobytes() == after.tobytes()
            assert before.shape == after.shape
        else:
            assert before == after


def test_a_pipe_carries_no_objects():
    payload = encode_with_dtype("O")
    with pytest.raises(Exception, match="objects are not read"):
        decode(payload)


def encode_with_dtype(dtype):
    import msgspec

    array = {"dtype": "<f8", "shape": [1], "data": bytes(8)}
    fields = {
        "party": "p0",
        "outcome": "",
        "detail": "",
        "weights": {**array, "dtype": dtype},
        "intercept": array,
        "notes": [],
        "noted": array,
        "noted_intercepts": array,
        "certificate": None,
        "step": 0.0,
        "started": 0.0,
        "finished": 0.0,
        "computing": 0.0,
        "communicating": 0.0,
        "received": {},
    }
    return msgspec.msgpack.encode(fields)
