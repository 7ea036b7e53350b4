"""What every party of a recorded run received: totals, and nothing else."""

from collections import Counter
from itertools import chain, combinations

import numpy as np
import pytest
from scipy.stats import chi2

import colonnade as cn
from colonnade.algorithms.party import Party
from colonnade.core.blocks import as_block
from colonnade.core.linear import LinearModel
from colonnade.job import plan
from colonnade.privacy.aggregation import AGGREGATIONS
from colonnade.privacy.fixedpoint import Narrow
from colonnade.privacy.leakage import learnt, subtree
from colonnade.runtime.simulated import Simulation
from colonnade.wire import messages as m
from colonnade.wire.codec import decode
from spine import problem

MASKED = ["two-tree", "pairwise"]


def recorded(aggregation, q, n=120, **more):
    """Frames of a run as (sender, receiver, message), positions for names."""
    settings = {"alpha": 0.05, "batch_size": 20, "step": 0.3, "tol": 0.0, "max_rounds": 40}
    table = problem(n=n)
    job = cn.Job(aggregation=aggregation, **{**settings, **more})
    report = cn.simulate(job, table.blocks(q), table.y, world=cn.World(record=True, latency=1e-5))
    return [(int(a[1:]), int(b[1:]), decode(frame)) for _, a, b, frame in report.transcript]


def seen_by(frames, q, aggregation, viewer, requester, number):
    """Each word that a viewer received in a round, over the unknown products and masks of the others."""
    rules = AGGREGATIONS[aggregation]
    pairs = list(combinations(range(q), 2))
    unknown_masks = q if aggregation == "two-tree" else len(pairs)
    rows = []
    for sender, receiver, message in frames:
        if receiver != viewer or type(message) not in (m.Share, m.Mask):
            continue
        if (message.requester, message.round) != (requester, number):
            continue
        tree = rules.mask_tree if type(message) is m.Mask else rules.tree
        members = subtree(q, tree, requester, sender) - {viewer}
        products, masks = np.zeros(q, int), np.zeros(unknown_masks, int)
        if type(message) is m.Share:
            products[list(members)] = 1
        for member in members - {requester}:
            if aggregation == "two-tree":
                masks[member] = 1
            else:
                for column, pair in enumerate(pairs):
                    if member in pair and requester not in pair and viewer not in pair:
                        masks[column] += 1 if member == pair[0] else -1
        rows.append([*products.tolist(), *masks.tolist()])
    return rows


@pytest.mark.parametrize("field", ["rationals", "bits"])
@pytest.mark.parametrize("q", [3, 4, 8])
@pytest.mark.parametrize("aggregation", MASKED)
def test_the_rank_check_over_all_received_finds_totals_only(aggregation, q, field):
    frames = recorded(aggregation, q)
    rounds = {(f.requester, f.round) for _, _, f in frames if type(f) is m.Share}
    last = {r: max(number for requester, number in rounds if requester == r) for r, _ in rounds}
    for requester, number in [(r, last[r] - 1) for r in last]:
        for viewer in range(q):
            found = learnt(seen_by(frames, q, aggregation, viewer, requester, number), q, field)
            total = [0 if party == requester else 1 for party in range(q)]
            assert found == ([total] if viewer == requester else []), (requester, viewer)


@pytest.mark.parametrize("q", [3, 4, 8])
@pytest.mark.parametrize("aggregation", MASKED)
def test_masked_words_of_zero_products_sum_to_zero_at_the_requester_alone(aggregation, q):
    """All weights are zero in the first pass: what is sent is nothing but masks."""
    frames = recorded(aggregation, q, method="afsaga", schedule="synchronous")
    shares = [f for _, to, f in frames if type(f) is m.Share and f.round == 1 and to == 0]
    masks = [f for _, to, f in frames if type(f) is m.Mask and f.round == 1 and to == 0]
    words = [np.frombuffer(f.words, "<u8") for f in shares]
    assert all(np.count_nonzero(each) == 120 for each in words)
    total = np.sum(words, axis=0, dtype=np.uint64)
    for mask in masks:
        total -= np.frombuffer(mask.words, "<u8")
    assert np.all(total == 0)


@pytest.mark.parametrize("aggregation", MASKED)
def test_masked_words_are_uniform(aggregation):
    frames = recorded(aggregation, 4, n=6_000, batch_size=6_000, max_rounds=100)
    sent = [f.words for _, _, f in frames if type(f) in (m.Share, m.Mask) and len(f.words) == 48_000]
    words = np.frombuffer(b"".join(sent), np.uint8).reshape(-1, 8)
    assert len(words) >= 1_000_000
    for place in range(8):
        counts = np.bincount(words[:, place], minlength=256)
        expected = len(words) / 256
        statistic = np.sum((counts - expected) ** 2) / expected
        assert chi2.sf(statistic, 255) > 1e-6, place


@pytest.fixture
def products(monkeypatch):
    """The words of every product that any party computes in a run."""
    made = []
    for method in ("product", "frozen_product"):
        before = getattr(LinearModel, method)

        def noted(self, *arguments, before=before):
            values = before(self, *arguments)
            made.append(Narrow(40).encode(values, 8).tobytes())
            return values

        monkeypatch.setattr(LinearModel, method, noted)
    return made


