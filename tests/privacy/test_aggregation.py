"""Every aggregation, with real keys and trees and messages in memory: totals exact, terms hidden."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.errors import LocalProtocolError
from colonnade.privacy.aggregation import AGGREGATIONS, Request, Secrets, peers
from colonnade.privacy.fixedpoint import Narrow, Wide
from colonnade.privacy.masks import PairSecrets

JOB = bytes(range(32))
NARROW, WIDE = Narrow(), Wide()


def entropy_of(seed):
    """Uniform bytes, the same every time."""
    return np.random.default_rng(seed).bytes


def pair_keys(q, seed=0):
    """Per party the mask keys that it holds with all others."""
    draw = entropy_of(seed)
    secrets = [PairSecrets(draw(32)) for _ in range(q)]
    return [
        {
            peer: secrets[me].agree(secrets[peer].public_key, JOB, 1, 1, me, peer).mask
            for peer in range(q)
            if peer != me
        }
        for me in range(q)
    ]


KEYS = {q: pair_keys(q) for q in range(1, 10)}


def blinded(name, shares, request, form=NARROW, seed=1):
    """What every party would put into the trees."""
    q, draw = len(shares), entropy_of(seed)
    return [
        AGGREGATIONS[name].blind(form.encode(share, q), form, request, Secrets(me, KEYS[q][me], draw))
        for me, share in enumerate(shares)
    ]


def summed(tree, q, requester, terms, form, seen):
    """Sums that travel up a tree, noting in `seen` who receives which."""

    def up(me):
        whole = terms[me].copy()
        for child in tree(q, requester, me)[1]:
            arrived = up(child)
            seen.append((me, child, arrived.copy()))
            form.add(whole, arrived)
        return whole

    return up(requester)


def total(name, shares, request, form=NARROW, seed=1):
    """One round in memory: the total, and all that was received."""
    q, requester, aggregation = len(shares), request.requester, AGGREGATIONS[name]
    parts, seen = blinded(name, shares, request, form, seed), []
    whole = summed(aggregation.tree, q, requester, [words for words, _ in parts], form, seen)
    if any(mask is not None for _, mask in parts):
        zero = np.zeros_like(whole)
        masks = [zero if mask is None else mask for _, mask in parts]
        form.subtract(whole, summed(aggregation.mask_tree, q, requester, masks, form, seen))
    return form.decode(whole, request.shape), seen


rounds = st.tuples(st.sampled_from(sorted(AGGREGATIONS)), st.integers(1, 9), st.booleans()).flatmap(
    lambda case: st.tuples(st.just(case), st.integers(0, case[1] - 1), st.integers(0, 2**32 - 1))
)


@given(rounds)
def test_the_total_is_the_same_bits_under_every_aggregation(case):
    (name, q, wide), requester, seed = case
    if (name, q) == ("two-tree", 2):
        return
    form = WIDE if wide else NARROW
    shares = list(np.random.default_rng(seed).normal(size=(q, 4, 2)))
    request = (
        Request(requester, 1, 7, 0, (4, 2), (0, 4)) if not wide else Request(requester, 1, 7, 1, (8,), (0, 0))
    )
    got, seen = total(name, shares, request, form, seed)
    plain, _ = total("plain", shares, request, form)
    exact = sum(np.rint(share * 2.0**40).astype(np.int64) for share in shares) * 2.0**-40
    assert np.array_equal(got, plain)
    np.testing.assert_allclose(got.reshape(4, 2), exact, rtol=0, atol=1e-11)
    asks = q - 1
    assert AGGREGATIONS[name].messages(q) == asks + len(seen)


@pytest.mark.parametrize("name", ["two-tree", "pairwise"])
@pytest.mark.parametrize("q", [3, 4, 5, 8])
def test_no_share_is_ever_seen_plain_and_no_sum_but_the_total(name, q):
    shares = list(np.random.default_rng(q).normal(size=(q, 6)))
    for requester in range(q):
        _, seen = total(name, shares, Request(requester, 1, 1, 0, (6,), (0, 6)))
        plain = np.array([NARROW.encode(share, q) for share in shares])
        for subset in range(1, 2**q):
            members = [me for me in range(q) if subset >> me & 1]
            sums = plain[members].sum(axis=0, dtype=np.uint64)
            whole = members == [me for me in range(q) if me != requester]
            assert whole or not any((arrived == sums).any() for _, _, arrived in seen)


@given(st.integers(3, 9), st.data())
def test_masks_for_different_rows_do_not_cancel(q, data):
    """Two honest parties tricked into answering different questions give the requester noise."""
    requester, tricked = data.draw(st.permutations(range(q)))[:2]
    shares = [np.zeros(5)] * q
    parts = blinded("pairwise", shares, Request(requester, 1, 1, 0, (5,), struct.pack("<5I", 1, 2, 3, 4, 5)))
    other = blinded("pairwise", shares, Request(requester, 1, 1, 0, (5,), struct.pack("<5I", 1, 2, 3, 4, 6)))
    assert not sum(words for words, _ in parts).any()
    parts[tricked] = other[tricked]
    assert sum(words for words, _ in parts).all()


@pytest.mark.parametrize("name", ["two-tree", "pairwise"])
def test_masked_words_are_uniform(name):
    """Chi-square of the bytes of 2^17 masked zeros: 8 × 255 degrees of freedom, six deviations wide."""
    count = 2**17
    parts = blinded(name, [np.zeros(count)] * 3, Request(0, 1, 1, 0, (count,), (0, count)))
    for words, _ in parts[1:]:
        columns = np.asarray(NARROW.bytes_of(words)).reshape(-1, 8).T
        squares = [
            ((np.bincount(column, minlength=256) - count / 256) ** 2).sum() * 256 / count
            for column in columns
        ]
        assert abs(sum(squares) - 8 * 255) < 6 * (2 * 8 * 255) ** 0.5


@given(st.integers(3, 9), st.data())
def test_one_question_is_answered_with_the_same_bytes_every_time(q, data):
    me = data.draw(st.integers(1, q - 1))
    request = Request(0, 4, data.draw(st.integers(0, 99)), 0, (3,), (2, 5))
    share = [np.arange(3.0)] * q
    again = blinded("pairwise", share, request)[me][0]
    assert np.array_equal(again, blinded("pairwise", share, request)[me][0])
    for other in (
        Request(0, 5, request.round, 0, (3,), (2, 5)),
        Request(0, 4, request.round + 1, 0, (3,), (2, 5)),
        Request(0, 4, request.round, 1, (3,), (2, 5)),
        Request(0, 4, request.round, 0, (3,), (3, 6)),
    ):
        assert not (again == blinded("pairwise", share, other)[me][0]).any()


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_the_requester_keeps_its_own_words(name):
    request = Request(1, 1, 1, 0, (3,), (0, 3))
    words, mask = blinded(name, [np.arange(3.0)] * 3, request)[1]
    assert np.array_equal(words, NARROW.encode(np.arange(3.0), 3))
    assert mask is None


def test_pairwise_with_two_parties_has_nothing_to_hide_behind():
    shares = [np.zeros(3), np.arange(3.0)]
    _, seen = total("pairwise", shares, Request(0, 1, 1, 0, (3,), (0, 3)))
    assert np.array_equal(NARROW.decode(seen[0][2], (3,)), shares[1])


@pytest.mark.parametrize("name", ["two-tree", "pairwise"])
def test_words_of_another_shape_are_not_masked(name):
    with pytest.raises(LocalProtocolError, match=r"3 words .* shape \(4,\)"):
        blinded(name, [np.zeros(3)] * 3, Request(0, 1, 1, 0, (4,), (0, 4)))


@settings(max_examples=40)
@given(st.sampled_from(sorted(AGGREGATIONS)), st.integers(3, 40), st.data())
def test_peers_are_mutual(name, q, data):
    requester = data.draw(st.integers(0, q - 1))
    meets = {me: peers(AGGREGATIONS[name], q, requester, me) for me in range(q)}
    assert all(me in meets[other] for me in range(q) for other in meets[me])
    assert all(meets.values())


def test_only_pairwise_needs_keys():
    assert {name for name, each in AGGREGATIONS.items() if each.needs_keys} == {"pairwise"}