@pytest.mark.parametrize("labels", [None, ("p1",)])
@pytest.mark.parametrize("q", [3, 4, 8])
@pytest.mark.parametrize("aggregation", [*MASKED, "plain"])
def test_no_partys_product_occurs_in_any_frame(aggregation, q, labels, products):
    table = problem()
    job = cn.Job(
        aggregation=aggregation,
        labels=labels,
        alpha=0.05,
        batch_size=20,
        step=0.3,
        tol=0.0,
        max_rounds=30,
    )
    report = cn.simulate(job, table.blocks(q), table.y, world=cn.World(record=True))
    frames = b"\0".join(bytes(frame) for *_, frame in report.transcript)
    nonzero = {words for words in products if any(words)}
    assert len(nonzero) > 50
    found = sum(words in frames for words in nonzero)
    assert found > 0 if aggregation == "plain" else found == 0


def totals_when(rows_asked_of_p1):
    """What p0 learns in its first batch after one pass over all rows, when it asks p1 for other rows."""
    table = problem()
    job = cn.Job(aggregation="pairwise", alpha=0.05, batch_size=20, step=0.3, tol=0.0, max_rounds=8)
    names = ("p0", "p1", "p2", "p3")
    simulation = Simulation(cn.World(), names)
    agreed = plan(job, names, 120, 1)
    parties = [
        Party(simulation.hosts[name], agreed, as_block(block), table.encoded(), b"", None)
        for name, block in zip(names, table.blocks(4), strict=True)
    ]
    asking = parties[0]
    send_all, total, learnt_scores = asking.peers.send_all, asking.exchange.total, []

    def send(positions, message):
        if type(message) is m.Ask and len(message.rows):
            for position in positions:
                rows = bytes(message.rows)
                rows = rows_asked_of_p1(rows) if position == 1 else rows
                send_all(
                    (position,),
                    m.Ask(message.requester, message.incarnation, message.round, *rest(message), rows),
                )
        else:
            send_all(positions, message)

    def rest(ask):
        return ask.what, ask.after, ask.done, ask.start, ask.stop

    async def noted(what, rows, number):
        values = await total(what, rows, number)
        if what == m.SCORES:
            learnt_scores.append(values)
        return values

    asking.peers.send_all, asking.exchange.total = send, noted
    simulation.run({party.host.name: party.begin() for party in parties})
    return np.abs(learnt_scores[0])


def test_masks_of_parties_that_were_asked_for_different_rows_do_not_cancel():
    def other(rows):
        return rows[4:] + rows[:4]

    assert np.all(totals_when(lambda rows: rows) < 10)
    wrong = totals_when(other)
    assert np.median(wrong) > 1e5  # words spread over all of 2^64, read as numbers of 40 binary places


# messages of a round


@pytest.mark.parametrize("q", [3, 4, 8])
@pytest.mark.parametrize(
    "aggregation, schedule, labels, each",
    [
        ("plain", "asynchronous", None, 2),
        ("pairwise", "asynchronous", None, 2),
        ("two-tree", "asynchronous", None, 3),
        ("plain", "synchronous", None, 3),
        ("pairwise", "synchronous", None, 3),
        ("two-tree", "synchronous", None, 4),
        ("pairwise", "asynchronous", ("p0",), 3),
    ],
)
def test_messages_of_a_round(aggregation, schedule, labels, each, q):
    frames = recorded(aggregation, q, method="afsgd", schedule=schedule, labels=labels, max_rounds=20 * q)
    rounds = {(f.requester, f.round) for _, _, f in frames if type(f) is m.Share}
    said = Counter(type(f) for _, _, f in frames)
    working = said[m.Ask] + said[m.Share] + said[m.Mask] + said[m.Push]
    assert working == each * (q - 1) * len(rounds)
    per_round = Counter((f.requester, f.round) for _, _, f in frames if type(f) is m.Ask)
    assert set(per_round.values()) == {q - 1}


def test_a_total_is_pushed_as_scores_to_label_parties_and_as_slopes_to_others():
    frames = recorded("pairwise", 4, labels=("p1", "p3"), schedule="synchronous")
    pushed = [(to, f.learnt & m.SLOPES_LEARNT) for _, to, f in frames if type(f) is m.Push]
    assert {to for to, slopes in pushed if slopes} == {0, 2}
    assert {to for to, slopes in pushed if not slopes} == {3}
    assert {a for a, _, f in frames if type(f) is m.Push} == {1}


def test_nothing_is_said_by_a_label_free_party_but_what_it_is_asked():
    frames = recorded("two-tree", 4, labels=("p0",))
    asked = {(f.requester, f.round) for _, _, f in frames if type(f) is m.Ask}
    for kind in (m.Share, m.Mask):
        assert {(f.requester, f.round) for _, _, f in frames if type(f) is kind} <= asked
    assert not list(chain(f for a, _, f in frames if type(f) is m.Push and a != 0))
